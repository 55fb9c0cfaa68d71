// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Tests the stand-in for the CUDA runtime alone.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "cuda_fp16.h"
#include "standin.h"

namespace {

int failures = 0;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      failures++;                                                               \
    }                                                                           \
  } while (0)

template <typename... Parameters, typename... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   Arguments... arguments) {
  return standin::launch(
      "kernel", grid, block, shared_bytes, stream, [=] { kernel(arguments...); },
      reinterpret_cast<const void *>(kernel));
}

// Whether `body` ends the process with a message that contains `text`; runs it in a child process.
bool dies(const char *text, const std::function<void()> &body) {
  int ends[2];
  if (pipe(ends)) abort();
  const pid_t child = fork();
  if (!child) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string message;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof(buffer))) > 0;) message.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0 && message.find(text) != std::string::npos) return true;
  fprintf(stderr, "status %d, no \"%s\" in:\n%s\n", status, text, message.c_str());
  return false;
}

template <typename T>
struct DeviceArray {
  T *data = nullptr;
  size_t count;
  explicit DeviceArray(size_t count) : count(count) { CHECK(cudaMalloc(&data, count * sizeof(T)) == cudaSuccess); }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;
  std::vector<T> read() const {
    std::vector<T> host(count);
    CHECK(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return host;
  }
};

int *shared_ints() {
  return static_cast<int *>(standin::shared_memory());
}

// ---- Execution ------------------------------------------------------------------------------------------------------

// Each thread writes the index of the thread that is `distance` away.
__global__ void neighbour(int *out, int distance, bool barrier) {
  const int n = static_cast<int>(blockDim.x), i = static_cast<int>(threadIdx.x);
  shared_ints()[i] = i;
  if (barrier) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = shared_ints()[(i + distance + n) % n];
}

int wrong_neighbours(int distance, bool barrier) {
  constexpr int kBlocks = 2, kThreads = 100;
  DeviceArray<int> out(kBlocks * kThreads);
  CHECK(launch(neighbour, kBlocks, kThreads, kThreads * sizeof(int), nullptr, out.data, distance, barrier) ==
        cudaSuccess);
  const std::vector<int> result = out.read();
  int wrong = 0;
  for (int i = 0; i < kBlocks * kThreads; i++)
    wrong += result[static_cast<size_t>(i)] != (i % kThreads + distance + kThreads) % kThreads;
  return wrong;
}

void test_barrier() {
  for (int distance : {-1, 1}) {
    CHECK(wrong_neighbours(distance, true) == 0);
    CHECK(wrong_neighbours(distance, false) >= 99);
  }
}

__global__ void indices(uint4 *out) {
  const unsigned int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = make_uint4(block, thread, 0, 0);
}

void test_indices() {
  DeviceArray<uint4> out(24 * 30);
  CHECK(launch(indices, dim3(2, 3, 4), dim3(5, 3, 2), 0, nullptr, out.data) == cudaSuccess);
  const std::vector<uint4> result = out.read();
  for (unsigned int i = 0; i < result.size(); i++) CHECK(result[i].x == i / 30 && result[i].y == i % 30);
}

// Some threads exit before the first of many barriers.
__global__ void early_exit(int *out) {
  if (threadIdx.x % 3 == 0) return;
  int sum = 0;
  for (int i = 0; i < 50; i++) {
    shared_ints()[threadIdx.x] = static_cast<int>(threadIdx.x) + i;
    __syncthreads();
    sum += shared_ints()[threadIdx.x % 3 == 1 ? threadIdx.x + 1 : threadIdx.x - 1] - i;
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

void test_early_exit() {
  DeviceArray<int> out(300);
  CHECK(cudaMemset(out.data, 0, 300 * sizeof(int)) == cudaSuccess);
  CHECK(launch(early_exit, 1, 300, 300 * sizeof(int), nullptr, out.data) == cudaSuccess);
  const std::vector<int> result = out.read();
  for (int i = 0; i < 300; i++)
    CHECK(result[static_cast<size_t>(i)] == (i % 3 == 0 ? 0 : 50 * (i % 3 == 1 ? i + 1 : i - 1)));
}

// Warp intrinsics in one and a half warps, so that one warp is not full.
__global__ void warp_intrinsics(int *wrong) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const unsigned int all = 0xffffffffu;
  const int lanes = threadIdx.x < 32 ? 32 : 16;
  auto expect = [&](bool good) { *wrong += !good; };
  for (int i = 0; i < 20; i++) {
    expect(__shfl_sync(all, lane + i, 3) == 3 + i);
    expect(__shfl_sync(all, lane, 3 + 16, 8) == (lane & ~7) + 3);
    expect(__shfl_up_sync(all, lane, 2u) == (lane >= 2 ? lane - 2 : lane));
    expect(__shfl_up_sync(all, lane, 2u, 4) == (lane % 4 >= 2 ? lane - 2 : lane));
    if (lanes == 32) expect(__shfl_down_sync(all, lane, 5u) == (lane + 5 < 32 ? lane + 5 : lane));
    expect(__shfl_down_sync(all, lane, 5u, 8) == (lane % 8 + 5 < 8 ? lane + 5 : lane));
    expect(__shfl_xor_sync(all, lane, 9) == (lane ^ 9));
    expect(__shfl_xor_sync(all, 1e300 * lane, 1) == 1e300 * (lane ^ 1));
    const uint64_t wide = (uint64_t{7} << 40) + static_cast<unsigned int>(lane);
    expect(__shfl_sync(all, wide, 1) == (uint64_t{7} << 40) + 1);
    expect(__ballot_sync(all, lane % 2) == (0xaaaaaaaau & (lanes == 32 ? all : 0xffffu)));
    expect(__any_sync(all, lane == 5) && !__any_sync(all, lane == 40));
    expect(__all_sync(all, lane < 32) && !__all_sync(all, lane != 5));
    // Parts of a warp diverge and meet again.
    if (lane < 8) {
      expect(__shfl_sync(0xffu, lane * 2, 7) == 14);
      expect(__ballot_sync(0xffu, 1) == 0xffu);
      __syncwarp(0xffu);
    } else {
      expect(__shfl_xor_sync(~0xffu, lane, 1) == (lane ^ 1));
    }
    __syncwarp();
  }
}

void test_warp_intrinsics() {
  DeviceArray<int> wrong(1);
  CHECK(cudaMemset(wrong.data, 0, sizeof(int)) == cudaSuccess);
  CHECK(launch(warp_intrinsics, 3, 48, 0, nullptr, wrong.data) == cudaSuccess);
  CHECK(wrong.read()[0] == 0);
}

// Matrices for mma. A lane's words hold their elements as in the PTX manual.
struct Matrices {
  int a[16][32], b[32][8], c[16][8];
};

__global__ void multiply_matrices(int k, bool a_signed, bool b_signed, const Matrices *in, int *out) {
  const int lane = static_cast<int>(threadIdx.x), group = lane / 4, in_group = lane % 4;
  uint32_t a[4] = {}, b[2] = {};
  for (int i = 0; i < k / 2; i++) {
    const int row = k == 32 ? (i < 4 || (i >= 8 && i < 12) ? group : group + 8) : (i < 4 ? group : group + 8);
    const int column = in_group * 4 + (i & 3) + (i < 8 ? 0 : 16);
    a[i / 4] |= (static_cast<uint32_t>(in->a[row][column]) & 0xff) << i % 4 * 8;
  }
  for (int i = 0; i < k / 4; i++) {
    const int row = in_group * 4 + (i & 3) + (i < 4 ? 0 : 16);
    b[i / 4] |= (static_cast<uint32_t>(in->b[row][group]) & 0xff) << i % 4 * 8;
  }
  int32_t c[4], d[4];
  for (int i = 0; i < 4; i++) c[i] = in->c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
  standin::integer_mma(k, a, a_signed, b, b_signed, c, d);
  for (int i = 0; i < 4; i++) out[(i < 2 ? group : group + 8) * 8 + in_group * 2 + (i & 1)] = d[i];
}

void test_matrices() {
  Matrices m;
  uint32_t state = 1;
  const auto next = [&](bool is_signed) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int>(state >> 24) - (is_signed ? 128 : 0);
  };
  for (int k : {16, 32})
    for (int signs = 0; signs < 4; signs++) {
      const bool a_signed = signs & 1, b_signed = signs & 2;
      for (auto &row : m.a)
        for (int &v : row) v = next(a_signed);
      for (auto &row : m.b)
        for (int &v : row) v = next(b_signed);
      for (auto &row : m.c)
        for (int &v : row) v = next(true) * 1000;
      DeviceArray<Matrices> in(1);
      DeviceArray<int> out(16 * 8);
      CHECK(cudaMemcpy(in.data, &m, sizeof(m), cudaMemcpyHostToDevice) == cudaSuccess);
      CHECK(launch(multiply_matrices, 1, 32, 0, nullptr, k, a_signed, b_signed, static_cast<const Matrices *>(in.data),
                   out.data) == cudaSuccess);
      const std::vector<int> result = out.read();
      for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
          int sum = m.c[i][j];
          for (int l = 0; l < k; l++) sum += m.a[i][l] * m.b[l][j];
          CHECK(result[static_cast<size_t>(i * 8 + j)] == sum);
        }
    }
}

