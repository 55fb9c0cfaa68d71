// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CPU backend: tiles of the frame on several threads, row by row through vector loops. Between rows, which take
// well below a millisecond, it looks whether it is to give up.
#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <vector>

#include "backend.h"
#include "cpu/cpu_operations.h"
#include "cpu/cpu_rows.h"
#include "cpu/vector.h"

namespace cudaconv {

namespace {

// Calls f(op) with the operation of the pass, made for the context.
template <typename T, typename F>
void with_operation(const RowContext<T> &context, F f) {
  const Pass &pass = context.pass();
  const IntegerMask &mask = pass.mask[0];
  const auto run = [&](auto &&op) { f(op); };
  switch (pass.op) {
    case Op::Linear: {
      using Wide = Lanes<int64_t, int64_t>;
      using Normal = Lanes<int32_t, int32_t>;
      const bool box = BoxSum<T, Normal>::can(pass, mask);
      if constexpr (sizeof(T) == 1) {
        Rounding16 rounding;
        if (NarrowOp<T, MaskSum>::can(pass, *context.rounding(), &rounding))
          return box ? run(NarrowOp<T, BoxSum>(context, rounding)) : run(NarrowOp<T, MaskSum>(context, rounding));
      }
      if (box) return run(LinearOp<T, BoxSum<T, Normal>>(context));
      if (pass.wide) return run(LinearOp<T, MaskSum<T, Wide>>(context));
      if (PairSum<T>::can(context, mask)) return run(LinearOp<T, PairSum<T>>(context));
      return run(LinearOp<T, MaskSum<T, Normal>>(context));
    }
    case Op::Magnitude:
      if constexpr (sizeof(T) == 1)
        if (MagnitudeOp<T, uint16_t>::can(context)) return run(MagnitudeOp<T, uint16_t>(context));
      return run(MagnitudeOp<T, int32_t>(context));
    case Op::Compass:
      return run(CompassOp<T>(context));
    case Op::Minimum:
    case Op::Maximum:
      if (pass.element.empty()) return run(RectangleOp<T>(context, pass.op == Op::Maximum));
      return run(ElementOp<T>(context, pass.op == Op::Maximum));
    case Op::Median:
      return run(MedianOp<T>(context));
    case Op::Difference:  // see Results
      break;
  }
}

// Where the results of a row go before they are in the frame: straight there, where samples lie in memory as they are
// computed.
template <typename T>
class Results {
 public:
  Results(const Job &job, const JobTile &tile, Scratch &scratch)
      : job_(job), tile_(tile), merger_(job, tile, scratch), merges_(merger_.needed()) {
    const int samples = tile.width() * job.layout->channels;
    if (!samples_in_memory<T>(*job.layout) || samples < kVectorBlock || job.difference) row_ = scratch.take<T>(samples);
    if (!job.difference) return;
    difference_ = std::make_unique<Results>(*job.difference, tile, scratch);
    other_ = scratch.take<T>(samples);
  }

  T *begin(int y) const {
    if (row_) return row_;
    return reinterpret_cast<T *>(memory(y)) + tile_.x0 * job_.layout->channels;
  }

  void end(int y) {
    if (merges_) merger_.merge(y, begin(y));
    if (difference_)
      subtract(y);
    else if (row_)
      pack_pixels(*job_.loops, *job_.layout, row_, tile_.x0, tile_.width(), memory(y));
  }

 private:
  uint8_t *memory(int y) const { return job_.target.data + y * job_.target.pitch; }

  // These results and the other operand, which is in memory.
  void subtract(int y) {
    const Job &job = *job_.difference;
    const bool from_these = job.pass->source == job_.pass->target;
    const T *other = samples_of(job, tile_, from_these ? job.subtrahend : job.source, y, other_);
    job.loops->subtract(from_these ? row_ : other, from_these ? other : row_, difference_->begin(y),
                        std::max(tile_.width() * job.layout->channels, kVectorBlock));
    difference_->end(y);
  }

