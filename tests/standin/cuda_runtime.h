// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A stand-in for the CUDA runtime. CUDA sources compile as plain C++17 and run without a GPU, under AddressSanitizer
// and UndefinedBehaviorSanitizer. It has a part of CUDA 13, with the same names, types, values and results. __CUDACC__
// and __CUDA_ARCH__ stay undefined, so code that tests them takes its host path.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

#define CUDART_VERSION 13000
#define CUDART_CB

#define __global__
#define __device__
#define __noinline__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

// ---- Vector types -------------------------------------------------------------------------------------------------

// clang-format off
#define STANDIN_VECTOR(name, T, align2, align4)                                                   \
  struct name##1 { T x; };                                                                        \
  struct alignas(align2) name##2 { T x, y; };                                                     \
  struct name##3 { T x, y, z; };                                                                  \
  struct alignas(align4) name##4 { T x, y, z, w; };                                               \
  constexpr name##1 make_##name##1(T x) { return {x}; }                                           \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }                                   \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                           \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
STANDIN_VECTOR(char, signed char, 2, 4)
STANDIN_VECTOR(uchar, unsigned char, 2, 4)
STANDIN_VECTOR(short, short, 4, 8)
STANDIN_VECTOR(ushort, unsigned short, 4, 8)
STANDIN_VECTOR(int, int, 8, 16)
STANDIN_VECTOR(uint, unsigned int, 8, 16)
STANDIN_VECTOR(longlong, long long, 16, 16)
STANDIN_VECTOR(ulonglong, unsigned long long, 16, 16)
STANDIN_VECTOR(float, float, 8, 16)
#undef STANDIN_VECTOR
// clang-format on

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// ---- Types and values of the runtime ------------------------------------------------------------------------------

// Each error with its name, value and text.
#define STANDIN_ERRORS(X)                                                                                     \
  X(cudaSuccess, 0, "no error")                                                                               \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                             \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                            \
  X(cudaErrorInitializationError, 3, "initialization error")                                                  \
  X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                       \
  X(cudaErrorInvalidPitchValue, 12, "invalid pitch argument")                                                 \
  X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                 \
  X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")          \
  X(cudaErrorDevicesUnavailable, 46, "CUDA-capable device(s) is/are busy or unavailable")                     \
  X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                            \
  X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                             \
  X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                    \
  X(cudaErrorNoKernelImageForDevice, 209, "no kernel image is available for execution on the device")         \
  X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                                    \
  X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                           \
  X(cudaErrorNotReady, 600, "device not ready")                                                               \
  X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                 \
  X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                            \
  X(cudaErrorLaunchTimeout, 702, "the launch timed out and was terminated")                                   \
  X(cudaErrorContextIsDestroyed, 709, "context is destroyed")                                                 \
  X(cudaErrorAssert, 710, "device-side assert triggered")                                                     \
  X(cudaErrorHostMemoryAlreadyRegistered, 712, "part or all of the requested memory range is already mapped") \
  X(cudaErrorHostMemoryNotRegistered, 713, "pointer does not correspond to a registered memory region")       \
  X(cudaErrorHardwareStackError, 714, "hardware stack error")                                                 \
  X(cudaErrorIllegalInstruction, 715, "an illegal instruction was encountered")                               \
  X(cudaErrorMisalignedAddress, 716, "misaligned address")                                                    \
  X(cudaErrorInvalidAddressSpace, 717, "operation not supported on global/shared address space")              \
  X(cudaErrorInvalidPc, 718, "invalid program counter")                                                       \
  X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                                \
  X(cudaErrorNotPermitted, 800, "operation not permitted")                                                    \
  X(cudaErrorNotSupported, 801, "operation not supported")                                                    \
  X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, value, text) name = value,
  STANDIN_ERRORS(X)
#undef X
};
typedef enum cudaError cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef void (*cudaHostFn_t)(void *user_data);
#define cudaStreamLegacy ((cudaStream_t)0x1)

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

