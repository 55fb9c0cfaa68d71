// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Plays the input, in a loop where it ends, and hands out its frames at their times. A roihold behind the detector
// attaches the regions in force to each frame.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "../media.h"
#include "settings.h"

namespace tune {

class Player {
 public:
  using TakeFrame = std::function<void(media::Owned<GstSample>)>;     // on a thread of the pipeline
  using TakeError = std::function<void(const std::string &message)>;  // on the main thread
  // `caps`: what the filter takes. `take_warning`: for warnings of the roihold. Throws media::Failure where the
  // pipeline cannot be made.
  Player(const Input &input, GstCaps *caps, TakeFrame take_frame, TakeError take_error, TakeError take_warning = {});
  ~Player();
  Player(const Player &) = delete;

  GstElement *roihold() const { return roihold_.get(); }
  // Shows the current frame again, as the roihold is set now. Frames that play follow the settings without it, and so
  // does the next frame of a camera.
  void refresh();
  void play();
  void pause();
  bool playing() const { return playing_; }
  // Whether there is a time to seek to. A live source and a picture have none.
  bool seekable() const { return duration_ > 0; }
  // Nanoseconds. If a seek is under way, this one comes after it; the last call wins.
  void seek(gint64 time);
  // Shows the next frame or the one before, and pauses.
  void step(bool forwards);
  gint64 position() const;
  gint64 duration() const { return duration_; }

 private:
  static void watch_decoder(GstBin *pipeline, GstBin *bin, GstElement *element, gpointer self);
  static GstPadProbeReturn note_start(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  static GstPadProbeReturn keep_frame(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  void send_again();
  static GstPadProbeReturn cut_lead(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  static gboolean take_message(GstBus *bus, GstMessage *message, gpointer self);
  void take_sample(GstSample *lent);
  void look_at_duration();
  gint64 sought_time() const;

  const TakeFrame take_frame_;
  const TakeError take_error_, take_warning_;
  media::Owned<GstElement> pipeline_, roihold_;
  media::Owned<GstBus> bus_;
  bool playing_ = false, seeking_ = false;
  bool ended_ = false, again_ = false;  // a picture has, and is to be shown again
  std::atomic<bool> has_frame_{false};  // since the start
  std::optional<gint64> next_seek_;
  gint64 duration_ = -1;
  std::string missing_;  // a decoder that is not installed
  mutable std::mutex lock_;
  gint64 shown_ = 0, length_ = 0;           // start and duration of the frame that was handed out last
  gint64 sought_ = -1, sought_start_ = -1;  // the time of a seek, and where the frame there may start
  std::set<gint64> starts_;                 // of the frames that a decoder has got since then
  gint64 lead_ = 0, flushed_lead_ = 0;      // time before that of a seek, before and after its flush
  media::Owned<GstBuffer> frame_;           // the last one that came to the roihold
};

}  // namespace tune
