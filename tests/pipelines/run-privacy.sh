#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Hides regions and faces with the example programs, in C++ and in Python, and with the Python code of README.md:
# run-privacy.sh CUDACONV_PRIVACY TOP_FOLDER FAILING_CLOSE
#
# Only bytes in a hidden region may change. Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's
# folder. Tests are skipped without a detector, or without GStreamer's bindings for Python.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

program=$(realpath "$1")
pipelines=$(realpath "$2")/pipelines
script=$pipelines/cudaconv-privacy.py
face=$pipelines/face.svg
photo=$(realpath "$2")/tests/pipelines/face.jpg
readme=$(realpath "$2")/README.md
tools=$(realpath "$2")/tests/pipelines
failing_close=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

python=$(python_with Gst)
no_python=
[ -n "$python" ] || no_python="no GStreamer bindings for Python (python3-gi, gir1.2-gstreamer-1.0)"

cascade=/usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml
no_gif=
gst-inspect-1.0 --exists avdec_gif || no_gif="no element avdec_gif"
no_detector=
for element in facedetect rsvgdec; do
  gst-inspect-1.0 --exists "$element" || no_detector="no element $element"
done
[ -r "$cascade" ] || no_detector=${no_detector:-there is no $cascade (opencv-data)}

# differs A B WIDTH HEIGHT X Y W H [SURE_X SURE_Y SURE_W SURE_H]
# Compares the RGB frames in A and B. They may differ only within the rectangle X,Y,W,H. In every frame, more than half of
# the pixels of the rectangle SURE must differ. SURE is X,Y,W,H by default.
differs() {
  python3 - "$@" <<'END'
import sys
a, b = (open(name, "rb").read() for name in sys.argv[1:3])
width, height, *numbers = map(int, sys.argv[3:])
within, sure = numbers[:4], numbers[-4:]
frame = width * height * 3
assert len(a) == len(b) and len(a) > 0 and len(a) % frame == 0, (len(a), len(b))
def inside(rectangle, pixel):
    x, y, w, h = rectangle
    return x <= pixel % width < x + w and y <= pixel // width % height < y + h
print(len(a) // frame, "frames")
for at in range(0, len(a), frame):
    changed = [p for p in range(width * height) if a[at + 3 * p:at + 3 * p + 3] != b[at + 3 * p:at + 3 * p + 3]]
    outside = [p for p in changed if not inside(within, p)]
    assert not outside, "pixel %d,%d was changed" % (outside[0] % width, outside[0] // width)
    count = sum(inside(sure, p) for p in changed)
    assert 2 * count > sure[2] * sure[3], "only %d pixels were changed" % count
END
}
plain() { # FILE [ELEMENTS]: the frames of a clip in plain.rgb, as the programs have them before the filter
  local line="videoconvert ! videoflip video-direction=auto ! ${2:+$2 ! }cudaconv mask=identity ! videoconvert"
  # shellcheck disable=SC2086  # a list of words
  gst-launch-1.0 -q uridecodebin uri="file://$(realpath "$1")" ! queue ! $line ! video/x-raw,format=RGB \
    ! filesink location=plain.rgb </dev/null
}
by_hand() { # COMMAND...: hides two rectangles, side by side, in each frame
  # roi-grow: a fifth of 50 pixels to the left, of 61 above and below, of 31 to the right
  "$@" --region=40,30,50,61 --region=90,30,31,61 -o hidden.rgb clip.mkv &&
    plain clip.mkv &&
    differs hidden.rgb plain.rgb 160 120 29 17 99 87 40 30 81 61
}
exactly_by_hand() { # COMMAND...
  "$@" --region=41,31,50,60 -o hidden.rgb clip.mkv roi-grow=0 && differs hidden.rgb plain.rgb 160 120 41 31 50 60
}
face() { # COMMAND...
  "$@" -o hidden.rgb "$face" && plain "$face" "facedetect display=false updates=none" &&
    differs hidden.rgb plain.rgb 640 360 140 20 320 310 250 100 100 120
}
still() { # FILE COMMAND...: a region in a picture by a turned camera, whose Exif data say so
  python3 - "$photo" <<'END'
import struct, sys
data = open(sys.argv[1], "rb").read()
tiff = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)  # clockwise
open("held.jpg", "wb").write(data[:2] + b"\xff\xe1" + struct.pack(">H", len(tiff) + 2) + tiff + data[2:])
END
  local pixels="jpegparse ! jpegdec ! videoconvert ! videoflip video-direction=auto"
  # shellcheck disable=SC2086  # a list of words
  gst-launch-1.0 -q filesrc location=held.jpg ! $pixels ! videoconvert ! video/x-raw,format=RGB ! filesink location=plain.rgb </dev/null
  "${@:2}" --region=20,150,60,40 -o "$1" held.jpg roi-grow=0 && no_part && ! grep -q Exif "$1" &&
    gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! video/x-raw,format=RGB ! filesink location=hidden.rgb </dev/null &&
    { [[ $1 = *.jpg ]] || differs hidden.rgb plain.rgb 240 240 20 150 60 40; }
}
face_in_picture() { # COMMAND...
  "$@" -o face-hidden.png "$photo" | tee said && grep -q "1 face in 1" said
}
same_picture() {
  local name
  for name in same.png same.jpg; do
    "$program" -q -o "cpp-$name" "$@" && "$python" "$script" -o "python-$name" "$@" && cmp "cpp-$name" "python-$name" || return
  done
}
refuses_picture() { # COMMAND...: that is cut off, or is none; the earlier output stays
  head -c 4000 "$photo" >cut.jpg
  echo text >none.png
  cp "$photo" earlier.jpg
  ! "$@" --region=1,1,9,9 -o earlier.jpg cut.jpg && ! "$@" --region=1,1,9,9 -o earlier.jpg none.png 2>said &&
    grep -q "neither a PNG nor a JPEG" said && cmp earlier.jpg "$photo" && no_part
}
turned() { # COMMAND...: a clip by a turned camera is upright, for the detector too
  make_turned_clip
  "$@" --region=41,121,50,30 -o hidden.rgb turned.mov roi-grow=0 &&
    plain turned.mov &&
    differs hidden.rgb plain.rgb 120 160 41 121 50 30
}
of_readme() { # from a detailed picture, whose buffers have other references, into a file, with its region and without
  local source='videotestsrc num-buffers=3 pattern=zone-plate kx2=12 ky2=9 kt=5 ! video/x-raw,format=RGB'
  source+=' ! tee name=t t. ! queue ! fakesink async=false t. ! queue'
  # shellcheck disable=SC2016  # the quotes are Markdown's
  sed -n '/^```python$/,/^```$/p' "$readme" | grep -v '^```' |
    sed -e "s|videotestsrc num-buffers=100|$source|" -e "s|autovideosink|filesink location=hidden.rgb|" >readme.py
  sed -e "s|hidden.rgb|plain.rgb|" -e "s|roi-meta=true mask=gauss sigma=8|mask=identity|" readme.py >plain.py
  "$python" readme.py && "$python" plain.py && differs hidden.rgb plain.rgb 320 240 100 40 120 160
}
by_bare_bindings() { # which lack what python3-gst-1.0 adds to them
  mkdir bare
  echo 'import sys; sys.modules["gi.overrides.Gst"] = None' >bare/sitecustomize.py
  local -x PYTHONPATH=$PWD/bare
  ! "$python" -c 'from gi.overrides import Gst' && by_hand "$python" "$script" && of_readme
}
same_bytes() { # ARGUMENT...: both programs make the same bytes
  "$program" -o first.rgb "$@"
  "$python" "$script" -o second.rgb "$@"
  [ -s first.rgb ] && cmp first.rgb second.rgb
}
# A clip of two parts: a face, then no face. The program reports it, and keeps the sound.
keeps_sound() {
  gst-launch-1.0 -q videotestsrc num-buffers=20 ! video/x-raw,width=160,height=120 ! vp8enc deadline=1 ! queue \
    ! matroskamux name=m ! filesink location=sound.mkv audiotestsrc num-buffers=30 ! vorbisenc ! queue ! m. </dev/null
  "$program" sound.mkv -o hidden.webm --region=40,30,50,61 >said && cat said &&
    [ "$(cat said)" = "20 frames: 1 region in 20" ] || return
  local file
  for file in sound.mkv hidden.webm; do
    gst-launch-1.0 -q uridecodebin uri="file://$PWD/$file" caps=audio/x-raw expose-all-streams=false \
      ! filesink location="$file.raw" </dev/null
  done
  [ -s sound.mkv.raw ] && cmp sound.mkv.raw hidden.webm.raw
}
# A clip with the picture of a face beside its video, as cover.mov, and in a header of its sound, as cover.mkv.
make_covers() {
  gst-launch-1.0 -q qtmux name=m ! filesink location=cover.mov videotestsrc num-buffers=20 ! video/x-raw,width=160,height=120 \
    ! jpegenc ! queue ! m. audiotestsrc num-buffers=30 ! audio/x-raw,format=S16LE ! queue ! m. </dev/null
  python3 - "$photo" <<'END'
import struct, sys
def atom(kind, body):
    return struct.pack(">I4s", 8 + len(body), kind) + body
picture = open(sys.argv[1], "rb").read() + b"OF A FACE"
cover = atom(b"covr", atom(b"data", struct.pack(">II", 13, 0) + picture))
handler = atom(b"hdlr", bytes(8) + b"mdirappl" + bytes(9))
udta = atom(b"udta", atom(b"meta", bytes(4) + handler + atom(b"ilst", cover)) + atom(b"thmb", b"THUMBNAIL" * 9))
clip = open("cover.mov", "rb").read()
at = 0
while clip[at + 4:at + 8] != b"moov":
    at += struct.unpack(">I", clip[at:at + 4])[0]
size, = struct.unpack(">I", clip[at:at + 4])
assert at + size == len(clip)
open("cover.mov", "wb").write(clip[:at] + struct.pack(">I", size + len(udta)) + b"moov" + udta + clip[at + 8:])
END
  gst-launch-1.0 -q filesrc location=cover.mov ! qtdemux name=d d.audio_0 ! audioconvert ! vorbisenc ! queue \
    ! matroskamux name=m ! filesink location=cover.mkv d.video_0 ! queue ! m. </dev/null
}
drops_covers() { # INPUT OUTPUT SIGN: the sound stays, the cover, in which there is SIGN, does not
  make_covers && grep -qa "$3" "$1" || return
  "$program" -q "$1" -o "$2" --region=40,30,50,61 2>said && ! grep -qaE "$3|THUMBNAIL" "$2" || return
  cat said
  [[ $1 == *.mkv ]] || grep -q 'a cover, which may show faces, is left out' said || return  # a header is no tag
  gst-launch-1.0 -q uridecodebin uri="file://$PWD/$2" caps=audio/x-raw expose-all-streams=false ! filesink \
    location=cover.raw </dev/null
  [ -s cover.raw ]
}
says_how_many() { # COMMAND...
  "$@" -o hidden.rgb "$face" 2>errors | tee said
  cat errors
  [ "$(cat said)" = "1 frames: 1 face in 1" ] && ! grep -q haarcascade errors || return  # OpenCV's warnings
  "$@" -o hidden.rgb clip.mkv 2>&1 | tee said
  grep -qx '6 frames: no face in 6' said && grep -q 'warning: no face was found' said
}
says_what_is_hidden() { # COMMAND...: where there is no face
  local setting
  for setting in unmarked=mark roi=0,0,9,9 roi-meta=false; do
    "$@" -o hidden.rgb clip.mkv "$setting" 2>errors || return
    cat errors
    grep -qx 'warning: no face was found in the whole file' errors || return
  done
  rm hidden.rgb
  for setting in left.rgb left.webm; do
    refuses 'no frame is left' "$@" -o "$setting" clip.mkv unmarked=drop && [ ! -e "$setting" ] || return
  done
}
says_quietly_that_nothing_is_hidden() {
  "$program" -q -o hidden.rgb clip.mkv >said 2>errors
  cat errors
  [ ! -s said ] && grep -q 'nothing is hidden' errors
}
refuses_empty_values() { # COMMAND...: as of variables that are not set
  refuses '--output has an empty value' "$@" -o '' clip.mkv --region=1,2,3,4 &&
    refuses '--cascade has an empty value' "$@" -o refused.rgb clip.mkv --cascade=
}
takes_the_longest_time() { # COMMAND...
  "$@" -o hidden.rgb clip.mkv --region=1,2,3,4 hold=18446744073709551615
}
ends_a_gif() { # COMMAND...: also one without end. Each frame has its time
  local rounds
  for rounds in 0 3; do
    python3 "$tools/make-gif.py" loop.gif "$rounds"
    timeout 30 "$@" -o loop.rgb loop.gif --region=0,0,4,4 && [ "$(stat -c %s loop.rgb)" = $((3 * 16 * 16 * 3)) ] &&
      timeout 30 "$@" -o loop.webm loop.gif --region=0,0,4,4 && times_of loop.webm | grep -x "0 100 300" || return
  done
}
# A clip of a face that moves, and tilts so far for half a second that the detector misses it: face.rgb; and which
# pixels are of the face, from brows to mouth: face.mask. 60 frames of 320x240, 25 a second. PLACE: of its middle.
make_face_clip() { # [PLACE]
  gst-launch-1.0 -q filesrc location="$photo" ! jpegdec ! videoconvert ! video/x-raw,format=RGB ! filesink location=photo.rgb
  python3 - "${1:-130 + frame}" <<'END'
import functools, math, sys
side, width, height, middle = 240, 320, 240, (116, 124)  # of the photo, of the clip; the face in the photo
photo = open("photo.rgb", "rb").read()
assert len(photo) == side * side * 3
@functools.lru_cache
def turned(tilt):  # the rows of a disc of the photo: how far each reaches to both sides, its pixels, which are of the face
    c, s, rows = math.cos(tilt), math.sin(tilt), []
    for dy in range(-108, 109):
        reach = math.isqrt(108 * 108 - dy * dy)
        rgb, face = bytearray(), bytearray()
        for dx in range(-reach, reach + 1):
            u, v = round(c * dx + s * dy), round(c * dy - s * dx)
            source = ((v + middle[1]) * side + u + middle[0]) * 3
            rgb += photo[source:source + 3]
            face.append((u / 34) ** 2 + (v / 42) ** 2 <= 1)
        rows.append((dy, reach, rgb, face))
    return rows
with open("face.rgb", "wb") as clip, open("face.mask", "wb") as mask:
    for frame in range(60):
        tilt = math.radians(45) * max(0, min(1, (frame - 20) / 2, (36 - frame) / 2))
        x0, y0 = eval(sys.argv[1]), 120
        rgb, face = bytearray(b"\x60" * (width * height * 3)), bytearray(width * height)
        for dy, reach, row, members in turned(tilt):
            at = (y0 + dy) * width + x0 - reach
            rgb[3 * at:3 * at + len(row)] = row
            face[at:at + len(members)] = members
        clip.write(rgb)
        mask.write(face)
END
}
# Prints in how many frames a pixel of the face is to be seen, if its regions are filled: frames_shown PROPERTY... The
# properties are of roihold; without any there is none.
frames_shown() {
  gst-launch-1.0 -q filesrc location=face.rgb ! rawvideoparse format=rgb width=320 height=240 framerate=25/1 \
    ! facedetect display=false updates=none ${1:+! roihold "$@"} \
    ! cudaconv roi-meta=true roi-grow=0.4 mask=fill fill-color=0xff00ff00 \
    ! video/x-raw,format=RGB ! filesink location=seen.rgb
  frames_seen
}
# Prints in how many frames of seen.rgb a pixel of the face is not green.
frames_seen() {
  python3 - <<'END'
import re
clip, mask = open("seen.rgb", "rb").read(), open("face.mask", "rb").read()
pixels = 320 * 240
assert len(clip) == 3 * len(mask)
frames = set()
for run in re.finditer(b"\1+", mask):
    if clip[3 * run.start():3 * run.end()] != b"\0\xff\0" * len(run.group()):
        frames.add(run.start() // pixels)  # no row of the face ends at the edge of a frame
print(len(frames))
END
}
misses_faces() { # what the settings below cover
  make_face_clip
  local seen
  seen=$(frames_shown)
  echo "$seen frames of 60 show the face"
  [ "$seen" -ge 5 ] && [ "$seen" -le 20 ]
}
shows_no_face() { # PROPERTY...
  local seen
  seen=$(frames_shown "$@")
  echo "$seen frames of 60 show the face"
  [ "$seen" = 0 ]
}
# Hides a moving face in all frames, by settings of both elements: hides_moving_face COMMAND...
hides_moving_face() {
  make_face_clip
  gst-launch-1.0 -q filesrc location=face.rgb ! rawvideoparse format=rgb width=320 height=240 framerate=25/1 \
    ! videoconvert ! avimux ! filesink location=face.avi </dev/null
  local settings seen
  for settings in "hold=0" "hold=400000000 lookahead=400000000"; do
    # shellcheck disable=SC2086  # a list of settings
    "$@" -o seen.rgb face.avi mask=fill fill-color=0xff00ff00 roi-grow=0.4 $settings | tee said
    seen=$(frames_seen)
    echo "$settings: $seen frames of 60 show the face"
    case $settings in
      hold=0) [ "$seen" -ge 5 ] && [ "$seen" -le 20 ] || return ;;
      *) [ "$seen" = 0 ] || return ;;
    esac
  done
}
# A face that tilts and moves on at the same time is somewhere else when it is found again, 0.64 seconds later. By default
# its mosaic moves with it, in both programs.
follows_face() {
  make_face_clip "112 + 6 * max(0, min(16, frame - 20))"
  gst-launch-1.0 -q filesrc location=face.rgb ! rawvideoparse format=rgb width=320 height=240 framerate=25/1 \
    ! videoconvert ! avimux ! filesink location=face.avi </dev/null
  local settings=(mask=fill fill-color=0xff00ff00 roi-grow=0.4 hold=700000000) held moved
  "$program" -q -o seen.rgb face.avi "${settings[@]}" interpolate=false
  held=$(frames_seen)
  "$program" -q -o seen.rgb face.avi "${settings[@]}"
  moved=$(frames_seen)
  echo "$held frames of 60 show the face if it is held, $moved if it moves"
  [ "$held" -ge 3 ] && [ "$moved" = 0 ] || return
  [ -n "$no_python" ] || { "$python" "$script" -o second.rgb face.avi "${settings[@]}" && cmp seen.rgb second.rgb; }
}
refuses() { # TEXT COMMAND...: does not exit with 0, prints TEXT, and writes no file
  local code=0 output
  rm -f refused.rgb
  output=$("${@:2}" 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" != 0 ] && [[ $output == *"$1"* ]] && [ ! -s refused.rgb ]
}
hides_no_face() { # COMMAND...: settings that leave all faces, or those in a part of the picture, as they are
  local settings
  for settings in mask=identity roi-type=Face 'roi-type=!face' types=Face 'types=!face' "types=Face hold=0 lookahead=9" \
    "types=face roi-type=Face" roi-invert=true "roi-scale=0 size=1" \
    "mask=gauss roi-scale=0 sigma=0" "mask=unsharp amount=0" threshold=1 "mask=custom coefficients=1" "mask=median roi-scale=0 size=1" \
    "mask=box roi-scale=0 size=1001 border=keep" "roi-meta=false roi=0,0,9,9" "roi-meta=false roi=9000,9000,9,9" \
    "roi-type=Face roi=0,0,20%,20%"; do
    # shellcheck disable=SC2086  # a list of settings
    refuses "nothing would be hidden: faces stay as they are" "$@" -o refused.rgb "$face" $settings || return
  done
  "$@" -o hidden.rgb "$face" roi-type=face && "$@" -o hidden.rgb "$face" types=face &&
    "$@" -o hidden.rgb "$face" types=Face unmarked=mark # all of each frame
}
hides_no_region() { # COMMAND...
  local settings
  for settings in mask=identity roi-type=face types=face "roi-meta=false roi=0,0,9,9" luma=copy threshold=1 \
    "mask=gauss roi-scale=0 sigma=0"; do
    # shellcheck disable=SC2086  # a list of settings
    refuses "nothing would be hidden: --region=40,30,50,61 stays as it is" \
      "$@" --region=40,30,50,61 -o refused.rgb clip.mkv $settings || return
  done
  "$@" --region=40,30,50,61 -o hidden.rgb clip.mkv roi-invert=true roi-grow=0 && plain clip.mkv &&
    ! cmp hidden.rgb plain.rgb # all but the region is hidden
}
own_settings() { # COMMAND...: no warning of one that nobody has set
  local setting
  for setting in mask=fill roi-meta=false; do
    "$@" --region=40,30,50,61 -o hidden.rgb clip.mkv "$setting" 2>said || return
    ! grep "has no effect" said || return
  done
  "$@" --region=40,30,50,61 -o hidden.rgb clip.mkv mask=fill roi-scale=0.2 2>said && grep -q "roi-scale has no effect" said
}
deep_picture() { # its decoder gives no timestamp, which a picture does not need
  python3 - <<'END'
import struct
import zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
rows = b"".join(b"\0" + bytes(range(240)) * 2 for _ in range(40))
with open("deep.png", "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60, 40, 16, 6, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
  "$program" --region=1,2,20,20 -o hidden.png deep.png 2>said || { cat said && return 1; }
  ! grep "timestamp" said
}
tells_of_profile() { # COMMAND...: of a picture with colours of its own, but not of sRGB
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,width=32,height=32 ! tee name=t ! queue ! pngenc \
    ! filesink location=none.png t. ! queue ! jpegenc ! filesink location=none.jpg </dev/null
  python3 - <<'END'
import struct, zlib
png, jpg = open("none.png", "rb").read(), open("none.jpg", "rb").read()
for name, text in ("wide", "Display P3"), ("usual", "sRGB IEC61966-2.1"):
    chunk = b"iCCP" + text.encode() + b"\0\0" + zlib.compress(bytes(200))
    chunk = struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    open(name + ".png", "wb").write(png[:33] + chunk + png[33:])  # behind IHDR
    segment = b"ICC_PROFILE\0\1\1" + bytes(128) + text.encode("utf-16-be")
    open(name + ".jpg", "wb").write(jpg[:2] + b"\xff\xe2" + struct.pack(">H", len(segment) + 2) + segment + jpg[2:])
END
  local kind suffix
  for suffix in png jpg; do
    for kind in none wide usual; do "$@" --region=1,2,3,4 -o "told.$suffix" "$kind.$suffix" || return; done
  done >told 2>&1
  grep 'its colour profile is left out' told >of_profiles
  cat of_profiles
  [ "$(wc -l <of_profiles)" = 2 ] && grep -q 'wide\.png: ' of_profiles && grep -q 'wide\.jpg: ' of_profiles
}
keeps_colors() { # COMMAND...: of a PNG with alpha in a JPEG
  gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=solid-color foreground-color=0xffc81e28 ! \
    video/x-raw,format=RGBA,width=32,height=32 ! pngenc ! filesink location=colors.png </dev/null
  "$@" --region=1,2,3,4 -o colors.jpg colors.png
  gst-launch-1.0 -q filesrc location=colors.jpg ! jpegdec ! videoconvert ! video/x-raw,format=RGB ! filesink location=colors.rgb </dev/null
  tail -c 3 colors.rgb | od -An -tu1 | tee color
  read -r red green blue <color
  [ $((red - 200)) -le 2 ] && [ $((200 - red)) -le 2 ] && [ $((green - 30)) -le 2 ] && [ $((30 - green)) -le 2 ] &&
    [ $((blue - 40)) -le 2 ] && [ $((40 - blue)) -le 2 ]
}
hides_alpha() { # COMMAND...: of a black picture, in which alpha alone shows something
  python3 - <<'END'
import struct
import zlib
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
rows = b"".join(b"\0" + b"".join(bytes((0, 0, 0, (x * y) % 251)) for x in range(60)) for y in range(40))
with open("outline.png", "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60, 40, 8, 6, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
  "$@" --region=10,8,32,24 -o hidden.png outline.png roi-grow=0 || return
  gst-launch-1.0 -q filesrc location=hidden.png ! pngdec ! video/x-raw,format=RGBA ! filesink location=hidden.rgb </dev/null
  python3 - <<'END'
data = open("hidden.rgb", "rb").read()
alpha = [data[4 * i + 3] for i in range(60 * 40)]
inside = {(x, y): alpha[60 * y + x] for y in range(8, 32) for x in range(10, 42)}
assert all(alpha[60 * y + x] == (x * y) % 251 for y in range(40) for x in range(60) if (x, y) not in inside)
assert len(set(inside.values())) <= 11 * 8, len(set(inside.values()))  # blocks of 3 pixels
END
}
names_its_file() { # COMMAND...: where a disk is full
  ln -sf /dev/full full.rgb
  ! "$@" --region=40,30,50,61 -o full.rgb clip.mkv 2>said && cat said && grep -q "cannot write full.rgb: No space left" said
}
refuses_names() { # COMMAND...: of containers that it does not write, and of pictures
  local name
  for name in refused.{mov,avi,ts,m4v,gif,PNG,jpg,mp3} refused; do
    refuses ", not as $name does" "$@" --region=40,30,50,61 -o "$name" clip.mkv && [ ! -e "$name" ] || return
  done
}
takes_values() { # as gst-launch-1.0 does
  same_bytes --region=40,30,50,61 clip.mkv mask=fill fill-color=0xffff00ff roi-grow=2e-1 hold=0x10 lookahead=0 roi-invert=no \
    roi-shape=1 roi=1,2,3,4 && plain clip.mkv && differs first.rgb plain.rgb 160 120 0 0 160 120 50 50 20 20
}
half_bindings() { # other packages install parts of gi: it can be imported, and has nothing in it
  mkdir -p half/gi/overrides
  touch half/gi/overrides/Atspi.py
  local file
  for file in cudaconv-privacy.py cluster/filter-video; do
    refuses "install python3-gi and gir1.2-gstreamer-1.0" \
      env PYTHONPATH="$PWD/half" /usr/bin/python3 -S "$pipelines/$file" --help || return
  done
}
into_a_pipe() {
  mkfifo pipe.rgb
  "$program" -q --region=40,30,50,61 -o pipe.rgb clip.mkv &
  timeout 60 cat pipe.rgb >read.rgb
  wait $! || return
  "$program" -q --region=40,30,50,61 -o written.rgb clip.mkv && [ -s read.rgb ] && [ -p pipe.rgb ] && cmp read.rgb written.rgb
}
into_standard_output() { # COMMAND...: the frames alone; a link to it stays a link
  ln -sf /proc/self/fd/1 standard.rgb
  "$@" --region=40,30,50,61 -o standard.rgb clip.mkv 2>said | cat >piped.rgb
  "$@" --region=40,30,50,61 -o standard.rgb clip.mkv 2>said >read.rgb || return
  cat said
  "$@" --region=40,30,50,61 -o written.rgb clip.mkv && cmp read.rgb written.rgb && cmp piped.rgb written.rgb &&
    [ -L standard.rgb ] && grep -q '6 frames: 1 region in 6' said
}
waits_for_a_pipe() { # COMMAND...: can be ended while nobody has opened the other end, or writes, and leaves nothing behind
  [ -p alone ] || mkfifo alone stalled
  exec 3<>stalled
  printf abc >&3
  local code program arguments
  for arguments in "-o alone clip.mkv" "-o waiting.rgb alone" "-o waiting.rgb stalled"; do
    code=0
    # shellcheck disable=SC2086  # a list of arguments
    "$@" --region=1,2,3,4 $arguments &
    program=$!
    sleep 3
    kill "$program"
    sleep 2
    ! kill -KILL "$program" 2>/dev/null || echo "it still runs"
    wait "$program" || code=$?
    echo "exit code $code"
    [ "$code" = 130 ] && [ -z "$(find . -name 'waiting*')" ] || return
  done
}
refuses_cascades() { # COMMAND...: of which facedetect would find nothing
  echo nonsense >nonsense.xml
  echo '<?xml version="1.0"?><opencv_storage></opencv_storage>' >empty.xml
  head -c 30000 "$cascade" >cut.xml
  local file
  for file in nonsense.xml empty.xml cut.xml "$PWD"; do
    refuses "$file is no cascade of OpenCV" "$@" --cascade="$file" -o refused.rgb clip.mkv || return
  done
}
takes_options_last() { # COMMAND...: after the file, which may be a URI
  "$@" "file://$PWD/clip.mkv" mask=box3 -o last.rgb -q --region=40,30,50,61 roi-grow=0 &&
    "$@" -o first.rgb --region=40,30,50,61 clip.mkv mask=box3 roi-grow=0 && cmp first.rgb last.rgb
}
takes_dash() { # COMMAND...
  cp clip.mkv ./-clip.mkv
  "$@" --region=40,30,50,61 -o dash.rgb -- -clip.mkv mask=box3 && "$@" --region=40,30,50,61 -o plain.rgb clip.mkv mask=box3 &&
    [ -s dash.rgb ] && cmp dash.rgb plain.rgb
}
decoded_by_ffmpeg() { # COMMAND...: its decoders have caps with features, too
  gst-launch-1.0 -q filesrc location=clip.mkv ! matroskademux ! avenc_ffv1 ! matroskamux ! filesink location=ffv1.mkv </dev/null
  "$@" --region=3,4,50,60 -o first.rgb clip.mkv && "$@" --region=3,4,50,60 -o second.rgb ffv1.mkv &&
    [ -s first.rgb ] && cmp first.rgb second.rgb
}
named() { # NAME COMMAND...: a name with bytes that the locale does not know
  cp clip.mkv "$1.mkv"
  LC_ALL=C "${@:2}" --region=3,4,50,60 -o "$1.rgb" "$1.mkv" && [ -s "$1.rgb" ]
}
keeps_its_input() { # NAME COMMAND...
  local input
  cp clip.mkv "$1"
  for input in "$1" "file://$PWD/$1"; do
    refuses "the output is the input" "${@:2}" --region=1,2,3,4 -o "./$1" "$input" && cmp clip.mkv "$1" || return
  done
}
refuses_values() { # COMMAND...
  local setting
  for setting in mask= mask=mosaik roi-scale= roi-scale=nan roi-scale=5 hold=-1 hold=500_000_000 lookahead=1.5 unmarked=filter report=2 size=99999 size=4294967299 size=big; do
    refuses "$setting is not a value of that property" "$@" --region=1,2,3,4 -o refused.rgb clip.mkv "$setting" || return
  done
  refuses "stats" "$@" --region=1,2,3,4 -o refused.rgb clip.mkv stats=1
}
keeps_earlier_output() { # COMMAND...: what was there stays when a later run fails, and nothing else is left
  head -c 3000 clip.mkv >cut.mkv
  echo earlier >earlier.rgb
  ! "$@" --region=1,2,3,4 -o earlier.rgb cut.mkv && [ "$(cat earlier.rgb)" = earlier ] && no_part
}
is_not_closed() { # COMMAND...: a file that may lack its end does not take the place of the earlier one
  echo earlier >earlier.rgb
  refuses "No space left" env LD_PRELOAD="$failing_close" "$@" --region=1,2,3,4 -o earlier.rgb clip.mkv &&
    [ "$(cat earlier.rgb)" = earlier ] && no_part
}
lacks_threads() { # COMMAND...: more than some
  local threads
  for threads in 1 3; do
    THREADS=$threads refuses "no thread can be started" timeout -k 1 30 env LD_PRELOAD="$failing_close" "$@" \
      --region=1,2,3,4 -o none.webm clip.mkv && no_part || return
  done
}
loses_its_reader() { # COMMAND...: nobody reads what is printed
  { sleep 0.3 && "$@" --region=1,2,3,4 -o unread.rgb clip.mkv; } | true
  [ "${PIPESTATUS[0]}" = 0 ] && [ -s unread.rgb ] && no_part
}
is_written_twice() { # COMMAND...: by two programs at once, each of which writes a whole file
  local first second=("--region=1,2,3,4" clip.mkv)
  local slow=("--region=0,0,160,120" clip.mkv mask=median size=31 iterations=50 backend=cpu n-threads=1)
  "$@" -o alone.rgb "${second[@]}" && "$@" -o slow.rgb "${slow[@]}" || return
  "$@" -o twice.rgb "${slow[@]}" &
  first=$!
  until ! no_part; do kill -0 "$first" && sleep 0.01 || return; done
  kill -STOP "$first"
  ! "$@" -o twice.rgb "${second[@]}" || cp twice.rgb second.rgb
  kill -CONT "$first"
  wait "$first" && cmp second.rgb alone.rgb && cmp twice.rgb slow.rgb && no_part
}
is_terminated() { # COMMAND...: which leaves no part of the output
  local code=0 program
  "$@" --region=0,0,160,120 -o early.rgb clip.mkv mask=median size=31 iterations=1000 backend=cpu n-threads=1 &
  program=$!
  until ! no_part; do kill -0 "$program" && sleep 0.01 || return; done
  sleep "${delay:-0}"
  kill "$program"
  [ -z "${delay:-}" ] || { sleep 0.01 && kill "$program"; } || true
  wait "$program" || code=$?
  echo "exit code $code"
  [ "$code" = 130 ] && no_part
}
is_terminated_at_the_end() { # COMMAND...: when its last frames are on their way, and then it does end
  local code program try bytes
  rm -f end.rgb
  mkfifo end.rgb
  for try in 1 2; do
    code=0
    "$@" --region=40,30,50,61 -o end.rgb clip.mkv &
    program=$!
    # The pipe holds less than all frames.
    # shellcheck disable=SC2016  # the inner shell expands it
    timeout 10 sh -c '{ head -c 1 && sleep 0.5 && kill "$0" && cat; } <end.rgb' "$program" >end.read
    sleep 1
    ! kill -KILL "$program" 2>/dev/null || echo "it still runs"
    wait "$program" || code=$?
    bytes=$(stat -c %s end.read)
    echo "try $try: exit code $code, $bytes bytes"
    case $code in
      0) [ "$bytes" = $((6 * 57600)) ] || return ;;
      130) [ $((bytes % 57600)) = 0 ] || return ;;
      *) return 1 ;;
    esac
  done
}
is_terminated_twice() { # COMMAND...: also while it stops
  local delay
  for delay in 0.02 0.04 0.08 0.12 0.2 0.4; do is_terminated "$@" || return; done
}
refuses_no_times() { # COMMAND...: a video file of these frames would have no frame
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,width=160,height=120 ! jpegenc ! multipartmux \
    ! filesink location=untimed.mjpeg </dev/null
  refuses "its frames have no timestamps, which video files need" \
    "$@" --region=1,2,3,4 -o refused.webm untimed.mjpeg && [ ! -e refused.webm ] &&
    "$@" --region=1,2,3,4 -o hidden.rgb untimed.mjpeg && [ "$(stat -c %s hidden.rgb)" = $((3 * 160 * 120 * 3)) ]
}
refuses_sound() { # COMMAND...
  gst-launch-1.0 -q audiotestsrc num-buffers=9 ! vorbisenc ! oggmux ! filesink location=sound.ogg </dev/null
  refuses "cudaconv-privacy: there is no video in it" "$@" --region=1,2,3,4 -o refused.rgb sound.ogg
}
takes_bindings() { # which the system's Python has, where another one comes first
  mkdir other
  printf '#!/bin/sh\nexit 9\n' >other/python3
  chmod +x other/python3
  PATH=$PWD/other:$PATH "$script" --help
}
no_window() { refuses "no display" env -u DISPLAY -u WAYLAND_DISPLAY "$@" --region=1,2,3,4 clip.mkv; }

