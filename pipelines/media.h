// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the example programs share: owned objects, a pipeline with its bus and its progress line, and the conversion of
// one file into another.
#pragma once

#include <gst/gst.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace media {

struct Release {
  void operator()(GstElement *element) const { gst_object_unref(element); }
  void operator()(GstObject *object) const { gst_object_unref(object); }
  void operator()(GstElementFactory *factory) const { gst_object_unref(factory); }
  void operator()(GstPad *pad) const { gst_object_unref(pad); }
  void operator()(GstBus *bus) const { gst_object_unref(bus); }
  void operator()(GstBuffer *buffer) const { gst_buffer_unref(buffer); }
  void operator()(GstEvent *event) const { gst_event_unref(event); }
  void operator()(GstSample *sample) const { gst_sample_unref(sample); }
  void operator()(GstCaps *caps) const { gst_caps_unref(caps); }
  void operator()(GstTagList *tags) const { gst_tag_list_unref(tags); }
  void operator()(GstStructure *structure) const { gst_structure_free(structure); }
  void operator()(GMainLoop *loop) const { g_main_loop_unref(loop); }
  void operator()(GOptionContext *context) const { g_option_context_free(context); }
  void operator()(gchar *text) const { g_free(text); }
};
template <typename T>
using Owned = std::unique_ptr<T, Release>;

using Failure = std::runtime_error;

// The user has ended the stream early. The output is complete, but shorter.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The exit code of a program that ends by an exception: kExitInterrupted after Ctrl-C, else 1.
int exit_code(const std::exception &e);
constexpr int kExitInterrupted = 130;

// An argument for GLib functions that report a GError; check() throws what they have reported.
class ErrorSlot {
 public:
  ~ErrorSlot() { g_clear_error(&error_); }
  operator GError **() { return &error_; }
  void check(const std::string &what) const {
    if (error_) throw Failure(what + ": " + error_->message);
  }

 private:
  GError *error_ = nullptr;
};

// Whether the text ends so, in capitals or not.
bool has_suffix(const std::string &text, const std::string &suffix);
// The URI of a file, or the text itself where it is one.
std::string uri_of(const std::string &file);
// The file that such a text names; empty where that is in the network.
std::string path_of(const std::string &file_or_uri);
// The first element in the bin with this name; fails where there is none.
Owned<GstElement> find(GstElement *bin, const char *name);
// Makes a pipeline or, with pads at its ends, a bin of a launch line. A videoflip for tags is named `flip`: its answers
// to queries are corrected. A converter of decoded frames is named `entry`: it gets mended caps.
Owned<GstElement> make_pipeline(const std::string &line);
Owned<GstElement> make_bin(const std::string &line);
// Calls `tell` with the data when a uridecodebin has all streams of its input, or of the next part of its input.
void watch_streams(GstElement *uridecodebin, void (*tell)(gpointer), gpointer data);
// Sends the video of an input into the queue named `decoded` that begins a pipeline. If files are joined, the video of
// the next one goes on. Returns the source, which is the pipeline's.
GstElement *add_source(GstElement *pipeline, const std::string &input);
// The running time or, with gst_segment_to_stream_time, the stream time of a timestamp at a pad. GST_CLOCK_TIME_NONE
// where its segment does not have it.
GstClockTime time_at(GstPad *pad, GstClockTime timestamp,
                     guint64 (*convert)(const GstSegment *, GstFormat, guint64) = gst_segment_to_running_time);
// A cudaconv, and the roihold before it where there is one.
using Filters = std::vector<GstElement *>;
// Sets a property of the first element that has it, as a launch line does; `setting` is "name=value". Throws Failure
// that says what is wrong.
void set_property(const Filters &elements, const std::string &setting);
// Whether the element has a preset of this name.
bool has_preset(GstElement *element, const std::string &name);
// Loads a preset of the first element. The others load their preset of the same name, or get their defaults. Throws
// Failure that lists the presets if there is none of this name.
void load_preset(const Filters &elements, const std::string &name);

// The caps of decoded frames, corrected where a decoder says what elements behind it misread.
Owned<GstCaps> mended(GstCaps *decoded);
// The bits of a sample of video; 0 where the caps are not fixed.
int depth_of(const GstCaps *video);
// Whether frames with these caps have alpha.
bool has_alpha(const GstCaps *video);
// Prints what RGB of 8 bits leaves out of the decoded video that an element gives; `reason`: why bits are lost.
void warn_of_rgb(GstElement *decoded, const std::string &reason);

// Throws Failure where the option has an empty value, as `-o "$UNSET"` in a script; nullptr: it is not given.
void check_value(const char *option, const gchar *value);

// The option --version: prints the name and the version of the program, and ends it.
GOptionEntry version_option();

// Throws Failure where no window can be shown.
void check_display();

// Posts an error message of an element, or of the pipeline where no element has failed.
void post_failure(GstElement *element, const std::string &text, GQuark domain = GST_STREAM_ERROR,
                  gint code = GST_STREAM_ERROR_FAILED);
// The text of a message. An error also has its debug text, which often holds the reason.
std::string message_text(GstMessage *message, void (*parse)(GstMessage *, GError **, gchar **), bool with_debug = true);

