// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The launchers that do not stand in the dispatch table: of methods, and of frames that are unpacked.
#pragma once

#include <cstddef>

#include "cuda/launchers.h"
#include "plan/lower.h"

namespace cudaconv {

// Enqueues any pass with the kernels of the plan's method. Pixels that border=keep keeps are copied.
void launch_method(const PassRun &run);

// Parts of launch_method(): mosaics, weighted means and bilaterals weighted by alpha, bilaterals of RGB, and wide
// Gaussians.
void launch_mosaic_samples(const PassRun &run);
void launch_weighted_samples(const PassRun &run);
void launch_bilateral_pixels(const PassRun &run);
void launch_blur_samples(const PassRun &run);

// Bytes of scratch memory that launch_method() takes for a pass.
size_t method_bytes(const Plan &plan, const Pass &pass);

// The same for the coarse samples of a wide Gaussian; 0 for other passes.
size_t coarse_bytes(const Plan &plan, const Pass &pass);

// Puts back the pixels that border=keep keeps, after a pass has filtered all pixels. Planes are dense. Throws
// Error{Device}.
void launch_restore(const PassRun &run);

// Unpack a frame to the dense planes of the plan, and pack it again, in one launch each. `packed` has the planes of
// memory. All pitches and addresses are multiples of 16 bytes. Bytes that belong to no pixel are neither read nor
// written. Throw Error{Device}.
void launch_unpack(const LoweredPlan &plan, const FrameView &packed, const FrameView &dense, LaunchGraph &launches);
void launch_pack(const LoweredPlan &plan, const FrameView &dense, const FrameView &packed, LaunchGraph &launches);

// The method with which launch_method() carries out a pass.
Method resolve_method(const Plan &plan, const Pass &pass);

// A kernel of each source, to find out for which architecture the source was compiled.
const void *any_method();
const void *any_mma();

}  // namespace cudaconv
