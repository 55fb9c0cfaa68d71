// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Runs the threads of a block as fibers. A fiber runs one thread after another until a thread waits at a barrier and
// keeps the fiber. The remaining threads then run on another fiber. A kernel without barriers thus takes one switch per
// block.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "standin.h"

#ifdef STANDIN_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

// swapcontext() makes a system call at every switch, so x86-64 has its own switch.
#if defined(__x86_64__) && !defined(STANDIN_UCONTEXT)
#define STANDIN_SWITCH_ASM 1
#else
#include <ucontext.h>
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace {

void fiber_main();

#ifdef STANDIN_SWITCH_ASM
extern "C" void standin_switch_stack(void **save, void *load);
// Pushes the registers that a function call preserves, changes stacks, and pops them from the other stack.
asm(R"(
  .text
  .type standin_switch_stack, @function
standin_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size standin_switch_stack, .-standin_switch_stack
)");

struct Context {
  void *stack_pointer = nullptr;

  void prepare(char *stack, size_t size) {
    void **top = reinterpret_cast<void **>(stack + size);
    *--top = nullptr;  // the return address of fiber_main, which never returns
    *--top = reinterpret_cast<void *>(fiber_main);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    stack_pointer = top;
  }
  void switch_to(const Context &other) { standin_switch_stack(&stack_pointer, other.stack_pointer); }
};
#else
struct Context {
  ucontext_t context;

  void prepare(char *stack, size_t size) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = nullptr;
    makecontext(&context, fiber_main, 0);
  }
  void switch_to(const Context &other) { swapcontext(&context, &other.context); }
};
#endif

struct Fiber {
#ifdef STANDIN_ASAN
  static constexpr size_t kStackBytes = 256 << 10;  // stack frames are larger, and a report must fit
#else
  static constexpr size_t kStackBytes = 64 << 10;
#endif
  static constexpr size_t kGuardBytes = 64 << 10;  // a multiple of the page size on every machine

  char *memory = nullptr;
  Context context;
  void *fake_stack = nullptr;
#ifdef __SANITIZE_THREAD__
  void *const thread = __tsan_create_fiber(0);
#endif

  Fiber() {
    void *mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory = static_cast<char *>(mapped);
    mprotect(memory, kGuardBytes, PROT_NONE);
    context.prepare(stack(), kStackBytes);
  }
  ~Fiber() {
    munmap(memory, kGuardBytes + kStackBytes);
#ifdef __SANITIZE_THREAD__
    __tsan_destroy_fiber(thread);
#endif
  }
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  char *stack() {
    return memory + kGuardBytes;
  }
};

// The context of a block's scheduler, on the stack of the host thread that runs the grid.
struct Scheduler {
  Context context;
  void *fake_stack = nullptr;
  const void *stack = nullptr;
  size_t stack_bytes = 0;
  void *thread = nullptr;
};

constexpr char kBlockBarrier[] = "__syncthreads";
constexpr char kMatrices[] = "mma.sync";
constexpr unsigned int kAllLanes = 0xffffffffu;

struct Thread {
  bool live = false;
  Fiber *fiber = nullptr;
  const char *waits_at = nullptr;  // nullptr: ready to run
  unsigned int mask = 0;
  uint64_t value = 0;
  standin::Fragments *fragments = nullptr;
  unsigned int lanes = 0;  // lanes that have met at its intrinsic
};

// The running grid. The process runs one at a time: see run_grid().
const char *kernel_name = "no kernel";
const std::function<void()> *thread_body;
void *shared_buffer;
std::vector<Thread> threads;
std::vector<uint64_t> exchanged;  // values that lanes passed to their last rendezvous
unsigned int started, live, at_block_barrier, current_thread;
unsigned int turn;  // of the next thread in a round, in which each thread that may continue does so once
bool backward;

Scheduler scheduler;
Fiber *current_fiber;
bool came_from_scheduler;  // to the current fiber
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber *> idle_fibers;

unsigned int in_order(unsigned int i) {
  return backward ? static_cast<unsigned int>(threads.size()) - 1 - i : i;
}

void set_current(unsigned int index) {
  current_thread = index;
  threadIdx = make_uint3(index % blockDim.x, index / blockDim.x % blockDim.y, index / (blockDim.x * blockDim.y));
}

// The next thread of this round that may continue, and becomes the current thread; nullptr at the end of the round.
Fiber *next_fiber() {
  while (turn < threads.size()) {
    const unsigned int index = in_order(turn++);
    if (!threads[index].live || threads[index].waits_at) continue;
    set_current(index);
    return threads[index].fiber;
  }
  return nullptr;
}