gst-launch-1.0 -q videotestsrc num-buffers=6 pattern=zone-plate kx2=12 ky2=9 kt=5 ! \
  video/x-raw,format=I420,width=160,height=120 ! matroskamux ! filesink location=clip.mkv

no_jpegparse=  # without it, a photo is not turned, and the rest of one that is cut off is grey
gst-inspect-1.0 --exists jpegparse || no_jpegparse="no jpegparse (gstreamer1.0-plugins-bad)"

echo "1..120"
expect "regions by hand, in C++" by_hand "$program"
expect "regions by hand without a margin, in C++" exactly_by_hand "$program"
expect_unless "$no_python" "regions by hand, in Python" by_hand "$python" "$script"
expect "a clip by a turned camera, in C++" turned "$program"
expect_unless "$no_python" "a clip by a turned camera, in Python" turned "$python" "$script"
expect_unless "$no_jpegparse" "a picture by a turned camera, as .png" still held.png "$program"
expect "as .jpg" still held-out.jpg "$program"
expect_unless "${no_jpegparse:-$no_python}" "in Python too" still held.png "$python" "$script"
expect_unless "$no_detector" "a face in a picture" face_in_picture "$program"
expect_unless "${no_detector:-$no_python}" "both programs hide the same one" same_picture "$photo"
expect_unless "$no_jpegparse" "a picture that cannot be read" refuses_picture "$program"
expect_unless "${no_jpegparse:-$no_python}" "in Python too" refuses_picture "$python" "$script"
no_pixbuf=
gst-inspect-1.0 --exists gdkpixbufdec || no_pixbuf="no element gdkpixbufdec"
expect_unless "$no_pixbuf" "a picture of 16 bits" deep_picture
expect "a picture with alpha" hides_alpha "$program"
expect_unless "$no_python" "in Python too" hides_alpha "$python" "$script"
expect "the colours of a PNG with alpha in a JPEG" keeps_colors "$program" -q
expect_unless "$no_python" "in Python too" keeps_colors "$python" "$script"
expect "a profile of colours" tells_of_profile "$program" -q
expect_unless "$no_python" "in Python too" tells_of_profile "$python" "$script"
expect_unless "$no_python" "the Python code of README.md" of_readme
expect_unless "$no_python" "both without python3-gst-1.0" by_bare_bindings
no_bindings=
/usr/bin/python3 -c 'import gi; gi.require_version("Gst", "1.0")' 2>/dev/null ||
  no_bindings="no GStreamer bindings for the system's Python (python3-gi, gir1.2-gstreamer-1.0)"
