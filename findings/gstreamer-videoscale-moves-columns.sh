#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# GStreamer 1.28.2 (Ubuntu 26.04): videoscale moves columns in I420, NV12, GRAY8 and RGBA, not in RGB or YUY2.
#
# Scaled by 1/3, sample i stands for three samples, with sample 3 i + 1 in the middle. Rows are so with the default
# method, bilinear. Columns are not, where a plane has 8 bits and a pixel 1 or 4 bytes. There the first and the last
# sample stay the first and the last: the left edge shows column 0 and not 1, the right one 58.75 and not 58. The
# content moves towards the middle. Detectors want 1920 columns scaled to 300: they find edges up to 2.7 columns away,
# and in RGB they do not. Scaling by 1/2, 16 bits and method=4-tap are right. 1.22.0, 1.26.2 and 1.28.8 do the same.
#
# Needs root rights, debootstrap and 400 MB. Makes a root of Ubuntu 26.04 as it was released, in a temporary folder.
# Exit code 0: as described. 1: the behaviour has changed.
# Seen: GStreamer 1.28.2, 60 columns to 20: from which columns the first and the last two come
#       GRAY8 0.00 3.00 55.75 58.75, method=4-tap 1.00 4.00 55.00 58.00
#       I420 0.00 3.00 55.75 58.75, method=4-tap 1.00 4.00 55.00 58.00
#       RGBA 0.00 3.00 55.75 58.75, method=4-tap 1.00 4.00 55.00 58.00
#       RGB 1.00 4.00 55.00 58.00, method=4-tap 1.00 4.00 55.00 58.00
#       60 rows to 20, GRAY8 1.00 4.00 55.00 58.00
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf --one-file-system "$folder" || true' EXIT
script=/usr/share/debootstrap/scripts/gutsy # knows the address of Ubuntu's archive
archive=$(sed -n 's/.*default_mirror \(http:..archive[^ ]*\).*/\1/p' "$script" | head -n 1)
root=$folder/root
{
  debootstrap --variant=minbase --components=main,universe --include=ca-certificates,python3 resolute "$root" \
    "$archive" "$script"
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" # how this machine reaches the archive
  cp /etc/resolv.conf "$root/etc/"
  chroot "$root" apt-get update
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gstreamer1.0-tools \
    gstreamer1.0-plugins-base
} >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" && exit 1; }
cat >"$root/positions.py" <<'PYTHON'
import subprocess

BYTES = {"rgb": 3, "rgba": 4}

def positions(form, across, method):
    """From which samples of a ramp, in steps of 4, the first and the last two come."""
    width, size, result = BYTES.get(form, 1), (60, 16), (20, 16)
    ramp = b"".join(bytes([4 * x] * width) for x in range(60)) * 16
    if not across:
        width, size, result = 16, (16, 60), (16, 20)
        ramp = b"".join(bytes([4 * y] * width) for y in range(60))
    if form == "i420":
        ramp += bytes([128] * 512) # rows of chroma are padded to 32
    open("/ramp", "wb").write(ramp)
    subprocess.run(f"""gst-launch-1.0 -q filesrc location=/ramp blocksize={len(ramp)} ! rawvideoparse format={form}
        width={size[0]} height={size[1]} ! videoscale add-borders=false {method} !
        capsfilter caps=video/x-raw,width={result[0]},height={result[1]} ! filesink location=/scaled""".split(),
        check=True)
    samples = open("/scaled", "rb").read()[:20 * width:width]
    return " ".join(f"{samples[i] / 4:.2f}" for i in (0, 1, -2, -1))

version = subprocess.check_output(["gst-launch-1.0", "--version"], text=True).split()[2]
print(f"GStreamer {version}, 60 columns to 20: from which columns the first and the last two come")
for form in ("gray8", "i420", "rgba", "rgb"):
    print(form.upper(), positions(form, True, "") + ", method=4-tap", positions(form, True, "method=4-tap"))
print("60 rows to 20, GRAY8", positions("gray8", False, ""))
PYTHON
chroot "$root" python3 /positions.py | tee "$folder/output"
sed -n 's/^# \(Seen: \|      \)//p' "$0" | diff - "$folder/output"
