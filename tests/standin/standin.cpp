// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The functions of the runtime: memory, streams that defer their work, events, and failures on demand.
#include "standin.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#ifdef STANDIN_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif

namespace {

using Clock = std::chrono::steady_clock;

// Properties of the device, roughly as of compute capability 9.0.
constexpr size_t kDeviceBytes = size_t{4} << 30;
constexpr int kSharedBytes = 48 << 10;
constexpr int kSharedBytesOptin = 227 << 10;
constexpr int kSharedBytesReserved = 1 << 10;
constexpr int kSharedBytesMultiprocessor = 228 << 10;
constexpr int kMultiprocessors = 16;
constexpr int kCacheBytes = 4 << 20;
constexpr int kThreadsMultiprocessor = 2048;
constexpr int kBlocksMultiprocessor = 32;
constexpr std::align_val_t kAlignment{512};  // alignment of allocations; also the unit of cudaMallocPitch

// The number of queries that get "not ready" before the work runs.
constexpr int kNotReadyAnswers = 2;

// A position in a stream that an event recorded.
struct Record {
  std::shared_ptr<CUstream_st> stream;
  uint64_t sequence = 0;
  bool done = false;
  Clock::time_point time;
  int queries = 0;
};

struct Operation {
  uint64_t sequence = 0;  // counts calls over all streams
  std::function<void()> run;
  std::shared_ptr<Record> after;  // the record to wait for, of cudaStreamWaitEvent()
  bool always = false;            // runs on a lost device too
};

struct Allocation {
  size_t size = 0;
  bool owned = true;      // false: registered host memory
  bool released = false;  // cudaFreeAsync() was called but has not run yet
};
using Allocations = std::map<uintptr_t, Allocation>;

struct Failure {
  std::string name;
  int remaining = 0;
  cudaError_t error = cudaSuccess;
  bool sticky = false;
};

}  // namespace

struct CUstream_st {
  bool blocking = true;  // synchronises with the NULL stream
  std::deque<Operation> queue;
  int queries = 0;
};

struct CUevent_st {
  unsigned int flags = 0;
  std::shared_ptr<Record> record;
};

// A kernel with copies of its arguments.
struct KernelCall {
  const void *function = nullptr;
  standin::Kernel kernel;
  dim3 grid, block;
  size_t shared_bytes = 0;
  std::vector<std::shared_ptr<void>> arguments;
  std::vector<void *> addresses;  // of the arguments: a grid that runs allocates nothing, where tests make that fail
};

struct CUgraphNode_st {
  KernelCall call;
  std::vector<cudaGraphNode_t> dependencies;
};

struct CUgraph_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};

struct CUgraphExec_st {
  std::vector<std::shared_ptr<CUgraphNode_st>> nodes;  // in an order that the dependencies allow
  std::map<cudaGraphNode_t, KernelCall> calls;
};

