#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libvips 8.18.7: means and Gaussian blurs make flat 8-bit pictures brighter, by the vector unit only.
#
# gaussblur and conv of 8 bits use weights of few bits, whose sum may be more than 1. A mean of 9x9 and gaussblur(3)
# make 202 of a flat 200. gaussblur(2) and gaussblur(4) make 200. With VIPS_NOVECTOR=1 all of them make 200, so the
# bytes depend on the machine. Seen on x86-64 with AVX2.
#
# Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has changed.
# Seen: libvips 8.18.7: mean of 9x9 202, gaussblur(2) 200, gaussblur(2.5) 202, gaussblur(3) 202, gaussblur(4) 200
#       VIPS_NOVECTOR=1: mean of 9x9 200, gaussblur(2) 200, gaussblur(2.5) 200, gaussblur(3) 200, gaussblur(4) 200
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
"$folder/bin/pip" install --quiet --disable-pip-version-check pyvips==3.2.0 pyvips-binary==8.18.7
cat >"$folder/flat.py" <<'EOF'
import pyvips

flat = (pyvips.Image.black(64, 64) + 200).cast("uchar")
nine = pyvips.Image.new_from_array([[1] * 9] * 9, scale=81)
results = [("mean of 9x9", flat.conv(nine, precision="integer"))]
results += [("gaussblur(%g)" % sigma, flat.gaussblur(sigma)) for sigma in (2, 2.5, 3, 4)]
print(", ".join("%s %d" % (name, image(32, 32)[0]) for name, image in results))
EOF
fast=$("$folder/bin/python" "$folder/flat.py")
plain=$(VIPS_NOVECTOR=1 "$folder/bin/python" "$folder/flat.py")
echo "libvips 8.18.7: $fast"
echo "VIPS_NOVECTOR=1: $plain"
[[ $fast == "mean of 9x9 202, gaussblur(2) 200, "*"gaussblur(3) 202"* && $plain != *20[1-9]* ]]
