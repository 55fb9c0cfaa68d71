#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# More than 8 bits, HDR, alpha, chapters, attachments, timecodes and closed captions through the programs:
# run-depth.sh CUDACONV_PLAY CUDACONV_PRIVACY PRIVACY_IN_PYTHON
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder. Tests are skipped without the
# elements that make and read the files.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

player=$(realpath "$1")
privacy=$(realpath "$2")
script=$(realpath "$3")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

python=$(python_with Gst)

# ---- What goes in

launch() { timeout 60 gst-launch-1.0 -q "$@" </dev/null; }
# A grey ramp from black to white, one code a column: 876 codes. Four frames of 880x48, as ramp.mkv.
make_ramp() {
  python3 - <<'END'
import struct
row = struct.pack("<880H", *(64 + min(x, 876) for x in range(880)))
open("ramp.raw", "wb").write((48 * row + struct.pack("<H", 512) * (440 * 24 * 2)) * 4)
END
  launch filesrc location=ramp.raw ! rawvideoparse format=i420-10le width=880 height=48 framerate=25/1 \
    ! avenc_ffv1 ! matroskamux ! filesink location=ramp.mkv
}
light="mastering-display-info=(string)34000:16000:13250:34500:7500:3000:15635:16450:10000000:50"
light+=",content-light-level=(string)1000:400"
make_hdr() { # as hdr.mp4
  launch videotestsrc num-buffers=4 ! "video/x-raw,format=I420_10LE,width=64,height=48,framerate=25/1,\
colorimetry=bt2100-pq,$light" ! x265enc ! h265parse ! mp4mux ! filesink location=hdr.mp4
}
make_video() { # FILE CAPS ENCODER...: four frames in .mkv
  launch videotestsrc num-buffers=4 ! "video/x-raw,framerate=25/1,$2" ! "${@:3}" ! matroskamux ! filesink location="$1"
}

# ---- What comes out

coding() { # FILE: the name of its video's coding, and the format of the decoded frames
  timeout 60 gst-launch-1.0 -v uridecodebin uri="file://$PWD/$1" caps="video/x-raw(ANY)" expose-all-streams=false \
    ! fakesink </dev/null >caps
  echo "$(sed -nE 's/.*caps = video\/x-(h264|h265|vp8|vp9|av1),.*/\1/p' caps | head -1)" \
    "$(sed -nE 's/.*FakeSink.*video\/x-raw.*format=\(string\)(\w+).*/\1/p' caps | head -1)"
}
is_coded() { # FILE CODING FORMAT
  echo "$1: $(coding "$1"), not $2 $3"
  [ "$(coding "$1")" = "$2 $3" ] && no_part
}
says() { # PATTERN COMMAND...: the pattern is in what it says; none: it says no warning
  "${@:2}" >said 2>&1 || { cat said && return 1; }
  cat said
  if [ -n "$1" ]; then
    grep -q -e "$1" said
  elif grep -q "^warning" said; then
    return 1
  fi
}
# The largest error of the ramp, and its codes: 8 bits have 219.
is_ramp() { # FILE
  launch uridecodebin uri="file://$PWD/$1" ! videoconvert ! video/x-raw,format=I420_10LE ! filesink location=out.raw
  python3 - <<'END'
import array
a, b = (array.array("H", open(name, "rb").read()) for name in ("ramp.raw", "out.raw"))
assert len(a) == len(b), "%d samples, not %d" % (len(b), len(a))
error = max(abs(x - y) for x, y in zip(a, b))
codes = len(set(b[:880]))
print("largest error %d, %d codes" % (error, codes))
assert error <= 3 and codes > 600
END
}
keeps_ramp() { # FILE CODING
  says "" "$player" -q -o "$1" ramp.mkv mask=identity && is_coded "$1" "$2" I420_10LE && is_ramp "$1"
}
# Colours and light as FFmpeg reads them, of the stream and of its first frame: the same in both. Without light: light
# is nowhere.
has_hdr() { # FILE [without-light]
  ffprobe -v error -select_streams v -show_streams -show_frames -read_intervals '%+#1' "$1" >probed
  python3 - "${2:-}" <<'END'
import collections, fractions, sys
found = collections.defaultdict(set)
for line in open("probed"):
    name, equals, value = line.strip().partition("=")
    found[name].add(value)
for name, value in ("color_space", "bt2020nc"), ("color_transfer", "smpte2084"), ("color_primaries", "bt2020"):
    assert found[name] == {value}, (name, found[name])
light = {"max_luminance": 1000, "min_luminance": 0.005, "max_content": 1000, "max_average": 400, "red_x": 0.68,
         "green_y": 0.69, "blue_x": 0.15, "white_point_y": 0.329}
for name, value in light.items():
    numbers = {float(fractions.Fraction(each)) for each in found[name]}
    assert numbers == (set() if sys.argv[1] else {value}), (name, numbers)
END
}

