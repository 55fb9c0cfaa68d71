// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The CPU backend cuts frames into tiles. Several threads filter them, row by row, with the vector loops. A row takes
// well below a millisecond, so cancellation is checked between rows.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "backend.h"
#include "cpu/bilateral.h"
#include "cpu/blur.h"
#include "cpu/cpu_operations.h"
#include "cpu/cpu_rows.h"
#include "cpu/extrema.h"
#include "cpu/median.h"
#include "cpu/mosaic.h"
#include "cpu/place_rows.h"
#include "cpu/vector.h"
#include "cpu/weighted.h"
#include "plan/border.h"
#include "plan/region_work.h"
#include "plan/weighted.h"

namespace cudaconv {

namespace {

template <typename T, typename Sum, typename... More>
std::unique_ptr<Operation<T>> make_linear(const RowContext<T> &context, const Rounding16 &rounding = {}, More... more) {
  return std::make_unique<LinearOp<T, Sum>>(context, rounding, more...);
}

// nullptr: none of these
std::unique_ptr<Operation<uint8_t>> make_small_box(const RowContext<uint8_t> &context) {
  Rounding16 rounding;
  if (!SmallBoxSum<uint16_t>::can(context)) return nullptr;
  if (fits_16_bits(context, &rounding)) return make_linear<uint8_t, SmallBoxSum<uint16_t>>(context, rounding, false);
  if (fits_16_bits_halved(context, &rounding))
    return make_linear<uint8_t, SmallBoxSum<uint16_t>>(context, rounding, true);
  if (context.pass().wide) return nullptr;
  return make_linear<uint8_t, SmallBoxSum<int32_t>>(context, Rounding16{}, false);
}

template <typename T>
std::unique_ptr<Operation<T>> make_operation(const RowContext<T> &context) {
  const Pass &pass = context.pass();
  const IntegerMask &mask = pass.mask[0];
  Rounding16 rounding;
  switch (pass.op) {
    case Op::Linear: {
      using Normal = Lanes<int32_t, int32_t>;
      const bool box = is_large_box(pass);
      if constexpr (sizeof(T) == 1) {
        using Narrow = Lanes<uint16_t, uint16_t>;
        if (std::unique_ptr<Operation<T>> small = make_small_box(context)) return small;
        if (!box && fits_16_bits(context, &rounding)) return make_linear<T, MaskSum<T, Narrow>>(context, rounding);
      }
      if (box)
        return pass.wide ? make_linear<T, BoxSum<T, int64_t>>(context) : make_linear<T, BoxSum<T, int32_t>>(context);
      if (!mask.separable() && pass.wide) return make_linear<T, DensePairSum<T, int64_t>>(context);
      if (!mask.separable()) return make_linear<T, DensePairSum<T, int32_t>>(context);
      if (pass.wide && fits_doubles(context, mask)) return make_linear<T, MaskSum<T, Lanes<double, int64_t>>>(context);
      if (pass.wide) return make_linear<T, MaskSum<T, Lanes<int64_t, int64_t>>>(context);
      if (PairSum<T>::can(context, mask)) return make_linear<T, PairSum<T>>(context);
      return make_linear<T, MaskSum<T, Normal>>(context);
    }
    case Op::Magnitude:
      if constexpr (sizeof(T) == 1)
        if (MagnitudeOp<T, uint16_t>::can(context)) return std::make_unique<MagnitudeOp<T, uint16_t>>(context);
      return std::make_unique<MagnitudeOp<T, int32_t>>(context);
    case Op::Compass:
      if constexpr (sizeof(T) == 1)
        if (fits_16_bits(context, &rounding)) return std::make_unique<CompassOp<T, uint16_t>>(context, rounding);
      return std::make_unique<CompassOp<T, int32_t>>(context);
    case Op::Minimum:
    case Op::Maximum:
      if (pass.element.empty()) return std::make_unique<RectangleOp<T>>(context, pass.op == Op::Maximum);
      if (StackOp<T>::can(pass)) return std::make_unique<StackOp<T>>(context, pass.op == Op::Maximum);
      return std::make_unique<ElementOp<T>>(context, pass.op == Op::Maximum);
    case Op::Median:
      if constexpr (sizeof(T) == 1) {
        if (ColumnMedianOp::can(pass)) return std::make_unique<ColumnMedianOp>(context);
      } else {
        if (WanderingMedianOp::can(pass)) return std::make_unique<WanderingMedianOp>(context);
      }
      return std::make_unique<MedianOp<T>>(context);
    case Op::Bilateral:
      if (pass.weighs_alpha) return std::make_unique<BilateralAlphaOp<T>>(context);
      return std::make_unique<BilateralOp<T>>(context);
    case Op::WeightedMean:
      if (pass.sum_bits < 32) return std::make_unique<WeightedOp<T, int32_t>>(context);
      if (pass.sum_bits < 64) return std::make_unique<WeightedOp<T, int64_t>>(context);
      return std::make_unique<WeightedOp<T, Uint128>>(context);
    case Op::Mosaic:
      return std::make_unique<MosaicOp<T>>(context);
    case Op::Blur:
      return make_blur(context);
    case Op::Difference:  // done by Results
    case Op::Threshold:
      break;
  }
  return nullptr;
}

// Gives each row of results its memory: the frame itself if the frame stores samples in the same form, else a scratch
// row, which end() packs into the frame.
template <typename T>
class Results {
 public:
  Results(const Job &job, const JobTile &tile, Scratch &scratch)
      : job_(job), tile_(tile), merger_(job, tile, scratch), merges_(merger_.needed()) {
    const int samples = tile.width() * job.layout->channels;
    if (!samples_in_memory<T>(*job.layout, job.target) || samples < kVectorBlock || job.pointwise)
      row_ = scratch.take<T>(samples);
    if (!job.pointwise) return;
    pointwise_ = std::make_unique<Results>(*job.pointwise, tile, scratch);
    other_ = scratch.take<T>(samples);
    if (job.pointwise->pass->op != Op::Threshold) return;
    threshold_ = scratch.take<T>(samples);
    const int channels = job.layout->channels;
    for (int s = 0; s < samples; s++)
      threshold_[s] = static_cast<T>(job.pointwise->pass->rounding[job.part.plane][s % channels].threshold);
  }

