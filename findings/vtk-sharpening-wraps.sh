#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# VTK 9.7.1: vtkImageConvolve and vtkImageLaplacian of 8 bits wrap around: sharpening makes bright edges dark.
#
# A result above 255 or below 0 is kept as 255 or 0 by other filters. VTK's have the type of the source and take the
# lowest bits. Sharpened, an edge between 100 and 250 has 206 on its dark side in place of 0. Its bright side has 144 in
# place of 255. 16 bits wrap in the same way. A flat or a smooth picture does not show it, and one of floats is right.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: VTK 9.7.1, an edge between 100 and 250
#       uint8, times 1: vtkImageConvolve 100 206 144 250, vtkImageLaplacian 0 150 106 0
#       uint16, times 256: vtkImageConvolve 25600 52736 36864 64000, vtkImageLaplacian 0 38400 27136 0
#       float32, times 1: vtkImageConvolve 100 -50 400 250, vtkImageLaplacian 0 150 -150 0
#       OpenCV 5.0.0, filter2D, uint8: 100 0 255 250
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 vtk==9.7.1 opencv-python-headless==5.0.0.93
"$folder/bin/python" - <<'EOF'
import sys
import cv2, numpy
from vtkmodules.util import numpy_support
from vtkmodules.vtkCommonCore import VTK_VERSION
from vtkmodules.vtkCommonDataModel import vtkImageData
from vtkmodules.vtkImagingGeneral import vtkImageConvolve, vtkImageLaplacian

MASK = [0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0]
kinds = numpy.uint8, numpy.uint16, numpy.float32
scales = {numpy.uint8: 1, numpy.uint16: 256, numpy.float32: 1}

def filtered(kind, picture):
  """Four samples across the edge."""
  source = vtkImageData()
  source.SetDimensions(*picture.shape[::-1], 1)
  source.GetPointData().SetScalars(numpy_support.numpy_to_vtk(picture.ravel(), deep=True))
  kind.SetInputData(source)
  kind.Update()
  result = numpy_support.vtk_to_numpy(kind.GetOutput().GetPointData().GetScalars()).reshape(picture.shape)
  return result[8, 6:10].tolist()

def sharpening():
  result = vtkImageConvolve()
  result.SetKernel3x3(MASK)
  return result

def laplacian():
  result = vtkImageLaplacian()
  result.SetDimensionality(2)
  return result

def text(samples):
  return " ".join("%g" % sample for sample in samples)

print("VTK %s, an edge between 100 and 250" % VTK_VERSION)
edges = {kind: numpy.repeat(numpy.array([[100] * 8 + [250] * 8]) * scales[kind], 16, 0).astype(kind) for kind in kinds}
sharp = {kind: filtered(sharpening(), edges[kind]) for kind in kinds}
second = {kind: filtered(laplacian(), edges[kind]) for kind in kinds}
for kind in kinds:
  print("%s, times %d: vtkImageConvolve %s, vtkImageLaplacian %s" %
        (kind.__name__, scales[kind], text(sharp[kind]), text(second[kind])))
right = cv2.filter2D(edges[numpy.uint8], -1, numpy.array(MASK).reshape(3, 3))[8, 6:10].tolist()
print("OpenCV %s, filter2D, uint8: %s" % (cv2.__version__, text(right)))
exact = {"sharp": numpy.array([100, -50, 400, 250]), "second": numpy.array([0, 150, -150, 0])}
sys.exit(not (right == [100, 0, 255, 250] and all(
  found[kind] == ((exact[name] * scales[kind]).astype(float) if kind is numpy.float32 else
                  (exact[name] * scales[kind]) % (numpy.iinfo(kind).max + 1)).tolist()
  for name, found in (("sharp", sharp), ("second", second)) for kind in kinds)))
EOF
