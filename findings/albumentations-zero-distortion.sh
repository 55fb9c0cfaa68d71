#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# albumentations 2.0.8: distortions by 0 move keypoints by one or two pixels, and some move the picture by half a pixel.
#
# With a limit of 0 a distortion changes nothing. OpticalDistortion and GridDistortion by 0 still move and blur the
# picture, up and left. ElasticTransform and ThinPlateSpline by 0 keep it. All four move the keypoint that marks the
# middle of a square, and not by as much as the picture. So training data get an offset between both. Affine and
# Perspective keep both.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: albumentations 2.0.8, the middle of a square and its keypoint, column and row, both 28 20 before
#       OpticalDistortion by 0: 27.5 19.5, keypoint 27 19
#       GridDistortion by 0: 27.7 19.3, keypoint 28 18
#       ElasticTransform by 0: 28 20, keypoint 28 19
#       ThinPlateSpline by 0: 28 20, keypoint 28 19
#       Affine by 0: 28 20, keypoint 28 20
#       Perspective by 0: 28 20, keypoint 28 20
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check numpy==2.4.6 scipy==1.17.1 albumentations==2.0.8 \
  albucore==0.0.24 opencv-python-headless==5.0.0.93
NO_ALBUMENTATIONS_UPDATE=1 "$folder/bin/python" -W ignore - <<'EOF'
import sys
import albumentations, numpy
from albumentations import Affine, ElasticTransform, GridDistortion, OpticalDistortion, Perspective, ThinPlateSpline

square = numpy.zeros((64, 64, 3), numpy.uint8)
square[18:23, 26:31] = 200

def middle(samples):
  rows, columns = numpy.mgrid[:64, :64]
  return [round(float((samples * axis).sum() / samples.sum()), 1) for axis in (columns, rows)]

def both(transform):
  """Middle and keypoint after the transform."""
  points = albumentations.KeypointParams(format="xy", remove_invisible=False)
  result = albumentations.Compose([transform], keypoint_params=points, seed=1)(
    image=square, keypoints=numpy.array([[28, 20]], numpy.float32))
  return middle(result["image"][..., 0].astype(float)), [float(place) for place in result["keypoints"][0]]

zero = (0, 0)
transforms = {"OpticalDistortion": OpticalDistortion(zero, p=1), "GridDistortion": GridDistortion(5, zero, p=1),
              "ElasticTransform": ElasticTransform(0, 50, p=1), "ThinPlateSpline": ThinPlateSpline(zero, p=1),
              "Affine": Affine(p=1), "Perspective": Perspective(zero, p=1)}
found = {name: both(transforms[name]) for name in transforms}
print("albumentations %s, the middle of a square and its keypoint, column and row, both 28 20 before"
      % albumentations.__version__)
for name, (picture, point) in found.items():
  print("%s by 0: %g %g, keypoint %g %g" % (name, *picture, *point))
right = [28, 20]
sys.exit(not (all(found[name][1] != right for name in list(found)[:4]) and
              found["OpticalDistortion"][0] == [27.5, 19.5] and found["ElasticTransform"][0] == right and
              found["Affine"] == found["Perspective"] == (right, right)))
EOF
