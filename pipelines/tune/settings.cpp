// SPDX-License-Identifier: LGPL-2.1-or-later
#include "settings.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../media.h"
#include "../stills.h"

namespace tune {

using namespace media;

namespace {

std::string shell_word(const std::string &word) {
  const bool plain = word.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                         "_-+=./,:%@") == std::string::npos;
  if (plain || word == "!") return word;
  const size_t equals = word.find('=');
  const size_t start = equals == std::string::npos ? 0 : equals + 1;
  return word.substr(0, start) + Owned<gchar>(g_shell_quote(word.c_str() + start)).get();
}

// GStreamer's parser takes these only in quotes.
bool is_special(unsigned char c) {
  return c < ' ' || std::strchr("\\'\"", c);
}

std::string quoted_text(const std::string &text) {
  if (std::none_of(text.begin(), text.end(), is_special)) return text;
  std::string quoted;
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return '"' + quoted + '"';
}

// Whether a launch line takes the name of the file.
bool is_plain(const std::string &name) {
  return g_utf8_validate(name.c_str(), -1, nullptr) && std::none_of(name.begin(), name.end(), is_special);
}

Words source_words(const std::string &input) {
  if (input.empty()) return {"videotestsrc", "!", "video/x-raw,format=I420,width=640,height=480"};
  if (uri_of(input) == input) return {"uridecodebin", "uri=" + input};
  struct stat status;
  if (stat(input.c_str(), &status) != 0) throw Failure(input + ": " + g_strerror(errno));
  if (S_ISDIR(status.st_mode)) throw Failure(input + " is a folder; name a video, a picture or a camera");
  if (S_ISCHR(status.st_mode)) return {"v4l2src", "device=" + input, "!", "decodebin"};
  if (!is_plain(input)) return {"uridecodebin", "uri=" + uri_of(input)};
  return {"filesrc", "location=" + input, "!", "decodebin"};
}

}  // namespace

std::vector<GParamSpec *> own_properties(GstElement *element) {
  guint count = 0;
  GParamSpec **specs = g_object_class_list_properties(G_OBJECT_GET_CLASS(element), &count);
  std::vector<GParamSpec *> own;
  for (guint i = 0; i < count; i++)
    if (specs[i]->owner_type == G_OBJECT_TYPE(element) && specs[i]->flags & G_PARAM_WRITABLE) own.push_back(specs[i]);
  g_free(specs);
  return own;
}

bool has_effect(GstElement *element, const char *property) {
  gboolean result = TRUE;
  if (g_signal_lookup("has-effect", G_OBJECT_TYPE(element)))
    g_signal_emit_by_name(element, "has-effect", property, &result);
  return result;
}

bool is_color(GParamSpec *spec) {
  return G_IS_PARAM_SPEC_UINT(spec) && has_suffix(spec->name, "-color");
}

std::string double_text(double value) {
  gchar text[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd(text, sizeof text, "%.15g", value);
  if (g_ascii_strtod(text, nullptr) != value) g_ascii_dtostr(text, sizeof text, value);
  return text;
}

std::string value_text(GParamSpec *spec, const GValue *value) {
  if (is_color(spec)) {
    gchar text[16];
    std::snprintf(text, sizeof text, "0x%08x", g_value_get_uint(value));
    return text;
  }
  if (G_VALUE_HOLDS_DOUBLE(value)) return double_text(g_value_get_double(value));
  if (G_VALUE_HOLDS_STRING(value)) return quoted_text(g_value_get_string(value) ? g_value_get_string(value) : "");
  return Owned<gchar>(gst_value_serialize(value)).get();
}

Words settings_of(GstElement *element) {
  Words words;
  for (GParamSpec *spec : own_properties(element)) {
    GValue value = G_VALUE_INIT;
    g_object_get_property(G_OBJECT(element), spec->name, &value);
    if (!g_param_value_defaults(spec, &value) && has_effect(element, spec->name))
      words.push_back(std::string(spec->name) + "=" + value_text(spec, &value));
    g_value_unset(&value);
  }
  return words;
}

void reset(GstElement *element) {
  for (GParamSpec *spec : own_properties(element))
    if (spec->flags & GST_PARAM_MUTABLE_PLAYING && std::strcmp(spec->name, "roi"))
      g_object_set_property(G_OBJECT(element), spec->name, g_param_spec_get_default_value(spec));
}

Words words_before_filter(const Input &input) {
  Words words = source_words(input.name);
  for (const char *word : {"!", "videoconvert", "!", "videoflip"}) words.push_back(word);
  words.push_back(std::string("video-direction=") + direction_of(path_of(input.name)));
  words.push_back("!");
  if (input.detector.empty()) return words;
  ErrorSlot error;
  gchar **detector = nullptr;
  g_shell_parse_argv(input.detector.c_str(), nullptr, &detector, error);
  error.check("the detector");
  for (gchar **word = detector; *word; word++) words.push_back(*word);
  g_strfreev(detector);
  for (const char *word : {"!", "videoconvert", "!"}) words.push_back(word);
  return words;
}

bool needs_roihold(const Input &input, GstElement *roihold) {
  return !input.detector.empty() || !settings_of(roihold).empty();
}

std::string launch_line(const Input &input, GstElement *roihold, GstElement *cudaconv) {
  Words words = words_before_filter(input);
  if (needs_roihold(input, roihold)) {
    words.push_back("roihold");
    for (const std::string &setting : settings_of(roihold)) words.push_back(setting);
    words.push_back("!");
  }
  words.push_back("cudaconv");
  for (const std::string &setting : settings_of(cudaconv)) words.push_back(setting);
  for (const char *word : {"!", "videoconvert", "!", "autovideosink"}) words.push_back(word);
  std::string line = "gst-launch-1.0";
  for (const std::string &word : words) line += " " + shell_word(word);
  return line;
}

}  // namespace tune