namespace {

bool ends_context(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorContextIsDestroyed:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

void *allocate(size_t size) {
  void *p = ::operator new(size, kAlignment, std::nothrow);
  if (p) memset(p, 0xc9, size);
  return p;
}
void release(void *p) {
  ::operator delete(p, kAlignment);
}

// Locks: `mutex` guards the tables and is held briefly. `execution` is held while work runs, without `mutex`, so that
// kernels and host functions may take any time. A thread that needs both takes `execution` first.
struct State {
  std::mutex mutex;

  int devices = 1;
  cudaError_t sticky = cudaSuccess;
  std::vector<Failure> failures;
  std::map<std::string, int> calls;
  int all_calls = 0;

  Allocations device, host;
  size_t device_bytes = 0;
  bool device_accessible = false;  // true while work runs; if false, AddressSanitizer reports host accesses
  bool early_streams = false;      // see CUDACONV_STANDIN_STREAMS

  uint64_t sequence = 0;
  std::shared_ptr<CUstream_st> null_stream = std::make_shared<CUstream_st>();
  std::map<cudaStream_t, std::shared_ptr<CUstream_st>> streams;
  std::vector<std::shared_ptr<CUstream_st>> destroyed_streams;  // destroyed streams with pending work
  std::map<cudaEvent_t, std::unique_ptr<CUevent_st>> events;
  std::map<const void *, standin::Kernel> kernels;
  std::map<cudaGraph_t, std::unique_ptr<CUgraph_st>> graphs;
  std::map<cudaGraphExec_t, std::unique_ptr<CUgraphExec_st>> executables;
  std::map<const void *, size_t> shared_limit;  // limit of shared memory that kernels opted in to

  State() { clear(); }

  void clear() {
    for (auto &[address, allocation] : device) free_device(address, allocation.size);
    for (auto &[address, allocation] : host)
      if (allocation.owned) release(reinterpret_cast<void *>(address));
    device.clear();
    host.clear();
    device_bytes = 0;
    // Clears the queues first, since records and streams refer to each other.
    null_stream->queue.clear();
    for (auto &[handle, stream] : streams) stream->queue.clear();
    for (auto &stream : destroyed_streams) stream->queue.clear();
    streams.clear();
    destroyed_streams.clear();
    events.clear();
    graphs.clear();
    executables.clear();
    shared_limit.clear();
    sticky = cudaSuccess;
    failures.clear();
    calls.clear();
    all_calls = 0;
    read_environment();
  }

  void read_environment();

  void free_device(uintptr_t address, size_t size) {
    ASAN_UNPOISON_MEMORY_REGION(reinterpret_cast<void *>(address), size);
    release(reinterpret_cast<void *>(address));
  }

  void set_device_accessible(bool accessible) {
    device_accessible = accessible;
    for (auto &[address, allocation] : device) {
      if (accessible)
        ASAN_UNPOISON_MEMORY_REGION(reinterpret_cast<void *>(address), allocation.size);
      else
        ASAN_POISON_MEMORY_REGION(reinterpret_cast<void *>(address), allocation.size);
    }
  }

  std::shared_ptr<CUstream_st> find_stream(cudaStream_t handle) const {
    if (!handle || handle == cudaStreamLegacy) return null_stream;
    auto found = streams.find(handle);
    return found == streams.end() ? nullptr : found->second;
  }

  CUevent_st *find_event(cudaEvent_t handle) const {
    auto found = events.find(handle);
    return found == events.end() ? nullptr : found->second.get();
  }

  // Enqueues work on a stream and returns its sequence number.
  uint64_t enqueue(const std::shared_ptr<CUstream_st> &stream, std::function<void()> run,
                   std::shared_ptr<Record> after = nullptr, bool always = false) {
    stream->queue.push_back({++sequence, std::move(run), std::move(after), always});
    stream->queries = 0;
    return sequence;
  }
};

std::mutex execution;
thread_local bool executing = false;
thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

// The state is never destroyed, since other static objects may release their resources later.
State &state() {
  static State *instance = new State;
  return *instance;
}

cudaError_t error_named(const std::string &name) {
#define X(error, value, text) \
  if (name == #error) return error;
  STANDIN_ERRORS(X)
#undef X
  fprintf(stderr, "standin: CUDACONV_STANDIN_FAIL names no error: %s\n", name.c_str());
  abort();
}

void State::read_environment() {
  const char *count = getenv("CUDACONV_STANDIN_DEVICES");
  devices = count ? atoi(count) : 1;

  const char *when = getenv("CUDACONV_STANDIN_STREAMS");
  early_streams = when && !strcmp(when, "early");

  const char *order = getenv("CUDACONV_STANDIN_ORDER");
  standin::thread_order = standin::ThreadOrder::Alternate;
  if (order && !strcmp(order, "forward")) standin::thread_order = standin::ThreadOrder::Forward;
  if (order && !strcmp(order, "backward")) standin::thread_order = standin::ThreadOrder::Backward;

  if (const char *fail = getenv("CUDACONV_STANDIN_FAIL")) {
    std::vector<std::string> fields(1);
    for (const char *p = fail; *p; p++) {
      if (*p == ':')
        fields.emplace_back();
      else
        fields.back() += *p;
    }
    if (fields.size() < 3) {
      fprintf(stderr, "standin: CUDACONV_STANDIN_FAIL is not name:nth:errorname[:sticky]: %s\n", fail);
      abort();
    }
    failures.push_back(
        {fields[0], atoi(fields[1].c_str()), error_named(fields[2]), fields.size() > 3 && fields[3] == "sticky"});
  }
}

cudaError_t remember(cudaError_t error) {
  if (error) last_error = error;
  return error;
}

// A call of the runtime: holds the lock until the destructor, and decides whether the call fails.
class Call {
 public:
  explicit Call(const char *name, const char *kernel = nullptr)
      : state(::state()), lock_(state.mutex, std::defer_lock) {
    // Kernels and host functions may not call the runtime.
    if (executing) {
      error = cudaErrorNotPermitted;
      return;
    }
    lock_.lock();
    state.all_calls++;
    state.calls[name]++;
    if (kernel) state.calls[kernel]++;
    error = remember(first_error(name, kernel));
  }

  void unlock() { lock_.unlock(); }

  // Counts another call that this one contains. It may fail too.
  void add(const char *name, const char *kernel) {
    state.all_calls++;
    state.calls[name]++;
    state.calls[kernel]++;
    if (!error) error = remember(first_error(name, kernel));
  }

  State &state;
  cudaError_t error = cudaSuccess;

 private:
  cudaError_t first_error(const char *name, const char *kernel) {
    cudaError_t injected = cudaSuccess;
    for (Failure &failure : state.failures) {
      if (!failure.name.empty() && failure.name != name && !(kernel && failure.name == kernel)) continue;
      if (failure.remaining < 1 || --failure.remaining > 0) continue;
      injected = failure.error;
      if (failure.sticky || ends_context(injected)) state.sticky = injected;
    }
    if (state.sticky) return state.sticky;
    if (injected) return injected;
    return state.devices < 1 ? cudaErrorNoDevice : cudaSuccess;
  }

  std::unique_lock<std::mutex> lock_;
};

// ---- Running the work of streams ------------------------------------------------------------------------------------

// Runs the operations of `stream` up to `last`, each after the operations before it in order.
void run_until(State &s, const std::shared_ptr<CUstream_st> &stream, uint64_t last) {
  for (;;) {
    std::unique_lock<std::mutex> lock(s.mutex);
    if (stream->queue.empty() || stream->queue.front().sequence > last) return;
    const uint64_t sequence = stream->queue.front().sequence;
    const std::shared_ptr<Record> after = stream->queue.front().after;
    std::vector<std::shared_ptr<CUstream_st>> earlier;
    if (stream == s.null_stream) {
      for (auto &[handle, other] : s.streams)
        if (other->blocking) earlier.push_back(other);
      for (auto &other : s.destroyed_streams)
        if (other->blocking) earlier.push_back(other);
    } else if (stream->blocking) {
      earlier.push_back(s.null_stream);
    }
    lock.unlock();

    for (auto &other : earlier) run_until(s, other, sequence - 1);
    if (after) run_until(s, after->stream, after->sequence);

    lock.lock();
    const Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    const bool lost = s.sticky != cudaSuccess;
    lock.unlock();
    if (operation.run && (!lost || operation.always)) operation.run();
  }
}

// Runs the work of streams that nothing waits for, unless it is ordered after pending work.
void run_early(State &s, const std::vector<std::shared_ptr<CUstream_st>> &waited) {
  const auto find_ready = [&](uint64_t *sequence) -> std::shared_ptr<CUstream_st> {
    std::lock_guard<std::mutex> lock(s.mutex);
    for (auto &[handle, stream] : s.streams) {
      if (stream->blocking || stream->queue.empty()) continue;
      if (std::find(waited.begin(), waited.end(), stream) != waited.end()) continue;
      const Operation &next = stream->queue.front();
      if (next.after) {
        const auto &before = next.after->stream->queue;
        if (!before.empty() && before.front().sequence <= next.after->sequence) continue;
      }
      *sequence = next.sequence;
      return stream;
    }
    return nullptr;
  };
  uint64_t sequence;
  while (const auto stream = find_ready(&sequence)) run_until(s, stream, sequence);
}

// Waits for `streams` up to `last`. Returns the device's error, if there is one.
cudaError_t wait_for(State &s, const std::vector<std::shared_ptr<CUstream_st>> &streams, uint64_t last = UINT64_MAX) {
  std::lock_guard<std::mutex> exclusive(execution);
  {
    std::lock_guard<std::mutex> lock(s.mutex);
    s.set_device_accessible(true);
  }
  executing = true;
  if (s.early_streams) run_early(s, streams);
  for (auto &stream : streams) run_until(s, stream, last);
  executing = false;
  std::lock_guard<std::mutex> lock(s.mutex);
  s.set_device_accessible(false);
  auto &destroyed = s.destroyed_streams;
  destroyed.erase(std::remove_if(destroyed.begin(), destroyed.end(), [](auto &d) { return d->queue.empty(); }),
                  destroyed.end());
  return remember(s.sticky);
}

// Handles an access by device work that would end the context in CUDA.
void illegal_address(State &s, const char *what) {
  fprintf(stderr, "standin: %s\n", what);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.sticky = cudaErrorIllegalAddress;
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

// The allocation that contains all of [pointer, pointer + size); end() if there is none.
Allocations::iterator find_around(Allocations &in, const void *pointer, size_t size) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  auto found = in.upper_bound(address);
  if (found == in.begin()) return in.end();
  --found;
  const size_t offset = address - found->first;
  return offset < found->second.size && size <= found->second.size - offset ? found : in.end();
}
bool contains(Allocations &in, const void *pointer, size_t size) {
  return find_around(in, pointer, size) != in.end();
}

bool overlaps(const Allocations &in, const void *pointer, size_t size) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  auto next = in.lower_bound(address + size);
  if (next == in.begin()) return false;
  --next;
  return next->first + next->second.size > address;
}

// Enters what was allocated in a table; frees it, and throws, if there is no memory for the entry.
void enter(Allocations &in, void *memory, size_t size) {
  try {
    in[reinterpret_cast<uintptr_t>(memory)].size = size;
  } catch (...) {
    release(memory);
    throw;
  }
}

// Allocates device memory. Call with the lock held.
cudaError_t new_device_memory(State &s, void **pointer, size_t size) {
  *pointer = nullptr;
  if (!size) return cudaSuccess;
  if (size > kDeviceBytes - s.device_bytes) return cudaErrorMemoryAllocation;
  void *memory = allocate(size);
  if (!memory) return cudaErrorMemoryAllocation;
  enter(s.device, memory, size);
  if (!s.device_accessible) ASAN_POISON_MEMORY_REGION(memory, size);
  s.device_bytes += size;
  *pointer = memory;
  return cudaSuccess;
}

void drop_device_memory(State &s, Allocations::iterator found) {
  s.device_bytes -= found->second.size;
  s.free_device(found->first, found->second.size);
  s.device.erase(found);
}

cudaError_t new_host_memory(const char *name, void **pointer, size_t size) {
  Call call(name);
  if (call.error) return call.error;
  if (!pointer) return remember(cudaErrorInvalidValue);
  *pointer = nullptr;
  if (!size) return cudaSuccess;
  void *memory = size > kDeviceBytes ? nullptr : allocate(size);
  if (!memory) return remember(cudaErrorMemoryAllocation);
  enter(call.state.host, memory, size);
  *pointer = memory;
  return cudaSuccess;
}

// A copy of `height` rows of `width` bytes.
struct Copy {
  uint8_t *dst = nullptr;
  size_t dst_pitch = 0;
  const uint8_t *src = nullptr;
  size_t src_pitch = 0;
  size_t width = 0, height = 0;
  cudaMemcpyKind kind = cudaMemcpyDefault;
  bool pinned = false;           // whether the host side, if any, is pinned
  std::vector<uint8_t> staging;  // the bytes of a pageable source at the time of the call

  Copy(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height, cudaMemcpyKind kind)
      : dst(static_cast<uint8_t *>(dst)),
        dst_pitch(dst_pitch),
        src(static_cast<const uint8_t *>(src)),
        src_pitch(src_pitch),
        width(width),
        height(height),
        kind(kind) {}

  size_t extent(size_t pitch) const { return pitch * (height - 1) + width; }
  bool dst_on_device() const { return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice; }
  bool src_on_device() const { return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice; }

  // Whether both sides are in the kind of memory that `kind` names.
  bool valid(State &s) const {
    const auto side_valid = [&](bool on_device, const void *pointer, size_t size) {
      return on_device ? contains(s.device, pointer, size) : !overlaps(s.device, pointer, size);
    };
    return side_valid(dst_on_device(), dst, extent(dst_pitch)) && side_valid(src_on_device(), src, extent(src_pitch));
  }
  bool host_side_pinned(State &s) const {
    return dst_on_device() ? contains(s.host, src, extent(src_pitch)) : contains(s.host, dst, extent(dst_pitch));
  }

  void stage() {
    staging.resize(width * height);
    for (size_t y = 0; y < height; y++) memcpy(&staging[y * width], src + y * src_pitch, width);
    src = staging.data();
    src_pitch = width;
  }

  void run(State &s) const {
    {
      std::unique_lock<std::mutex> lock(s.mutex);
      const bool dst_valid = !dst_on_device() || contains(s.device, dst, extent(dst_pitch));
      const bool src_valid = !src_on_device() || contains(s.device, src, extent(src_pitch));
      if (!dst_valid || !src_valid || (pinned && !host_side_pinned(s))) {
        lock.unlock();
        return illegal_address(s, "memory was released before a copy that uses it was complete");
      }
    }
    for (size_t y = 0; y < height; y++) memmove(dst + y * dst_pitch, src + y * src_pitch, width);
  }
};

// The body of all copy functions. Like CUDA's, asynchronous copies wait if they write pageable memory.
cudaError_t copy(const char *name, Copy c, cudaStream_t handle, bool asynchronous) {
  Call call(name);
  if (call.error) return call.error;
  State &s = call.state;
  const std::shared_ptr<CUstream_st> stream = s.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  if (c.kind < cudaMemcpyHostToHost || c.kind > cudaMemcpyDefault) return remember(cudaErrorInvalidMemcpyDirection);
  if (c.height > 1 && (c.dst_pitch < c.width || c.src_pitch < c.width)) return remember(cudaErrorInvalidPitchValue);
  if (!c.width || !c.height) return cudaSuccess;
  if (!c.dst || !c.src) return remember(cudaErrorInvalidValue);
  if (c.kind == cudaMemcpyDefault)
    c.kind = static_cast<cudaMemcpyKind>(contains(s.device, c.src, 1) * cudaMemcpyDeviceToHost +
                                         contains(s.device, c.dst, 1) * cudaMemcpyHostToDevice);
  if (!c.valid(s)) return remember(cudaErrorInvalidValue);

  bool wait = false;
  if (c.kind != cudaMemcpyDeviceToDevice) {
    c.pinned = c.host_side_pinned(s);
    if (c.kind == cudaMemcpyHostToHost) {
      c.pinned = false;
      wait = true;
    } else if (!asynchronous) {
      wait = true;
    } else if (!c.pinned) {
      if (c.kind == cudaMemcpyHostToDevice)
        c.stage();
      else
        wait = true;
    }
  }
  // The Copy is shared, not copied, since its pointers may point into its own staging buffer.
  const auto shared = std::make_shared<const Copy>(std::move(c));
  const uint64_t sequence = s.enqueue(stream, [&s, shared] { shared->run(s); });
  if (!wait) return cudaSuccess;
  call.unlock();
  return wait_for(s, {stream}, sequence);
}

cudaError_t set(const char *name, void *pointer, size_t pitch, int value, size_t width, size_t height,
                cudaStream_t handle) {
  Call call(name);
  if (call.error) return call.error;
  State &s = call.state;
  const std::shared_ptr<CUstream_st> stream = s.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  if (!width || !height) return cudaSuccess;
  if (height > 1 && pitch < width) return remember(cudaErrorInvalidPitchValue);
  const size_t extent = pitch * (height - 1) + width;
  if (!contains(s.device, pointer, extent)) return remember(cudaErrorInvalidValue);
  s.enqueue(stream, [=, &s] {
    std::unique_lock<std::mutex> lock(s.mutex);
    const bool valid = contains(s.device, pointer, extent);
    lock.unlock();
    if (!valid) return illegal_address(s, "memory was released before it was set");
    for (size_t y = 0; y < height; y++) memset(static_cast<uint8_t *>(pointer) + y * pitch, value, width);
  });
  return cudaSuccess;
}

}  // namespace

#ifdef STANDIN_ASAN
// AddressSanitizer reports the traps of UndefinedBehaviorSanitizer. Its records of allocations have few callers: longer
// ones take a tenth of the time of tests of the element. Its detection of uses after return is off, as before GCC 13:
// with it, GCC 13.1 and 13.2 align variables to 32 bytes at most, and parameters of kernels need 64.
extern "C" const char *__asan_default_options() {
  return "handle_sigill=1:malloc_context_size=3:detect_stack_use_after_return=0";
}
#endif

// ---- standin.h ------------------------------------------------------------------------------------------------------

namespace standin {

void fail_call(const std::string &name, int nth, cudaError_t error, bool sticky) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.failures.push_back({name, nth, error, sticky});
}

int calls(const std::string &name) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  if (name.empty()) return s.all_calls;
  auto found = s.calls.find(name);
  return found == s.calls.end() ? 0 : found->second;
}