enum cudaMemoryType {
  cudaMemoryTypeUnregistered = 0,
  cudaMemoryTypeHost = 1,
  cudaMemoryTypeDevice = 2,
  cudaMemoryTypeManaged = 3,
};

enum : unsigned int {
  cudaHostAllocDefault = 0,
  cudaHostAllocPortable = 1,
  cudaHostAllocMapped = 2,
  cudaHostAllocWriteCombined = 4,
  cudaHostRegisterDefault = 0,
  cudaHostRegisterPortable = 1,
  cudaHostRegisterMapped = 2,
  cudaHostRegisterReadOnly = 8,
  cudaStreamDefault = 0,
  cudaStreamNonBlocking = 1,
  cudaEventDefault = 0,
  cudaEventBlockingSync = 1,
  cudaEventDisableTiming = 2,
};

enum cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrIntegrated = 18,
  cudaDevAttrL2CacheSize = 38,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrAsyncEngineCount = 40,
  cudaDevAttrUnifiedAddressing = 41,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
  cudaDevAttrReservedSharedMemoryPerBlock = 111,
  cudaDevAttrMemoryPoolsSupported = 115,
};

enum cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem;
  size_t sharedMemPerBlock;
  int regsPerBlock;
  int warpSize;
  int maxThreadsPerBlock;
  int major;
  int minor;
  int multiProcessorCount;
  int integrated;
  int canMapHostMemory;
  int asyncEngineCount;
  int unifiedAddressing;
  int l2CacheSize;
  int maxThreadsPerMultiProcessor;
  size_t sharedMemPerMultiprocessor;
  size_t sharedMemPerBlockOptin;
  size_t reservedSharedMemPerBlock;
};

struct cudaKernelNodeParams {
  void *func;
  dim3 gridDim;
  dim3 blockDim;
  unsigned int sharedMemBytes;
  void **kernelParams;
  void **extra;
};

struct cudaFuncAttributes {
  size_t sharedSizeBytes;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int ptxVersion;
  int binaryVersion;
  int maxDynamicSharedSizeBytes;
};

struct cudaPointerAttributes {
  enum cudaMemoryType type;
  int device;
  void *devicePointer;
  void *hostPointer;
};

// ---- Calls of the runtime -----------------------------------------------------------------------------------------

extern "C" {
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDeviceSynchronize(void);

cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);

cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream);
cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream);
// There is one memory pool, which keeps no freed memory.
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4 };
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value);
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaHostRegister(void *pointer, size_t size, unsigned int flags);
cudaError_t cudaHostUnregister(void *pointer);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer);

cudaError_t cudaMemcpy(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void *pointer, int value, size_t size);
cudaError_t cudaMemsetAsync(void *pointer, int value, size_t size, cudaStream_t stream = nullptr);
cudaError_t cudaMemset2DAsync(void *pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream = nullptr);

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
// No stream is ever captured.
enum cudaStreamCaptureStatus {
  cudaStreamCaptureStatusNone = 0,
  cudaStreamCaptureStatusActive = 1,
  cudaStreamCaptureStatusInvalidated = 2,
};
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *user_data);

// Kernels must be registered, see standin::register_kernel(). Graphs have only kernels.
cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream);
cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count, const struct cudaKernelNodeParams *params);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);

cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_size,
                                                          size_t dynamic_shared_bytes);
}  // extern "C"