# ---- Videos

keeps_hdr() {
  local output
  for output in hdr-out.{webm,mkv,mp4}; do
    says "" "$player" -q -o "$output" hdr.mp4 mask=box3 && has_hdr "$output" || return
  done
}
without() { # ENCODER... : COMMAND...
  local ranks=
  while [ "$1" != : ]; do
    ranks+=$1:NONE,
    shift
  done
  GST_PLUGIN_FEATURE_RANK=${ranks%,} "${@:2}"
}
without_h265() {
  without "${h265[@]}" : says "left out: .mp4 keeps them only as H.265" "$player" -q -o high.mp4 hdr.mp4 mask=box3 &&
    is_coded high.mp4 h264 I420_10LE && has_hdr high.mp4 without-light &&
    without "${h265[@]}" : says "" "$player" -q -o high.mkv hdr.mp4 mask=box3 && is_coded high.mkv h264 I420_10LE && has_hdr high.mkv
}
without_deep() {
  without vp9enc av1enc svtav1enc rav1enc : \
    says "of the video's 10 bits 8 are kept: no installed encoder for .webm takes more" \
    "$player" -q -o shallow.webm ramp.mkv mask=identity && is_coded shallow.webm vp8 I420
}
keeps_prores() {
  make_video prores.mkv format=I422_10LE,width=64,height=48 avenc_prores_ks || return
  says "" "$player" -q -o prores-out.mp4 prores.mkv mask=box3 && is_coded prores-out.mp4 h265 I422_10LE
}
keeps_12_bits() {
  make_video twelve.mkv format=Y444_12LE,width=64,height=48 avenc_ffv1 &&
    says "" "$player" -q -o twelve.webm twelve.mkv mask=box3 && is_coded twelve.webm vp9 Y444_12LE &&
    make_video sixteen.mkv format=GRAY16_LE,width=64,height=48 avenc_ffv1 &&
    says "of the video's 16 bits 12 are kept: the encoder takes no more" "$player" -q -o sixteen.webm sixteen.mkv mask=box3
}
odd_size() { # mp4mux of GStreamer 1.22 crashes with VP9 whose chroma site it is not told
  make_video odd.mkv format=I420_10LE,width=97,height=65 avenc_ffv1 &&
    says "H.265 takes only even sizes, from 16 on: the video is written as VP9" "$player" -q -o odd.mp4 odd.mkv mask=box3 &&
    is_coded odd.mp4 vp9 I420_10LE
}
keeps_fields() {
  make_video fields.mkv format=I422_10LE,width=64,height=48,interlace-mode=interleaved x264enc interlaced=true &&
    says "" "$player" -q -o fields-out.mkv fields.mkv mask=box3 && is_coded fields-out.mkv h264 I422_10LE &&
    grep -q "interlace-mode=(string)\(interleaved\|mixed\)" caps
}
as_before() { # what has 8 bits
  make_video eight.mkv format=I420,width=64,height=48 vp8enc deadline=1 &&
    says "" "$player" -q -o eight.webm eight.mkv mask=box3 && is_coded eight.webm vp8 I420 &&
    says "" "$player" -q -o eight-out.mkv eight.mkv mask=box3 && is_coded eight-out.mkv h264 I420
}
hides_region() { # outside of it, the ramp stays
  says "1 region in 4" "$privacy" --region=400,8,64,32 -o hidden.mkv ramp.mkv roi-grow=0 mask=fill && is_coded hidden.mkv h265 I420_10LE &&
    launch uridecodebin uri="file://$PWD/hidden.mkv" ! videoconvert ! video/x-raw,format=I420_10LE ! filesink location=out.raw &&
    python3 - <<'END'
import array
a, b = (array.array("H", open(name, "rb").read()) for name in ("ramp.raw", "out.raw"))
differ = [abs(x - y) for x, y in zip(a[:880 * 48], b)]
far = max(d for i, d in enumerate(differ) if not 384 <= i % 880 < 480)  # blocks of the encoder
inside = min(differ[y * 880 + x] for y in range(10, 38) for x in range(404, 460))
assert far <= 4 and inside > 100, (far, inside)
END
}
detects_in_8_bits() {
  says "of the video's 10 bits 8 are kept: the filter or the detector takes no more" "$privacy" -o faces.mkv ramp.mkv &&
    is_coded faces.mkv h264 I420
}
in_python() {
  says "of the video's 10 bits 8 are kept: with --region the program in C++ keeps them" \
    "$python" "$script" --region=4,4,40,40 -o region.webm ramp.mkv
}
bare_and_pictures() {
  says "of the video's 10 bits 8 are kept: bare RGB frames have no more" "$privacy" --region=4,4,40,40 -o region.rgb ramp.mkv &&
    says "of the video's 10 bits 8 are kept: a picture of a video has no more" "$player" -o ramp.png ramp.mkv mask=sobel
}