  const Job &job_;
  const JobTile tile_;
  Merger<T> merger_;
  const bool merges_;
  T *row_ = nullptr, *other_ = nullptr;
  std::unique_ptr<Results> difference_;
};

template <typename T>
void run_tile(const Job &job, const JobTile &tile, Scratch &scratch) {
  scratch.reset();
  Results<T> results(job, tile, scratch);
  if (!job.filters()) {
    for (int y = tile.y0; y < tile.y1 && !job.cancellation->requested(); y++) {
      unpack_pixels(*job.loops, *job.layout, job.copy.data + y * job.copy.pitch, tile.x0, tile.width(),
                    results.begin(y));
      results.end(y);
    }
    return;
  }
  const int radius = job.pass->radius_y, channels = job.layout->channels;
  // One row more than the mask covers, for what leaves it.
  RowWindow<T> window(job, tile, scratch, job.pass->height() + 1);
  const RowContext<T> context = {job, window, scratch, channels, tile.width() * channels, tile.y0};
  with_operation(context, [&](auto &op) {
    const auto enter = [&](int y) {
      window.enter(y);
      op.enter(y);
    };
    for (int y = tile.y0 - radius; y < tile.y0 + radius && !job.cancellation->requested(); y++) enter(y);
    for (int y = tile.y0; y < tile.y1 && !job.cancellation->requested(); y++) {
      enter(y + radius);
      op.filter(y, results.begin(y));
      results.end(y);
    }
  });
}

// Scratch memory for as many tasks as run at a time.
class ScratchPool {
 public:
  std::unique_ptr<Scratch> take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) return std::make_unique<Scratch>();
    std::unique_ptr<Scratch> scratch = std::move(free_.back());
    free_.pop_back();
    return scratch;
  }
  void give_back(std::unique_ptr<Scratch> scratch) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(ParallelFor parallel_for, int threads)
      : parallel_for_(std::move(parallel_for)), threads_(std::max(1, threads)) {}

  const char *name() const override { return "cpu"; }
  bool accepts_device_frames() const override { return false; }

