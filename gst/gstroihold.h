// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The element `roihold`. gstroihold.cpp has its documentation.
#pragma once

#include <gst/gst.h>

G_BEGIN_DECLS

#define GST_TYPE_ROI_HOLD (gst_roi_hold_get_type())
G_DECLARE_FINAL_TYPE(GstRoiHold, gst_roi_hold, GST, ROI_HOLD, GstElement)

GST_ELEMENT_REGISTER_DECLARE(roihold)

G_END_DECLS
