// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Reads the samples of custom_blocks.cuh from frames to shared memory, and from there to registers.
#pragma once

#include "cuda/device/async_copy.cuh"
#include "cuda/device/mma/sums.cuh"

namespace cudaconv::custom {

constexpr int kBlocks4x4Width = 32;  // pixels of a strip

// Pixels between the begin of a strip's rows and the begin of its first window, with `chunks` chunks a step.
CUDACONV_HOST_DEVICE constexpr int blocks4x4_margin(int chunks) {
  return chunks == 4 ? 2 : 0;
}

// The rows of a few steps of a warp's strips in shared memory. The strips are side by side, and make four planes of
// bytes together. Rows are copied asynchronously, as they are in memory, and take no registers before they are needed.
// Pixels beyond an edge are made of the others once these have arrived; lanes 8n ... 8n + 7 do that for row n of a
// step. The whole warp calls these methods together.
template <int kChannels, int kChunks>
class Blocks4x4Window {
 public:
  static constexpr int kStrips = subtiles(kChannels), kWidth = kBlocks4x4Width * kStrips;
  static constexpr int kStages = 4;  // steps that are in shared memory or in flight
  // Words that contain four pixels: one more if these begin half a word into the first one.
  static constexpr bool kHalves = kChannels % 2 && blocks4x4_margin(kChunks) % 4;
  static constexpr int kWords = kChannels + (kHalves && kChannels > 1);

 private:
  // A row in shared memory, in pieces of 16 bytes as they are in memory:
  //
  //    kLead bytes   8 pixels before the strips   the strips' pixels   8 pixels behind them   up to kRowBytes
  //
  // The strips begin at a multiple of 16 bytes. 8 pixels of one or three bytes are 8 bytes more than a multiple of 16,
  // so kLead is 8, else 0. Example, RGB: 8 + 3 * (8 + 32 + 8) = 152 bytes, 10 pieces.
  //
  // With kPitch, words at the same place of four rows, in two columns of the matrix of samples, lie in different banks.
  static constexpr int kLead = kChannels % 2 * 8;
  static constexpr int kPieces = (kLead + (kWidth + 2 * kBlocks4x4Radius) * kChannels + 15) / 16,
                       kRowBytes = 16 * kPieces;
  static constexpr int kPitch = (kRowBytes + 31) / 32 % 2 ? (kRowBytes + 31) / 32 * 32 : kRowBytes / 32 * 32 + 32;
  static_assert(kPieces <= 16, "two pieces a lane");

  // The words that a pixel consists of and is aligned to.
  using Unit = std::conditional_t<kChannels == 4, uint32_t, std::conditional_t<kChannels == 2, uint16_t, uint8_t>>;
  static constexpr int kUnitBytes = static_cast<int>(sizeof(Unit)), kPixelUnits = kChannels / kUnitBytes;
  static constexpr int kLaneUnits = kBlocks4x4Radius * kPixelUnits / 8;  // units beyond an edge for each lane

 public:
  static constexpr int kStepBytes = 4 * kPitch;
  static constexpr size_t kMemory = kStages * kStepBytes;  // bytes