# ---- Pictures

make_png() { # FILE TYPE CHANNELS: of 16 bits
  python3 - "$@" <<'END'
import struct, sys, zlib
name, kind, channels = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def chunk(tag, data):
    return struct.pack(">I", len(data)) + tag + data + struct.pack(">I", zlib.crc32(tag + data))
rows = b"".join(b"\0" + struct.pack(">%dH" % (64 * channels), *((y * 4000 + i * 77) % 65536 for i in range(64 * channels))) for y in range(16))
open(name, "wb").write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 16, 16, kind, 0, 0, 0)) +
                       chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
END
}
bits_of_png() { od -An -tu1 -j24 -N1 "$1" | tr -d ' '; }
tells_of_pictures() {
  make_png grey.png 0 1
  make_png colour.png 2 3
  says "" "$player" -o grey-out.png grey.png mask=box3 && [ "$(bits_of_png grey-out.png)" = 16 ] &&
    says "grey.png: of its 16 bits 8 are kept: a JPEG has no more" "$player" -o grey-out.jpg grey.png mask=box3 &&
    says "" "$privacy" --region=4,4,9,9 -o grey-out.png grey.png && [ "$(bits_of_png grey-out.png)" = 16 ] || return
}
tells_of_colours() {
  make_png colour.png 2 3
  says "colour.png: of its 16 bits 8 are kept: GStreamer keeps more only of grey without alpha" \
    "$player" -o colour-out.png colour.png mask=box3 && [ "$(bits_of_png colour-out.png)" = 8 ]
}

# ---- Alpha

tells_of_alpha() { # of pictures, and of videos that become pictures or bare frames
  launch videotestsrc num-buffers=1 ! video/x-raw,format=RGBA,width=160,height=120 ! pngenc ! filesink location=alpha.png &&
    launch videotestsrc num-buffers=2 ! video/x-raw,format=AYUV,width=64,height=48 ! matroskamux ! filesink location=alpha.mkv &&
    says "" "$player" -q -o alpha-out.png alpha.png mask=box3 && says "" "$privacy" --region=4,4,9,9 -o alpha-out.png alpha.png &&
    says "alpha.png has alpha, which is left out: a JPEG has none" "$player" -q -o alpha.jpg alpha.png mask=box3 &&
    says "the video has alpha, which is left out" "$player" -q -o alpha-out.png alpha.mkv mask=box3 &&
    says "the video has alpha, which is left out" "$privacy" --region=4,4,9,9 -o alpha.rgb alpha.mkv
}
tells_of_alpha_in_python() {
  tells_of_alpha >/dev/null 2>&1 || true # makes the files
  says "" "$python" "$script" --region=4,4,9,9 -o alpha-out.png alpha.png &&
    says "the picture has alpha, which is left out: a JPEG has none" "$python" "$script" --region=4,4,9,9 -o alpha.jpg alpha.png &&
    says "the video has alpha, which is left out" "$python" "$script" --region=4,4,9,9 -o alpha.rgb alpha.mkv
}
tells_of_detector() { # which takes no alpha
  says "alpha.png has alpha, which is left out: the detector takes none" "$privacy" -o alpha-out.png alpha.png
}