void test_arithmetic() {
  unsigned int sum = 5;
  CHECK(atomicAdd(&sum, 0xffffffffu) == 5 && sum == 4);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0x7531) == 0x77553311);
  CHECK(__byte_perm(0x33221100, 0x77665544, 0xfb80) == 0x77330000);  // the top bit of a selector is ignored
  CHECK(__funnelshift_l(0x89abcdef, 0x01234567, 8) == 0x23456789 && __funnelshift_l(1, 2, 32) == 2);
  CHECK(__funnelshift_r(0x89abcdef, 0x01234567, 8) == 0x6789abcd && __funnelshift_r(1, 2, 32) == 1);
  CHECK(__funnelshift_lc(1, 2, 40) == 1 && __funnelshift_rc(1, 2, 40) == 2);
  CHECK(__umulhi(0xffffffffu, 0xffffffffu) == 0xfffffffeu && __mulhi(-1, 1) == -1);
  CHECK(__umul64hi(~0ull, ~0ull) == ~0ull - 1);
  CHECK(__popc(0xf0f0u) == 8 && __clz(0) == 32 && __clz(1) == 31 && __clzll(1) == 63 && __ffs(0) == 0 && __ffs(8) == 4);
  CHECK(__vminu2(0xffff0001u, 0x00010002u) == 0x00010001u && __vmaxu2(0xffff0001u, 0x00010002u) == 0xffff0002u);
  CHECK(__vmins2(0xffff0001u, 0x00010002u) == 0xffff0001u && __vmaxs2(0xffff0001u, 0x00010002u) == 0x00010002u);
  CHECK(__vminu4(0xff010203u, 0x01ff0304u) == 0x01010203u && __vmaxu4(0xff010203u, 0x01ff0304u) == 0xffff0304u);
  CHECK(__vmins4(0x80ff017fu, 0x01010101u) == 0x80ff0101u && __vmaxs4(0x80ff017fu, 0x01010101u) == 0x0101017fu);
  CHECK(__vimax3_u16x2(0x00010009u, 0x00050005u, 0x00030001u) == 0x00050009u);
  CHECK(__vimin3_u16x2(0x00010009u, 0x00050005u, 0x00030001u) == 0x00010001u);
  CHECK(__vimax3_s16x2(0x8000ffffu, 0x0000fffeu, 0xffff8000u) == 0x0000ffffu);
  CHECK(__dp2a_lo(0x0003fffeu, 0x12345602u, 5u) == 0xfffeu * 2 + 3 * 0x56 + 5);
  CHECK(__dp2a_hi(0x0003fffeu, 0x12345602u, 5u) == 0xfffeu * 0x34 + 3 * 0x12 + 5);
  int extreme = -2;
  CHECK(atomicMin(&extreme, 3) == -2 && extreme == -2 && atomicMin(&extreme, -7) == -2 && extreme == -7);
  CHECK(atomicMax(&extreme, -9) == -7 && extreme == -7 && atomicMax(&extreme, 4) == -7 && extreme == 4);
  CHECK(__vimin3_s16x2(0x8000ffffu, 0x0000fffeu, 0xffff8000u) == 0x80008000u);
  CHECK(__dp4a(0xff020304u, 0xff010101u, 1u) == 65025 + 10);
  CHECK(__dp4a(static_cast<int>(0xff020304u), static_cast<int>(0xfe010101u), 1) == 12);
  CHECK(__dp4a(make_uchar4(1, 2, 3, 255), make_uchar4(1, 1, 1, 255), 0u) == 6 + 65025);
  CHECK(__dp4a(make_char4(-1, 2, 3, -128), make_char4(1, 1, 1, -128), 0) == 4 + 16384);
  CHECK(__uint2float_rn(0x01000001u) == 16777216.0f && __float2int_rn(2.5f) == 2 && __float2int_rn(-3.5f) == -4);
  CHECK(__float2int_rn(3e9f) == INT32_MAX && __float2uint_rn(-1.0f) == 0 && __float2uint_rn(5e9f) == UINT32_MAX);
  CHECK(min(1, 2u) == 1u && max(-1, 1u) == 0xffffffffu && min(1.0f, 2.0) == 1.0 && max(-5, 3) == 3);
  CHECK(max(1ll << 40, 1) == 1ll << 40);
}