expect_unless "$no_bindings" "the program in Python finds GStreamer's bindings" takes_bindings
no_system_python=
[ -x /usr/bin/python3 ] || no_system_python="no /usr/bin/python3"
expect_unless "$no_system_python" "programs in Python name the packages of bindings that are not whole" half_bindings
expect_unless "$no_python" "both programs make the same bytes" same_bytes --region=3,4,50,60 clip.mkv mask=gauss sigma=5 roi-scale=0
expect_unless "$no_detector" "a face, in C++" face "$program"
expect_unless "${no_detector:-$no_python}" "a face, in Python" face "$python" "$script"
expect_unless "${no_detector:-$no_python}" "both programs hide the same face" same_bytes "$face"
expect_unless "$no_detector" "settings that hide no face" hides_no_face "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" hides_no_face "$python" "$script"
expect "settings that hide no region" hides_no_region "$program"
expect_unless "$no_python" "in Python too" hides_no_region "$python" "$script"
expect "a file with its sound" keeps_sound
expect "no cover in a header of the sound" drops_covers cover.mkv covers.webm "METADATA_BLOCK_PICTURE="
no_h264="no encoder for H.264 (gstreamer1.0-plugins-ugly)"
for element in x264enc openh264enc; do ! gst-inspect-1.0 --exists $element || no_h264=; done
expect_unless "$no_h264" "no cover beside it" drops_covers cover.mov covers.mp4 "OF A FACE"
expect_unless "$no_detector" "it prints the number of faces" says_how_many "$program"
expect_unless "${no_detector:-$no_python}" "how many, in Python" says_how_many "$python" "$script"
expect_unless "$no_detector" "a detector misses a face that tilts" misses_faces
expect_unless "$no_detector" "hold and lookahead of roihold cover what it misses" \
  shows_no_face hold=400000000 lookahead=400000000