  T *begin(int y) const {
    if (row_) return row_;
    return reinterpret_cast<T *>(memory(y)) + tile_.x0 * job_.layout->channels;
  }

  void end(int y) {
    if (merges_) merger_.merge(y, begin(y));
    if (pointwise_)
      combine(y);
    else if (row_)
      pack_pixels(*job_.loops, *job_.layout, row_, tile_.x0, tile_.width(), memory(y));
  }

 private:
  uint8_t *memory(int y) const { return job_.target.data + y * job_.target.pitch; }

  // Computes the pointwise pass. These results are one of the two frames that it reads; the other one is in memory.
  void combine(int y) {
    const Job &job = *job_.pointwise;
    const bool are_source = job.pass->source == job_.pass->target;
    const T *other = samples_of(job, tile_, are_source ? job.operand : job.source, y, other_);
    const T *source = are_source ? row_ : other, *operand = are_source ? other : row_;
    const int samples = std::max(tile_.width() * job.layout->channels, kVectorBlock);
    if (job.pass->op == Op::Threshold)
      job.loops->select_changed(source, operand, threshold_, pointwise_->begin(y), samples);
    else
      job.loops->subtract(source, operand, pointwise_->begin(y), samples);
    pointwise_->end(y);
  }

  const Job &job_;
  const JobTile tile_;
  Merger<T> merger_;
  const bool merges_;
  T *row_ = nullptr, *other_ = nullptr, *threshold_ = nullptr;
  std::unique_ptr<Results> pointwise_;
};

template <typename T>
void run_tile(const Job &job, const JobTile &tile, Scratch &scratch) {
  scratch.reset();
  Results<T> results(job, tile, scratch);
  const Pass &pass = *job.pass;
  const bool has_window = job.filters() && pass.op != Op::Mosaic && pass.op != Op::Blur;
  // The windows of rows that are computed together have height() + kRowsAtATime - 1 rows. One more is kept, the row
  // that leaves.
  RowWindow<T> window(job, tile, scratch, has_window ? pass.height() + kRowsAtATime : 0);
  std::deque<OtherPlane<T>> others;
  std::deque<Results<T>> other_results;
  for (const Job *other : job.others) {
    others.push_back({{*other, tile, scratch, pass.height() + kRowsAtATime}, nullptr});
    other_results.emplace_back(*other, tile, scratch);
  }
  const RowContext<T> context = {job, tile, window, others, scratch};
  std::unique_ptr<Operation<T>> operation;
  if (job.filters()) operation = make_operation(context);
  int next = tile.y0 - pass.radius_y;  // the next row to enter
  for (int y = tile.y0; y < tile.y1 && !job.cancellation->requested(); y++) {
    if (operation) {
      const int together = operation->rows_together();
      const int last = std::min(y + together - 1 - (y - tile.y0) % together, tile.y1 - 1);
      for (; has_window && next <= last + pass.radius_y; next++) {
        if (job.cancellation->requested()) return;
        window.enter(next);
        for (OtherPlane<T> &other : others) other.window.enter(next);
        operation->enter(next);
      }
      for (size_t i = 0; i < others.size(); i++) others[i].out = other_results[i].begin(y);
      operation->filter(y, results.begin(y));
    }
    results.end(y);
    for (Results<T> &other : other_results) other.end(y);
  }
}

// Scratch memory for the tasks that run at the same time.
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

// A frame that the backend owns.
class OwnedFrame {
 public:
  const FrameView &prepare(const std::vector<MemoryPlane> &planes) {
    for (size_t i = 0; i < planes.size(); i++) {
      const size_t bytes = planes[i].row_bytes * planes[i].height;
      if (size_[i] < bytes) {
        memory_[i].reset(new uint8_t[bytes]);
        size_[i] = bytes;
      }
      view_.plane[i] = {memory_[i].get(), static_cast<ptrdiff_t>(planes[i].row_bytes)};
    }
    return view_;
  }
  const FrameView &view() const { return view_; }