LiveObjects live_objects() {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  LiveObjects live;
  for (auto &[address, allocation] : s.device) live.device += !allocation.released;
  live.host = static_cast<int>(s.host.size());
  live.streams = static_cast<int>(s.streams.size());
  live.events = static_cast<int>(s.events.size());
  live.graphs = static_cast<int>(s.graphs.size() + s.executables.size());
  return live;
}

void reset() {
  State &s = state();
  std::lock_guard<std::mutex> exclusive(execution);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.clear();
  last_error = cudaSuccess;
  current_device = 0;
}

// Whether a grid may be launched so.
static cudaError_t check_launch(const State &s, dim3 grid, dim3 block, size_t shared_bytes, const void *function) {
  // The documentation also names cudaErrorInvalidConfiguration; the runtime of CUDA 13 returns this error.
  if (!grid.x || !grid.y || !grid.z || grid.x > INT32_MAX || grid.y > 65535 || grid.z > 65535)
    return cudaErrorInvalidValue;
  if (!block.x || !block.y || !block.z || block.x > 1024 || block.y > 1024 || block.z > 64 ||
      block.x * block.y * block.z > 1024)
    return cudaErrorInvalidValue;
  size_t limit = kSharedBytes;
  for (auto &[opted_in, bytes] : s.shared_limit)
    if (!function || function == opted_in) limit = std::max(limit, bytes);
  return shared_bytes > limit ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t handle,
                   std::function<void()> thread_body, const void *function) {
  Call call("cudaLaunchKernel", name);
  if (call.error) return call.error;
  State &s = call.state;
  const std::shared_ptr<CUstream_st> stream = s.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  if (const cudaError_t error = check_launch(s, grid, block, shared_bytes, function)) return remember(error);
  s.enqueue(stream, [=, body = std::move(thread_body)] { run_grid(name, grid, block, shared_bytes, body); });
  return cudaSuccess;
}

