// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The streams of an output file, from the streams of its input to the muxer.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "../media.h"

namespace media {

// The data of a branch. kCoded: sound as it is in the input.
enum class Kind { kVideo, kSound, kCoded, kText };

// Each stream of the output has a branch. An input may replace its streams in the middle, part by part; muxers take no
// new ones then. A branch outlives a part: it gets the streams of its kind one after the other, in time without
// overlap. The muxer gets nothing before all branches are known and have data, since it takes none later.
class Branches {
 public:
  // `muxer` is in `pipeline`, and `sink` behind it.
  Branches(GstElement *pipeline, GstElement *muxer, GstElement *sink);
  ~Branches();
  Branches(const Branches &) = delete;

  // Makes a branch of elements that are in the pipeline: from `head` over the queue `entry` to `last`, which is linked
  // to the muxer by a pad of the template `request`. `source` has its first stream, and `name` is for messages.
  void add(Kind kind, const std::string &name, GstPad *source, GstElement *head, GstElement *entry, GstElement *last,
           const char *request);
  // Sends a stream of a later part into a branch that is free and takes it; false where there is none.
  bool join(Kind kind, GstPad *source);
  // A stream of the input has gone.
  void leave(GstPad *source);
  // The part has no more streams: a branch without one ends.
  void complete();
  // No branch is added any more: the first part is complete, or the muxer runs.
  bool closed() const { return closed_; }
  // Whether a branch for sound as it is in the input goes on with such sound.
  bool goes_on_with(const GstCaps *coded);
  // Ends all branches at the last frame of the video, also where the input gives nothing any more.
  void finish();

 private:
  struct Branch;
  static GstPadProbeReturn on_source(GstPad *pad, GstPadProbeInfo *info, gpointer branch);
  static GstPadProbeReturn on_gate(GstPad *pad, GstPadProbeInfo *info, gpointer branch);
  static GstPadProbeReturn on_entry(GstPad *pad, GstPadProbeInfo *info, gpointer branch);
  static GstPadProbeReturn cut_off(GstPad *pad, GstPadProbeInfo *info, gpointer branch);
  static void on_overrun(GstElement *queue, gpointer branch);
  static gboolean decide(gpointer self);
  static gboolean lose_patience(gpointer self);
  static GstPadProbeReturn on_event(Branch *branch, GstPadProbeInfo *info);
  void begin_part(Branch *branch, GstClockTime time);
  void start();
  void discard(Branch *branch);
  void end(Branch *branch);
  bool is_live();

  GstElement *const pipeline_, *const muxer_, *const sink_;  // not owned
  std::recursive_mutex lock_;
  std::vector<std::unique_ptr<Branch>> branches_;
  std::atomic<bool> closed_{false};
  bool known_ = false;      // all streams of the first part are
  bool impatient_ = false;  // what has no data yet is left out
  bool started_ = false;
  bool finishing_ = false;
  guint timer_ = 0;
  // Nanoseconds that are added to the running time of the part that has begun last.
  bool has_offset_ = false;
  GstClockTime offset_ = 0;
  std::atomic<GstClockTime> last_frame_{0};  // running time
};

// Puts the elements into the pipeline and links them. Throws Failure where two do not fit.
void add_chain(GstElement *pipeline, const std::vector<GstElement *> &chain);

}  // namespace media