__global__ void barrier_mismatch() {
  if (threadIdx.x < 5)
    __syncthreads();
  else
    __syncwarp();
}
__global__ void foreign_mask() {
  __syncwarp(0xffff0000u);
}
__global__ void trap() {
  __trap();
}
#ifdef STANDIN_ASAN
__global__ void write_shared(int index) {
  shared_ints()[index] = 1;
}
__global__ void write_global(int *out, int index) {
  out[index] = 1;
}
#endif

template <typename... Arguments>
void run_now(Arguments... arguments) {
  launch(arguments...);
  cudaDeviceSynchronize();
}

void test_halves() {
  // Every half is the float that it is converted to.
  for (uint32_t bits = 0; bits < 0x7c00; bits++) {
    const __half2 pair = {bits | (bits ^ 0x8000) << 16};
    CHECK(__floats2half2_rn(__low2float(pair), __high2float(pair)).bits == pair.bits);
  }
  const auto halves = [](float low, float high) { return __floats2half2_rn(low, high); };
  CHECK(halves(1, -2).bits == 0xc0003c00u && halves(2049, 2051).bits == halves(2048, 2052).bits);  // ties to even
  CHECK(halves(4095.5f, 0x1p-25f).bits == (halves(4096, 0).bits) && halves(0x3p-25f, 0).bits == 2);
  const __half2 a = halves(3, -5), b = halves(-1, 2), c = halves(0.5f, 100);
  CHECK(__hadd2(a, b).bits == halves(2, -3).bits && __hsub2(a, b).bits == halves(4, -7).bits);
  CHECK(__hfma2(a, b, c).bits == halves(-2.5f, 90).bits && __hfma2_relu(a, b, c).bits == halves(0, 90).bits);
  CHECK(__hmin2(a, b).bits == halves(-1, -5).bits && __hneg2(a).bits == halves(-3, 5).bits);
  CHECK(__habs2(a).bits == halves(3, 5).bits);
  // Rounded once: 43 * 49 - 1 is 2106, but 2107 as a half is 2108.
  CHECK(__hfma2(halves(43, 0), halves(49, 0), halves(-1, 0)).bits == halves(2106, 0).bits);
}