void register_kernel(const void *function, Kernel kernel) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.kernels[function] = std::move(kernel);
}

}  // namespace standin

// ---- Launches and graphs --------------------------------------------------------------------------------------------

namespace {

// Copies the arguments of a launch.
cudaError_t make_call(const State &s, const cudaKernelNodeParams &params, KernelCall *call) {
  const auto found = s.kernels.find(params.func);
  if (found == s.kernels.end()) return cudaErrorInvalidDeviceFunction;
  *call = {params.func, found->second, params.gridDim, params.blockDim, params.sharedMemBytes, {}, {}};
  for (size_t i = 0; i < call->kernel.bytes.size(); i++) {
    const size_t bytes = call->kernel.bytes[i];
    call->arguments.emplace_back(::operator new(bytes, kAlignment), release);
    std::memcpy(call->arguments.back().get(), params.kernelParams[i], bytes);
    call->addresses.push_back(call->arguments.back().get());
  }
  return standin::check_launch(s, call->grid, call->block, call->shared_bytes, call->function);
}

void enqueue_call(State &s, const std::shared_ptr<CUstream_st> &stream, const KernelCall &call) {
  s.enqueue(stream, [call] {
    standin::run_grid(call.kernel.name, call.grid, call.block, call.shared_bytes,
                      [&call] { call.kernel.call(call.function, call.addresses.data()); });
  });
}

}  // namespace

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t handle) {
  const char *name = nullptr;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    const auto found = state().kernels.find(function);
    if (found != state().kernels.end()) name = found->second.name;
  }
  Call call("cudaLaunchKernel", name);
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  KernelCall kernel;
  const cudaKernelNodeParams params = {const_cast<void *>(function),        grid,      block,
                                       static_cast<unsigned>(shared_bytes), arguments, nullptr};
  if (const cudaError_t error = make_call(call.state, params, &kernel)) return remember(error);
  enqueue_call(call.state, stream, kernel);
  return cudaSuccess;
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int) {
  Call call("cudaGraphCreate");
  if (call.error) return call.error;
  auto created = std::make_unique<CUgraph_st>();
  *graph = created.get();
  call.state.graphs[*graph] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  Call call("cudaGraphDestroy");
  if (call.error == cudaErrorNotPermitted) return call.error;
  if (!call.state.graphs.erase(graph)) return remember(cudaErrorInvalidValue);
  return call.error;
}

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaKernelNodeParams *params) {
  Call call("cudaGraphAddKernelNode");
  if (call.error) return call.error;
  if (!call.state.graphs.count(graph)) return remember(cudaErrorInvalidValue);
  auto created = std::make_shared<CUgraphNode_st>();
  if (const cudaError_t error = make_call(call.state, *params, &created->call)) return remember(error);
  created->dependencies.assign(dependencies, dependencies + count);
  *node = created.get();
  graph->nodes.push_back(std::move(created));
  return cudaSuccess;
}

