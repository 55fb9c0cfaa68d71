/* SPDX-License-Identifier: LGPL-2.1-or-later
 *
 * A library to preload, which tells ThreadSanitizer of synchronisation in libraries that are built without it: GLib's
 * mutexes, conditions, queues and thread pools, GStreamer's task pool and references to buffers, and the clocked waits
 * of pthreads, which GCC 12 does not intercept.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <gst/gst.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void __tsan_acquire(void *address);
void __tsan_release(void *address);

#define UNSEEN __attribute__((no_sanitize("thread"), visibility("default")))
/* Declares `next`, the function `name` that this library takes the place of. */
#define NEXT(name)                 \
  static __typeof__(&(name)) next; \
  if (!next) next = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name)

#define LOCKS(type, name)                      \
  UNSEEN void name##_lock(type *lock) {        \
    NEXT(name##_lock);                         \
    next(lock);                                \
    __tsan_acquire(lock);                      \
  }                                            \
  UNSEEN void name##_unlock(type *lock) {      \
    NEXT(name##_unlock);                       \
    __tsan_release(lock);                      \
    next(lock);                                \
  }                                            \
  UNSEEN gboolean name##_trylock(type *lock) { \
    NEXT(name##_trylock);                      \
    const gboolean locked = next(lock);        \
    if (locked) __tsan_acquire(lock);          \
    return locked;                             \
  }
LOCKS(GMutex, g_mutex)
LOCKS(GRecMutex, g_rec_mutex)

UNSEEN void g_cond_wait(GCond *condition, GMutex *mutex) {
  NEXT(g_cond_wait);
  __tsan_release(mutex);
  next(condition, mutex);
  __tsan_acquire(mutex);
}

UNSEEN gboolean g_cond_wait_until(GCond *condition, GMutex *mutex, gint64 end) {
  NEXT(g_cond_wait_until);
  __tsan_release(mutex);
  const gboolean signalled = next(condition, mutex, end);
  __tsan_acquire(mutex);
  return signalled;
}

UNSEEN void g_async_queue_push(GAsyncQueue *queue, gpointer data) {
  NEXT(g_async_queue_push);
  __tsan_release(queue);
  next(queue, data);
}

UNSEEN gpointer g_async_queue_pop(GAsyncQueue *queue) {
  NEXT(g_async_queue_pop);
  gpointer data = next(queue);
  __tsan_acquire(queue);
  return data;
}

UNSEEN gpointer g_async_queue_try_pop(GAsyncQueue *queue) {
  NEXT(g_async_queue_try_pop);
  gpointer data = next(queue);
  __tsan_acquire(queue);
  return data;
}

UNSEEN gpointer g_async_queue_timeout_pop(GAsyncQueue *queue, guint64 timeout) {
  NEXT(g_async_queue_timeout_pop);
  gpointer data = next(queue, timeout);
  __tsan_acquire(queue);
  return data;
}

typedef struct {
  GstTaskPoolFunction call;
  gpointer data;
} Task;

__attribute__((no_sanitize("thread"))) static void run_task(void *data) {
  __tsan_acquire(data);
  const Task task = *(Task *)data;
  free(data);
  task.call(task.data);
}

UNSEEN gpointer gst_task_pool_push(GstTaskPool *pool, GstTaskPoolFunction call, gpointer data, GError **error) {
  NEXT(gst_task_pool_push);
  Task *task = malloc(sizeof *task);
  *task = (Task){call, data};
  __tsan_release(task);
  return next(pool, run_task, task, error);
}

typedef struct {
  GFunc call;
  gpointer data;
} PoolCall;

__attribute__((no_sanitize("thread"))) static void run_pool_call(gpointer data, gpointer call) {
  __tsan_acquire(data);
  ((PoolCall *)call)->call(data, ((PoolCall *)call)->data);
}

UNSEEN GThreadPool *g_thread_pool_new(GFunc call, gpointer data, gint most, gboolean exclusive, GError **error) {
  NEXT(g_thread_pool_new);
  PoolCall *kept = malloc(sizeof *kept);
  *kept = (PoolCall){call, data};
  return next(run_pool_call, kept, most, exclusive, error);
}

UNSEEN gboolean g_thread_pool_push(GThreadPool *pool, gpointer data, GError **error) {
  NEXT(g_thread_pool_push);
  __tsan_release(data);
  return next(pool, data, error);
}

/* Who holds the last reference may write, also where a buffer comes back from a pool. */
UNSEEN void gst_mini_object_unref(GstMiniObject *object) {
  NEXT(gst_mini_object_unref);
  __tsan_release(object);
  for (guint i = 0; GST_IS_BUFFER(object) && i < gst_buffer_n_memory(GST_BUFFER_CAST(object)); i++)
    __tsan_release(gst_buffer_peek_memory(GST_BUFFER_CAST(object), i));
  next(object);
}

UNSEEN gboolean gst_mini_object_is_writable(const GstMiniObject *object) {
  NEXT(gst_mini_object_is_writable);
  const gboolean writable = next(object);
  if (writable) __tsan_acquire((void *)object);
  return writable;
}

UNSEEN gboolean gst_buffer_is_all_memory_writable(GstBuffer *buffer) {
  NEXT(gst_buffer_is_all_memory_writable);
  const gboolean writable = next(buffer);
  for (guint i = 0; writable && i < gst_buffer_n_memory(buffer); i++) __tsan_acquire(gst_buffer_peek_memory(buffer, i));
  return writable;
}

UNSEEN GstFlowReturn gst_buffer_pool_acquire_buffer(GstBufferPool *pool, GstBuffer **buffer,
                                                    GstBufferPoolAcquireParams *params) {
  NEXT(gst_buffer_pool_acquire_buffer);
  const GstFlowReturn flow = next(pool, buffer, params);
  if (flow == GST_FLOW_OK) __tsan_acquire(*buffer);
  return flow;
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *end) {
  const long long second = 1000000000;
  struct timespec now, real;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &real);
  long long left = (end->tv_sec - now.tv_sec) * second + end->tv_nsec - now.tv_nsec;
  left = (left > 0 ? left : 0) + real.tv_nsec;
  real.tv_sec += left / second;
  real.tv_nsec = left % second;
  return pthread_cond_timedwait(condition, mutex, &real);
}

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *end) {
  for (;; usleep(50)) {
    struct timespec now;
    if (!pthread_mutex_trylock(mutex)) return 0;
    clock_gettime(clock, &now);
    if (now.tv_sec > end->tv_sec || (now.tv_sec == end->tv_sec && now.tv_nsec >= end->tv_nsec)) return ETIMEDOUT;
  }
}
