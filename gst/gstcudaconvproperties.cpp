// SPDX-License-Identifier: LGPL-2.1-or-later
#include "gstcudaconvproperties.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include "gstcudaconvanalytics.h"
#include "plan/maskparser.h"
#include "plan/masks.h"
#include "plan/messages.h"
#include "regions/strength.h"

namespace cudaconv::gst {

namespace {

#define FILTER(field) Configuration, &Configuration::settings, &Settings::filter, &FilterSettings::field
#define ROI(field) Configuration, &Configuration::settings, &Settings::roi, &RoiSettings::field

constexpr Property<Configuration> kProperties[] = {
    enumeration<kMaskNames, FILTER(mask)>(
        "mask", "Mask",
        "The filter, such as gauss (Gaussian blur), box (mean), unsharp (sharpening), sobel "
        "(edges), dilate (dilation), mosaic (pixelation) or custom (the matrix in coefficients)"),
    property<FILTER(size)>("size", "Size",
                           "Side of the window or block in pixels, odd except for mosaic; at most 255 for morphology "
                           "and mosaic, 127 for median, 31 for bilateral. 0 = default: 3 for morphology and median, "
                           "from sigma for gauss and unsharp, 16 for mosaic, 5 others.",
                           kPlaying, 0, 1501),
    property<FILTER(size_y)>("size-y", "Height",
                             "Height of the window or block in pixels, with the limits of size; 0 = same as size",
                             kPlaying, 0, 1501),
    property<FILTER(sigma)>("sigma", "Sigma",
                            "Standard deviation of gauss, unsharp and bilateral in pixels; 0 = no blur, -1 = "
                            "0.3*((size-1)*0.5-1)+0.8. With size=0 the side of gauss and unsharp is 2*ceil(3*sigma)+1.",
                            kAnimated, kAutoSigma, 250),
    property<FILTER(sigma_y)>(
        "sigma-y", "Sigma of columns",
        "Vertical standard deviation of gauss and unsharp in pixels; 0 = no vertical blur, -1 = same as sigma",
        kAnimated, kSigmaYAsX, 250),
    property<FILTER(sigma_range)>("sigma-range", "Range sigma",
                                  "Standard deviation of sample differences for bilateral, as a fraction of a "
                                  "component's full range, above 0. In RGB the differences of red, green and blue add "
                                  "up. Smaller values keep weaker edges.",
                                  kAnimated, 0, 1),
    property<FILTER(amount)>("amount", "Amount", "Strength of unsharp: source + amount * (source - blurred source)",
                             kAnimated, -100, 100),
    /**
     * GstCudaConv:coefficients:
     *
     * A bare list of 9, 25 or 49 numbers is a square; with brackets or a final semicolon it is a row. Lists in
     * brackets: `"[[1,2,1],[2,4,2],[1,2,1]]"`, `"<<1,2,1>,<2,4,2>,<1,2,1>>"`. ImageMagick's kernels,
     * `"3: 1,2,1 2,4,2 1,2,1"`, are not flipped. With shape=custom, numbers other than 0 are members of the structuring
     * element. Set a string: GObject turns an array of doubles into text with six digits, which is refused.
     */
    property<Configuration, &Configuration::settings, &Settings::coefficients>(
        "coefficients", "Coefficients",
        "Mask (mask=custom) or structuring element (shape=custom): rows end in ';', blanks or commas separate numbers "
        "(\"1 2 1; 2 4 2; 1 2 1\"). Both sides are odd, 31 at most; fractions, lists in brackets and "
        "ImageMagick kernels are read too.",
        kPlaying),
    enumeration<kShapeNames, FILTER(shape)>(
        "shape", "Shape", "Structuring element of the morphology masks; rect or ellipse: window of bilateral"),
    property<FILTER(divisor)>(
        "divisor", "Divisor",
        "Divisor of the sum. 0 = the mask's own; for mask=custom the sum of its coefficients, or 1 if that is 0.",
        kAnimated, -1e9, 1e9),
    property<FILTER(bias)>("bias", "Bias",
                           "Added to the result, as a fraction of the full range; 0.5 is mid-grey at every bit depth",
                           kAnimated, -1, 1),
    enumeration<kNegativeNames, FILTER(negative)>("negative", "Negative", "Handling of negative results"),
    enumeration<kMagnitudeNames, FILTER(magnitude)>(
        "magnitude", "Magnitude", "How sobel, scharr, prewitt and roberts combine the two components of the gradient"),
    /**
     * GstCudaConv:threshold:
     *
     * With mask=median it removes hot pixels alone; with mask=unsharp it leaves weak noise unsharpened. It weakens a
     * filter that hides something: leave it at 0 there.
     */
    property<FILTER(threshold)>("threshold", "Threshold",
                                "Change only samples that the filter changes by more than this fraction of the full "
                                "range; the others keep their value. 0 = change all.",
                                kAnimated, 0, 1),
    property<FILTER(iterations)>("iterations", "Iterations",
                                 "Number of passes, each rounded, as in a chain of elements. open: n erosions, then n "
                                 "dilations; close: the reverse.",
                                 kAnimated, 1, 1000),
    enumeration<kBorderNames, FILTER(border)>("border", "Border",
                                              "Border mode: the samples that the mask reads outside the frame"),
    property<Configuration, &Configuration::settings, &Settings::border_color>(
        "border-color", "Border colour",
        "Colour outside the frame for border=constant (0xAARRGGBB), converted to the frame's colour space and range. "
        "The default, 0xff000000, is opaque black.",
        kPlaying, 0, G_MAXUINT32),
    /**
     * GstCudaConv:fill-color:
     *
     * Full-range RGB, converted to the frame's colour matrix, range and depth. Chroma samples that a region only
     * touches get the colour too. Padding channels, such as the x of RGBx, get its alpha.
     */
    property<FILTER(fill_color)>("fill-color", "Fill colour",
                                 "Colour of mask=fill (0xAARRGGBB), converted to the frame's colour space and range. "
                                 "The default, 0xff000000, is opaque black.",
                                 kPlaying, 0, G_MAXUINT32),
    enumeration<kLumaNames, FILTER(luma)>("luma", "Luma", "Luma handling of YUV and grey frames"),
    enumeration<kChromaNames, FILTER(chroma)>("chroma", "Chroma", "Chroma handling of YUV frames"),
    enumeration<kAlphaNames, FILTER(alpha)>("alpha", "Alpha", "Alpha handling"),
    property<ROI(rectangles)>(
        "roi", "Regions of interest",
        "Filter only these regions, separated by ';': rectangles \"x,y,w,h\" and polygons \"x,y x,y x,y\", in pixels "
        "or in per cent (\"0,0,20%,100%\"). If unset and roi-meta is off, the whole frame is filtered.",
        kPlaying),
    /**
     * GstCudaConv:roi-meta:
     *
     * Detectors and trackers attach regions to buffers as metas. A buffer without regions is only copied, unless
     * #GstCudaConv:roi-invert is set. Detections may be rotated about their centre, clockwise on the screen.
     *
     * Each value of a segmentation mask is one region. If there are more than 64 values, or if they overlap much, all
     * values form one region. The background is no region: value 0, unless its class has another name than
     * "background", and values of the class "background".
     */
    property<ROI(meta)>(
        "roi-meta", "Regions from metas",
        "Filter only the regions in the metas of each frame and in roi. This build understands " CUDACONV_ROI_METAS ".",
        kPlaying),
    property<ROI(types)>(
        "roi-type", "Types of metas",
        "With roi-meta, only regions of these types (roi_type, label, or class or value of a segmentation mask), "
        "comma-separated: face,plate. !staff excludes a type; unset = all types.",
        kPlaying),
    property<ROI(grow)>("roi-grow", "Growth of regions",
                        "Enlarge each region by this fraction of its width left and right, and of its height above and "
                        "below. Segmentation masks grow by this fraction of the region's shorter side.",
                        kAnimated, 0, 4),
    /**
     * GstCudaConv:roi-feather:
     *
     * A pixel at the distance d from the nearest pixel of a region has d / (roi-feather + 1) of the original, in steps
     * of 1/256. In a region nothing of the original is left.
     */
    property<ROI(feather)>("roi-feather", "Soft edge of regions",
                           "Width in pixels of a soft edge around each region, in which the filtered picture fades "
                           "into the original; 0 = hard edge. Not with roi-invert or mask=fill.",
                           kAnimated, 0, 256),
    /**
     * GstCudaConv:roi-scale:
     *
     * A filter of fixed strength leaves a large face recognisable: the ratio of strength to size decides. mask=mosaic
     * with 0.125 leaves at most 8 blocks across the shorter side of each region, up to 2,040 pixels, since blocks have
     * at most 255.
     *
     * The side is measured after #GstCudaConv:roi-grow, before the frame clips the region. Steps of sigma are 2^(n/4),
     * at least 0.5; sizes go from these to the next size that the mask supports, at least 2. The proportion of height
     * to width comes from #GstCudaConv:size, #GstCudaConv:size-y, #GstCudaConv:sigma and #GstCudaConv:sigma-y. Where
     * regions overlap, the strongest filter wins.
     */
    property<ROI(scale)>(
        "roi-scale", "Strength by size",
        "Set sigma (gauss, unsharp) or size (others) to this fraction of each region's shorter side, rounded up in "
        "steps of 19 percent; 0 = off. With mask=mosaic, 0.125 leaves at most 8 blocks across each region.",
        kAnimated, 0, 1),
    enumeration<kRoiShapeNames, ROI(shape)>("roi-shape", "Shape of regions", "Part of each rectangle to filter"),
    property<ROI(invert)>("roi-invert", "Invert regions",
                          "Filter everything except the regions. No effect without roi or roi-meta.", kPlaying),
    enumeration<kBackendNames, Configuration, &Configuration::backend>(
        "backend", "Backend",
        "Processor that filters the frames, with identical results. A plugin built without CUDA has only the CPU.",
        kReady),
    property<Configuration, &Configuration::device_id>("cuda-device-id", "CUDA device",
                                                       "GPU index; -1 uses the GPU of linked elements, or GPU 0",
                                                       kReady, -1, G_MAXINT),
    enumeration<kMethodNames, FILTER(method)>(
        "method", "Method",
        "GPU algorithm; leave at auto. The others give the same output, exist for study and "
        "tests, and fail on masks that they cannot do."),
    property<Configuration, &Configuration::threads>(
        "n-threads", "Threads",
        "Number of threads of the CPU backend; 0 = number of processors, at most 16, fewer for small frames", kReady, 0,
        16),
    /**
     * GstCudaConv:frames-in-flight:
     *
     * With several frames in flight, one is uploaded while another is filtered and a third is downloaded. With 1,
     * upstream's streaming thread waits for each frame. While downstream blocks, the element holds up to this number of
     * frames, by which the maximum of the latency grows. Frames that the CPU filters are never in flight.
     */
    property<Configuration, &Configuration::frames_in_flight>(
        "frames-in-flight", "Frames in flight",
        "Maximum number of frames on the GPU at once; 0 = automatic. Each frame is pushed as soon as it is done.",
        kReady, 0, kMostFramesInFlight),
};

#undef FILTER
#undef ROI

}  // namespace

FilterSettings Settings::complete() const {
  FilterSettings result = filter;
  if ((filter.mask == Mask::Custom || filter.shape == Shape::Custom) && !coefficients.empty())
    result.coefficients = parse_coefficients(coefficients);
  return result;
}

void Settings::check_feather() const {
  const bool fills = filter.mask == Mask::Fill, has_regions = roi.meta || !roi.rectangles.empty();
  if (roi.feather <= 0 || !has_regions || (!fills && !roi.invert)) return;
  throw Error(Error::Kind::Settings, "roi-feather=" + number_text(roi.feather) + " does not work with " +
                                         (fills ? "mask=fill" : "roi-invert=true") +
                                         ": a soft edge shows a part of the pixels that are to be hidden; set "
                                         "roi-feather=0");
}

Properties::Properties() : PropertyValues(kProperties) {}

void Properties::install(GObjectClass *klass) {
  /**
   * GstCudaConv:stats:
   *
   * A structure `application/x-cudaconv-stats`, counted since the element was started:
   *
   * - `frames` (guint64): frames filtered
   * - `backend` (string): in use, `cuda` or `cpu`
   * - `method` (string): in use. On the GPU a nick of #GstCudaConv:method; with `auto` also the name of kernels that
   * only `auto` selects, such as `sliding` (gst/README.md lists them). A filter of several passes has the first pass's
   * method. On the CPU the vector instructions: `avx512`, `avx2` or `baseline`
   * - `device-time` (guint64): nanoseconds that the GPU spent on the frames, estimated from one frame of sixteen
   * - `bytes-uploaded`, `bytes-downloaded` (guint64): copied to and from the GPU
   * - `bytes-staged` (guint64): uploaded or downloaded bytes that the CPU also copied, from or to memory that the GPU
   * cannot access
   * - `failovers` (guint): times that the CPU took over from a failed GPU
   * - `regions` (guint64): regions in the metas of the frames, with #GstCudaConv:roi-meta
   * - `regions-by-type` (GstStructure): the number of regions of each type or label, one field (guint64) each
   */
  install_properties<Configuration>(
      klass, kProperties,
      "Statistics since the start: frames, backend, method, device-time (ns), bytes-uploaded, "
      "bytes-downloaded, bytes-staged, failovers, regions, regions-by-type");
}

std::vector<std::string> properties_that_are_set(const Settings &settings) {
  Configuration configuration, defaults;
  configuration.settings = settings;
  std::vector<std::string> names;
  for (const auto &property : kProperties)
    if (property.copy(configuration, defaults)) names.push_back(property.name);
  return names;
}

std::string why_without_effect(const std::string &property, const Settings &s) {
  const bool is_scale = property == "roi-scale";
  const std::string why = is_scale ? RoiStrength::unused(s.filter) : why_unused(property, s.filter);
  if (!why.empty()) return why;
  if (property == "border-color" && s.filter.border != Border::Constant)
    return std::string("border-color has no effect with border=") + border_nick(s.filter.border) +
           "; it is used with border=constant";
  // Some properties need metas. For others the regions of roi are enough.
  const auto is_one_of = [&](std::initializer_list<const char *> names) {
    return std::find(names.begin(), names.end(), property) != names.end();
  };
  const bool by_roi = is_one_of({"roi-grow", "roi-feather", "roi-scale", "roi-shape", "roi-invert"});
  const bool by_metas = is_one_of({"roi-type"});
  if (!s.roi.meta && (by_metas || (by_roi && s.roi.rectangles.empty())))
    return property + " has no effect without " + (by_roi ? "roi or " : "") + "roi-meta";
  return is_scale && s.roi.invert ? "roi-scale has no effect with roi-invert=true" : "";
}

bool Properties::has_effect(const std::string &name) const {
  const auto is_named = [&](const PropertyText &p) { return p.name == name; };
  return std::any_of(std::begin(kProperties), std::end(kProperties), is_named) &&
         why_without_effect(name, published()->settings).empty();
}

}  // namespace cudaconv::gst