// The C++ overloads of the real header.
template <typename T>
cudaError_t cudaMalloc(T **pointer, size_t size) {
  return cudaMalloc(reinterpret_cast<void **>(pointer), size);
}
template <typename T>
cudaError_t cudaMallocPitch(T **pointer, size_t *pitch, size_t width, size_t height) {
  return cudaMallocPitch(reinterpret_cast<void **>(pointer), pitch, width, height);
}
template <typename T>
cudaError_t cudaMallocAsync(T **pointer, size_t size, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void **>(pointer), size, stream);
}
template <typename T>
cudaError_t cudaMallocHost(T **pointer, size_t size) {
  return cudaMallocHost(reinterpret_cast<void **>(pointer), size);
}
template <typename T>
cudaError_t cudaHostAlloc(T **pointer, size_t size, unsigned int flags) {
  return cudaHostAlloc(reinterpret_cast<void **>(pointer), size, flags);
}
inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags) {
  return cudaEventCreateWithFlags(event, flags);
}
template <typename T>
cudaError_t cudaFuncSetAttribute(T *function, enum cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}
template <typename T>
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, T *function) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(function));
}
template <typename T>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *function, int block_size,
                                                          size_t dynamic_shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void *>(function), block_size,
                                                       dynamic_shared_bytes);
}

// ---- Launches and threads -----------------------------------------------------------------------------------------

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace standin {

// Enqueues a grid that calls `thread_body` once for each thread; replaces <<<>>>. `name` must live as long as the
// program. `function` is the kernel, for its opt-in to more than 48 KiB of shared memory.
cudaError_t launch(const char *name, dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
                   std::function<void()> thread_body, const void *function = nullptr);

// A kernel as cudaLaunchKernel() and graphs need it: the sizes of its arguments, and how it is called with them.
struct Kernel {
  const char *name;
  std::vector<size_t> bytes;
  void (*call)(const void *function, void *const *arguments);
};
void register_kernel(const void *function, Kernel kernel);

template <typename... Params, size_t... kIndex>
void call_kernel(const void *function, void *const *arguments, std::index_sequence<kIndex...>) {
  reinterpret_cast<void (*)(Params...)>(reinterpret_cast<uintptr_t>(function))(
      *static_cast<const Params *>(arguments[kIndex])...);
}

// Makes a kernel known under a name, which must live as long as the program.
template <typename... Params>
void register_kernel(const char *name, void (*kernel)(Params...)) {
  const auto call = [](const void *function, void *const *arguments) {
    call_kernel<Params...>(function, arguments, std::index_sequence_for<Params...>());
  };
  register_kernel(reinterpret_cast<const void *>(kernel), Kernel{name, {sizeof(Params)...}, call});
}

// The dynamic shared memory of the running block, exactly as large as the launch requests.
void *shared_memory();

// The data that a lane gets when all lanes of a warp intrinsic have met.
struct Rendezvous {
  unsigned int lane;
  unsigned int lanes;     // lanes that have met: the mask without lanes that exited or do not exist
  const uint64_t *value;  // the value of each lane; valid until this lane waits again
};
Rendezvous rendezvous(const char *what, unsigned int mask, uint64_t value);

// Ends the process with a message that names the running kernel, block and thread.
[[noreturn]] void die(const char *reason);

}  // namespace standin

void __syncthreads();
int __syncthreads_or(int predicate);
[[noreturn]] inline void __trap() {
  standin::die("__trap()");
}
inline void __syncwarp(unsigned int mask = 0xffffffffu) {
  standin::rendezvous("__syncwarp", mask, 0);
}

// These need no atomic operations, since threads run one after another.
inline unsigned int atomicAdd(unsigned int *address, unsigned int value) {
  const unsigned int before = *address;
  *address = before + value;
  return before;
}
inline int atomicMin(int *address, int value) {
  const int before = *address;
  *address = value < before ? value : before;
  return before;
}
inline int atomicMax(int *address, int value) {
  const int before = *address;
  *address = before < value ? value : before;
  return before;
}

// ---- Warp intrinsics ----------------------------------------------------------------------------------------------

namespace standin {

// Shuffles: source(lane, first, last) returns the lane to read, where first and last bound the lane's segment of
// `width` lanes.
template <typename T, typename Source>
T shuffle(const char *what, unsigned int mask, T value, int width, Source source) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a 32- or 64-bit value");
  if (width < 1 || width > 32 || (width & (width - 1))) die("the width of a shuffle is no power of two up to 32");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof(value));
  const Rendezvous met = rendezvous(what, mask, bits);
  const unsigned int first = met.lane & ~(width - 1u);
  const unsigned int from = source(met.lane, first, first + width - 1);
  // The value of a lane that takes no part is undefined.
  bits = met.lanes >> from & 1 ? met.value[from] : 0xa5c396f0a5c396f0u;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace standin