// While one exists, Ctrl-C ends the program at once: for calls that wait for the other end of a pipe.
class AtOnce {
 public:
  AtOnce();
  ~AtOnce();
  AtOnce(const AtOnce &) = delete;

 private:
  std::vector<std::pair<int, struct sigaction>> before_;  // signals and what they did
};

// Writes to NAME.PROCESS.part (a long NAME is cut), which becomes NAME once it is complete; to NAME itself where that
// is a pipe, a device or the standard output. A program has one at a time.
class OutputFile {
 public:
  // Throws Failure if `name` is a folder, or the file `input`. An empty one stands for no file.
  OutputFile(const std::string &name, const std::string &input);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  const std::string &part() const { return part_; }
  void complete();
  // Where to report: standard output, or standard error if the output goes there.
  FILE *report() const { return is_stdout_ ? stderr : stdout; }

 private:
  std::string name_;
  std::string part_;
  bool is_stdout_ = false;
};

// Runs a pipeline until it ends, fails or is interrupted.
class Runner {
 public:
  // Counts the frames that leave `filter`. `quiet`: prints neither notes nor progress.
  Runner(Owned<GstElement> pipeline, GstElement *filter, bool quiet);
  ~Runner();
  Runner(const Runner &) = delete;

  GstElement *pipeline() const { return pipeline_.get(); }
  // Brings it to PAUSED, where the first frame has gone through the filter; with a live source to PLAYING, where it
  // will go. Throws Failure or Interrupted.
  void preroll();
  // Waits until a seek is done.
  void wait();
  // Plays to the end, with a line of progress on a terminal. Ctrl-C ends it early, also where the input is stuck, so
  // that a file is finished properly; before the first frame it throws Interrupted. A second one ends the program.
  // Throws Failure, also where no frame comes through the filter.
  void play();
  // Closes files, and throws Failure if one cannot be closed. To READY, unless it was interrupted: then the rest waits
  // for the end of the Runner.
  void stop();

  gint64 duration() const { return duration_; }  // nanoseconds; -1: not known
  uint64_t frames() const { return frames_; }
  bool interrupted() const { return interrupted_; }
  // Throws Failure where an error is on the bus.
  void check_failure();
  // Throws Interrupted if it was. The Runner then ends the program if its pipeline does not stop at once.
  void check_interruption();
  // Frames a second from the first frame on; 0 where there are too few.
  double rate() const;

 private:
  static GstPadProbeReturn count_frame(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  static GstPadProbeReturn drop_late(GstPad *pad, GstPadProbeInfo *info, gpointer self);
  static gboolean show_progress(gpointer self);
  static gboolean on_interrupt(gpointer self);
  static gboolean on_message(GstBus *bus, GstMessage *message, gpointer self);
  static void on_element(GstBin *pipeline, GstBin *bin, GstElement *element, gpointer self);
  std::string words() const;  // of an interruption
  std::string decoders();
  GstStateChangeReturn change(GstState state);
  void fail(const std::string &text);
  void end_progress();

  const Owned<GMainLoop> loop_;
  const Owned<GstElement> pipeline_;
  const Owned<GstBus> bus_;
  const bool quiet_;
  std::string failure_;  // the first error
  struct Handler {
    Runner *runner;
    int number;
  };
  std::deque<Handler> handlers_;  // of signals
  std::vector<guint> signals_;
  int signal_ = 0;           // the one that has interrupted
  gint64 interruption_ = 0;  // when, in microseconds of the monotonic clock
  guint progress_ = 0;
  bool playing_ = false;
  std::atomic<bool> interrupted_{false};
  bool missing_ = false;   // a plugin is
  bool given_up_ = false;  // interrupted before anything was written
  bool leaving_ = false;   // the program ends, since it was interrupted
  std::mutex lock_;
  std::set<std::string> decoders_;  // of video, by the names of their factories
  gint64 duration_ = -1;
  gint64 ended_ = 0;                    // microseconds of the monotonic clock
  std::atomic<gint64> first_frame_{0};  // the same, of the first frame that left the filter
  std::atomic<gint64> position_{0};     // stream time of the last one
  std::atomic<uint64_t> frames_{0};
};

// Pictures beside the video, such as covers. They are not filtered.
enum class Covers { kKeep, kDrop };
// Makes a pipeline that decodes `input`, sends its video through `filter`, and writes `output`: a .webm, .mkv or .mp4
// by the encoders that are installed. Sound and subtitles come along where the container takes them; sound is encoded
// anew only where it does not take it as it is. A line on stderr says what is left out.
Owned<GstElement> make_converter(const std::string &input, const std::string &part, const std::string &output,
                                 Owned<GstElement> filter, Covers covers);
// Ends the file of make_converter() at the last filtered frame, also where the input is stuck. False for other
// pipelines.
bool finish_conversion(GstElement *pipeline);
// Whether make_converter() writes files with such a name.
bool is_video_file(const std::string &name);
// Whether a name asks for a picture: .png, .jpg or .jpeg.
bool is_picture_file(const std::string &name);
// Whether bare frames may have this name: it ends in .rgb or .raw, has no suffix, or is a pipe or a device.
// Another suffix promises a format that these programs do not write.
bool is_bare_file(const std::string &name);

}  // namespace media
