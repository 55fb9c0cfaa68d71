// SPDX-License-Identifier: LGPL-2.1-or-later
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "ending.h"
#include "media.h"

namespace media {

namespace {

// The file that is being written, and the name that it will have.
struct {
  std::string part, name;
} written;

// The part, until it has its name. A signal handler may read it at any time.
std::atomic<const char *> unfinished{nullptr};

constexpr char kInterrupted[] = "\ninterrupted\n";
std::atomic<const char *> last_words{kInterrupted};

void remove_part() {
  if (const char *part = unfinished) unlink(part);
}

// A signal that ends the program in its own way, with a core file for example.
void remove_and_end(int number) {
  remove_part();
  std::signal(number, SIG_DFL);
  raise(number);
}

void look_for_threads(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer) {
  g_log_default_handler(domain, level, message, nullptr);
  if (!std::strstr(message, "failed to create thread")) return;
  remove_part();
  std::fprintf(stderr, "%s: no thread can be started: is the memory or the number of processes limited (ulimit)?\n",
               g_get_prgname());
  _exit(1);
}

// The file that a link leads to, also where there is none yet.
std::string target_of(std::filesystem::path path) {
  std::error_code none;
  constexpr int kMost = 40;  // links, as for the kernel
  for (int i = 0; i < kMost && std::filesystem::is_symlink(path, none); i++)
    path = path.parent_path() / std::filesystem::read_symlink(path, none);  // an absolute one takes its place
  return path.string();
}

bool same(const struct stat &a, const struct stat &b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// NAME.PROCESS.part in the same folder, since another process may write a file of the same name. A long NAME is cut, so
// that the file system takes it.
std::string part_of(const std::string &name) {
  const std::filesystem::path path(name);
  const std::string suffix = "." + std::to_string(getpid()) + ".part";
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const long most = pathconf(folder.c_str(), _PC_NAME_MAX);  // bytes; -1: not known
  std::string last = path.filename().string();
  if (most > static_cast<long>(suffix.size()) && last.size() + suffix.size() > static_cast<size_t>(most)) {
    size_t length = static_cast<size_t>(most) - suffix.size();
    while (length > 0 && (last[length] & 0xc0) == 0x80) length--;  // not within a character
    last.resize(length);
  }
  return (path.parent_path() / (last + suffix)).string();
}

}  // namespace

std::vector<int> interruptions() {
  struct sigaction hangup;
  sigaction(SIGHUP, nullptr, &hangup);
  return hangup.sa_handler == SIG_IGN ? std::vector{SIGINT, SIGTERM} : std::vector{SIGINT, SIGTERM, SIGHUP};
}

void leave(int) {
  remove_part();
  const char *const words = last_words;
  [[maybe_unused]] const ssize_t length = write(STDERR_FILENO, words, std::strlen(words));
  _exit(kExitInterrupted);
}

void say_at_end(const char *words) {
  last_words = words ? words : kInterrupted;
}

void leave_in(int milliseconds) {
  std::fflush(stdout);
  std::signal(SIGALRM, leave);
  const itimerval timer = {{}, {milliseconds / 1000, milliseconds % 1000 * 1000}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void end_without_threads() {
  [[maybe_unused]] static const guint handler =
      g_log_set_handler("GStreamer", G_LOG_LEVEL_WARNING, look_for_threads, nullptr);
}

std::string name_of_part(const std::string &place) {
  return place == written.part ? written.name : "";
}

AtOnce::AtOnce() {
  struct sigaction action = {}, before;
  action.sa_handler = leave;
  for (const int number : interruptions())
    if (sigaction(number, &action, &before) == 0) before_.emplace_back(number, before);
}

AtOnce::~AtOnce() {
  for (const auto &[number, before] : before_) sigaction(number, &before, nullptr);
}

OutputFile::OutputFile(const std::string &name, const std::string &input) : name_(name), part_(name) {
  if (g_file_test(name.c_str(), G_FILE_TEST_IS_DIR)) throw Failure(name + " is a folder, not a file to write");
  struct stat file, standard;
  const bool exists = !name.empty() && stat(name.c_str(), &file) == 0;
  written = {name, name};
  is_stdout_ = exists && fstat(STDOUT_FILENO, &standard) == 0 && same(file, standard);
  if (name.empty() || is_stdout_ || (exists && !S_ISREG(file.st_mode))) return;
  if (exists && access(name.c_str(), W_OK) != 0)
    throw Failure("cannot write " + name + ": " + g_strerror(errno));  // the folder would let it be replaced
  std::error_code none;
  name_ = target_of(name);  // a link stays one
  if (std::filesystem::equivalent(path_of(input), name_, none))
    throw Failure("the output is the input: name another file");
  part_ = part_of(name_);
  written = {part_, name_};
  unfinished = part_.c_str();
  for (const int number : {SIGQUIT, SIGXCPU, SIGABRT, SIGBUS, SIGSEGV, SIGTRAP})
    if (std::signal(number, remove_and_end) == SIG_IGN) std::signal(number, SIG_IGN);
}

OutputFile::~OutputFile() {
  written = {};
  if (unfinished.exchange(nullptr)) g_unlink(part_.c_str());  // it has failed
}

void OutputFile::complete() {
  if (part_ == name_) return;
  struct stat before;
  if (stat(name_.c_str(), &before) == 0) chmod(part_.c_str(), before.st_mode);  // a private file stays private
  if (g_rename(part_.c_str(), name_.c_str()) != 0) throw Failure("cannot write " + name_ + ": " + g_strerror(errno));
  unfinished = nullptr;
}

}  // namespace media
