// SPDX-License-Identifier: LGPL-2.1-or-later
#include "stills.h"

#include <gst/tag/tag.h>
#include <gst/video/video.h>

#include <glib/gstdio.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace media {

namespace {

constexpr char kPng[] = "pngdec name=decoder", kJpeg[] = "jpegdec name=decoder";

struct Source {
  std::string decoder;  // a part of a launch line
  int bits = 8;         // of a sample
  bool colored = true;
};

bool is_png(const std::string &name) {
  return has_suffix(name, ".png");
}

// Throws Failure where the file, which may have any name, is neither a PNG nor a JPEG.
Source source_of(const std::string &file) {
  // A pipe is read only once.
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return {is_png(file) ? kPng : kJpeg};
  unsigned char head[26] = {}, tail[8] = {};
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) throw Failure(g_strerror(errno));
  const size_t length = std::fread(head, 1, sizeof head, from);
  const bool has_tail = std::fseek(from, -8, SEEK_END) == 0 && std::fread(tail, 1, sizeof tail, from) == sizeof tail;
  std::fclose(from);
  if (length >= 2 && !std::memcmp(head, "\xff\xd8", 2)) return {kJpeg};
  if (length < 4 || std::memcmp(head, "\x89PNG", 4)) throw Failure("it is neither a PNG nor a JPEG picture");
  // pngenc writes colours of 8 bits.
  const bool deep = head[24] == 16, colored = head[25] & 2, alpha = head[25] & 4;
  if (!deep || !(colored || alpha)) return {kPng, deep ? 16 : 8, colored};
  // gdkpixbufdec accepts files that end early.
  if (!has_tail || std::memcmp(tail, "IEND", 4)) throw Failure("the picture is not complete");
  // GStreamer's pngdec mixes up 16-bit colours before 1.28, and alpha with them up to 1.28.8, where each pixel
  // gets that of the one before. gdk-pixbuf 2.44 makes 8 bits of 16 that are up to 1 too large.
  guint major, minor, micro, nano;
  gst_version(&major, &minor, &micro, &nano);
  if (alpha || (major == 1 && minor < 28)) return {"gdkpixbufdec name=decoder", 16, true};
  return {std::string(kPng) + " ! videoconvert dither=none ! video/x-raw,format=RGB", 16, true};
}

// The next `length` bytes of a file, at most a megabyte of them.
std::string read_bytes(FILE *from, guint32 length) {
  constexpr guint32 kMost = 1 << 20;
  std::string bytes(std::min(length, kMost), '\0');
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), from));
  return bytes;
}

// Calls `take(type, length)` at the data of each chunk of a PNG, until it returns false.
template <typename F>
void read_chunks(const std::string &file, const F &take) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return;
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return;
  char head[8] = {};
  constexpr long kHead = 8, kChecksum = 4;
  if (std::fread(head, 1, 8, from) == 8 && !std::memcmp(head, "\x89PNG\r\n\x1a\n", 8))
    for (long at = kHead; !std::fseek(from, at, SEEK_SET) && std::fread(head, 1, 8, from) == 8;) {
      const guint32 length = GST_READ_UINT32_BE(head);
      if (length > G_MAXINT32 || !take(from, std::string(head + 4, 4), length)) break;
      at += kHead + static_cast<long>(length) + kChecksum;
    }
  std::fclose(from);
}

// Calls `take(marker, length)` at the data of each segment of a JPEG, until it returns false.
template <typename F>
void read_segments(const std::string &file, const F &take) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return;
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return;
  guint8 head[4] = {};
  if (std::fread(head, 1, 2, from) == 2 && !std::memcmp(head, "\xff\xd8", 2))
    for (long at = 2; !std::fseek(from, at, SEEK_SET) && std::fread(head, 1, 4, from) == 4 && head[0] == 0xff;) {
      const guint32 length = GST_READ_UINT16_BE(head + 2);  // with its own two bytes
      if (head[1] == 0xff) {
        at++;  // a byte between segments
      } else if (length < 2 || !take(from, head[1], length - 2)) {
        break;
      } else {
        at += 2 + static_cast<long>(length);
      }
    }
  std::fclose(from);
}

