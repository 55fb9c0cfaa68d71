// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Preload this library: closing a file of a name that ends in .part fails, as on a network drive that is full. With
// THREADS=N, only N threads can be started, as where the memory of a process is limited, and closing works.
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

template <typename Function>
Function next(const char *name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int fclose(FILE *file) {
  char name[PATH_MAX];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fileno(file))).c_str(), name, sizeof name);
  const bool is_part = !std::getenv("THREADS") && length >= 5 && std::string(name + length - 5, 5) == ".part";
  const int result = next<int (*)(FILE *)>("fclose")(file);
  if (is_part) errno = ENOSPC;
  return is_part ? EOF : result;
}

extern "C" int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *data) {
  static std::atomic<int> started{0};
  const char *const most = std::getenv("THREADS");
  if (most && started++ >= std::atoi(most)) return EAGAIN;
  return next<decltype(&pthread_create)>("pthread_create")(thread, attributes, run, data);
}
