// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the files of the test of cudaconv-tune share.
#pragma once

#include <gtk/gtk.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "../../pipelines/tune/window.h"

inline constexpr gint64 kPatience = 20 * G_USEC_PER_SEC;

inline std::string why;  // what is wrong, for the reader

inline bool pump_until(const std::function<bool()> &done) {
  const gint64 end = g_get_monotonic_time() + kPatience;
  while (!done()) {
    if (g_get_monotonic_time() > end) return false;
    while (g_main_context_iteration(nullptr, FALSE)) continue;
    g_usleep(5000);
  }
  return true;
}

inline void pump(gint64 ms) {
  const gint64 end = g_get_monotonic_time() + 1000 * ms;
  pump_until([end] { return g_get_monotonic_time() > end; });
}

inline GtkWidget *find_widget(const char *name, GtkWidget *in) {
  if (!std::strcmp(gtk_widget_get_name(in), name)) return in;
  if (!GTK_IS_CONTAINER(in)) return nullptr;
  std::pair<const char *, GtkWidget *> search{name, nullptr};
  gtk_container_forall(
      GTK_CONTAINER(in),
      [](GtkWidget *child, gpointer data) {
        auto *s = static_cast<std::pair<const char *, GtkWidget *> *>(data);
        if (!s->second) s->second = find_widget(s->first, child);
      },
      &search);
  return search.second;
}

// Seconds, as the window shows them; 0: not known yet.
inline double length_of(const tune::Window &of) {
  const std::string text = gtk_label_get_text(GTK_LABEL(find_widget("time", of.widget())));
  const size_t at = text.find("/ 0:");
  return at == std::string::npos ? 0 : g_ascii_strtod(text.c_str() + at + 4, nullptr);
}

// The tests of tuneoutlines.cpp.
bool draws_outlines(const std::string &clip);
bool hides_outlines(const std::string &clip);
bool counts_held(const std::string &clip);