# ---- Chapters and attachments

make_chapters() {
  printf ';FFMETADATA1\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=200\ntitle=One\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=200\nEND=400\ntitle=Two\n' >chapters
  echo letters >font.ttf
  ffmpeg -v error -f lavfi -i testsrc2=s=160x120:r=25:d=0.4 -i chapters -map 0 -map_metadata 1 -c:v mpeg4 -attach font.ttf \
    -metadata:s:t mimetype=application/x-truetype-font chapters.mkv </dev/null
}
keeps_chapters() {
  make_chapters &&
    says "attachments, which GStreamer does not write, are left out" "$player" -q -o chapters-out.mkv chapters.mkv mask=box3 &&
    [ "$(ffprobe -v error -show_chapters chapters-out.mkv | grep -E '^(start_time|TAG:title)=' | tr '\n' ' ')" = \
      "start_time=0.000000 TAG:title=One start_time=0.200000 TAG:title=Two " ] &&
    says "chapters, which .mp4 does not take, are left out" "$player" -q -o chapters.mp4 chapters.mkv mask=box3 &&
    ffmpeg -v error -i chapters.mkv -map 0:v -c copy from.mp4 </dev/null &&
    says "chapters of .mp4, which GStreamer does not read, are left out" "$player" -q -o from.mkv from.mp4 mask=box3
}
tells_of_timecodes() { # in a stream of their own, or with the frames
  ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25:d=0.2 -timecode 01:02:03:04 -c:v mpeg4 timecode.mov </dev/null &&
    launch videotestsrc num-buffers=4 ! video/x-raw,format=I420,width=64,height=48 ! timecodestamper ! x264enc option-string=pic-struct=1 \
      ! h264parse update-timecode=true ! video/x-h264,stream-format=byte-stream ! mpegtsmux ! filesink location=timecode.ts || return
  local input output
  for input in timecode.mov timecode.ts; do
    for output in timecode-out.mkv timecode-out.mp4; do
      says "timecodes, which GStreamer does not write to ${output#*-out}, are left out" "$player" -q -o "$output" "$input" mask=box3 &&
        [ "$(grep -c timecodes said)" = 1 ] || return
    done
  done
  says "" "$player" -q -o timecode-out.mp4 timecode-out.mkv mask=box3
}
tells_of_captions() {
  python3 -c 'import sys; sys.stdout.buffer.write(20 * b"\xfc\x94\x20")' >captions.raw # three bytes for each frame
  launch videotestsrc num-buffers=20 ! video/x-raw,format=I420,width=64,height=48,framerate=25/1 ! cccombiner name=captions \
    ! x264enc ! h264parse ! matroskamux ! filesink location=captions.mkv \
    filesrc location=captions.raw ! rawvideoparse format=gray8 width=3 height=1 frame-size=3 framerate=25/1 \
    ! capssetter join=false replace=true caps=closedcaption/x-cea-708,format=cc_data,framerate=25/1 ! captions.caption &&
    says "closed captions, which the encoder to VP8 does not keep, are left out" "$player" -q -o captions.webm captions.mkv mask=box3 &&
    says "" "$player" -q -o captions.mp4 captions.mkv mask=box3 &&
    grep -q GA94 captions.mp4 # the mark of captions in H.264
}
keeps_covers() { # where the container takes them
  ffmpeg -v error -f lavfi -i testsrc=size=64x48:duration=0.2 -f lavfi -i color=red:size=32x32:duration=0.04 -map 0 -map 1 \
    -c:v:0 mpeg4 -c:v:1 mjpeg -disposition:v:1 attached_pic cover.mp4 </dev/null || return
  says "" "$player" -q -o cover-out.mp4 cover.mp4 mask=box3 &&
    [ "$(ffprobe -v error -show_entries stream=codec_name -of csv=p=0 cover-out.mp4 | tail -1)" = mjpeg ] || return
  local output
  for output in cover-out.mkv cover-out.webm; do
    says "a cover, which ${output#*-out} does not take, is left out" "$player" -q -o "$output" cover.mp4 mask=box3 || return
  done
}
without_a_rate() { # of frames, as browsers record: x265enc does not start without one
  gst-launch-1.0 -q videotestsrc num-buffers=5 ! video/x-raw,format=I420_10LE,width=64,height=48,framerate=10/1 ! vp9enc \
    ! capssetter caps=video/x-vp9,framerate=0/1 ! webmmux ! filesink location=rateless.webm </dev/null
  local suffix
  for suffix in mkv mp4; do
    says "" "$player" -q -o "rateless.$suffix" rateless.webm mask=box3 && is_coded "rateless.$suffix" h265 I420_10LE &&
      [ "$(ffprobe -v error -show_entries packet=pts_time -of csv=p=0 "rateless.$suffix" | sort -n | tail -1 | cut -c1-3)" = 0.4 ] || return
  done
}

