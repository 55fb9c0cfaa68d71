// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernels that unpack frames and pack them again. A thread does 16 bytes of a row in memory.
#include "unpack.h"

#include "launch.cuh"

namespace cudaconv {

namespace {

constexpr int kChunkBytes = 16, kThreadsAcross = 32, kThreadsDown = 8;

struct UnpackParams {
  int32_t planes;
  int32_t first_block[kMaxPlanes], blocks_across[kMaxPlanes];
  UnpackPlane plane[kMaxPlanes];
  uint8_t *packed[kMaxPlanes];  // of plane n
  int64_t packed_pitch[kMaxPlanes];
  uint8_t *dense[kMaxPlanes][2];
  int64_t dense_pitch[kMaxPlanes][2];
};

__device__ inline uint4 permute(const uint4 &v, const uint32_t (&from)[2]) {
  return make_uint4(__byte_perm(v.x, v.y, from[0]), __byte_perm(v.x, v.y, from[1]), __byte_perm(v.z, v.w, from[0]),
                    __byte_perm(v.z, v.w, from[1]));
}

// Bytes that are permuted, all or some of a chunk. `dense` are the chunk's bytes of either plane, and so many are left
// of the row.
template <bool kPacks>
__device__ inline void permute_chunk(const UnpackPlane &plane, uint8_t *packed, uint8_t *const (&dense)[2],
                                     const int (&left)[2]) {
  auto *const whole = reinterpret_cast<uint4 *>(packed);
  if (plane.planes == 1 && left[0] >= kChunkBytes) {
    auto *const one = reinterpret_cast<uint4 *>(dense[0]);
    *(kPacks ? whole : one) = permute(kPacks ? *one : *whole, kPacks ? plane.pack : plane.unpack);
  } else if (plane.planes == 2 && min(left[0], left[1]) >= kChunkBytes / 2) {
    auto *const first = reinterpret_cast<uint2 *>(dense[0]), *const second = reinterpret_cast<uint2 *>(dense[1]);
    if (kPacks) {
      const uint2 a = *first, b = *second;
      *whole = permute(make_uint4(a.x, b.x, a.y, b.y), plane.pack);
    } else {
      const uint4 v = permute(*whole, plane.unpack);
      *first = make_uint2(v.x, v.z);
      *second = make_uint2(v.y, v.w);
    }
  } else {
#pragma unroll 1
    for (int i = 0; i < kChunkBytes; i++) {
      const int half = i / 8, n = i % 8, from = static_cast<int>(plane.unpack[n / 4] >> n % 4 * 4 & 7);
      const bool second = plane.planes == 2 && n >= 4;
      const int at = plane.planes == 2 ? half * 4 + n % 4 : i;
      if (at >= (second ? left[1] : left[0])) continue;
      uint8_t *const in_memory = packed + half * 8 + from, *const in_plane = (second ? dense[1] : dense[0]) + at;
      *(kPacks ? in_memory : in_plane) = kPacks ? *in_plane : *in_memory;
    }
  }
}

// A word of bit fields and its pixel, four 16-bit samples.
__device__ inline uint2 unpack_fields(const UnpackPlane &plane, uint32_t word) {
  const auto field = [&](int c) { return word >> plane.field[c] & plane.field_mask[c]; };
  return make_uint2(field(0) | field(1) << 16, field(2) | field(3) << 16);
}

__device__ inline uint32_t pack_fields(const UnpackPlane &plane, const uint2 &pixel) {
  return (pixel.x & 0xffffu) << plane.field[0] | pixel.x >> 16 << plane.field[1] |
         (pixel.y & 0xffffu) << plane.field[2] | pixel.y >> 16 << plane.field[3];
}

template <bool kPacks>
__device__ inline void unpack_words(const UnpackPlane &plane, uint8_t *packed, uint8_t *dense, int pixels) {
  auto *const words = reinterpret_cast<uint32_t *>(packed);
  auto *const samples = reinterpret_cast<uint2 *>(dense);
  if (pixels >= 4) {
    auto *const four = reinterpret_cast<uint4 *>(words), *const two = reinterpret_cast<uint4 *>(samples);
    if (kPacks) {
      const uint4 a = two[0], b = two[1];
      *four = make_uint4(pack_fields(plane, make_uint2(a.x, a.y)), pack_fields(plane, make_uint2(a.z, a.w)),
                         pack_fields(plane, make_uint2(b.x, b.y)), pack_fields(plane, make_uint2(b.z, b.w)));
    } else {
      const uint4 v = *four;
      const uint2 a = unpack_fields(plane, v.x), b = unpack_fields(plane, v.y), c = unpack_fields(plane, v.z),
                  d = unpack_fields(plane, v.w);
      two[0] = make_uint4(a.x, a.y, b.x, b.y);
      two[1] = make_uint4(c.x, c.y, d.x, d.y);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < pixels; i++) {
    if (kPacks)
      words[i] = pack_fields(plane, samples[i]);
    else
      samples[i] = unpack_fields(plane, words[i]);
  }
}

template <bool kPacks>
__global__ void __launch_bounds__(kThreadsAcross *kThreadsDown) unpack_kernel(const __grid_constant__ UnpackParams p) {
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  int n = 0;
  while (n + 1 < p.planes && block >= p.first_block[n + 1]) n++;
  const UnpackPlane &plane = p.plane[n];
  const int index = block - p.first_block[n], row = index / p.blocks_across[n];
  const int chunk = (index - row * p.blocks_across[n]) * kThreadsAcross + thread % kThreadsAcross;
  const int y = row * kThreadsDown + thread / kThreadsAcross;
  if (chunk >= plane.chunks || y >= plane.height) return;
  uint8_t *const packed = p.packed[n] + y * p.packed_pitch[n] + chunk * kChunkBytes;
  if (plane.fields) {
    const int pixels = plane.row_bytes[0] / static_cast<int>(sizeof(uint2)) - 4 * chunk;
    unpack_words<kPacks>(plane, packed, p.dense[n][0] + y * p.dense_pitch[n][0] + chunk * 2 * kChunkBytes, pixels);
  } else {
    const int first = chunk * kChunkBytes / plane.planes;
    uint8_t *const dense[2] = {p.dense[n][0] + y * p.dense_pitch[n][0] + first,
                               p.dense[n][1] + y * p.dense_pitch[n][1] + first};
    const int left[2] = {plane.row_bytes[0] - first, plane.row_bytes[1] - first};
    permute_chunk<kPacks>(plane, packed, dense, left);
  }
}

template <bool kPacks>
void launch_frame(const UnpackedPlan &plan, const FrameView &packed, const FrameView &dense, cudaStream_t stream) {
  UnpackParams p = {};
  p.planes = plan.memory_planes;
  int blocks = 0;
  for (int n = 0; n < p.planes; n++) {
    const UnpackPlane &plane = plan.plane[n];
    p.plane[n] = plane;
    p.packed[n] = packed.plane[plane.memory_plane].data;
    p.packed_pitch[n] = packed.plane[plane.memory_plane].pitch;
    for (int i = 0; i < 2; i++) {
      const PlaneView &view = dense.plane[plane.plane[i % plane.planes]];
      p.dense[n][i] = view.data;
      p.dense_pitch[n][i] = view.pitch;
    }
    p.first_block[n] = blocks;
    p.blocks_across[n] = (plane.chunks + kThreadsAcross - 1) / kThreadsAcross;
    blocks += p.blocks_across[n] * ((plane.height + kThreadsDown - 1) / kThreadsDown);
  }
  check(launch(kPacks ? "pack" : "unpack", unpack_kernel<kPacks>, dim3(static_cast<unsigned>(blocks)),
               dim3(kThreadsAcross * kThreadsDown), 0, stream, p),
        "cudaLaunchKernel");
}

}  // namespace

void launch_unpack(const UnpackedPlan &plan, const FrameView &packed, const FrameView &dense, cudaStream_t stream) {
  launch_frame<false>(plan, packed, dense, stream);
}

void launch_pack(const UnpackedPlan &plan, const FrameView &dense, const FrameView &packed, cudaStream_t stream) {
  launch_frame<true>(plan, packed, dense, stream);
}

}  // namespace cudaconv