expect_unless "$no_detector" "also with its types" shows_no_face types=face hold=400000000 lookahead=400000000
expect_unless "$no_detector" "so does unmarked=mark" shows_no_face unmarked=mark
expect_unless "$no_detector" "cudaconv-privacy covers it too" hides_moving_face "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" hides_moving_face "$python" "$script"
expect_unless "$no_detector" "cudaconv-privacy follows a face until it is found again" follows_face
expect "without the model for faces nothing is shown" refuses nowhere.xml \
  "$program" --cascade=nowhere.xml -o refused.rgb clip.mkv
expect_unless "$no_python" "nothing in Python either" refuses nowhere.xml \
  "$python" "$script" --cascade=nowhere.xml -o refused.rgb clip.mkv
without_detector=(env GST_PLUGIN_SYSTEM_PATH_1_0=/nowhere GST_REGISTRY_1_0="$scratch/registry.bin")
expect "nor without the element" refuses "install gstreamer1.0-opencv" \
  "${without_detector[@]}" "$program" --cascade="$photo" -o refused.rgb clip.mkv
expect_unless "$no_python" "nor in Python" refuses "install gstreamer1.0-opencv" \
  "${without_detector[@]}" "$python" "$script" --cascade="$photo" -o refused.rgb clip.mkv