// Of the nodes that may run, the one that was added last runs first, which exposes missing dependencies.
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long) {
  Call call("cudaGraphInstantiate");
  if (call.error) return call.error;
  if (!call.state.graphs.count(graph)) return remember(cudaErrorInvalidValue);
  auto created = std::make_unique<CUgraphExec_st>();
  for (size_t i = 0; i < graph->nodes.size(); i++) {
    const auto may_run = [&](const std::shared_ptr<CUgraphNode_st> &node) {
      return !created->calls.count(node.get()) &&
             std::all_of(node->dependencies.begin(), node->dependencies.end(),
                         [&](cudaGraphNode_t before) { return created->calls.count(before); });
    };
    const auto next = std::find_if(graph->nodes.rbegin(), graph->nodes.rend(), may_run);
    if (next == graph->nodes.rend()) return remember(cudaErrorInvalidValue);
    created->nodes.push_back(*next);
    created->calls[next->get()] = (*next)->call;
  }
  *executable = created.get();
  call.state.executables[*executable] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  Call call("cudaGraphExecDestroy");
  if (call.error == cudaErrorNotPermitted) return call.error;
  if (!call.state.executables.erase(executable)) return remember(cudaErrorInvalidValue);
  return call.error;
}

// Launches that are enqueued keep the parameters that they had.
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params) {
  Call call("cudaGraphExecKernelNodeSetParams");
  if (call.error) return call.error;
  if (!call.state.executables.count(executable) || !executable->calls.count(node))
    return remember(cudaErrorInvalidValue);
  KernelCall kernel;
  if (const cudaError_t error = make_call(call.state, *params, &kernel)) return remember(error);
  executable->calls[node] = std::move(kernel);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t handle) {
  Call call("cudaGraphLaunch");
  if (!call.error && call.state.executables.count(executable))
    for (const auto &node : executable->nodes) call.add("cudaLaunchKernel", executable->calls[node.get()].kernel.name);
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  if (!stream || !call.state.executables.count(executable)) return remember(cudaErrorInvalidResourceHandle);
  for (const auto &node : executable->nodes) enqueue_call(call.state, stream, executable->calls[node.get()]);
  return cudaSuccess;
}