  using Backend::submit;
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    const std::shared_ptr<const Plan> plan = planned.back().plan;
    const Regions &regions = planned.back().regions;
    if (src.on_device || dst.on_device)
      throw Error(Error::Kind::Device, "the CPU backend was given a frame in device memory");
    const Cancellation cancellation(cancelled);
    std::unique_lock<std::timed_mutex> turn(turn_, std::defer_lock);
    do cancellation.check();
    while (!turn.try_lock_for(std::chrono::milliseconds(10)));
    prepare_temporaries(*plan);
    std::vector<RegionRows> rows;
    if (regions.active)
      for (const Plan::Part &part : plan->parts) rows.emplace_back(regions, *plan, part, cancellation);
    cancellation.check();
    const FrameRegions frame_regions = {rows, regions.invert};
    for (const Pass &pass : plan->passes) {
      // A difference is done with the pass that makes one of its operands, which is the one before.
      const Pass *next = &pass == &plan->passes.back() ? nullptr : &pass + 1;
      const Pass *difference = next && next->op == Op::Difference ? next : nullptr;
      if (pass.op == Op::Difference) continue;
      run_pass(*plan, pass, difference, src, dst, frame_regions, cancellation);
      cancellation.check();
    }
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    stats_.kernels = vector_loops().level();
    return ++last_ticket_;
  }

  void retire(Ticket) override {}  // submit returns with the frame complete
  bool is_done(Ticket) const override { return true; }

  // There is one way for each operation here; the methods differ in where a GPU reads its samples from.
  Method method_of(const Plan &plan) const override {
    if (plan.method != Method::Auto) return plan.method;
    return plan.passes[0].separable() ? Method::Separable : Method::Constant;
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  struct Temporary {
    // Not zeroed, which would take long for large frames: the first pass writes every sample.
    std::unique_ptr<uint8_t[]> memory[kMaxPlanes];
    size_t size[kMaxPlanes] = {};
    FrameView view;
  };

  void prepare_temporaries(const Plan &plan) {
    temporaries_.resize(plan.temporaries);
    for (Temporary &t : temporaries_)
      for (int p = 0; p < plan.layout.planes; p++) {
        const PlaneLayout &layout = plan.layout.plane[p];
        const size_t pitch =
            static_cast<size_t>(layout.first + layout.width * layout.step) * layout.bytes_per_container();
        const size_t bytes = pitch * layout.height;
        // Views that share memory in the frame need not share it here, but must not overlap.
        if (t.size[p] < bytes) {
          t.memory[p].reset(new uint8_t[bytes]);
          t.size[p] = bytes;
        }
        t.view.plane[p] = {t.memory[p].get(), static_cast<ptrdiff_t>(pitch)};
      }
  }

  // Where part `part` of buffer `index` begins.
  PlaneView part_of(const Plan &plan, const Plan::Part &part, int index, const FrameView &src,
                    const FrameView &dst) const {
    PlaneView view = index == Pass::kInput    ? src.plane[plan.layout.plane[part.plane].memory_plane]
                     : index == Pass::kOutput ? dst.plane[plan.layout.plane[part.plane].memory_plane]
                                              : temporaries_[index - 1].view.plane[part.plane];
    view.data += part.first_row * view.pitch;
    view.pitch *= part.row_step;
    return view;
  }

  // By part; none where all of the frame is filtered.
  struct FrameRegions {
    const std::vector<RegionRows> &rows;
    bool invert;
  };

  void run_pass(const Plan &plan, const Pass &pass, const Pass *difference, const FrameView &src, const FrameView &dst,
                const FrameRegions &regions, const Cancellation &cancellation) {
    struct Task {
      const Job *job;
      JobTile tile;
    };
    const auto make_job = [&](const Pass &pass, const Plan::Part &part, const Job *difference) {
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      Job job = {&vector_loops(), &cancellation, &plan,     &pass, part, &layout, {}, {}, {}, {}, {},
                 nullptr,         false,         difference};
      job.source = part_of(plan, part, pass.source, src, dst);
      job.subtrahend = part_of(plan, part, pass.subtrahend, src, dst);
      job.copy = part_of(plan, part, pass.copy_source, src, dst);
      job.input = part_of(plan, part, Pass::kInput, src, dst);
      if (!regions.rows.empty() && pass.in_regions) job.regions = &regions.rows[&part - plan.parts.data()];
      job.invert = regions.invert;
      job.target = part_of(plan, part, pass.target, src, dst);
      return job;
    };
    std::vector<Job> jobs;
    jobs.reserve(2 * plan.parts.size());
    std::vector<Task> tasks;
    for (const Plan::Part &part : plan.parts) {
      if (difference) jobs.push_back(make_job(*difference, part, nullptr));
      jobs.push_back(make_job(pass, part, difference ? &jobs.back() : nullptr));
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      const int columns = columns_of(plan, pass, layout), bands = bands_of(pass, part.height);
      const auto cut = [](int length, int i, int n) { return static_cast<int>(int64_t{length} * i / n); };
      for (int b = 0; b < bands; b++)
        for (int c = 0; c < columns; c++)
          tasks.push_back({&jobs.back(),
                           {cut(layout.width, c, columns), cut(layout.width, c + 1, columns),
                            cut(part.height, b, bands), cut(part.height, b + 1, bands)}});
    }
    // Every second pass backwards: what the one before it has written last is still in a cache.
    if ((&pass - plan.passes.data()) % 2) std::reverse(tasks.begin(), tasks.end());
    parallel_for_(static_cast<int>(tasks.size()), [&](int i) {
      const Job &job = *tasks[i].job;
      std::unique_ptr<Scratch> scratch = scratch_.take();
      if (job.layout->container == Container::U8)
        run_tile<uint8_t>(job, tasks[i].tile, *scratch);
      else
        run_tile<uint16_t>(job, tasks[i].tile, *scratch);
      scratch_.give_back(std::move(scratch));
    });
  }

  // A band repeats the work of its halo: not too many of them, nor too few to share out evenly.
  int bands_of(const Pass &pass, int height) const {
    const int all = std::min(threads_, height / (16 + pass.height()));
    const int rounds = std::min(4, height / (threads_ * (64 + 8 * pass.height())));
    return std::max({1, all, rounds * threads_});
  }

  // So many that the rows that a tile keeps stay in the second-level cache, and each wider than any mask.
  static int columns_of(const Plan &plan, const Pass &pass, const PlaneLayout &layout) {
    constexpr int kCache = 512 << 10, kNarrowest = 256;
    if (plan.border == Border::Wrap) return 1;
    const int64_t bytes = int64_t{2} * layout.width * layout.channels * layout.bytes_per_container() * pass.height();
    return static_cast<int>(
        std::clamp<int64_t>((bytes + kCache - 1) / kCache, 1, std::max(1, layout.width / kNarrowest)));
  }

  ParallelFor parallel_for_;
  int threads_;
  std::timed_mutex turn_;  // of a submit()
  std::vector<Temporary> temporaries_;
  ScratchPool scratch_;
  mutable std::mutex mutex_;  // of what follows
  BackendStats stats_;
  Ticket last_ticket_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads) {
  return std::make_unique<CpuBackend>(std::move(parallel_for), threads);
}

}  // namespace cudaconv
