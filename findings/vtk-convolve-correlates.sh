#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# VTK 9.7.1: vtkImageConvolve correlates and vtkImageSeparableConvolution convolves: one mask, two signs.
#
# Both are convolutions by name. A mask on a dot comes out of vtkImageConvolve turned by 180 degrees, as from a
# correlation. vtkImageSeparableConvolution keeps the order. So the difference -1 0 1 is positive where a picture
# becomes brighter in the one filter, and where it becomes darker in the other. Who splits a mask into a row and a
# column for speed turns the result over; symmetric masks are the same.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: VTK 9.7.1
#       vtkImageConvolve: a dot by 1 2 3 / 10 20 30 / 100 200 300: 3000 2000 1000 / 300 200 100 / 30 20 10; an edge
#         from dark to bright by -1 0 1: 300
#       vtkImageSeparableConvolution: a dot by 1 2 3 / 10 20 30 / 100 200 300: 10 20 30 / 100 200 300 / 1000 2000
#         3000; an edge from dark to bright by -1 0 1: -300
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 vtk==9.7.1
"$folder/bin/python" - <<'EOF'
import sys
import numpy
from vtkmodules.util import numpy_support
from vtkmodules.vtkCommonCore import VTK_VERSION, vtkFloatArray
from vtkmodules.vtkCommonDataModel import vtkImageData
from vtkmodules.vtkImagingGeneral import vtkImageConvolve, vtkImageSeparableConvolution

def filtered(kind, picture):
  source = vtkImageData()
  source.SetDimensions(*picture.shape[::-1], 1)
  source.GetPointData().SetScalars(numpy_support.numpy_to_vtk(picture.ravel(), deep=True))
  kind.SetInputData(source)
  kind.Update()
  return numpy_support.vtk_to_numpy(kind.GetOutput().GetPointData().GetScalars()).reshape(picture.shape)

def at_once(row, column):
  """The mask that is the product of a row and a column."""
  kind = vtkImageConvolve()
  kind.SetKernel3x3(numpy.outer(column, row).ravel().astype(float).tolist())
  return kind

def split(row, column):
  kind = vtkImageSeparableConvolution()
  kind.SetDimensionality(2)
  for weights, put in ((row, kind.SetXKernel), (column, kind.SetYKernel)):
    array = vtkFloatArray()
    for weight in weights:
      array.InsertNextValue(weight)
    put(array)
  return kind

dot = numpy.zeros((15, 15), numpy.float32)
dot[7, 7] = 10
step = numpy.zeros((15, 15), numpy.float32)
step[:, 8:] = 100
masks = ((1, 2, 3), (1, 10, 100)), ((-1, 0, 1), (1, 1, 1))
spots = [filtered(kind(*masks[0]), dot)[6:9, 6:9].astype(int).tolist() for kind in (at_once, split)]
edges = [filtered(kind(*masks[1]), step)[7, 7].item() for kind in (at_once, split)]
print("VTK %s" % VTK_VERSION)
for name, spot, edge in zip(("vtkImageConvolve", "vtkImageSeparableConvolution"), spots, edges):
  print("%s: a dot by 1 2 3 / 10 20 30 / 100 200 300: %s; an edge from dark to bright by -1 0 1: %g" %
        (name, " / ".join(" ".join(map(str, row)) for row in spot), edge))
mask = (10 * numpy.outer(masks[0][1], masks[0][0])).tolist()
sys.exit(not (spots == [[row[::-1] for row in mask[::-1]], mask] and edges == [300, -300]))
EOF