void test_deaths() {
  CHECK(dies("deadlock", [] { run_now(barrier_mismatch, 1, 10, 0, nullptr); }));
  CHECK(dies("kernel kernel, block (0,0,0), thread (0,0,0)", [] { run_now(foreign_mask, 1, 32, 0, nullptr); }));
  CHECK(dies("block (2,1,0)", [] {
    standin::launch("sometimes", dim3(3, 2), 1, 0, nullptr, [] {
      if (blockIdx.x == 2 && blockIdx.y == 1) __trap();
    });
    cudaDeviceSynchronize();
  }));
  CHECK(dies("__trap", [] { run_now(trap, 1, 1, 0, nullptr); }));
#ifdef STANDIN_ASAN
  run_now(write_shared, 1, 1, 3 * sizeof(int), nullptr, 2);
  CHECK(dies("heap-buffer-overflow", [] { run_now(write_shared, 1, 1, 3 * sizeof(int), nullptr, 3); }));
  CHECK(dies("heap-buffer-overflow", [] { run_now(write_shared, 1, 1, 3 * sizeof(int), nullptr, -1); }));
  DeviceArray<int> memory(3);
  run_now(write_global, 1, 1, 0, nullptr, memory.data, 2);
  CHECK(dies("heap-buffer-overflow", [&] { run_now(write_global, 1, 1, 0, nullptr, memory.data, 3); }));
  CHECK(dies("use-after-poison", [&] { memory.data[0]++; }));
  CHECK(dies("heap-use-after-free", [] {
    int *freed = nullptr;
    cudaMalloc(&freed, sizeof(int));
    launch(write_global, 1, 1, 0, nullptr, freed, 0);
    cudaFree(freed);
    cudaDeviceSynchronize();
  }));
#endif
}

