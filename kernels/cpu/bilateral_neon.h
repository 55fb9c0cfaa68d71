// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral of bytes by the table instructions of 64-bit Arm: a part of vector_loops.h. A table of weights is 128
// bytes in eight registers; differences from 128 on have no weight, so that sums of differences may be cut off at 255.

namespace cudaconv {

namespace {

class WeightTables {
 public:
  explicit WeightTables(const BilateralRange &range) {
    uint8_t low[128], high[128];
    for (int i = 0; i < 128; i++) {
      low[i] = static_cast<uint8_t>(range.weight[i]);
      high[i] = static_cast<uint8_t>(range.weight[i] >> 8);
    }
    for (int i = 0; i < 2; i++) {
      low_[i] = vld1q_u8_x4(low + 64 * i);
      high_[i] = vld1q_u8_x4(high + 64 * i);
    }
  }

  // The low and the high bytes of the weights of differences.
  CUDACONV_INLINE uint8x16_t low(uint8x16_t difference) const { return look_up(low_, difference); }
  CUDACONV_INLINE uint8x16_t high(uint8x16_t difference) const { return look_up(high_, difference); }

 private:
  // An index that is too large gives 0 in the first half of a table, and in the second half what the first gave.
  CUDACONV_INLINE static uint8x16_t look_up(const uint8x16x4_t (&table)[2], uint8x16_t index) {
    return vqtbx4q_u8(vqtbl4q_u8(table[0], index), table[1], vsubq_u8(index, vdupq_n_u8(64)));
  }

  uint8x16x4_t low_[2], high_[2];
};

// Adds a ring to the sums of 16 windows from `begin + s` on. With RGB, kCount is 3: the sums of all colours have the
// weights of the sum of their differences.
template <int kCount>
CUDACONV_INLINE inline void add_ring(const BilateralRing<uint8_t> &ring, const uint8_t *const *middle, int begin, int s,
                                     const WeightTables &weights, BilateralSums *to) {
  uint32x4_t sums[4] = {}, products[kCount][4] = {};
  for (int k = 0; k < ring.count; k++) {
    uint8x16_t in[kCount], difference = {};
    for (int c = 0; c < kCount; c++) {
      in[c] = vld1q_u8(ring.in[kCount * k + c] + begin + s);
      difference = vqaddq_u8(difference, vabdq_u8(in[c], vld1q_u8(middle[c] + begin + s)));
    }
    const uint8x16_t low = weights.low(difference), high = weights.high(difference);
    const uint16x8_t weight[2] = {vreinterpretq_u16_u8(vzip1q_u8(low, high)),
                                  vreinterpretq_u16_u8(vzip2q_u8(low, high))};
    for (int i = 0; i < 2; i++) {
      sums[2 * i] = vaddw_u16(sums[2 * i], vget_low_u16(weight[i]));
      sums[2 * i + 1] = vaddw_high_u16(sums[2 * i + 1], weight[i]);
      for (int c = 0; c < kCount; c++) {
        const uint16x8_t samples = i ? vmovl_high_u8(in[c]) : vmovl_u8(vget_low_u8(in[c]));
        uint32x4_t *const sum = products[c] + 2 * i;
        sum[0] = vmlal_u16(sum[0], vget_low_u16(weight[i]), vget_low_u16(samples));
        sum[1] = vmlal_high_u16(sum[1], weight[i], samples);
      }
    }
  }
  const auto add = [&](uint64_t *sum, uint32x4_t v) {
    vst1q_u64(sum, vmlal_n_u32(vld1q_u64(sum), vget_low_u32(v), ring.space));
    vst1q_u64(sum + 2, vmlal_high_n_u32(vld1q_u64(sum + 2), v, ring.space));
  };
  for (int c = 0; c < kCount; c++)
    for (int i = 0; i < 4; i++) {
      add(to[c].d + s + 4 * i, sums[i]);
      add(to[c].n + s + 4 * i, products[c][i]);
    }
}

// range.weight[128] is 0.
template <int kCount>
void bilateral_bytes(const BilateralRing<uint8_t> *rings, int count, const uint8_t *const *middle,
                     const BilateralRange &range, uint8_t *const *out, int n) {
  const WeightTables weights(range);
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    BilateralSums sums[kCount];
    for (int c = 0; c < kCount; c++) sums[c] = BilateralSums(middle[c] + begin);
    for (int s = 0; s < kVectorBlock; s += 16)
      for (int k = 0; k < count; k++) add_ring<kCount>(rings[k], middle, begin, s, weights, sums);
    for (int c = 0; c < kCount; c++)
      for (int s = 0; s < kVectorBlock; s++)
        out[c][begin + s] = static_cast<uint8_t>(rounded_mean(sums[c].n[s], sums[c].d[s]));
  }
}

}  // namespace

}  // namespace cudaconv