// From the scheduler to a fiber, until a fiber finds no other.
void resume(Fiber *fiber) {
  current_fiber = fiber;
  came_from_scheduler = true;
#ifdef STANDIN_ASAN
  __sanitizer_start_switch_fiber(&scheduler.fake_stack, fiber->stack(), Fiber::kStackBytes);
#endif
#ifdef __SANITIZE_THREAD__
  scheduler.thread = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(fiber->thread, 0);
#endif
  scheduler.context.switch_to(fiber->context);
#ifdef STANDIN_ASAN
  __sanitizer_finish_switch_fiber(scheduler.fake_stack, nullptr, nullptr);
#endif
}

// Tells AddressSanitizer that a fiber runs.
void arrive([[maybe_unused]] void *fake_stack) {
#ifdef STANDIN_ASAN
  const void *stack = nullptr;
  size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack, &stack, &bytes);
  if (came_from_scheduler) scheduler.stack = stack, scheduler.stack_bytes = bytes;
#endif
}

// Switches to the next fiber of the round, or else to the scheduler, until this fiber is resumed. The way through the
// scheduler would be two switches.
void suspend() {
  Fiber *self = current_fiber, *next = next_fiber();
#ifdef STANDIN_ASAN
  __sanitizer_start_switch_fiber(&self->fake_stack, next ? next->stack() : scheduler.stack,
                                 next ? Fiber::kStackBytes : scheduler.stack_bytes);
#endif
#ifdef __SANITIZE_THREAD__
  __tsan_switch_to_fiber(next ? next->thread : scheduler.thread, 0);
#endif
  if (next) {
    current_fiber = next;
    came_from_scheduler = false;
  }
  self->context.switch_to(next ? next->context : scheduler.context);
  arrive(self->fake_stack);
}

void fiber_main() {
  arrive(nullptr);
  for (;;) {
    while (started < threads.size()) {
      set_current(in_order(started++));
      (*thread_body)();
      threads[current_thread].live = false;
      live--;
    }
    idle_fibers.push_back(current_fiber);
    suspend();
  }
}

void wait_at(const char *what, unsigned int mask, uint64_t value) {
  Thread &thread = threads[current_thread];
  thread.fiber = current_fiber;
  thread.waits_at = what;
  thread.mask = mask;
  thread.value = value;
  suspend();
}

// Multiplies the matrices of a warp. Products of bytes are sums of 16-bit products, for which processors have vectors.
void multiply(Thread *warp) {
  const int k = warp[0].fragments->k;
  const auto widen = [](uint32_t word, bool is_signed, int16_t *to) {
    for (int i = 0; i < 4; i++) {
      const uint8_t byte = static_cast<uint8_t>(word >> 8 * i);
      to[i] = is_signed ? static_cast<int8_t>(byte) : byte;
    }
  };
  int16_t rows[16][32] = {}, columns[8][32] = {};
  for (unsigned int i = 0; i < warpSize; i++) {
    const standin::Fragments &lane = *warp[i].fragments;
    const unsigned int group = i / 4, first = 4 * (i % 4);
    for (int half = 0; half < k / 16; half++) {
      widen(lane.a[2 * half], lane.a_signed, rows[group] + 16 * half + first);
      widen(lane.a[2 * half + 1], lane.a_signed, rows[group + 8] + 16 * half + first);
      widen(lane.b[half], lane.b_signed, columns[group] + 16 * half + first);
    }
  }
  for (unsigned int i = 0; i < warpSize; i++) {
    for (unsigned int j = 0; j < 4; j++) {
      const int16_t *const row = rows[i / 4 + 8 * (j / 2)], *const column = columns[2 * (i % 4) + j % 2];
      int32_t sum = 0;
      for (int n = 0; n < 32; n++) sum += row[n] * column[n];
      int32_t &d = warp[i].fragments->d[j];
      d = static_cast<int32_t>(static_cast<uint32_t>(d) + static_cast<uint32_t>(sum));
    }
  }
}

bool same_place(const char *a, const char *b) {
  return a == b || !strcmp(a, b);
}

// Releases the lanes of a warp that have met at a warp intrinsic. Returns whether there are any.
bool release_warp(Thread *warp, unsigned int count, uint64_t *values) {
  unsigned int existing = 0;
  for (unsigned int lane = 0; lane < count; lane++) existing |= static_cast<unsigned int>(warp[lane].live) << lane;
  bool released = false;
  for (unsigned int lane = 0; lane < count; lane++) {
    const Thread first = warp[lane];
    if (!first.live || !first.waits_at || first.waits_at == kBlockBarrier) continue;
    const unsigned int lanes = first.mask & existing;
    bool met = true;
    for (unsigned int i = 0; i < count && met; i++) {
      if (!(lanes >> i & 1)) continue;
      met = warp[i].waits_at && warp[i].mask == first.mask && same_place(warp[i].waits_at, first.waits_at);
    }
    if (!met) continue;
    if (first.waits_at == kMatrices && lanes == kAllLanes) multiply(warp);
    for (unsigned int i = 0; i < count; i++) {
      if (!(lanes >> i & 1)) continue;
      values[i] = warp[i].value;
      warp[i].lanes = lanes;
      warp[i].waits_at = nullptr;
    }
    released = true;
  }
  return released;
}