expect_unless "$no_detector" "nor with a broken model" refuses_cascades "$program"
expect_unless "${no_detector:-$no_python}" "nor in Python" refuses_cascades "$python" "$script"
for region in 1,2 -1,2,3,4 1,2,0,4 1,2,3,4,5 4294967297,2,3,4; do
  expect "an invalid region, $region" refuses "X,Y,WIDTH,HEIGHT" "$program" "--region=$region" -o refused.rgb clip.mkv
  expect_unless "$no_python" "in Python too" refuses "X,Y,WIDTH,HEIGHT" \
    "$python" "$script" "--region=$region" -o refused.rgb clip.mkv
done
expect "a region outside the picture" refuses "--region=160,0,3,4 is outside the picture of 160x120" \
  "$program" --region=1,2,3,4 --region=160,0,3,4 -o refused.rgb clip.mkv
expect_unless "$no_python" "in Python too" refuses "--region=0,120,3,4 is outside the picture of 160x120" \
  "$python" "$script" --region=1,2,3,4 --region=0,120,3,4 -o refused.rgb clip.mkv
no_ffmpeg=
for element in avenc_ffv1 avdec_ffv1; do
  gst-inspect-1.0 --exists "$element" || no_ffmpeg="no element $element (gstreamer1.0-libav)"
