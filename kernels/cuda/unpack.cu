// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The kernel that unpacks frames and packs them again, see UnpackPlane. Each thread converts 16 bytes of a row in
// memory.
//
// Example, YUY2: the 8 bytes y0 u0 y1 v0 y2 u1 y3 v1 become y0 y1 y2 y3 of the first dense plane and u0 v0 u1 v1 of the
// second. Unpacking has the selectors 0x6420 and 0x7531, packing has 0x5140 and 0x7362.
#include "cuda/device/words.cuh"
#include "cuda/launch.cuh"
#include "cuda/method_launchers.h"

namespace cudaconv {

namespace {

constexpr int kChunkBytes = 16, kThreadsAcross = 32, kThreadsDown = 8;

struct UnpackParams {
  bool packs;
  int32_t planes;
  int32_t first_block[kMaxPlanes], blocks_across[kMaxPlanes];
  UnpackPlane plane[kMaxPlanes];
  PlaneView packed[kMaxPlanes];  // planes of memory
  PlaneView dense[kMaxPlanes][kMaxPlanes];
};

// Permutes both halves of 16 bytes. `from`: the selectors of the first and of the second word of a half.
__device__ inline uint4 permute(const uint4 &v, const uint32_t (&from)[2]) {
  return make_uint4(__byte_perm(v.x, v.y, from[0]), __byte_perm(v.x, v.y, from[1]), __byte_perm(v.z, v.w, from[0]),
                    __byte_perm(v.z, v.w, from[1]));
}

// Permutes a chunk of 16 bytes of a row, or what is left of the row. `dense` points to the chunk's bytes in each dense
// plane, where the row has `left` bytes left.
__device__ inline void permute_chunk(bool packs, const UnpackPlane &plane, uint8_t *packed, uint8_t *const (&dense)[2],
                                     const int (&left)[2]) {
  auto *const whole = reinterpret_cast<uint4 *>(packed);
  if (plane.planes == 1 && left[0] >= kChunkBytes) {
    auto *const one = reinterpret_cast<uint4 *>(dense[0]);
    *(packs ? whole : one) = permute(packs ? *one : *whole, packs ? plane.pack : plane.unpack);
  } else if (plane.planes == 2 && min(left[0], left[1]) >= kChunkBytes / 2) {
    auto *const first = reinterpret_cast<uint2 *>(dense[0]), *const second = reinterpret_cast<uint2 *>(dense[1]);
    if (packs) {
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
      *(packs ? in_memory : in_plane) = packs ? *in_plane : *in_memory;
    }
  }
}

// Converts four words of bit fields to 16-bit samples of each plane, or back; fewer at the end of a row.
__device__ inline void unpack_words(bool packs, const UnpackPlane &plane, uint8_t *packed,
                                    uint8_t *const (&dense)[kMaxPlanes], int pixels) {
  const int sample_bytes = pixels * static_cast<int>(sizeof(uint16_t)), bytes = 2 * sample_bytes;
  uint32_t word[4] = {};
  if (!packs) load_bytes<4>(packed, bytes, word);
#pragma unroll
  for (int c = 0; c < kMaxPlanes; c++) {
    uint32_t samples[2] = {};
    if (packs) load_bytes<2>(dense[c], sample_bytes, samples);
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int shift = i % 2 * 16;
      if (packs)
        word[i] |= (samples[i / 2] >> shift & 0xffffu) << plane.field[c];
      else
        samples[i / 2] |= (word[i] >> plane.field[c] & plane.field_mask[c]) << shift;
    }
    if (!packs) store_bytes<2>(dense[c], sample_bytes, samples);
  }
  if (packs) store_bytes<4>(packed, bytes, word);
}

__global__ void __launch_bounds__(kThreadsAcross *kThreadsDown) unpack_kernel(const __grid_constant__ UnpackParams p) {
  const int block = static_cast<int>(blockIdx.x), thread = static_cast<int>(threadIdx.x);
  int n = 0;
  while (n + 1 < p.planes && block >= p.first_block[n + 1]) n++;
  const UnpackPlane &plane = p.plane[n];
  const int index = block - p.first_block[n], row = index / p.blocks_across[n];
  const int chunk = (index - row * p.blocks_across[n]) * kThreadsAcross + thread % kThreadsAcross;
  const int y = row * kThreadsDown + thread / kThreadsAcross;
  if (chunk >= plane.chunks || y >= plane.height) return;
  uint8_t *const packed = p.packed[n].data + y * p.packed[n].pitch + chunk * kChunkBytes;
  const int first = chunk * (plane.fields ? 4 * static_cast<int>(sizeof(uint16_t)) : kChunkBytes / plane.planes);
  const auto dense = [&](int i) { return p.dense[n][i].data + y * p.dense[n][i].pitch + first; };
  if (plane.fields)
    unpack_words(p.packs, plane, packed, {dense(0), dense(1), dense(2), dense(3)},
                 (plane.row_bytes[0] - first) / static_cast<int>(sizeof(uint16_t)));
  else
    permute_chunk(p.packs, plane, packed, {dense(0), dense(1)},
                  {plane.row_bytes[0] - first, plane.row_bytes[1] - first});
}

void launch_frame(bool packs, const LoweredPlan &plan, const FrameView &packed, const FrameView &dense,
                  LaunchGraph &launches) {
  UnpackParams p = {};
  p.packs = packs;
  p.planes = static_cast<int32_t>(plan.packed.size());
  int blocks = 0;
  for (int n = 0; n < p.planes; n++) {
    const UnpackPlane &plane = plan.packed[n];
    p.plane[n] = plane;
    p.packed[n] = packed.plane[plane.memory_plane];
    for (int i = 0; i < kMaxPlanes; i++) p.dense[n][i] = dense.plane[plane.plane[i % plane.planes]];
    p.first_block[n] = blocks;
    p.blocks_across[n] = (plane.chunks + kThreadsAcross - 1) / kThreadsAcross;
    blocks += p.blocks_across[n] * ((plane.height + kThreadsDown - 1) / kThreadsDown);
  }
  enqueue(packs ? "pack" : "unpack", unpack_kernel, static_cast<unsigned>(blocks), kThreadsAcross * kThreadsDown, 0,
          launches, p);
}

}  // namespace

void launch_unpack(const LoweredPlan &plan, const FrameView &packed, const FrameView &dense, LaunchGraph &launches) {
  launch_frame(false, plan, packed, dense, launches);
}

void launch_pack(const LoweredPlan &plan, const FrameView &dense, const FrameView &packed, LaunchGraph &launches) {
  launch_frame(true, plan, packed, dense, launches);
}

}  // namespace cudaconv