  // The strips begin at pixel x0. `rows` lists where rows are, see list_rows(), four for each of `steps` steps. If the
  // border wraps, rows are a multiple of 16 bytes.
  __device__ Blocks4x4Window(const MmaParams &p, const PartParams &part, int x0, const int64_t *rows, int steps,
                             uint8_t *memory)
      : part_(part),
        rows_(rows + lane() / 8),
        steps_(steps),
        first_byte_((x0 - kBlocks4x4Radius) * kChannels - kLead),
        column_(part.source + (first_byte_ + 16 * piece(0))),
        memory_(memory),
        first_(memory + kLead + (lane() / 4 * 4 + lane() % 4 * 4 + blocks4x4_margin(kChunks)) * kChannels -
               (kHalves ? 2 : 0)) {
    const int row_bytes = part.width * kChannels, first_unit = first_byte_ / kUnitBytes;
    const bool before = first_byte_ < 0;
    const bool behind = first_byte_ + kRowBytes > row_bytes;
    const bool beside[2] = {before, behind};
    wraps_ = (before || behind) && p.border == Border::Wrap;
    no_edges_ = !wraps_ && (!behind || row_bytes % 16 == 0);
    constant_ = p.border == Border::Constant;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const int byte = first_byte_ + 16 * piece(i);
      wanted_ |= (piece(i) < kPieces && (wraps_ || (byte >= 0 && byte < row_bytes))) << i;
    }
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (beside[side] && !wraps_) edges_ |= 1 << side;
      const int first = side ? part.width * kPixelUnits - first_unit : kLead / kUnitBytes;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++) {
        const int to = first + lane_unit(k);
        const int column = (side ? part.width : x0 - kBlocks4x4Radius) + lane_unit(k) / kPixelUnits;
        const int from = border_index_no_div(p.border, column, part.width);
        mended_[side][k] = kNone;
        if (edges_ >> side & 1 && to < kRowBytes / kUnitBytes && (side || column < 0))
          mended_[side][k] = static_cast<uint32_t>(from * kPixelUnits + lane_unit(k) % kPixelUnits - first_unit) << 16 |
                             static_cast<uint32_t>(to);
      }
    }
  }

  // Whether each 16-byte piece of a row is completely in the frame or completely beside it. All rows are then copied in
  // the same way, except rows of the border value.
  __device__ bool no_edges() const {
    return no_edges_;
  }

  // The slot of the step after the one at `slot`.
  __device__ static int next(int slot) {
    return slot == (kStages - 1) * kStepBytes ? 0 : slot + kStepBytes;
  }

  // The offset of the lane's row of the step that is requested next; undefined if there is none.
  __device__ int64_t row_offset() const {
    return *rows_;
  }

  // Requests the samples of the next step, number `step`, if there is one.
  __device__ void request(int step, int slot, int64_t offset) {
    if (step < steps_) {
      uint8_t *const row = own_row(slot);
      const int row_bytes = part_.width * kChannels;
#pragma unroll
      for (int i = 0; i < 2; i++) {
        if (!(wanted_ >> i & 1)) continue;
        int byte = first_byte_ + 16 * piece(i);
        if (wraps_) byte = border_index(Border::Wrap, byte, row_bytes);
        if (offset == kNoRow)
          put_border(row + 16 * piece(i), byte / 4);
        else  // into L1 too: neighbouring strips read some bytes twice
          copy_async<Cache::L1>(row + 16 * piece(i), part_.source + offset + byte, min(row_bytes - byte, 16));
      }
    }
    rows_ += 4;
    commit_copies();
  }

  // request() if no_edges(), for a step none of whose rows is the border value.
  __device__ void request_no_edges(int step, int slot, int64_t offset) {
    if (step < steps_) {
      const uint8_t *const from = column_ + offset;
      uint8_t *const row = own_row(slot) + 16 * piece(0);
#pragma unroll
      for (int i = 0; i < 2; i++)
        if (wanted_ >> i & 1) copy_async<Cache::L1>(row + 16 * 8 * i, from + 16 * 8 * i);
    }
    rows_ += 4;
    commit_copies();
  }

  // Waits for the step at `slot`, after which kStages - 1 steps have been requested. The warp is done with the step
  // before it.
  __device__ void wait(int slot) const {
    wait_for_groups<kStages - 2>();
    __syncwarp();
    if (!edges_) return;  // the same for the whole warp
    Unit *const row = reinterpret_cast<Unit *>(own_row(slot));
#pragma unroll
    for (int side = 0; side < 2; side++) {
      if (!(edges_ >> side & 1)) continue;
#pragma unroll
      for (int k = 0; k < kLaneUnits; k++)
        if (mended_[side][k] != kNone)
          row[mended_[side][k] & 0xffffu] =
              constant_ ? border_unit(lane_unit(k) % kPixelUnits) : row[mended_[side][k] >> 16];
    }
    __syncwarp();
  }

  // Reads the lane's four pixels of chunk c of strip s of a step, as they lie in memory.
  __device__ void read(int slot, int c, int s, uint32_t (&words)[kWords]) const {
    const int t = lane() % 4;
    const uint8_t *const from =
        first_ + slot + kBlocks4x4Width * s * kChannels + (c < 4 ? c * kPitch : t * kPitch + 4 * (4 - t) * kChannels);
    if constexpr (kHalves && kChannels == 1) {
      uint32_t both[2];
      load_words<1>(from, both);
      load_words<1>(from + 4, both + 1);
      words[0] = __byte_perm(both[0], both[1], 0x5432);
    } else if constexpr (kChannels == 3) {
#pragma unroll
      for (int i = 0; i < kWords; i++) load_words<1>(from + 4 * i, words + i);
    } else if constexpr (blocks4x4_margin(kChunks)) {
#pragma unroll
      for (int i = 0; i < 2; i++) load_words<kChannels / 2>(from + 2 * i * kChannels, words + i * kChannels / 2);
    } else {
      load_words<kChannels>(from, words);
    }
  }

 private:
  static constexpr uint32_t kNone = 0xffffffffu;

  __device__ static int lane() {
    return threadIdx.x % 32;
  }
  __device__ static int piece(int i) {
    return lane() % 8 + 8 * i;
  }
  __device__ static int lane_unit(int k) {
    return lane() % 8 + 8 * k;
  }
  __device__ uint8_t *own_row(int slot) const {
    return memory_ + slot + lane() / 8 * kPitch;
  }

  __device__ Unit border_unit(int i) const {
    const int byte = i * kUnitBytes;
    return static_cast<Unit>(part_.border_word[byte / 4] >> byte % 4 * 8);
  }

  // Fills 16 bytes of a row with the border value; `word` is the index of their first word in the part's row.
  __device__ void put_border(uint8_t *to, int word) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) words[i] = part_.border_word[kChannels == 3 ? (word + i) % 3 : i % 2];
    store_words<4>(to, words);
  }

  const PartParams &part_;
  const int64_t *rows_;
  int steps_;
  int first_byte_;         // of the window, in a row of the part
  const uint8_t *column_;  // address of the lane's first piece in row 0
  uint8_t *memory_;
  const uint8_t *first_;  // the lane's pixels
  bool wraps_, no_edges_, constant_;
  int wanted_ = 0;  // bits: which of the lane's pieces are copied
  // edges_: bits for the left and the right edge, set if the window reaches beyond it. mended_: for each edge, where in
  // the row the lane's units beyond it come from, in the high half, and where they go.
  int edges_ = 0;
  uint32_t mended_[2][kLaneUnits];
};

}  // namespace cudaconv::custom