__global__ void nothing() {}

void test_launch_limits() {
  CHECK(launch(nothing, 0, 1, 0, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
  CHECK(launch(nothing, 1, dim3(1024, 2), 0, nullptr) == cudaErrorInvalidValue);
  CHECK(launch(nothing, 1, dim3(1, 1, 65), 0, nullptr) == cudaErrorInvalidValue);
  CHECK(launch(nothing, dim3(1, 65536), 1, 0, nullptr) == cudaErrorInvalidValue);
  CHECK(launch(nothing, dim3(70000, 1), 1024, 0, nullptr) == cudaSuccess);
  CHECK(launch(nothing, 1, 1, 48 << 10, nullptr) == cudaSuccess);
  CHECK(launch(nothing, 1, 1, (48 << 10) + 1, nullptr) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 228 << 10) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10) == cudaSuccess);
  CHECK(launch(nothing, 1, 1, 227 << 10, nullptr) == cudaSuccess);
  CHECK(launch(trap, 1, 1, 227 << 10, nullptr) == cudaErrorInvalidValue);
  cudaStream_t unknown = reinterpret_cast<cudaStream_t>(0x1000);
  CHECK(launch(nothing, 1, 1, 0, unknown) == cudaErrorInvalidResourceHandle);
  CHECK(standin::calls("kernel") == 10 && standin::calls("cudaLaunchKernel") == 10);
  standin::reset();
}

// ---- Streams --------------------------------------------------------------------------------------------------------

__global__ void add(int *out, const int *a, int b) {
  *out = *a + b;
}

