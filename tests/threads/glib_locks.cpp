// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Preload this library with ThreadSanitizer. The locks and reference counts of GLib and GStreamer are not made of
// functions that ThreadSanitizer knows. Without this library it reports each buffer that goes from thread to thread.
#include <dlfcn.h>
#include <gst/gst.h>
#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <utility>

#undef gst_mini_object_unref
#undef g_object_unref
#undef gst_object_unref

extern "C" {
void __tsan_acquire(void *address);
void __tsan_release(void *address);
}

namespace {

// The function of this name that this library hides.
template <typename Function>
Function *hidden(Function *, const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define HIDDEN(name) static const auto real = hidden(name, #name)

extern "C" {

void g_mutex_lock(GMutex *mutex) {
  HIDDEN(g_mutex_lock);
  real(mutex);
  __tsan_acquire(mutex);
}

gboolean g_mutex_trylock(GMutex *mutex) {
  HIDDEN(g_mutex_trylock);
  const gboolean locked = real(mutex);
  if (locked) __tsan_acquire(mutex);
  return locked;
}

void g_mutex_unlock(GMutex *mutex) {
  HIDDEN(g_mutex_unlock);
  __tsan_release(mutex);
  real(mutex);
}

void g_cond_wait(GCond *cond, GMutex *mutex) {
  HIDDEN(g_cond_wait);
  __tsan_release(mutex);
  real(cond, mutex);
  __tsan_acquire(mutex);
}

gboolean g_cond_wait_until(GCond *cond, GMutex *mutex, gint64 end) {
  HIDDEN(g_cond_wait_until);
  __tsan_release(mutex);
  const gboolean signalled = real(cond, mutex, end);
  __tsan_acquire(mutex);
  return signalled;
}

// A thread of a pool sees what the one that pushed had done.
GThreadPool *g_thread_pool_new(GFunc function, gpointer user_data, gint most, gboolean exclusive, GError **error) {
  HIDDEN(g_thread_pool_new);
  using Call = std::pair<GFunc, gpointer>;
  const GFunc acquire = [](gpointer data, gpointer call) {
    __tsan_acquire(data);
    const auto [called, with] = *static_cast<Call *>(call);
    called(data, with);
  };
  return real(acquire, new Call(function, user_data), most, exclusive, error);
}

gboolean g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error) {
  HIDDEN(g_thread_pool_push);
  __tsan_release(data);
  return real(pool, data, error);
}

// A thread that gives up a reference has ended its work on the object before another thread frees or writes it.
void gst_mini_object_unref(GstMiniObject *object) {
  HIDDEN(gst_mini_object_unref);
  __tsan_release(object);
  __tsan_acquire(object);
  real(object);
}

gboolean gst_mini_object_is_writable(const GstMiniObject *object) {
  HIDDEN(gst_mini_object_is_writable);
  __tsan_acquire(const_cast<GstMiniObject *>(object));
  return real(object);
}

void g_object_unref(gpointer object) {
  HIDDEN(g_object_unref);
  __tsan_release(object);
  __tsan_acquire(object);
  real(object);
}

void gst_object_unref(gpointer object) {
  HIDDEN(gst_object_unref);
  __tsan_release(object);
  __tsan_acquire(object);
  real(object);
}

// std::timed_mutex calls this. ThreadSanitizer of GCC 12 does not know it and takes the mutex for unlocked.
int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const timespec *end) {
  for (;;) {
    const int result = pthread_mutex_trylock(mutex);
    if (result != EBUSY) return result;
    timespec now;
    clock_gettime(clock, &now);
    if (now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec)) return ETIMEDOUT;
    g_usleep(100);
  }
}
}
