// SPDX-License-Identifier: LGPL-2.1-or-later
#include "peers.h"

#include <nppcore.h>
#include <nppi_filtering_functions.h>
#include <nppi_morphological_operations.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace cudaconv::bench {

namespace {

void check(NppStatus status, const char *call) {
  if (status < 0) throw std::runtime_error(std::string(call) + " returned " + std::to_string(status));
}

NppStreamContext context_of(cudaStream_t stream) {
  static NppStreamContext context = [] {
    NppStreamContext c = {};
    cudaGetDevice(&c.nCudaDeviceId);
    cudaDeviceProp properties;
    cudaGetDeviceProperties(&properties, c.nCudaDeviceId);
    c.nMultiProcessorCount = properties.multiProcessorCount;
    c.nMaxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
    c.nMaxThreadsPerBlock = properties.maxThreadsPerBlock;
    c.nSharedMemPerBlock = properties.sharedMemPerBlock;
    c.nCudaDevAttrComputeCapabilityMajor = properties.major;
    c.nCudaDevAttrComputeCapabilityMinor = properties.minor;
    return c;
  }();
  context.hStream = stream;
  return context;
}

// A mask in device memory. The last reference frees it.
template <typename T>
std::shared_ptr<T> on_device(const std::vector<T> &host) {
  T *data = nullptr;
  if (cudaMalloc(reinterpret_cast<void **>(&data), host.size() * sizeof(T)) != cudaSuccess)
    throw std::runtime_error("cudaMalloc failed");
  cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return std::shared_ptr<T>(data, [](T *p) { cudaFree(p); });
}

using Masked = NppStatus (*)(const Npp8u *, Npp32s, NppiSize, NppiPoint, Npp8u *, Npp32s, NppiSize, NppiMaskSize,
                             NppiBorderType, NppStreamContext);

Enqueue masked(Masked function, NppiMaskSize mask) {
  return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
             cudaStream_t stream) {
    const NppiSize size = {width, height};
    check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, mask, NPP_BORDER_REPLICATE,
                   context_of(stream)),
          "an NPP filter");
  };
}

// NPP's time grows with the window's area, also for Gaussians above 51 taps. Above this side a frame takes seconds.
constexpr int kLargestWindow = 127;
// In NPP 13.0, medians of 15x15 and more end with an illegal access, and the context is unusable afterwards.
constexpr int kLargestMedian = 11;

}  // namespace