template <typename T>
T __shfl_sync(unsigned int mask, T value, int from, int width = 32) {
  return standin::shuffle("__shfl_sync", mask, value, width, [=](unsigned int, unsigned int first, unsigned int) {
    return first + (from & (width - 1u));
  });
}
template <typename T>
T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  return standin::shuffle("__shfl_up_sync", mask, value, width,
                          [=](unsigned int lane, unsigned int first, unsigned int) {
                            return lane >= first + (delta & 31) ? lane - (delta & 31) : lane;
                          });
}
template <typename T>
T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32) {
  return standin::shuffle("__shfl_down_sync", mask, value, width,
                          [=](unsigned int lane, unsigned int, unsigned int last) {
                            return lane + (delta & 31) <= last ? lane + (delta & 31) : lane;
                          });
}
template <typename T>
T __shfl_xor_sync(unsigned int mask, T value, int bits, int width = 32) {
  return standin::shuffle("__shfl_xor_sync", mask, value, width,
                          [=](unsigned int lane, unsigned int, unsigned int last) {
                            return (lane ^ (bits & 31)) <= last ? lane ^ (bits & 31) : lane;
                          });
}

inline unsigned int __ballot_sync(unsigned int mask, int predicate) {
  const standin::Rendezvous met = standin::rendezvous("__ballot_sync", mask, predicate != 0);
  unsigned int votes = 0;
  for (int lane = 0; lane < 32; lane++)
    if (met.lanes >> lane & 1) votes |= static_cast<unsigned int>(met.value[lane]) << lane;
  return votes;
}
inline int __any_sync(unsigned int mask, int predicate) {
  return __ballot_sync(mask, predicate) != 0;
}
inline int __all_sync(unsigned int mask, int predicate) {
  return __ballot_sync(mask, !predicate) == 0;
}

namespace standin {

// A lane's fragments of mma.sync.aligned.m16n8k32 (k = 32) or .m16n8k16 (k = 16) .row.col.s32 on bytes: d += a * b. The
// PTX manual says which elements each word holds. Sums wrap.
struct Fragments {
  int k;
  bool a_signed, b_signed;
  uint32_t a[4], b[2];
  int32_t d[4];
};
// All lanes of the warp call it together.
void multiply_matrices(Fragments *lane);

inline void integer_mma(int k, const uint32_t *a, bool a_signed, const uint32_t *b, bool b_signed,
                        const int32_t (&c)[4], int32_t (&d)[4]) {
  Fragments lane = {k, a_signed, b_signed, {}, {}, {}};
  memcpy(lane.a, a, k / 8 * sizeof(*a));
  memcpy(lane.b, b, k / 16 * sizeof(*b));
  memcpy(lane.d, c, sizeof(c));
  multiply_matrices(&lane);
  memcpy(d, lane.d, sizeof(d));
}

}  // namespace standin

// ---- Arithmetic intrinsics ----------------------------------------------------------------------------------------

template <typename T>
T __ldg(const T *pointer) {
  return *pointer;
}

inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
  unsigned int result = 0;
  for (int i = 0; i < 4; i++) result |= (bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return result;
}

inline unsigned int __funnelshift_l(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(hi) << 32 | lo) << (shift & 31) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int lo, unsigned int hi, unsigned int shift) {
  return static_cast<unsigned int>((static_cast<uint64_t>(hi) << 32 | lo) >> (shift & 31));
}
inline unsigned int __funnelshift_lc(unsigned int lo, unsigned int hi, unsigned int shift) {
  return shift >= 32 ? lo : __funnelshift_l(lo, hi, shift);
}
inline unsigned int __funnelshift_rc(unsigned int lo, unsigned int hi, unsigned int shift) {
  return shift >= 32 ? hi : __funnelshift_r(lo, hi, shift);
}