// Releases threads that may continue, once every live thread waits. Returns whether there are any.
bool release() {
  if (at_block_barrier == live) {
    for (Thread &thread : threads) thread.waits_at = nullptr;
    at_block_barrier = 0;
    return true;
  }
  bool released = false;
  for (unsigned int i = 0; i < threads.size(); i += warpSize) {
    const unsigned int count = min(static_cast<unsigned int>(threads.size()) - i, warpSize);
    released |= release_warp(&threads[i], count, &exchanged[i]);
  }
  return released;
}

[[noreturn]] void die_in_deadlock() {
  // The message names a thread that waits at another place than the first thread, which shows the fault best.
  unsigned int first = 0;
  while (!threads[first].live) first++;
  for (unsigned int i = first + 1; i < threads.size(); i++) {
    if (!threads[i].live || (threads[i].mask == threads[first].mask && threads[i].waits_at == threads[first].waits_at))
      continue;
    set_current(i);
    fprintf(stderr, "standin: thread (%u,%u,%u) waits at %s with mask 0x%08x\n", threadIdx.x, threadIdx.y, threadIdx.z,
            threads[i].waits_at, threads[i].mask);
    break;
  }
  set_current(first);
  fprintf(stderr, "standin: thread (%u,%u,%u) waits at %s with mask 0x%08x\n", threadIdx.x, threadIdx.y, threadIdx.z,
          threads[first].waits_at, threads[first].mask);
  standin::die("deadlock: the threads wait for each other");
}

void run_block(const std::function<void()> &body) {
  const unsigned int count = blockDim.x * blockDim.y * blockDim.z;
  Thread fresh;
  fresh.live = true;
  threads.assign(count, fresh);
  exchanged.resize((count + warpSize - 1) / warpSize * warpSize);
  thread_body = &body;
  live = count;
  started = at_block_barrier = 0;
  turn = count;  // no round before all have started
  while (started < count) {
    if (idle_fibers.empty()) {
      fibers.push_back(std::make_unique<Fiber>());
      idle_fibers.push_back(fibers.back().get());
    }
    Fiber *fiber = idle_fibers.back();
    idle_fibers.pop_back();
    resume(fiber);
  }
  while (live) {
    if (!release()) die_in_deadlock();
    turn = 0;
    while (Fiber *fiber = next_fiber()) resume(fiber);
  }
}

}  // namespace

namespace standin {

ThreadOrder thread_order = ThreadOrder::Alternate;

void *shared_memory() {
  return shared_buffer;
}

Rendezvous rendezvous(const char *what, unsigned int mask, uint64_t value) {
  const unsigned int lane = current_thread % warpSize;
  if (!(mask >> lane & 1)) die("the mask of a warp intrinsic leaves out the lane that calls it");
  wait_at(what, mask, value);
  return {lane, threads[current_thread].lanes, &exchanged[current_thread - lane]};
}

void multiply_matrices(Fragments *lane) {
  threads[current_thread].fragments = lane;
  wait_at(kMatrices, kAllLanes, 0);
  if (threads[current_thread].lanes != kAllLanes) die("mma.sync without all lanes of the warp");
}

void die(const char *reason) {
  fprintf(stderr, "standin: %s, in kernel %s, block (%u,%u,%u), thread (%u,%u,%u)\n", reason, kernel_name, blockIdx.x,
          blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  abort();
}

void run_grid(const char *name, dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()> &body) {
  constexpr std::align_val_t alignment{16};
  const auto release_shared = [](void *p) { ::operator delete(p, alignment); };
  const std::unique_ptr<void, decltype(release_shared)> shared(::operator new(shared_bytes, alignment), release_shared);
  shared_buffer = shared.get();
  kernel_name = name;
  gridDim = grid;
  blockDim = block;
  unsigned int index = 0;
  for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++, index++) {
        backward = thread_order == ThreadOrder::Alternate ? index % 2 : thread_order == ThreadOrder::Backward;
        memset(shared_buffer, static_cast<int>(0xa5 + 29 * index) & 0xff, shared_bytes);
        run_block(body);
      }
    }
  }
  shared_buffer = nullptr;
  kernel_name = "no kernel";
}

}  // namespace standin

void __syncthreads() {
  at_block_barrier++;
  wait_at(kBlockBarrier, 0, 0);
}

int __syncthreads_or(int predicate) {
  static bool any = false;
  if (predicate) any = true;
  __syncthreads();
  const bool result = any;
  __syncthreads();
  any = false;
  __syncthreads();
  return result;
}