done
expect_unless "$no_ffmpeg" "a file that FFmpeg decodes" decoded_by_ffmpeg "$program"
expect_unless "${no_ffmpeg:-$no_python}" "in Python too" decoded_by_ffmpeg "$python" "$script"
expect "a name in another encoding" named $'Stra\xdfe' "$program"
expect_unless "$no_python" "in Python too" named $'Gru\xdfe' "$python" "$script"
expect "a file with sound only" refuses_sound "$program"
expect_unless "$no_python" "in Python too" refuses_sound "$python" "$script"
expect "frames without timestamps" refuses_no_times "$program"
expect_unless "$no_python" "in Python too" refuses_no_times "$python" "$script"
expect "output that nobody reads" loses_its_reader "$program"
expect_unless "$no_python" "in Python too" loses_its_reader "$python" "$script"
expect "two programs write one file" is_written_twice "$program"
expect_unless "$no_python" "in Python too" is_written_twice "$python" "$script"
expect "a termination" is_terminated "$program"
expect_unless "$no_python" "in Python too" is_terminated "$python" "$script"
expect "a termination at the end" is_terminated_at_the_end "$program"
expect_unless "$no_python" "in Python too" is_terminated_at_the_end "$python" "$script"
expect "two terminations" is_terminated_twice "$program"
expect_unless "$no_python" "in Python too" is_terminated_twice "$python" "$script"
expect "into a pipe" into_a_pipe
expect "into standard output" into_standard_output "$program"
expect_unless "$no_python" "in Python too" into_standard_output "$python" "$script"
expect "a pipe without another end" waits_for_a_pipe "$program"
expect_unless "$no_python" "in Python too" waits_for_a_pipe "$python" "$script"
expect "options after the file" takes_options_last "$program"
expect_unless "$no_python" "in Python too" takes_options_last "$python" "$script"
expect "a name that begins with a dash" takes_dash "$program"
expect_unless "$no_python" "in Python too" takes_dash "$python" "$script"
expect "the input as the output" keeps_its_input same.mkv "$program"
expect_unless "$no_python" "in Python too" keeps_its_input same.webm "$python" "$script"
mkdir folder.rgb
expect "a folder as the output" refuses "folder.rgb is a folder" "$program" --region=1,2,3,4 -o folder.rgb clip.mkv
expect_unless "$no_python" "in Python too" refuses "folder.rgb is a folder" \
  "$python" "$script" --region=1,2,3,4 -o folder.rgb clip.mkv