// Whether colours look different without the profile of a picture: a PNG has its name, a JPEG all of it.
bool needs_profile(const std::string &file) {
  std::string profile;
  read_chunks(file, [&](FILE *from, const std::string &type, guint32 length) {
    if (type == "iCCP") profile = read_bytes(from, length);
    return profile.empty() && type != "IDAT";
  });
  read_segments(file, [&](FILE *from, int marker, guint32 length) {
    constexpr int kProfile = 0xe2, kPixels = 0xda;
    if (marker == kProfile) profile = read_bytes(from, length);
    if (profile.compare(0, 11, "ICC_PROFILE") != 0) profile.clear();
    return profile.empty() && marker != kPixels;
  });
  const std::string wide("\0s\0R\0G\0B", 8);
  return !profile.empty() && profile.find("sRGB") == std::string::npos && profile.find(wide) == std::string::npos;
}

// Whether decodebin has jpegparse, which makes tags of the Exif data, before jpegdec: not with GStreamer 1.22.
bool plugs_jpegparse() {
  const Owned<GstElementFactory> parser(gst_element_factory_find("jpegparse"));
  return parser && gst_plugin_feature_get_rank(GST_PLUGIN_FEATURE(parser.get())) >= GST_RANK_MARGINAL;
}

// Whether the chunks before the pixels of a PNG tell of an animation.
bool is_animated_png(const std::string &file) {
  bool found = false;
  read_chunks(file, [&](FILE *, const std::string &type, guint32) {
    found = type == "acTL";
    return !found && type != "IDAT";
  });
  return found;
}

bool is_animated_webp(const std::string &file) {
  if (!g_file_test(file.c_str(), G_FILE_TEST_IS_REGULAR)) return false;
  FILE *const from = g_fopen(file.c_str(), "rb");
  if (!from) return false;
  constexpr int kFlags = 20, kAnimation = 2;
  const std::string head = read_bytes(from, kFlags + 1);
  std::fclose(from);
  return head.size() > kFlags && !head.compare(0, 4, "RIFF") && !head.compare(8, 8, "WEBPVP8X") &&
         head[kFlags] & kAnimation;
}

// The video-direction of a videoflip that turns a picture with these Exif data upright; "auto" where they have none.
const char *direction_in(const std::string &exif) {
  const Owned<GstBuffer> data(gst_buffer_new_memdup(exif.data(), exif.size()));
  const Owned<GstTagList> tags(gst_tag_list_from_exif_buffer_with_tiff_header(data.get()));
  GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
  if (!tags || !gst_video_orientation_from_tag(tags.get(), &method) || method == GST_VIDEO_ORIENTATION_IDENTITY)
    return "auto";
  static auto *const methods = static_cast<GEnumClass *>(g_type_class_ref(GST_TYPE_VIDEO_ORIENTATION_METHOD));
  return g_enum_get_value(methods, method)->value_nick;
}

const char *reason(const Source &source, bool to_png) {
  if (source.bits == 16 && source.colored) return "GStreamer keeps more only of grey without alpha";
  return to_png ? "the filter or the detector takes no more" : "a JPEG has no more";
}

}  // namespace

void check_animation(const std::string &file) {
  if (is_animated_webp(file))
    throw Failure(file + " is an animated WebP, which GStreamer does not decode: make a GIF or a video of it first");
  if (is_animated_png(file))
    std::fprintf(stderr, "warning: %s is an animated PNG: all but its first picture is left out\n", file.c_str());
}

const char *direction_of(const std::string &file) {
  std::string exif;
  read_chunks(file, [&](FILE *from, const std::string &type, guint32 length) {
    if (type == "eXIf") exif = read_bytes(from, length);
    return type != "eXIf";
  });
  if (!plugs_jpegparse())
    read_segments(file, [&](FILE *from, int marker, guint32 length) {
      constexpr int kExif = 0xe1, kPixels = 0xda;
      const std::string name("Exif\0\0", 6);
      if (marker == kExif) exif = read_bytes(from, length);
      if (exif.compare(0, name.size(), name) != 0) exif.clear();
      exif.erase(0, name.size());
      return exif.empty() && marker != kPixels;
    });
  return exif.empty() ? "auto" : direction_in(exif);
}