inline unsigned int __umulhi(unsigned int a, unsigned int b) {
  return static_cast<unsigned int>(static_cast<uint64_t>(a) * b >> 32);
}
inline int __mulhi(int a, int b) {
  return static_cast<int>(static_cast<int64_t>(a) * b >> 32);
}
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}

inline float __uint_as_float(unsigned int x) {
  float f;
  std::memcpy(&f, &x, sizeof f);
  return f;
}
inline float __saturatef(float x) {
  return std::fmin(std::fmax(x, 0.0f), 1.0f);
}
inline unsigned int __float_as_uint(float x) {
  unsigned int u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}
inline int __popc(unsigned int x) {
  return __builtin_popcount(x);
}
inline int __popcll(unsigned long long x) {
  return __builtin_popcountll(x);
}
inline int __clz(int x) {
  return x ? __builtin_clz(static_cast<unsigned int>(x)) : 32;
}
inline int __clzll(long long x) {
  return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64;
}
inline int __ffs(int x) {
  return __builtin_ffs(x);
}
inline int __ffsll(long long x) {
  return __builtin_ffsll(x);
}

namespace standin {

// The fields of type T in a word, at the front of a vector, for which processors have instructions.
using Words = unsigned int __attribute__((vector_size(16)));
template <typename T>
auto fields_of(unsigned int word) {
  typedef T Fields __attribute__((vector_size(16)));
  return reinterpret_cast<Fields>(Words{word});
}
template <typename Fields>
unsigned int word_of(Fields fields) {
  return reinterpret_cast<Words>(fields)[0];
}

template <typename T>
unsigned int smaller_fields(unsigned int a, unsigned int b) {
  const auto x = fields_of<T>(a), y = fields_of<T>(b);
  return word_of(x < y ? x : y);
}
template <typename T>
unsigned int larger_fields(unsigned int a, unsigned int b) {
  const auto x = fields_of<T>(a), y = fields_of<T>(b);
  return word_of(x < y ? y : x);
}
template <typename T>
unsigned int differences_of_fields(unsigned int a, unsigned int b) {
  const auto x = fields_of<T>(a), y = fields_of<T>(b);
  return word_of(x < y ? y - x : x - y);
}
template <typename T>
unsigned int greater_fields(unsigned int a, unsigned int b) {  // all bits of a field of a that is greater, else none
  const auto x = fields_of<T>(a), y = fields_of<T>(b);
  return word_of(x > y);
}

}  // namespace standin

#define STANDIN_FIELDS(name, T, function)                    \
  inline unsigned int name(unsigned int a, unsigned int b) { \
    return function<T>(a, b);                                \
  }
STANDIN_FIELDS(__vminu2, uint16_t, standin::smaller_fields)
STANDIN_FIELDS(__vmaxu2, uint16_t, standin::larger_fields)
STANDIN_FIELDS(__vmins2, int16_t, standin::smaller_fields)
STANDIN_FIELDS(__vmaxs2, int16_t, standin::larger_fields)
STANDIN_FIELDS(__vabsdiffu2, uint16_t, standin::differences_of_fields)
STANDIN_FIELDS(__vcmpgtu2, uint16_t, standin::greater_fields)
STANDIN_FIELDS(__vminu4, uint8_t, standin::smaller_fields)
STANDIN_FIELDS(__vmaxu4, uint8_t, standin::larger_fields)
STANDIN_FIELDS(__vabsdiffu4, uint8_t, standin::differences_of_fields)
STANDIN_FIELDS(__vcmpgtu4, uint8_t, standin::greater_fields)
STANDIN_FIELDS(__vmins4, int8_t, standin::smaller_fields)
STANDIN_FIELDS(__vmaxs4, int8_t, standin::larger_fields)
#undef STANDIN_FIELDS