// ---- Devices and errors ---------------------------------------------------------------------------------------------

cudaError_t cudaGetDeviceCount(int *count) {
  Call call("cudaGetDeviceCount");
  if (!count) return remember(cudaErrorInvalidValue);
  *count = call.error ? 0 : call.state.devices;
  return call.error;
}

cudaError_t cudaGetDevice(int *device) {
  Call call("cudaGetDevice");
  if (call.error) return call.error;
  if (!device) return remember(cudaErrorInvalidValue);
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice");
  if (call.error) return call.error;
  if (device < 0 || device >= call.state.devices) return remember(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device) {
  Call call("cudaGetDeviceProperties");
  if (call.error) return call.error;
  if (!prop) return remember(cudaErrorInvalidValue);
  if (device < 0 || device >= call.state.devices) return remember(cudaErrorInvalidDevice);
  *prop = {};
  snprintf(prop->name, sizeof(prop->name), "Stand-in %d", device);
  prop->totalGlobalMem = kDeviceBytes;
  prop->sharedMemPerBlock = kSharedBytes;
  prop->sharedMemPerBlockOptin = kSharedBytesOptin;
  prop->sharedMemPerMultiprocessor = kSharedBytesMultiprocessor;
  prop->reservedSharedMemPerBlock = kSharedBytesReserved;
  prop->regsPerBlock = 65536;
  prop->warpSize = warpSize;
  prop->maxThreadsPerBlock = 1024;
  prop->maxThreadsPerMultiProcessor = kThreadsMultiprocessor;
  prop->major = 9;
  prop->minor = 0;
  prop->multiProcessorCount = kMultiprocessors;
  prop->canMapHostMemory = 1;
  prop->asyncEngineCount = 2;
  prop->unifiedAddressing = 1;
  prop->l2CacheSize = kCacheBytes;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device) {
  Call call("cudaDeviceGetAttribute");
  if (call.error) return call.error;
  if (!value) return remember(cudaErrorInvalidValue);
  if (device < 0 || device >= call.state.devices) return remember(cudaErrorInvalidDevice);
  static const std::map<cudaDeviceAttr, int> values = {
      {cudaDevAttrMaxThreadsPerBlock, 1024},
      {cudaDevAttrMaxSharedMemoryPerBlock, kSharedBytes},
      {cudaDevAttrWarpSize, warpSize},
      {cudaDevAttrMultiProcessorCount, kMultiprocessors},
      {cudaDevAttrIntegrated, 0},
      {cudaDevAttrL2CacheSize, kCacheBytes},
      {cudaDevAttrMaxThreadsPerMultiProcessor, kThreadsMultiprocessor},
      {cudaDevAttrAsyncEngineCount, 2},
      {cudaDevAttrUnifiedAddressing, 1},
      {cudaDevAttrComputeCapabilityMajor, 9},
      {cudaDevAttrComputeCapabilityMinor, 0},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, kSharedBytesMultiprocessor},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, kSharedBytesOptin},
      {cudaDevAttrReservedSharedMemoryPerBlock, kSharedBytesReserved},
      {cudaDevAttrMemoryPoolsSupported, 1},
  };
  auto found = values.find(attr);
  if (found == values.end()) return remember(cudaErrorInvalidValue);
  *value = found->second;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version) {
  Call call("cudaDriverGetVersion");
  if (!version) return remember(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return call.error == cudaErrorNoDevice ? cudaSuccess : call.error;
}

cudaError_t cudaRuntimeGetVersion(int *version) {
  Call call("cudaRuntimeGetVersion");
  if (!version) return remember(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return call.error == cudaErrorNoDevice ? cudaSuccess : call.error;
}

cudaError_t cudaPeekAtLastError(void) {
  State &s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.sticky ? s.sticky : last_error;
}

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = cudaPeekAtLastError();
  last_error = cudaSuccess;
  return error;
}

const char *cudaGetErrorName(cudaError_t error) {
#define X(name, value, text) \
  if (error == name) return #name;
  STANDIN_ERRORS(X)
#undef X
  return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error) {
#define X(name, value, text) \
  if (error == name) return text;
  STANDIN_ERRORS(X)
#undef X
  return "unrecognized error code";
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

cudaError_t cudaMalloc(void **pointer, size_t size) {
  Call call("cudaMalloc");
  if (call.error) return call.error;
  if (!pointer) return remember(cudaErrorInvalidValue);
  return remember(new_device_memory(call.state, pointer, size));
}

cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height) {
  Call call("cudaMallocPitch");
  if (call.error) return call.error;
  if (!pointer || !pitch) return remember(cudaErrorInvalidValue);
  const size_t unit = static_cast<size_t>(kAlignment);
  *pitch = (width + unit - 1) / unit * unit;
  return remember(new_device_memory(call.state, pointer, *pitch * height));
}

cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream) {
  Call call("cudaMallocAsync");
  if (call.error) return call.error;
  if (!call.state.find_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (!pointer) return remember(cudaErrorInvalidValue);
  return remember(new_device_memory(call.state, pointer, size));
}

// Does not wait for work that still uses the memory, though CUDA often does. This exposes code that relies on waiting.
cudaError_t cudaFree(void *pointer) {
  Call call("cudaFree");
  if (!pointer || call.error == cudaErrorNotPermitted) return call.error;
  auto found = call.state.device.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == call.state.device.end() || found->second.released) return remember(cudaErrorInvalidValue);
  drop_device_memory(call.state, found);
  return call.error;
}