 private:
  // Not zeroed, since that takes long for large frames. A pass writes every sample before another pass reads it.
  std::unique_ptr<uint8_t[]> memory_[kMaxPlanes];
  size_t size_[kMaxPlanes] = {};
  FrameView view_;
};

// The frames behind the buffer numbers of a pass.
using Buffers = std::map<int, FrameView>;

// The work for the regions of a frame or of a view, by plan. A later one with the same regions uses it again.
struct PlannedWork {
  std::vector<PlannedRegions> planned;
  std::deque<RegionWork> work;
};

class CpuBackend : public Backend {
 public:
  CpuBackend(ParallelFor parallel_for, int threads)
      : parallel_for_(std::move(parallel_for)), threads_(std::max(1, threads)) {}

  const char *name() const override { return "cpu"; }

  using Backend::submit;
  Ticket submit(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                const std::atomic<bool> *cancelled) override {
    if (src.on_device || dst.on_device)
      throw Error(Error::Kind::Device, "the CPU backend was given a frame in device memory");
    const Cancellation cancellation(cancelled);
    std::unique_lock<std::timed_mutex> turn(turn_, std::defer_lock);
    do cancellation.check();
    while (!turn.try_lock_for(std::chrono::milliseconds(10)));
    if (planned.back().regions.active)
      filter_regions(planned, src, dst, cancellation);
    else
      filter_frame(planned.back(), src, dst, cancellation);
    std::lock_guard<std::mutex> lock(mutex_);
    stats_.frames++;
    stats_.kernels = vector_loops().level;
    return ++last_ticket_;
  }