void test_deferral() {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  DeviceArray<int> a(1), b(1);
  int *pinned = nullptr;
  CHECK(cudaHostAlloc(&pinned, 2 * sizeof(int), cudaHostAllocDefault) == cudaSuccess);

  // Pinned memory is read and written when the work runs. Pageable memory is read at the call.
  pinned[0] = 1;
  pinned[1] = 0;
  CHECK(cudaMemcpyAsync(a.data, &pinned[0], sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, stream, b.data, a.data, 10) == cudaSuccess);
  CHECK(cudaMemcpyAsync(&pinned[1], b.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  pinned[0] = 2;
  CHECK(pinned[1] == 0);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(pinned[1] == 12);
  int pageable = 5;
  CHECK(cudaMemcpyAsync(a.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  pageable = 6;
  CHECK(cudaMemcpyAsync(&pageable, a.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(pageable == 5);  // a copy to pageable memory waits

  // The NULL stream waits for blocking streams, but not for non-blocking streams.
  pinned[0] = 7;
  CHECK(cudaMemcpyAsync(a.data, &pinned[0], sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  CHECK(a.read()[0] == 5);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  cudaStream_t blocking = nullptr;
  CHECK(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, blocking, b.data, a.data, 1) == cudaSuccess);
  CHECK(b.read()[0] == 8);
  CHECK(launch(add, 1, 1, 0, nullptr, a.data, b.data, 1) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, blocking, b.data, a.data, 1) == cudaSuccess);
  CHECK(cudaStreamSynchronize(blocking) == cudaSuccess);
  CHECK(b.read()[0] == 10);

  // Work that is pending at cudaStreamDestroy() still runs, and host functions run in order.
  static int seen;
  seen = 0;
  CHECK(cudaLaunchHostFunc(
            blocking, [](void *) { seen = cudaDeviceSynchronize(); }, nullptr) == cudaSuccess);
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  CHECK(seen == 0 && cudaStreamQuery(blocking) == cudaErrorInvalidResourceHandle);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(seen == cudaErrorNotPermitted);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

void test_events() {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t start = nullptr, middle = nullptr, end = nullptr, untimed = nullptr;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
  for (cudaEvent_t *event : {&start, &middle, &end}) CHECK(cudaEventCreate(event) == cudaSuccess);
  CHECK(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming) == cudaSuccess);
  DeviceArray<int> a(1), b(1);
  float ms = -1;
  CHECK(cudaEventQuery(middle) == cudaSuccess && cudaEventSynchronize(middle) == cudaSuccess);  // never recorded
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorInvalidResourceHandle);

  CHECK(cudaEventRecord(start, first) == cudaSuccess);
  CHECK(cudaMemsetAsync(a.data, 0, sizeof(int), first) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, first, b.data, a.data, 1) == cudaSuccess);
  CHECK(cudaEventRecord(middle, first) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, first, b.data, b.data, 100) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(second, middle, 0) == cudaSuccess);
  CHECK(launch(add, 1, 1, 0, second, a.data, b.data, 1) == cudaSuccess);
  CHECK(cudaEventRecord(end, second) == cudaSuccess);
  CHECK(cudaEventRecord(untimed, second) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaErrorNotReady);
  int polls = 0;
  while (cudaEventQuery(end) == cudaErrorNotReady) polls++;
  CHECK(polls > 0);
  CHECK(a.read()[0] == 2);
  CHECK(b.read()[0] == 1);  // the first stream ran only as far as the event
  CHECK(cudaEventElapsedTime(&ms, start, end) == cudaSuccess && ms >= 0);
  CHECK(cudaEventElapsedTime(&ms, start, untimed) == cudaErrorInvalidResourceHandle);
  CHECK(cudaStreamQuery(first) == cudaErrorNotReady);
  CHECK(cudaStreamSynchronize(first) == cudaSuccess && cudaStreamQuery(first) == cudaSuccess);
  CHECK(b.read()[0] == 101);
  for (cudaEvent_t event : {start, middle, end, untimed}) CHECK(cudaEventDestroy(event) == cudaSuccess);
  CHECK(cudaEventDestroy(start) == cudaErrorInvalidResourceHandle);
  for (cudaStream_t stream : {first, second}) CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

// Work of another stream runs only when something waits for it; with early streams, it runs first.
void test_early_streams() {
  for (const bool early : {false, true})
    for (const bool waits : {false, true}) {
      setenv("CUDACONV_STANDIN_STREAMS", early ? "early" : "", 1);
      standin::reset();
      cudaStream_t first = nullptr, second = nullptr;
      cudaEvent_t event = nullptr;
      CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking) == cudaSuccess);
      CHECK(cudaEventCreate(&event) == cudaSuccess);
      DeviceArray<int> a(1), b(1);
      CHECK(cudaMemset(a.data, 0, sizeof(int)) == cudaSuccess && cudaMemset(b.data, 0, sizeof(int)) == cudaSuccess);
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
      CHECK(launch(add, 1, 1, 0, first, a.data, a.data, 10) == cudaSuccess);
      CHECK(cudaEventRecord(event, first) == cudaSuccess);
      if (waits) CHECK(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
      CHECK(launch(add, 1, 1, 0, second, b.data, a.data, 1) == cudaSuccess);
      CHECK(cudaStreamSynchronize(first) == cudaSuccess);
      CHECK(cudaStreamSynchronize(second) == cudaSuccess);
      CHECK(b.read()[0] == (early && !waits ? 1 : 11));
      CHECK(cudaEventDestroy(event) == cudaSuccess);
      for (cudaStream_t stream : {first, second}) CHECK(cudaStreamDestroy(stream) == cudaSuccess);
    }
  unsetenv("CUDACONV_STANDIN_STREAMS");
  standin::reset();
}

void test_copies() {
  uint8_t *device = nullptr;
  size_t pitch = 0;
  CHECK(cudaMallocPitch(&device, &pitch, 10, 4) == cudaSuccess && pitch >= 10);
  uint8_t host[40], back[48] = {};
  for (int i = 0; i < 40; i++) host[i] = static_cast<uint8_t>(i);
  CHECK(cudaMemcpy2D(device, pitch, host, 10, 10, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cudaMemset2DAsync(device + pitch, pitch, 99, 5, 2) == cudaSuccess);
  CHECK(cudaMemcpy2D(back, 12, device, pitch, 10, 4, cudaMemcpyDefault) == cudaSuccess);
  CHECK(back[0] == 0 && back[9] == 9 && back[10] == 0 && back[12] == 99 && back[17] == 15 && back[36] == 30);

  CHECK(cudaMemcpy2D(device, pitch, host, 9, 10, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
  CHECK(cudaMemcpy2D(device, pitch, host, 10, 10, 5, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device - 1, host, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, host, 4 * pitch + 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(host, device, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, device + pitch, 1, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(device, host, 1, static_cast<cudaMemcpyKind>(7)) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaMemset(host, 0, 1) == cudaErrorInvalidValue);
  CHECK(cudaFree(device + 1) == cudaErrorInvalidValue);

  struct cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, device + 5) == cudaSuccess && attributes.type == cudaMemoryTypeDevice);
  CHECK(cudaPointerGetAttributes(&attributes, host) == cudaSuccess && attributes.type == cudaMemoryTypeUnregistered);
  CHECK(cudaHostRegister(host, sizeof(host), cudaHostRegisterDefault) == cudaSuccess);
  CHECK(cudaHostRegister(host + 1, 1, cudaHostRegisterDefault) == cudaErrorHostMemoryAlreadyRegistered);
  CHECK(cudaPointerGetAttributes(&attributes, host + 39) == cudaSuccess && attributes.type == cudaMemoryTypeHost);
  CHECK(cudaHostUnregister(host) == cudaSuccess && cudaHostUnregister(host) == cudaErrorHostMemoryNotRegistered);
  CHECK(cudaFree(device) == cudaSuccess && cudaFree(nullptr) == cudaSuccess);

  // A pending copy whose memory is freed is an illegal access.
  uint8_t *pinned = nullptr;
  CHECK(cudaMalloc(&device, 16) == cudaSuccess && cudaMallocHost(&pinned, 16) == cudaSuccess);
  CHECK(cudaFreeAsync(device, nullptr) == cudaSuccess && standin::live_objects().device == 0);
  CHECK(cudaMalloc(&device, 16) == cudaSuccess);
  CHECK(cudaMemcpyAsync(pinned, device, 16, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  CHECK(cudaFree(device) == cudaErrorIllegalAddress && standin::live_objects().total() == 0);
  standin::reset();
}

// ---- Failures, counts, threads --------------------------------------------------------------------------------------

void test_failures() {
  standin::reset();
  int *p = nullptr, *q = nullptr;
  standin::fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&p, 4) == cudaSuccess && cudaMalloc(&q, 4) == cudaErrorMemoryAllocation && !q);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation && cudaMalloc(&q, 4) == cudaSuccess);
  CHECK(standin::calls() == 3 && standin::calls("cudaMalloc") == 3 && standin::calls("cudaFree") == 0);
  CHECK(standin::live_objects().device == 2);
  standin::fail_call("", 2, cudaErrorUnknown);
  CHECK(cudaFree(p) == cudaSuccess && cudaFree(q) == cudaErrorUnknown && standin::live_objects().device == 0);

  standin::fail_call("kernel", 1, cudaErrorLaunchOutOfResources);
  CHECK(launch(nothing, 1, 1, 0, nullptr) == cudaErrorLaunchOutOfResources);
  CHECK(launch(nothing, 1, 1, 0, nullptr) == cudaSuccess);

  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  bool ran = false;
  CHECK(cudaLaunchHostFunc(
            stream, [](void *ran) { *static_cast<bool *>(ran) = true; }, &ran) == cudaSuccess);
  standin::fail_call("cudaStreamSynchronize", 1, cudaErrorMemoryAllocation);
  CHECK(!ran && cudaStreamSynchronize(stream) == cudaErrorMemoryAllocation && ran);
  CHECK(launch(trap, 1, 1, 0, stream) == cudaSuccess);
  standin::fail_call("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);  // the kernel is never run
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress && cudaMalloc(&p, 4) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress && cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaStreamDestroy(stream) == cudaErrorIllegalAddress && standin::live_objects().total() == 0);
  standin::reset();
  CHECK(cudaDeviceSynchronize() == cudaSuccess && cudaGetLastError() == cudaSuccess && standin::calls() == 1);

  setenv("CUDACONV_STANDIN_FAIL", "cudaMalloc:2:cudaErrorMemoryAllocation:sticky", 1);
  standin::reset();
  CHECK(cudaMalloc(&p, 4) == cudaSuccess && cudaMalloc(&q, 4) == cudaErrorMemoryAllocation);
  CHECK(cudaFree(p) == cudaErrorMemoryAllocation);
  unsetenv("CUDACONV_STANDIN_FAIL");

  setenv("CUDACONV_STANDIN_DEVICES", "0", 1);
  standin::reset();
  int count = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaErrorNoDevice && count == 0 && cudaMalloc(&p, 4) == cudaErrorNoDevice);
  setenv("CUDACONV_STANDIN_DEVICES", "2", 1);
  standin::reset();
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess && count == 2);
  CHECK(cudaSetDevice(1) == cudaSuccess && cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaGetDevice(&count) == cudaSuccess && count == 1);
  unsetenv("CUDACONV_STANDIN_DEVICES");
  standin::reset();
}

// What runs while another thread loses the device has ended when that thread has synchronised with the stream.
void test_lost_device() {
  static std::atomic<int> step{0};
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  const auto work = [](void *) {
    step = 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    step = 2;
  };
  CHECK(cudaLaunchHostFunc(stream, work, nullptr) == cudaSuccess);
  std::thread thread([stream] { cudaStreamSynchronize(stream); });
  while (step == 0) std::this_thread::yield();
  standin::fail_call("cudaStreamSynchronize", 1, cudaErrorIllegalAddress);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress && step == 2);
  thread.join();
  CHECK(cudaStreamDestroy(stream) == cudaErrorIllegalAddress);
  standin::reset();
}

void test_leak_counts() {
  void *device, *pinned;
  cudaStream_t stream;
  cudaEvent_t event;
  char host[16];
  CHECK(cudaMalloc(&device, 1) == cudaSuccess && cudaHostAlloc(&pinned, 1, 0) == cudaSuccess);
  CHECK(cudaHostRegister(host, sizeof(host), 0) == cudaSuccess);
  CHECK(cudaStreamCreateWithFlags(&stream, 0) == cudaSuccess && cudaEventCreate(&event) == cudaSuccess);
  const standin::LiveObjects live = standin::live_objects();
  CHECK(live.device == 1 && live.host == 2 && live.streams == 1 && live.events == 1 && live.total() == 5);
  standin::reset();
  CHECK(standin::live_objects().total() == 0);
}

void test_device_queries() {
  struct cudaDeviceProp prop;
  int value = 0;
  CHECK(cudaGetDeviceProperties(&prop, 0) == cudaSuccess && prop.major > 0 && prop.name[0]);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  CHECK(value == prop.multiProcessorCount);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, nothing, 256, 0) == cudaSuccess && value == 8);
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, nothing, 64, 100 << 10) == cudaSuccess && value == 2);
  CHECK(cudaGetErrorName(cudaErrorNotReady) == std::string("cudaErrorNotReady"));
  CHECK(cudaGetErrorString(cudaErrorMemoryAllocation) == std::string("out of memory"));
  void *huge = nullptr;
  CHECK(cudaMalloc(&huge, prop.totalGlobalMem + 1) == cudaErrorMemoryAllocation && !huge);
}