cudaError_t cudaFreeAsync(void *pointer, cudaStream_t handle) {
  Call call("cudaFreeAsync");
  if (!pointer || call.error == cudaErrorNotPermitted) return call.error;
  State &s = call.state;
  auto found = s.device.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == s.device.end() || found->second.released) return remember(cudaErrorInvalidValue);
  const std::shared_ptr<CUstream_st> stream = s.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  found->second.released = true;
  s.enqueue(
      stream,
      [&s, found] {
        std::lock_guard<std::mutex> lock(s.mutex);
        drop_device_memory(s, found);
      },
      nullptr, true);
  return call.error;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int) {
  Call call("cudaDeviceGetDefaultMemPool");
  if (call.error) return call.error;
  *pool = nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, enum cudaMemPoolAttr, void *) {
  return Call("cudaMemPoolSetAttribute").error;
}

cudaError_t cudaMallocHost(void **pointer, size_t size) {
  return new_host_memory("cudaMallocHost", pointer, size);
}

cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int) {
  return new_host_memory("cudaHostAlloc", pointer, size);
}

cudaError_t cudaFreeHost(void *pointer) {
  Call call("cudaFreeHost");
  if (!pointer || call.error == cudaErrorNotPermitted) return call.error;
  auto found = call.state.host.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == call.state.host.end() || !found->second.owned) return remember(cudaErrorInvalidValue);
  release(pointer);
  call.state.host.erase(found);
  return call.error;
}

cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int) {
  Call call("cudaHostRegister");
  if (call.error) return call.error;
  if (!pointer || !size || overlaps(call.state.device, pointer, size)) return remember(cudaErrorInvalidValue);
  if (overlaps(call.state.host, pointer, size)) return remember(cudaErrorHostMemoryAlreadyRegistered);
  Allocation allocation;
  allocation.size = size;
  allocation.owned = false;
  call.state.host[reinterpret_cast<uintptr_t>(pointer)] = allocation;
  return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *pointer) {
  Call call("cudaHostUnregister");
  if (call.error == cudaErrorNotPermitted) return call.error;
  auto found = call.state.host.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == call.state.host.end() || found->second.owned) return remember(cudaErrorHostMemoryNotRegistered);
  call.state.host.erase(found);
  return call.error;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer) {
  Call call("cudaPointerGetAttributes");
  if (call.error) return call.error;
  if (!attributes) return remember(cudaErrorInvalidValue);
  void *address = const_cast<void *>(pointer);
  if (contains(call.state.device, pointer, 1))
    *attributes = {cudaMemoryTypeDevice, 0, address, nullptr};
  else if (contains(call.state.host, pointer, 1))
    *attributes = {cudaMemoryTypeHost, 0, address, address};
  else
    *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};
  return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpy2DAsync", Copy(dst, dst_pitch, src, src_pitch, width, height, kind), stream, true);
}

cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) {
  return copy("cudaMemcpy2D", Copy(dst, dst_pitch, src, src_pitch, width, height, kind), nullptr, false);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpyAsync", Copy(dst, size, src, size, size, 1, kind), stream, true);
}

cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind) {
  return copy("cudaMemcpy", Copy(dst, size, src, size, size, 1, kind), nullptr, false);
}

cudaError_t cudaMemset(void *pointer, int value, size_t size) {
  return set("cudaMemset", pointer, size, value, size, 1, nullptr);
}

cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream) {
  return set("cudaMemsetAsync", pointer, size, value, size, 1, stream);
}

cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return set("cudaMemset2DAsync", pointer, pitch, value, width, height, stream);
}

// ---- Streams and events ---------------------------------------------------------------------------------------------

cudaError_t cudaDeviceSynchronize(void) {
  Call call("cudaDeviceSynchronize");
  if (call.error) return call.error;
  State &s = call.state;
  std::vector<std::shared_ptr<CUstream_st>> all = s.destroyed_streams;
  all.push_back(s.null_stream);
  for (auto &[handle, stream] : s.streams) all.push_back(stream);
  call.unlock();
  return wait_for(s, all);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags) {
  Call call("cudaStreamCreateWithFlags");
  if (call.error) return call.error;
  if (!stream || flags > cudaStreamNonBlocking) return remember(cudaErrorInvalidValue);
  auto created = std::make_shared<CUstream_st>();
  created->blocking = flags != cudaStreamNonBlocking;
  *stream = created.get();
  call.state.streams[*stream] = created;
  return cudaSuccess;
}

// Destroys a stream without waiting, like CUDA. Pending work stays pending.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  if (call.error == cudaErrorNotPermitted) return call.error;
  auto found = call.state.streams.find(stream);
  if (found == call.state.streams.end()) return remember(cudaErrorInvalidResourceHandle);
  if (!found->second->queue.empty()) call.state.destroyed_streams.push_back(found->second);
  call.state.streams.erase(found);
  return call.error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  Call call("cudaStreamSynchronize");
  if (call.error && !executing) {
    // As in CUDA, an error that leaves the context alive comes after the wait.
    const std::shared_ptr<CUstream_st> alive = call.state.sticky ? nullptr : call.state.find_stream(handle);
    call.unlock();
    if (alive) wait_for(call.state, {alive});
    std::lock_guard<std::mutex> ended(execution);  // a lost device runs nothing: not what another thread runs either
  }
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  call.unlock();
  return wait_for(call.state, {stream});
}

cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus *status) {
  Call call("cudaStreamIsCapturing");
  if (call.error) return call.error;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  Call call("cudaStreamQuery");
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  if (stream->queue.empty()) return cudaSuccess;
  if (stream->queries++ < kNotReadyAnswers) return remember(cudaErrorNotReady);
  call.unlock();
  return wait_for(call.state, {stream});
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned int) {
  Call call("cudaStreamWaitEvent");
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  const CUevent_st *waited_for = call.state.find_event(event);
  if (!stream || !waited_for) return remember(cudaErrorInvalidResourceHandle);
  if (waited_for->record) call.state.enqueue(stream, nullptr, waited_for->record);
  return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void *user_data) {
  Call call("cudaLaunchHostFunc");
  if (call.error) return call.error;
  const std::shared_ptr<CUstream_st> stream = call.state.find_stream(handle);
  if (!stream) return remember(cudaErrorInvalidResourceHandle);
  if (!function) return remember(cudaErrorInvalidValue);
  call.state.enqueue(stream, [=] { function(user_data); });
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  Call call("cudaEventCreateWithFlags");
  if (call.error) return call.error;
  if (!event) return remember(cudaErrorInvalidValue);
  auto created = std::make_unique<CUevent_st>();
  created->flags = flags;
  *event = created.get();
  call.state.events[*event] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  Call call("cudaEventCreate");
  if (call.error) return call.error;
  if (!event) return remember(cudaErrorInvalidValue);
  auto created = std::make_unique<CUevent_st>();
  *event = created.get();
  call.state.events[*event] = std::move(created);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Call call("cudaEventDestroy");
  if (call.error == cudaErrorNotPermitted) return call.error;
  if (!call.state.events.erase(event)) return remember(cudaErrorInvalidResourceHandle);
  return call.error;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream_handle) {
  Call call("cudaEventRecord");
  if (call.error) return call.error;
  State &s = call.state;
  CUevent_st *event = s.find_event(handle);
  const std::shared_ptr<CUstream_st> stream = s.find_stream(stream_handle);
  if (!event || !stream) return remember(cudaErrorInvalidResourceHandle);
  const auto record = std::make_shared<Record>();
  record->stream = stream;
  event->record = record;
  record->sequence = s.enqueue(
      stream,
      [&s, record] {
        std::lock_guard<std::mutex> lock(s.mutex);
        record->done = true;
        record->time = Clock::now();
      },
      nullptr, true);
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  Call call("cudaEventQuery");
  if (call.error) return call.error;
  const CUevent_st *event = call.state.find_event(handle);
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Record> record = event->record;
  if (!record || record->done) return cudaSuccess;
  if (record->queries++ < kNotReadyAnswers) return remember(cudaErrorNotReady);
  call.unlock();
  return wait_for(call.state, {record->stream}, record->sequence);
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
  Call call("cudaEventSynchronize");
  if (call.error) return call.error;
  const CUevent_st *event = call.state.find_event(handle);
  if (!event) return remember(cudaErrorInvalidResourceHandle);
  const std::shared_ptr<Record> record = event->record;
  if (!record || record->done) return cudaSuccess;
  call.unlock();
  return wait_for(call.state, {record->stream}, record->sequence);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end) {
  Call call("cudaEventElapsedTime");
  if (call.error) return call.error;
  if (!ms) return remember(cudaErrorInvalidValue);
  const CUevent_st *first = call.state.find_event(start), *second = call.state.find_event(end);
  if (!first || !second || !first->record || !second->record ||
      ((first->flags | second->flags) & cudaEventDisableTiming))
    return remember(cudaErrorInvalidResourceHandle);
  if (!first->record->done || !second->record->done) return remember(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(second->record->time - first->record->time).count();
  return cudaSuccess;
}

// ---- Functions ------------------------------------------------------------------------------------------------------

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value) {
  Call call("cudaFuncSetAttribute");
  if (call.error) return call.error;
  if (!function) return remember(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > kSharedBytesOptin) return remember(cudaErrorInvalidValue);
    call.state.shared_limit[function] = static_cast<size_t>(value);
  }
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
  Call call("cudaFuncGetAttributes");
  if (call.error) return call.error;
  if (!attributes) return remember(cudaErrorInvalidValue);
  if (!function) return remember(cudaErrorInvalidDeviceFunction);
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  const char *architecture = getenv("CUDACONV_STANDIN_ARCHITECTURE");
  attributes->ptxVersion = attributes->binaryVersion = architecture ? atoi(architecture) : 90;
  auto found = call.state.shared_limit.find(function);
  attributes->maxDynamicSharedSizeBytes =
      static_cast<int>(found == call.state.shared_limit.end() ? kSharedBytes : found->second);
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t dynamic_shared_bytes) {
  Call call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  if (call.error) return call.error;
  if (!blocks || block_size < 1) return remember(cudaErrorInvalidValue);
  if (!function) return remember(cudaErrorInvalidDeviceFunction);
  *blocks = 0;
  if (block_size > 1024 || dynamic_shared_bytes > kSharedBytesOptin) return cudaSuccess;
  const int by_threads = kThreadsMultiprocessor / ((block_size + warpSize - 1) / warpSize * warpSize);
  const int by_shared = kSharedBytesMultiprocessor / (static_cast<int>(dynamic_shared_bytes) + kSharedBytesReserved);
  *blocks = std::min({by_threads, by_shared, kBlocksMultiprocessor});
  return cudaSuccess;
}