# ---- What is missing here

needs() { local each; for each in "$@"; do gst-inspect-1.0 --exists "$each" || { echo "no element $each"; return; }; done; }
h265=()
for element in x265enc nvh265enc vah265enc vaapih265enc qsvh265enc v4l2h265enc; do h265+=("$element"); done
no_ffv1=$(needs avenc_ffv1 avdec_ffv1 rawvideoparse)
no_vp9=$(needs vp9enc vp9dec)
no_h264=$(needs x264enc avdec_h264)
no_h265=$(needs x265enc avdec_h265)
no_probe=
command -v ffprobe >/dev/null || no_probe="no ffprobe"
no_ffmpeg=
command -v ffmpeg >/dev/null || no_ffmpeg="no ffmpeg"
no_detector=$(needs facedetect)
[ -f /usr/share/opencv4/haarcascades/haarcascade_frontalface_default.xml ] || no_detector="no opencv-data"
no_python=
[ -n "$python" ] || no_python="no bindings of GStreamer for Python"
gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,format=I420_10LE ! vp9enc ! fakesink >/dev/null 2>&1 || no_vp9="vp9enc takes 8 bits"
[ -n "$no_ffv1" ] || make_ramp
[ -n "$no_h265" ] || make_hdr

echo "1..25"
expect_unless "$no_ffv1$no_vp9" "a ramp of 10 bits into .webm" keeps_ramp ramp.webm vp9
for suffix in mkv mp4; do
  expect_unless "$no_ffv1$no_h265" "a ramp of 10 bits into .$suffix" keeps_ramp ramp-out.$suffix h265
done
expect_unless "$no_h265$no_vp9$no_probe" "HDR10" keeps_hdr
expect_unless "$no_h265$no_h264$no_probe" "HDR10 without an encoder to H.265" without_h265
expect_unless "$no_ffv1" "10 bits without an encoder for them" without_deep
expect_unless "$no_ffv1$no_h265$(needs avenc_prores_ks avdec_prores)" "4:2:2 of 10 bits" keeps_prores
expect_unless "$no_ffv1$no_vp9" "12 bits and 16" keeps_12_bits
expect_unless "$no_ffv1$no_vp9$no_h265" "10 bits of an odd size" odd_size
expect_unless "$no_h264" "10 bits with fields" keeps_fields
expect_unless "$no_h264$(needs vp8dec)" "8 bits as before" as_before
expect_unless "$no_ffv1$no_h265" "a region in 10 bits" hides_region
expect_unless "$no_ffv1$no_h264$no_detector" "a detector of 8 bits" detects_in_8_bits
expect_unless "$no_ffv1$no_python" "10 bits in Python" in_python
expect_unless "$no_ffv1" "10 bits into bare frames and pictures" bare_and_pictures
expect "16-bit grey in pictures" tells_of_pictures
expect_unless "$(needs gdkpixbufdec)" "16-bit colour in pictures" tells_of_colours
expect "alpha that is lost" tells_of_alpha
expect_unless "$no_python" "in Python" tells_of_alpha_in_python
expect_unless "$no_detector" "before a detector" tells_of_detector
expect_unless "$no_ffmpeg$no_probe" "chapters and attachments" keeps_chapters
expect_unless "$no_ffmpeg$no_probe$no_h264" "covers" keeps_covers
expect_unless "$no_ffmpeg$no_h264$(needs timecodestamper h264parse mpegtsmux)" "timecodes" tells_of_timecodes
expect_unless "$no_h264$(needs cccombiner vp8enc rawvideoparse)" "closed captions" tells_of_captions
expect_unless "$no_vp9$no_h265$no_probe" "10 bits without a frame rate" without_a_rate
finish