// Several host threads, each with its own stream.
void test_host_threads() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> host_threads;
  for (int t = 0; t < 4; t++) {
    host_threads.emplace_back([&wrong, t] {
      cudaStream_t stream = nullptr;
      wrong += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
      for (int i = 0; i < 25; i++) {
        int *device = nullptr, host[64];
        wrong += cudaMalloc(&device, sizeof(host)) != cudaSuccess;
        wrong += launch(neighbour, 1, 64, sizeof(host), stream, device, t, true) != cudaSuccess;
        wrong += cudaMemcpyAsync(host, device, sizeof(host), cudaMemcpyDeviceToHost, stream) != cudaSuccess;
        for (int k = 0; k < 64; k++) wrong += host[k] != (k + t) % 64;
        wrong += cudaFree(device) != cudaSuccess;
      }
      wrong += cudaStreamDestroy(stream) != cudaSuccess;
    });
  }
  for (std::thread &thread : host_threads) thread.join();
  CHECK(wrong == 0);
}

}  // namespace

int main() {
  test_barrier();
  test_indices();
  test_early_exit();
  test_warp_intrinsics();
  test_matrices();
  test_arithmetic();
  test_halves();
  test_deaths();
  standin::reset();
  test_launch_limits();
  test_deferral();
  test_events();
  test_early_streams();
  CHECK(standin::live_objects().total() == 0);
  test_copies();
  test_failures();
  test_lost_device();
  test_leak_counts();
  test_device_queries();
  test_host_threads();
  CHECK(standin::live_objects().total() == 0);
  if (failures) fprintf(stderr, "%d checks failed\n", failures);
  return failures ? 1 : 0;
}
