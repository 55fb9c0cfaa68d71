// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The plugin's entry point: registers the elements.
#include <gst/gst.h>

#include "gstcudaconvdevice.h"
#include "gstcudaconvmessages.h"

GST_ELEMENT_REGISTER_DECLARE(cudaconv)
GST_ELEMENT_REGISTER_DECLARE(roihold)

static gboolean plugin_init(GstPlugin *plugin) {
  // GStreamer inspects the plugin again when the CUDA driver is installed or removed, since init_cuda() adds a warning
  // to the plugin where there is none. The elements are registered either way.
  const gchar *paths = "/usr/lib:/usr/lib64:/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib/wsl/lib";
  gst_plugin_add_dependency_simple(plugin, "LD_LIBRARY_PATH", paths, "libcuda.so.1", GST_PLUGIN_DEPENDENCY_FLAG_NONE);

  cudaconv::gst::init_cuda(plugin);
  return GST_ELEMENT_REGISTER(cudaconv, plugin) && GST_ELEMENT_REGISTER(roihold, plugin);
}

#ifdef CUDACONV_WITHOUT_CUDA
#define DESCRIPTION "2D convolution and morphology of video frames on the CPU (built without CUDA)"
#else
#define DESCRIPTION "2D convolution and morphology of video frames on NVIDIA GPUs and on the CPU"
#endif

GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, cudaconv, DESCRIPTION, plugin_init, PACKAGE_VERSION, "LGPL",
                  PACKAGE, PACKAGE_ORIGIN)