  void retire(Ticket) override {}  // submit returns with the frame complete

  // Only names a method: the CPU has one implementation of each operation. Methods differ in where a GPU reads samples.
  Method method_of(const Plan &plan) const override {
    if (plan.method != Method::Auto) return plan.method;
    return plan.passes[0].separable() ? Method::Separable : Method::Constant;
  }

  BackendStats stats() const override {
    std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

 private:
  // Buffers with the temporary frames of the plan.
  Buffers make_buffers(const Plan &plan) {
    temporaries_.resize(std::max<size_t>(temporaries_.size(), plan.temporaries));
    Buffers buffers;
    for (int t = 0; t < plan.temporaries; t++) buffers[t + 1] = temporaries_[t].prepare(plan.memory);
    return buffers;
  }

  void filter_frame(const PlannedRegions &planned, const FrameView &src, const FrameView &dst,
                    const Cancellation &cancellation) {
    const Plan &plan = *planned.plan;
    if (plan.passes[0].op == Op::Mosaic) mosaic_ = mosaic_parts(planned.regions, plan);
    Buffers buffers = make_buffers(plan);
    buffers[Pass::kInput] = src;
    buffers[Pass::kOutput] = dst;
    run_passes(plan, {0, plan.passes.size()}, buffers, nullptr, cancellation);
  }

  // Filters a frame in place, in `dst`. Results of a stage go to a separate frame until all are complete.
  void filter_regions(const std::vector<PlannedRegions> &planned, const FrameView &src, const FrameView &dst,
                      const Cancellation &cancellation) {
    prepare_regions(planned, cancellation);
    const std::deque<RegionWork> &work = regions_[0].work;
    const Plan &first = *planned[0].plan;
    if (src.plane[0].data != dst.plane[0].data) copy_frame(first, src, dst, cancellation);
    const bool fades = std::any_of(work.begin(), work.end(), [](const RegionWork &w) { return w.fades(); });
    const size_t stages = stages_of(first).size();
    for (size_t s = 0; s < stages; s++) {
      // Results of several plans meet in another frame, since later plans read the frame. They fade into its pixels.
      for (size_t i = 0; fades && planned.size() > 1 && i < planned.size(); i++)
        put_in_place(first, work[i], dst, merged_.prepare(first.memory), false, cancellation);
      for (size_t i = 0; i < planned.size(); i++) {
        const Plan &plan = *planned[i].plan;
        if (work[i].empty()) continue;
        results_.prepare(plan.memory);
        run_passes(plan, stages_of(plan)[s], stage_buffers(plan, s, dst), &work[i], cancellation);
        if (planned.size() == 1) continue;
        put_in_place(plan, work[i], results_.view(), merged_.prepare(plan.memory), true, cancellation);
      }
      const FrameView &from = planned.size() == 1 ? results_.view() : merged_.view();
      for (size_t i = 0; i < planned.size(); i++)
        put_in_place(*planned[i].plan, work[i], from, dst, planned.size() == 1, cancellation);
    }
  }

  // Makes regions_[0] the work for the regions of a frame. As is common, one of the two before had the same regions.
  void prepare_regions(const std::vector<PlannedRegions> &planned, const Cancellation &cancellation) {
    // Masks are large, and rarely stay the same from frame to frame.
    const bool may_stay =
        std::all_of(planned.begin(), planned.end(), [](const auto &p) { return p.regions.mask.empty(); });
    if (may_stay && regions_[0].planned != planned) std::swap(regions_[0], regions_[1]);
    if (may_stay && regions_[0].planned == planned) return;
    PlannedWork made = {planned, {}};
    // A pixel in regions of several strengths is filtered once, by the last one.
    std::vector<CoveredRows> covered;
    for (size_t i = planned.size(); i-- > 0;)
      made.work.emplace_front(*planned[i].plan, planned[i].regions, cancellation,
                              planned.size() > 1 ? &covered : nullptr);
    cancellation.check();
    regions_[0] = std::move(made);
  }

  // The buffers of a stage. The stage reads results of earlier stages from the frame.
  Buffers stage_buffers(const Plan &plan, size_t stage, const FrameView &frame) {
    Buffers buffers = make_buffers(plan);
    buffers[Pass::kInput] = frame;
    const std::vector<Stage> stages = stages_of(plan);
    for (size_t s = 0; s < stage; s++) buffers[plan.passes[stages[s].end - 1].target] = frame;
    buffers[plan.passes[stages[stage].end - 1].target] = results_.view();
    return buffers;
  }

  void run_passes(const Plan &plan, const Stage &passes, const Buffers &buffers, const RegionWork *work,
                  const Cancellation &cancellation) {
    for (size_t i = passes.begin; i < passes.end; i++) {
      const Pass &pass = plan.passes[i];
      if (pass.is_pointwise()) continue;
      // Pointwise passes are computed with the pass before them, which computes one of the frames that they read.
      size_t last = i;
      while (last + 1 < passes.end && plan.passes[last + 1].is_pointwise()) last++;
      run_pass(plan, pass, last - i, buffers, work, cancellation);
      cancellation.check();
    }
  }

  // `pointwise`: the number of pointwise passes behind it. `work`: the results that are needed; nullptr: all.
  void run_pass(const Plan &plan, const Pass &pass, size_t pointwise, const Buffers &buffers, const RegionWork *work,
                const Cancellation &cancellation) {
    struct Task {
      const Job *job;
      JobTile tile;
    };
    const auto make_job = [&](const Pass &pass, const Plan::Part &part, const Job *next) {
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      Job job = {&vector_loops(), &cancellation, &plan, &pass, part, &layout, {}, {}, {}, {}, {}, next, nullptr};
      job.source = part_of(buffers.at(pass.source), plan, part);
      job.operand = part_of(buffers.at(pass.operand), plan, part);
      job.copy = part_of(buffers.at(pass.copy_source), plan, part);
      job.target = part_of(buffers.at(pass.target), plan, part);
      if (pass.reads_alpha()) job.alpha = part_of(buffers.at(pass.source), plan, plan.parts[alpha_part(plan, part)]);
      return job;
    };
    std::vector<Job> jobs;
    jobs.reserve((1 + pointwise) * plan.parts.size());
    std::vector<Task> tasks;
    coarse_.resize(std::max(coarse_.size(), plan.parts.size()));
    for (size_t i = 0; i < plan.parts.size(); i++) {
      const Plan::Part &part = plan.parts[i];
      for (size_t n = pointwise; n > 0; n--)
        jobs.push_back(make_job((&pass)[n], part, n < pointwise ? &jobs.back() : nullptr));
      jobs.push_back(make_job(pass, part, pointwise ? &jobs.back() : nullptr));
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      if (pass.op == Op::Bilateral && join_colours(*pass.bilateral, jobs)) continue;
      if (pass.op == Op::Mosaic) {
        for (const JobTile &tile : mosaic_tiles((work ? work->mosaic() : mosaic_)[i], threads_))
          tasks.push_back({&jobs.back(), tile});
        continue;
      }
      if (pass.decimation) make_coarse(jobs.back(), i, work ? &work->computed(&pass - plan.passes.data(), i) : nullptr);
      std::vector<PixelRect> rects = {{0, 0, layout.width, part.height}};
      if (work) rects = rectangles_of(plan, pass, work->computed(&pass - plan.passes.data(), i));
      for (const PixelRect &rect : rects)
        cut(plan, pass, layout, rect, [&](const JobTile &tile) { tasks.push_back({&jobs.back(), tile}); });
    }
    // Every second pass runs backwards: the last results of the pass before it are still in a cache.
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

  // Makes the last job one of the others of the job that filters its colour. Returns whether there is such a job.
  static bool join_colours(const BilateralTables &tables, std::vector<Job> &jobs) {
    const Job &last = jobs.back();
    const int first = tables.colour[0].plane;
    if (!tables.has_colours(last.part.plane) || last.part.plane == first) return false;
    const auto leader = std::find_if(jobs.begin(), jobs.end(), [&](const Job &job) {
      return job.pass == last.pass && job.part.plane == first && job.part.first_row == last.part.first_row;
    });
    leader->others.push_back(&last);
    return true;
  }

  // Computes the coarse samples that the results of a part need.
  void make_coarse(Job &job, size_t part, const Area *area) {
    const PixelRect bounds = area ? area->bounds() : PixelRect{0, 0, job.layout->width, job.part.height};
    if (!job.filters() || bounds.empty()) return;
    coarse_[part].make(job, bounds, parallel_for_, threads_);
    job.coarse = &coarse_[part];
  }

  // Disjoint rectangles that cover an area. If a window at an edge may read pixels outside itself, they are as wide as
  // the part, as RowWindow requires.
  static std::vector<PixelRect> rectangles_of(const Plan &plan, const Pass &pass, const Area &area) {
    std::vector<PixelRect> rects = area.joined(pass.radius_x, pass.radius_y);
    const auto crosses_edge = [&](const PixelRect &r) {
      return r.x0 - pass.radius_x < 0 || r.x1 + pass.radius_x > area.width();
    };
    if (reads_within_window(plan.border) || std::none_of(rects.begin(), rects.end(), crosses_edge)) return rects;
    std::vector<std::pair<int, int>> rows;
    for (const PixelRect &r : rects) rows.emplace_back(r.y0, r.y1);
    std::sort(rows.begin(), rows.end());
    std::vector<PixelRect> bands;
    for (const auto &[y0, y1] : rows) {
      if (!bands.empty() && y0 <= bands.back().y1)
        bands.back().y1 = std::max(bands.back().y1, y1);
      else
        bands.push_back({0, y0, area.width(), y1});
    }
    return bands;
  }

  // Cuts a rectangle into tiles and calls add(tile) for each.
  template <typename Add>
  void cut(const Plan &plan, const Pass &pass, const PlaneLayout &layout, const PixelRect &rect, Add add) const {
    const int columns = columns_of(plan, pass, layout, rect.width()), bands = bands_of(pass, rect.height());
    const auto at = [](int begin, int end, int i, int n) {
      return begin + static_cast<int>(int64_t{end - begin} * i / n);
    };
    for (int b = 0; b < bands; b++)
      for (int c = 0; c < columns; c++)
        add(JobTile{at(rect.x0, rect.x1, c, columns), at(rect.x0, rect.x1, c + 1, columns),
                    at(rect.y0, rect.y1, b, bands), at(rect.y0, rect.y1, b + 1, bands)});
  }

  // Copies the pixels in regions from one frame to another. `fades`: pixels that fade are blended with the other ones.
  void put_in_place(const Plan &plan, const RegionWork &work, const FrameView &from, const FrameView &to, bool fades,
                    const Cancellation &cancellation) {
    constexpr int kRows = 32;                   // rows of a task
    std::vector<std::pair<size_t, int>> tasks;  // part and first row of each task
    for (size_t i = 0; i < plan.parts.size(); i++)
      for (int y = work.selected(i).bounds().y0; y < work.selected(i).bounds().y1; y += kRows) tasks.emplace_back(i, y);
    parallel_for_(static_cast<int>(tasks.size()), [&](int task) {
      const auto [i, first] = tasks[task];
      const Plan::Part &part = plan.parts[i];
      const PlaneView source = part_of(from, plan, part), target = part_of(to, plan, part);
      const PlaneLayout &layout = plan.layout.plane[part.plane];
      const int end = std::min(first + kRows, work.selected(i).bounds().y1);
      std::unique_ptr<Scratch> scratch = scratch_.take();
      for (int y = first; y < end && !cancellation.requested(); y++) {
        const RegionRows::Row row = work.rows(i).row(y);
        for (size_t r = row.begin; r < row.end; r++) {
          const PixelRun &run = work.rows(i).runs()[r];
          const uint8_t *const shares = fades ? work.rows(i).shares(r) : nullptr;
          if (!shares)
            copy_pixels(layout, source.data + y * source.pitch, target.data + y * target.pitch, run.begin, run.end);
          else if (layout.container == Container::U8)
            fade_pixels<uint8_t>(layout, source, target, y, run, shares, *scratch);
          else
            fade_pixels<uint16_t>(layout, source, target, y, run, shares, *scratch);
        }
      }
      scratch_.give_back(std::move(scratch));
    });
    cancellation.check();
  }

  // Copies only the bytes of a frame that belong to pixels.
  void copy_frame(const Plan &plan, const FrameView &src, const FrameView &dst, const Cancellation &cancellation) {
    for (size_t i = 0; i < plan.memory.size(); i++) {
      const MemoryPlane &plane = plan.memory[i];
      const int tasks = std::clamp(plane.height / 64, 1, threads_);
      parallel_for_(tasks, [&](int task) {
        const int end = static_cast<int>(int64_t{plane.height} * (task + 1) / tasks);
        for (int y = static_cast<int>(int64_t{plane.height} * task / tasks); y < end && !cancellation.requested(); y++)
          for (const MemoryPlane::Run &run : plane.runs)
            std::memcpy(dst.plane[i].data + y * dst.plane[i].pitch + run.begin,
                        src.plane[i].data + y * src.plane[i].pitch + run.begin, run.length);
      });
    }
    cancellation.check();
  }

  // The number of bands to cut a height into. Each band repeats the work of its halo, so bands are few, but enough to
  // share the work evenly.
  int bands_of(const Pass &pass, int height) const {
    const int all = std::min(threads_, height / (16 + pass.height()));
    const int rounds = std::min(4, height / (threads_ * (64 + 8 * pass.height())));
    return std::max({1, all, rounds * threads_});
  }

  // The number of columns to cut a width into. The rows that a tile needs then fit the second-level cache, but no
  // column is narrower than kNarrowest.
  static int columns_of(const Plan &plan, const Pass &pass, const PlaneLayout &layout, int width) {
    constexpr int kCache = 512 << 10, kNarrowest = 256;
    if (!reads_within_window(plan.border)) return 1;
    const int64_t bytes = int64_t{2} * width * layout.channels * layout.bytes_per_container() * pass.height();
    return static_cast<int>(std::clamp<int64_t>((bytes + kCache - 1) / kCache, 1, std::max(1, width / kNarrowest)));
  }

  ParallelFor parallel_for_;
  int threads_;
  std::timed_mutex turn_;  // serialises calls of submit()
  std::vector<OwnedFrame> temporaries_;
  PlannedWork regions_[2];          // of the latest frame with regions, and of the other view or the frame before
  std::vector<MosaicPart> mosaic_;  // mosaic of a frame without regions
  OwnedFrame results_, merged_;     // results of a stage: of one plan, and of several plans merged
  std::vector<CoarsePart> coarse_;  // coarse samples of a blur, by part
  ScratchPool scratch_;
  mutable std::mutex mutex_;  // guards the members below
  BackendStats stats_;
  Ticket last_ticket_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(ParallelFor parallel_for, int threads) {
  return std::make_unique<CpuBackend>(std::move(parallel_for), threads);
}

}  // namespace cudaconv