expect_unless "$no_python" "a container that Python does not write" refuses ".mkv and .mp4" \
  "$python" "$script" --region=1,2,3,4 -o refused.MP4 clip.mkv
expect "settings of the program that have no effect" own_settings "$program"
expect_unless "$no_python" "in Python too" own_settings "$python" "$script"
no_full=
[ -c /dev/full ] || no_full="no /dev/full"
expect_unless "$no_full" "a full disk" names_its_file "$program"
expect_unless "${no_full:-$no_python}" "in Python too" names_its_file "$python" "$script"
expect "names of other files" refuses_names "$program"
expect_unless "$no_python" "in Python too" refuses_names "$python" "$script"
expect_unless "$no_python" "values as gst-launch-1.0 reads them, in both" takes_values
expect "values that a property does not take" refuses_values "$program"
expect_unless "$no_python" "in Python too" refuses_values "$python" "$script"
expect "a file that is cut off" keeps_earlier_output "$program"
expect_unless "$no_python" "in Python too" keeps_earlier_output "$python" "$script"
no_preload=  # the loader prints an error if it cannot, for example if the library's path has a blank
[ -z "$(LD_PRELOAD=$failing_close "$program" --help 2>&1 >/dev/null)" ] || no_preload="the library cannot be preloaded"
expect_unless "$no_preload" "a file that cannot be closed" is_not_closed "$program"
expect_unless "${no_preload:-$no_python}" "in Python too" is_not_closed "$python" "$script"
expect_unless "$no_preload" "threads that cannot be started" lacks_threads "$program"
expect_unless "${no_preload:-$no_python}" "in Python too" lacks_threads "$python" "$script"
expect "no display" no_window "$program"
expect_unless "$no_python" "in Python too" no_window "$python" "$script"
expect_unless "$no_detector" "what is hidden where there is no face" says_what_is_hidden "$program"
expect_unless "${no_detector:-$no_python}" "in Python too" says_what_is_hidden "$python" "$script"
expect_unless "$no_detector" "quietly that nothing is hidden" says_quietly_that_nothing_is_hidden
expect "options without a value" refuses_empty_values "$program"
expect_unless "$no_python" "in Python too" refuses_empty_values "$python" "$script"
expect_unless "$no_gif" "a GIF" ends_a_gif "$program"
expect_unless "$no_gif$no_python" "in Python too" ends_a_gif "$python" "$script"
expect "the longest time" takes_the_longest_time "$program"
expect_unless "$no_python" "in Python too" takes_the_longest_time "$python" "$script"
expect "an unknown property" refuses "roi-grov=1" \
  "$program" --region=1,2,3,4 -o refused.rgb clip.mkv roi-grov=1
finish