inline unsigned int __vimin3_u16x2(unsigned int a, unsigned int b, unsigned int c) {
  return __vminu2(__vminu2(a, b), c);
}
inline unsigned int __vimax3_u16x2(unsigned int a, unsigned int b, unsigned int c) {
  return __vmaxu2(__vmaxu2(a, b), c);
}
inline unsigned int __vimin3_u32(unsigned int a, unsigned int b, unsigned int c) {
  const unsigned int first = b < a ? b : a;
  return c < first ? c : first;
}
inline unsigned int __vimax3_u32(unsigned int a, unsigned int b, unsigned int c) {
  const unsigned int first = a < b ? b : a;
  return first < c ? c : first;
}
inline unsigned int __vimin3_s16x2(unsigned int a, unsigned int b, unsigned int c) {
  return __vmins2(__vmins2(a, b), c);
}
inline unsigned int __vimax3_s16x2(unsigned int a, unsigned int b, unsigned int c) {
  return __vmaxs2(__vmaxs2(a, b), c);
}
inline unsigned int __dp2a_lo(unsigned int a, unsigned int b, unsigned int c) {
  return c + (a & 0xffffu) * (b & 0xffu) + (a >> 16) * (b >> 8 & 0xffu);
}
inline unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int c) {
  return __dp2a_lo(a, b >> 16, c);
}
// max(min(a + b, c), 0) in each half of the word.
inline unsigned int __viaddmin_s16x2_relu(unsigned int a, unsigned int b, unsigned int c) {
  const unsigned int low = (a + b) & 0xffffu, high = ((a >> 16) + (b >> 16)) << 16;
  return __vmaxs2(__vmins2(low | high, c), 0);
}

// Sums wrap, as in hardware.
inline unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
  for (int shift = 0; shift < 32; shift += 8) c += (a >> shift & 0xff) * (b >> shift & 0xff);
  return c;
}
inline int __dp4a(int a, int b, int c) {
  unsigned int sum = static_cast<unsigned int>(c);
  for (int shift = 0; shift < 32; shift += 8)
    sum += static_cast<unsigned int>(static_cast<int8_t>(a >> shift) * static_cast<int8_t>(b >> shift));
  return static_cast<int>(sum);
}
inline unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int c) {
  return c + static_cast<unsigned int>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
inline int __dp4a(char4 a, char4 b, int c) {
  const int sum = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  return static_cast<int>(static_cast<unsigned int>(c) + static_cast<unsigned int>(sum));
}

// The host rounds to nearest, halves to even, as these functions must.
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}
inline float __uint2float_rn(unsigned int x) {
  return static_cast<float>(x);
}
inline float __ull2float_rn(unsigned long long x) {
  return static_cast<float>(x);
}
// Results that do not fit are clamped, and NaN becomes 0.
inline int __float2int_rn(float x) {
  if (!(x < 2147483648.0f)) return std::isnan(x) ? 0 : INT32_MAX;
  return x <= -2147483648.0f ? INT32_MIN : static_cast<int>(std::nearbyint(x));
}
inline unsigned int __float2uint_rn(float x) {
  if (!(x < 4294967296.0f)) return std::isnan(x) ? 0 : UINT32_MAX;
  return x <= 0 ? 0 : static_cast<unsigned int>(std::nearbyint(x));
}
inline float __fsqrt_rn(float x) {
  return std::sqrt(x);
}

// Like CUDA's, min and max in the global namespace take operands of different types, by the usual arithmetic
// conversions.
template <typename A, typename B, typename = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr auto min(A a, B b) {
  using T = decltype(a + b);
  if constexpr (std::is_floating_point_v<T>)
    return std::fmin(static_cast<T>(a), static_cast<T>(b));
  else
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B, typename = std::enable_if_t<std::is_arithmetic_v<A> && std::is_arithmetic_v<B>>>
constexpr auto max(A a, B b) {
  using T = decltype(a + b);
  if constexpr (std::is_floating_point_v<T>)
    return std::fmax(static_cast<T>(a), static_cast<T>(b));
  else
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