std::optional<Enqueue> npp_filter(const FilterSettings &s, int channels) {
  const int most = s.mask == Mask::Bilateral ? 3 : 4;  // channels, besides 1
  if ((channels != 1 && channels != most) || s.border != Border::Replicate || s.alpha == Alpha::Weighted)
    return std::nullopt;
  const bool one = channels == 1;
  const auto choose = [&](Masked c1, Masked c4, NppiMaskSize mask) { return masked(one ? c1 : c4, mask); };
  switch (s.mask) {
    case Mask::Gauss3:
      return choose(nppiFilterGaussBorder_8u_C1R_Ctx, nppiFilterGaussBorder_8u_C4R_Ctx, NPP_MASK_SIZE_3_X_3);
    case Mask::Gauss5:
      return choose(nppiFilterGaussBorder_8u_C1R_Ctx, nppiFilterGaussBorder_8u_C4R_Ctx, NPP_MASK_SIZE_5_X_5);
    case Mask::Gauss7:
      return choose(nppiFilterGaussBorder_8u_C1R_Ctx, nppiFilterGaussBorder_8u_C4R_Ctx, NPP_MASK_SIZE_7_X_7);
    case Mask::Gauss9:
      return choose(nppiFilterGaussBorder_8u_C1R_Ctx, nppiFilterGaussBorder_8u_C4R_Ctx, NPP_MASK_SIZE_9_X_9);
    case Mask::Gauss: {
      // NPP takes one line of weights for both directions: floats whose sum is 1.
      const int n = s.size ? s.size : 2 * static_cast<int>(std::ceil(3 * s.sigma)) + 1;
      if (n > kLargestWindow) return std::nullopt;
      const double sigma = s.sigma >= 0 ? s.sigma : 0.3 * ((n - 1) * 0.5 - 1) + 0.8;
      std::vector<Npp32f> line(n);
      double sum = 0;
      for (int i = 0; i < n; i++) {
        const double x = i - n / 2;
        line[i] = static_cast<Npp32f>(std::exp(-x * x / (2 * sigma * sigma)));
        sum += line[i];
      }
      for (Npp32f &v : line) v = static_cast<Npp32f>(v / sum);
      const auto mask = on_device(line);
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        const auto function = one ? nppiFilterGaussAdvancedBorder_8u_C1R_Ctx : nppiFilterGaussAdvancedBorder_8u_C4R_Ctx;
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, n, mask.get(),
                       NPP_BORDER_REPLICATE, context_of(stream)),
              "nppiFilterGaussAdvancedBorder");
      };
    }
    case Mask::Laplace8:
      return choose(nppiFilterLaplaceBorder_8u_C1R_Ctx, nppiFilterLaplaceBorder_8u_C4R_Ctx, NPP_MASK_SIZE_3_X_3);
    case Mask::Sharpen:
    case Mask::SobelX: {
      const bool sobel = s.mask == Mask::SobelX;
      const auto c1 = sobel ? nppiFilterSobelVertBorder_8u_C1R_Ctx : nppiFilterSharpenBorder_8u_C1R_Ctx;
      const auto c4 = sobel ? nppiFilterSobelVertBorder_8u_C4R_Ctx : nppiFilterSharpenBorder_8u_C4R_Ctx;
      const auto function = one ? c1 : c4;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, NPP_BORDER_REPLICATE,
                       context_of(stream)),
              "nppiFilterSobelVertBorder or nppiFilterSharpenBorder");
      };
    }
    case Mask::Box3:
    case Mask::Box5:
    case Mask::Box7:
    case Mask::Box: {
      if (s.size > kLargestWindow) return std::nullopt;
      const int n = s.mask == Mask::Box3 ? 3 : s.mask == Mask::Box5 ? 5 : s.mask == Mask::Box7 ? 7 : s.size;
      const auto function = one ? nppiFilterBoxBorder_8u_C1R_Ctx : nppiFilterBoxBorder_8u_C4R_Ctx;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, {n, n}, {n / 2, n / 2},
                       NPP_BORDER_REPLICATE, context_of(stream)),
              "nppiFilterBoxBorder");
      };
    }
    case Mask::Median: {
      const int n = s.size ? s.size : 3;
      if (n > kLargestMedian) return std::nullopt;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        static Npp8u *scratch = nullptr;
        static Npp32u scratch_bytes = 0;
        const NppiSize size = {width, height};
        Npp32u bytes = 0;
        if (one)
          nppiFilterMedianBorderGetBufferSize_8u_C1R_Ctx(size, {n, n}, &bytes, NPP_BORDER_REPLICATE,
                                                         context_of(stream));
        else
          nppiFilterMedianBorderGetBufferSize_8u_C4R_Ctx(size, {n, n}, &bytes, NPP_BORDER_REPLICATE,
                                                         context_of(stream));
        if (bytes > scratch_bytes) {
          cudaFree(scratch);
          if (cudaMalloc(reinterpret_cast<void **>(&scratch), bytes) != cudaSuccess)
            throw std::runtime_error("cudaMalloc failed");
          scratch_bytes = bytes;
        }
        const auto function = one ? nppiFilterMedianBorder_8u_C1R_Ctx : nppiFilterMedianBorder_8u_C4R_Ctx;
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, {n, n}, {n / 2, n / 2}, scratch,
                       NPP_BORDER_REPLICATE, context_of(stream)),
              "nppiFilterMedianBorder");
      };
    }
    case Mask::Bilateral: {
      const auto function = one ? nppiFilterBilateralGaussBorder_8u_C1R_Ctx : nppiFilterBilateralGaussBorder_8u_C3R_Ctx;
      const int n = s.size ? s.size : 5;
      const double sigma = s.sigma > 0 ? s.sigma : 0.3 * ((n - 1) * 0.5 - 1) + 0.8, range = 255 * s.sigma_range;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, n / 2, 1,
                       static_cast<Npp32f>(range * range), static_cast<Npp32f>(sigma * sigma), NPP_BORDER_REPLICATE,
                       context_of(stream)),
              "nppiFilterBilateralGaussBorder");
      };
    }
    case Mask::Dilate:
    case Mask::Erode: {
      if (s.shape != Shape::Rect || s.size > kLargestWindow) return std::nullopt;
      const int n = s.size ? s.size : 3;
      const bool dilate = s.mask == Mask::Dilate;
      if (n == 3) {
        const auto c1 = dilate ? nppiDilate3x3Border_8u_C1R_Ctx : nppiErode3x3Border_8u_C1R_Ctx;
        const auto c4 = dilate ? nppiDilate3x3Border_8u_C4R_Ctx : nppiErode3x3Border_8u_C4R_Ctx;
        const auto function = one ? c1 : c4;
        return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                   cudaStream_t stream) {
          const NppiSize size = {width, height};
          check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, NPP_BORDER_REPLICATE,
                         context_of(stream)),
                "nppiDilate3x3Border");
        };
      }
      const auto element = on_device(std::vector<Npp8u>(static_cast<size_t>(n) * n, 1));
      const auto c1 = dilate ? nppiDilateBorder_8u_C1R_Ctx : nppiErodeBorder_8u_C1R_Ctx;
      const auto c4 = dilate ? nppiDilateBorder_8u_C4R_Ctx : nppiErodeBorder_8u_C4R_Ctx;
      const auto function = one ? c1 : c4;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, element.get(), {n, n},
                       {n / 2, n / 2}, NPP_BORDER_REPLICATE, context_of(stream)),
              "nppiDilateBorder");
      };
    }
    case Mask::Custom: {
      std::vector<Npp32s> values;
      for (double v : s.coefficients.value) values.push_back(static_cast<Npp32s>(v));
      if (!std::equal(values.begin(), values.end(), s.coefficients.value.begin())) return std::nullopt;  // fractions
      const auto mask = on_device(values);
      const int w = s.coefficients.width, h = s.coefficients.height,
                divisor = s.divisor ? static_cast<int>(s.divisor) : 1;
      const auto function = one ? nppiFilterBorder_8u_C1R_Ctx : nppiFilterBorder_8u_C4R_Ctx;
      return [=](const uint8_t *source, int source_pitch, uint8_t *target, int target_pitch, int width, int height,
                 cudaStream_t stream) {
        const NppiSize size = {width, height};
        check(function(source, source_pitch, size, {0, 0}, target, target_pitch, size, mask.get(), {w, h},
                       {w / 2, h / 2}, divisor, NPP_BORDER_REPLICATE, context_of(stream)),
              "nppiFilterBorder");
      };
    }
    default:
      return std::nullopt;
  }
}

}  // namespace cudaconv::bench