Stills::Stills(std::string filter, SetUp set_up, Report report)
    : middle_(std::move(filter)), set_up_(std::move(set_up)), report_(std::move(report)) {}

void Stills::filter(const std::string &input, const std::string &output) {
  OutputFile file(output, input);
  try {
    const Source source = source_of(input);
    check_animation(input);
    const std::string line = line_for(source.decoder, is_png(output));
    if (!runner_ || line != line_) make(line);
    gst_util_set_object_arg(G_OBJECT(find(runner_->pipeline(), "flip").get()), "video-direction", direction_of(input));
    g_object_set(find(runner_->pipeline(), "in").get(), "location", input.c_str(), nullptr);
    g_object_set(find(runner_->pipeline(), "out").get(), "location", file.part().c_str(), nullptr);
    const uint64_t before = runner_->frames();
    runner_->play();
    if (runner_->frames() == before) throw Failure("there is no picture in it");
    if (report_) report_(filter_.get(), *runner_);
    report_ = nullptr;
    const Owned<GstCaps> decoded = caps_of("decoder", "src"), written = caps_of("encoder", "sink");
    const int bits = written ? depth_of(written.get()) : 0;
    if (bits && bits < source.bits)
      std::fprintf(stderr, "warning: %s: of its %d bits %d are kept: %s\n", input.c_str(), source.bits, bits,
                   reason(source, is_png(output)));
    if (decoded && written && has_alpha(decoded.get()) && !has_alpha(written.get()))
      std::fprintf(stderr, "warning: %s has alpha, which is left out: %s\n", input.c_str(),
                   is_png(output) ? "the detector takes none" : "a JPEG has none");
    if (needs_profile(input))
      std::fprintf(stderr, "warning: %s: its colour profile is left out: colours may look different\n", input.c_str());
    runner_->stop();
    if (!runner_->interrupted()) file.complete();
  } catch (const Failure &e) {
    if (interrupted()) return;  // which is why
    runner_.reset();
    throw Failure(input + ": " + e.what());
  }
}

void Stills::check_interruption() {
  if (runner_) runner_->check_interruption();
}

std::string Stills::line_for(const std::string &decoder, bool to_png) const {
  const Owned<GstElementFactory> parser(gst_element_factory_find("jpegparse"));  // reads how the camera was held
  // jpegenc prefers YUV, and writes limited range as if it were full: RGB with alpha would lose contrast. pngenc
  // prefers alpha, also for a JPEG, which has none.
  const bool from_png = decoder != kJpeg;
  return std::string("filesrc name=in ! ") + (parser && !from_png ? "jpegparse ! " : "") + decoder + " ! " + middle_ +
         " ! videoconvert ! " + (from_png != to_png ? "video/x-raw,format={RGB,GRAY8} ! " : "") +
         (to_png ? "pngenc name=encoder" : "jpegenc name=encoder quality=95") + " ! filesink name=out";
}

void Stills::make(const std::string &line) {
  Owned<GstElement> pipeline = make_pipeline(line);
  const Owned<GstElement> decoder = find(pipeline.get(), "decoder");
  if (GST_IS_VIDEO_DECODER(decoder.get()))
    gst_video_decoder_set_max_errors(GST_VIDEO_DECODER(decoder.get()), 0);  // it says why
  filter_ = set_up_(pipeline.get());
  runner_.reset();  // before the next one takes the signals
  runner_ = std::make_unique<Runner>(std::move(pipeline), filter_.get(), true);
  line_ = line;
}

// The caps at a pad of an element; none where they are not known.
Owned<GstCaps> Stills::caps_of(const char *element, const char *pad) {
  return Owned<GstCaps>(gst_pad_get_current_caps(
      Owned<GstPad>(gst_element_get_static_pad(find(runner_->pipeline(), element).get(), pad)).get()));
}

}  // namespace media
