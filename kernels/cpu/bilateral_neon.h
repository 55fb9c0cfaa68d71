// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Op::Bilateral of bytes by the table instructions of 64-bit Arm: a part of vector_loops.h. A table of weights is 128
// bytes in eight registers; differences from 128 on have no weight.

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

// Adds a ring to the sums of 16 windows.
CUDACONV_INLINE inline void add_ring(const BilateralRing<uint8_t> &ring, int begin, uint8x16_t middle,
                                     const WeightTables &weights, uint64_t *n, uint64_t *d) {
  uint32x4_t sums[4] = {}, products[4] = {};
  for (int k = 0; k < ring.count; k++) {
    const uint8x16_t in = vld1q_u8(ring.in[k] + begin), difference = vabdq_u8(in, middle);
    const uint8x16_t low = weights.low(difference), high = weights.high(difference);
    const uint16x8_t samples[2] = {vmovl_u8(vget_low_u8(in)), vmovl_high_u8(in)};
    const uint16x8_t weight[2] = {vreinterpretq_u16_u8(vzip1q_u8(low, high)),
                                  vreinterpretq_u16_u8(vzip2q_u8(low, high))};
    for (int i = 0; i < 2; i++) {
      sums[2 * i] = vaddw_u16(sums[2 * i], vget_low_u16(weight[i]));
      sums[2 * i + 1] = vaddw_high_u16(sums[2 * i + 1], weight[i]);
      products[2 * i] = vmlal_u16(products[2 * i], vget_low_u16(weight[i]), vget_low_u16(samples[i]));
      products[2 * i + 1] = vmlal_high_u16(products[2 * i + 1], weight[i], samples[i]);
    }
  }
  const auto add = [&](uint64_t *to, uint32x4_t v) {
    vst1q_u64(to, vmlal_n_u32(vld1q_u64(to), vget_low_u32(v), ring.space));
    vst1q_u64(to + 2, vmlal_high_n_u32(vld1q_u64(to + 2), v, ring.space));
  };
  for (int i = 0; i < 4; i++) {
    add(d + 4 * i, sums[i]);
    add(n + 4 * i, products[i]);
  }
}

// range.weight[128] is 0.
void bilateral_bytes(const BilateralRing<uint8_t> *rings, int count, const uint8_t *middle, const BilateralRange &range,
                     uint8_t *out, int n) {
  const WeightTables weights(range);
  for (int block = 0; block < n; block += kVectorBlock) {
    const int begin = smaller(block, n - kVectorBlock);
    BilateralSums sums(middle + begin);
    for (int s = 0; s < kVectorBlock; s += 16)
      for (int k = 0; k < count; k++)
        add_ring(rings[k], begin + s, vld1q_u8(middle + begin + s), weights, sums.n + s, sums.d + s);
    for (int s = 0; s < kVectorBlock; s++) out[begin + s] = static_cast<uint8_t>(rounded_mean(sums.n[s], sums.d[s]));
  }
}

}  // namespace

}  // namespace cudaconv
