#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the example player over a clip: run-player.sh CUDACONV_PLAY CLIP
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

self=$(realpath "$0")
player=$(realpath "$1")
clip=$(realpath "$2")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
export XDG_DATA_HOME=$scratch # no presets of the user

decodes() { # FILE FRAMES
  mkdir -p "$1.frames"
  gst-launch-1.0 -q filesrc location="$1" ! decodebin ! videoconvert ! \
    multifilesink location="$1.frames/%05d" </dev/null
  local found=("$1.frames"/*)
  echo "${#found[@]} frames of $2"
  [ "${#found[@]}" = "$2" ]
}
video() { # FILE ARGUMENT...: every frame of the clip comes out, and the report names a backend
  "$player" -o "$1" --width=320 "${@:2}" "$clip" mask=gauss sigma=3 && decodes "$1" 78
}
animates_all() { # from the first frame on
  "$player" -q -o still.webm clip.mkv mask=gauss sigma=8 && "$player" -q -o moved.webm clip.mkv mask=gauss --animate=sigma=8:8 &&
    rgb_of still.webm still.raw && rgb_of moved.webm moved.raw && [ -s still.raw ] && cmp still.raw moved.raw
}
differ() {
  [ -d "$1" ] && [ -d "$2" ] && ! diff -rq "$1" "$2"
}
picture() {
  "$player" -o sobel.png --at=1 "$clip" mask=sobel && decodes sobel.png 1
}
picture_of_bare() { # frames in a .y4m, in which GStreamer 1.22 does not find a moment
  gst-launch-1.0 -q videotestsrc num-buffers=75 pattern=ball ! video/x-raw,format=I420,width=64,height=48,framerate=25/1 \
    ! tee name=t ! queue ! y4menc ! filesink location=bare.y4m t. ! queue ! matroskamux ! filesink location=bare.mkv </dev/null
  "$player" -q -o bare.png --at=2 bare.y4m mask=sobel && "$player" -q -o same.png --at=2 bare.mkv mask=sobel &&
    cmp bare.png same.png
}
of_live_source() { # a sender of JPEGs: a picture, then a video until Ctrl-C
  local port sender code=0
  port=$(python3 -c 'import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  gst-launch-1.0 -q videotestsrc is-live=true ! video/x-raw,width=64,height=48,framerate=10/1 ! jpegenc \
    ! udpsink host=127.0.0.1 port="$port" &
  sender=$!
  timeout --foreground 30 "$player" -q -o live.png "udp://127.0.0.1:$port" mask=box3 && decodes live.png 1 || code=$?
  [ "$code" != 0 ] || timeout --foreground --preserve-status -s INT 4 "$player" -q -o live.webm "udp://127.0.0.1:$port" mask=box3 || code=$?
  kill "$sender"
  echo "exit code $code"
  [ "$code" = 130 ] && [ "$(frames_of live.webm)" -ge 1 ]
}
refuses_dead_source() { # a server that is not there
  local port output
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  for output in refused.png refused.webm none; do
    refuses "cudaconv-play: source: " "rtsp://127.0.0.1:$port/x" -q -o "$output" || return
  done
}
same_as() { # PROPERTIES ARGUMENT...: the arguments make the picture that these properties make
  # shellcheck disable=SC2086  # a list of properties
  "$player" -q -o properties.png "$clip" $1 && "$player" -q -o arguments.png "$clip" "${@:2}" &&
    cmp properties.png arguments.png
}
# refuses TEXT ARGUMENT...: passes where the player exits with 1, prints TEXT, and leaves no file
refuses() {
  local code=0 output
  output=$(timeout 60 "$player" -o refused.webm "${@:2}" 2>&1) || code=$?
  echo "exit code $code: $output"
  [ "$code" = 1 ] && [[ $output == *"$1"* ]] && [ -z "$(find . -name 'refused*')" ]
}
helps() { "$player" --help | grep "mask=gauss sigma=3"; }
in_no_window() { # TEXT ARGUMENT...: without a display, exits with 1 and prints TEXT
  local output
  ! output=$(env -u DISPLAY -u WAYLAND_DISPLAY "$player" "${@:2}" 2>&1) && echo "$output" && [[ $output == *"$1"* ]]
}

# ---- Conversion: a clip with sound, a subtitle and a title

make_clip() {
  printf '1\n00:00:00,000 --> 00:00:00,100\nTom & Jerry\n' >text.srt
  gst-launch-1.0 -q matroskamux name=mux ! filesink location=clip.mkv \
    videotestsrc num-buffers=50 pattern=ball ! video/x-raw,width=160,height=120,framerate=25/1 ! vp8enc deadline=1 \
    ! queue ! mux. audiotestsrc num-buffers=86 samplesperbuffer=1024 wave=ticks \
    ! audio/x-raw,rate=44100,channels=2 ! vorbisenc ! taginject tags=title=Trial ! queue ! mux. \
    filesrc location=text.srt ! subparse ! queue ! mux. </dev/null
}
demuxer_of() { case $1 in *.mp4) echo qtdemux ;; *) echo matroskademux ;; esac; }
frames_of() { # FILE: the number of its frames, without decoding
  rm -rf frames
  mkdir frames
  gst-launch-1.0 -q filesrc location="$1" ! "$(demuxer_of "$1")" name=d d.video_0 ! queue \
    ! multifilesink location=frames/%05d </dev/null
  find frames -type f | wc -l
}
samples() { # FILE OUTPUT: the file's sound
  gst-launch-1.0 -q uridecodebin uri="file://$PWD/$1" caps=audio/x-raw expose-all-streams=false ! audioconvert \
    ! audioresample ! audio/x-raw,format=S16LE,rate=44100,channels=2,layout=interleaved ! filesink location="$2" </dev/null
}
lasts() { # FILE: has video and sound as long as the clip, to within a frame
  samples "$1" sound.raw
  local bytes frames
  bytes=$(stat -c %s sound.raw) frames=$(frames_of "$1")
  echo "$frames frames, $bytes bytes of sound"
  [ "$frames" = 50 ] && [ "$bytes" -gt $((84 * 1024 * 4)) ] && [ "$bytes" -lt $((90 * 1024 * 4)) ]
}
converts() { # FILE
  "$player" -q -o "$1" clip.mkv mask=gauss sigma=2 && lasts "$1" && no_part
}
has_title() { grep -qa Trial "$1"; }
keeps_sound_as_it_is() { # if the container supports it
  samples clip.mkv before.raw && samples converted.webm after.raw && cmp before.raw after.raw
}
text_of() { # FILE OUTPUT
  gst-launch-1.0 -q filesrc location="$1" ! "$(demuxer_of "$1")" ! text/x-raw ! filesink location="$2" </dev/null
  cat "$2"
}
keeps_text() { text_of clip.mkv before.text && text_of "$1" after.text && grep -qa 'Tom &amp; Jerry' before.text &&
  cmp before.text after.text; }
codecs_of() { # FILE: what is in it, lines for each stream; now and then a pad does not tell its caps
  gst-launch-1.0 -v filesrc location="$1" ! "$(demuxer_of "$1")" name=d d. ! queue ! fakesink d. ! queue ! fakesink </dev/null |
    sed -n 's/.*\.GstPad:[a-z]*: caps = //p'
}
with_sound() { # FILE SOUND...: makes a clip with the sound of this launch line
  gst-launch-1.0 -q matroskamux name=mux ! filesink location="$1" videotestsrc num-buffers=50 \
    ! video/x-raw,width=160,height=120,framerate=25/1 ! vp8enc deadline=1 ! queue ! mux. \
    audiotestsrc num-buffers=86 samplesperbuffer=1024 ! audio/x-raw,rate=44100 ! "${@:2}" ! queue ! mux. </dev/null
}
keeps_flac() {
  with_sound flac.mkv flacenc && "$player" -q -o flac-kept.mkv flac.mkv mask=box3 && codecs_of flac-kept.mkv | tee codecs
  grep -q audio/x-flac codecs && lasts flac-kept.mkv
}
mixes_surround() { # to stereo, not to one channel
  with_sound surround.mkv identity ! audio/x-raw,channels=6 &&
    "$player" -q -o stereo.mp4 surround.mkv mask=box3 2>said && cat said && codecs_of stereo.mp4 | tee codecs
  grep -qE 'audio/mpeg.*channels=\(int\)(2|6)' codecs && { grep -q '6 channels of sound are mixed to 2' said || grep -q '=(int)6' codecs; }
}
says_what_is_interlaced() {
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=160,height=120,framerate=25/1,interlace-mode=interleaved \
    ! matroskamux ! filesink location=fields.mkv </dev/null
  "$player" -q -o fields.webm fields.mkv mask=box3 2>&1 | tee said
  grep -q 'the video is interlaced, which VP8 does not keep' said &&
    ! "$player" -q -o frames.webm clip.mkv mask=box3 2>&1 | grep interlaced
}
says_that_alpha_is_left_out() {
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=AYUV,width=64,height=48,framerate=25/1 ! matroskamux \
    ! filesink location=alpha.mkv </dev/null
  "$player" -q -o alpha.webm alpha.mkv mask=box3 2>&1 | tee said
  grep -q 'the video has alpha, which is left out' said && ! "$player" -q -o opaque.webm clip.mkv mask=box3 2>&1 | grep alpha
}
names_the_missing() { # the package for decoders has no sources
  refuses "there is no FOO protocol source" foo://bar | tee said
  grep -q "No URI handler implemented" said && ! grep libav said
}
leaves_ass_out() { # WebM has no subtitles of this kind
  printf 'Dialogue: text' >ass
  gst-launch-1.0 -q matroskamux name=mux ! filesink location=ass.mkv videotestsrc num-buffers=50 \
    ! video/x-raw,width=160,height=120,framerate=25/1 ! vp8enc deadline=1 ! queue ! mux. \
    filesrc location=ass ! 'application/x-ass,codec_data=(buffer)5b536372697074' ! queue ! mux. </dev/null
  "$player" -q -o ass.webm ass.mkv mask=box3 2>&1 | tee said
  grep -q 'which .webm does not take, is left out' said && ! grep -qa S_TEXT ass.webm
}
fits_terminal() { # of 20 columns: a line that wraps would be printed again and again
  TERM=xterm python3 - "$player" <<'END'
import fcntl, os, pty, struct, sys, termios
parent, child = pty.openpty()
fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("4H", 10, 20, 0, 0))
pid = os.fork()
if not pid:
    os.dup2(child, 2)
    os.execv(sys.argv[1], sys.argv[1:] + "-o none clip.mkv mask=median size=31 iterations=200 backend=cpu".split())
os.close(child)
text = b""
while True:
    try:
        text += os.read(parent, 4096)
    except OSError:  # it has been closed
        break
lines = [line for line in text.replace(b"\x1b[K", b"").split(b"\r") if b"frame" in line]
print(lines[-3:])
assert os.waitpid(pid, 0)[1] == 0 and len(lines) > 1
assert all(len(line) < 20 for line in lines if not line.startswith((b"\n", b"cudaconv")))
END
}
says_what_is_left_out() {
  "$player" -q -o said.webm clip.mkv mask=box3 2>&1 | tee said
  grep -q 'text, which .webm does not take, is left out' said
}
takes_even_sizes() { # for H.264; --width gives an even height
  "$player" -q -o even.mp4 --width=322 "$clip" mask=box3 && [ "$(frames_of even.mp4)" = 78 ] &&
    refuses "H.264 takes only even sizes: write .webm or .mkv instead" "$clip" -o refused.mp4 mask=box3
}
takes_odd_sizes() {
  "$player" -q -o odd.mkv --width=161 clip.mkv mask=box3 2>odd && rgb_of odd.mkv odd.raw || return
  cat odd
  grep -q "H.264 takes only even sizes: the video is written as VP8" odd && [ "$(stat -c %s odd.raw)" = $((50 * 121 * 484)) ]
}
takes_fields() { # each has its own rows of chroma in H.264; --width gives a height that fits
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=160,height=122,framerate=25/1,interlace-mode=interleaved \
    ! matroskamux ! filesink location=fields122.mkv </dev/null
  local rule="H.264 takes interlaced video only of even widths, and of heights divisible by 4"
  "$player" -q -o lines.mkv fields122.mkv mask=box3 2>&1 | tee said && rgb_of lines.mkv lines.raw &&
    grep -q "$rule: the video is written as VP8" said && [ "$(stat -c %s lines.raw)" = $((3 * 122 * 480)) ] &&
    refuses "$rule: write .webm or .mkv instead" fields122.mkv -o refused.mp4 mask=box3 &&
    "$player" -q -o lines.mp4 --width=200 fields122.mkv mask=box3 && [ "$(frames_of lines.mp4)" = 3 ]
}
takes_new_sizes() { # WebM keeps them; H.264 has one header in a file, so frames are scaled to the first
  local part file rule="the video changes to 64x80: it is scaled to its first size, 64x48"
  for part in {00..09}; do
    gst-launch-1.0 -q videotestsrc num-buffers=1 ! "video/x-raw,width=64,height=$((10#$part < 5 ? 48 : 80))" ! jpegenc ! filesink location="part$part.jpg"
  done
  gst-launch-1.0 -q multifilesrc location=part%02d.jpg caps=image/jpeg,width=64,height=48,framerate=25/1 ! avimux \
    ! filesink location=sizes.avi 2>/dev/null # multifilesrc has no times
  "$player" -q -o sizes.webm sizes.avi mask=box3 && rgb_of sizes.webm sizes.raw || return
  stat -c %s sizes.raw
  [ "$(stat -c %s sizes.raw)" = $((64 * 3 * 5 * (48 + 80))) ] || return
  [ -z "$no_h264" ] || return 0
  for file in sizes.mp4 sizes.mkv; do
    "$player" -q -o "$file" sizes.avi mask=box3 2>said && cat said && grep -q "$rule" said && rgb_of "$file" sizes.raw &&
      [ "$(stat -c %s sizes.raw)" = $((64 * 3 * 10 * 48)) ] || return
  done
}
takes_turned_clip() { # FILE: the picture is upright, and no player turns it again
  make_turned_clip
  # Turned by hand, it keeps the tag, which matroskamux writes since GStreamer 1.26.
  gst-launch-1.0 -q filesrc location=turned.mov ! decodebin ! videoflip video-direction=auto ! matroskamux \
    ! filesink location=upright.mkv
  gst-launch-1.0 -q filesrc location=turned.mov ! decodebin ! videoflip video-direction=90r ! videoconvert \
    ! video/x-raw,format=RGB ! filesink location=by-hand.raw
  rgb_of upright.mkv upright.raw && cmp upright.raw by-hand.raw &&
    "$player" -q -o "$1" turned.mov mask=box3 && "$player" -q -o "upright-$1" upright.mkv mask=box3 &&
    rgb_of "$1" turned.raw && rgb_of "upright-$1" want.raw && [ "$(stat -c %s turned.raw)" = $((3 * 120 * 160 * 3)) ] &&
    cmp turned.raw want.raw && ! gst-launch-1.0 -t filesrc location="$1" ! decodebin ! fakesink | grep -i orientation
}
is_interrupted() { # FILE: after Ctrl-C, the streams end together, and the file can be played
  local code seconds
  for seconds in 2 6 18; do # a busy machine may not have a frame by then
    code=0
    timeout --foreground --preserve-status -s INT "$seconds" "$player" -q -o "$1" clip.mkv mask=median size=31 \
      iterations=400 backend=cpu n-threads=1 >interrupted 2>&1 || code=$?
    cat interrupted
    grep -q 'interrupted after 0 frames' interrupted || break
  done
  samples "$1" sound.raw
  local frames bytes
  frames=$(frames_of "$1") bytes=$(stat -c %s sound.raw)
  echo "$frames frames, $bytes bytes of sound"
  [ "$code" = 130 ] && grep -q 'interrupted after' interrupted && [ "$frames" -ge 1 ] && [ "$frames" -lt 50 ] &&
    [ "$bytes" -lt $(((frames + 6) * 44100 * 4 / 25)) ] && no_part
}

has_begun() { # PROGRAM FILE
  until compgen -G "$2.*.part"; do kill -0 "$1" && sleep 0.01 || return; done
}
is_given_up() { # FILE: a second signal ends the program at once, which leaves nothing behind
  local code program
  for _ in {1..5}; do
    code=0
    "$player" -q -o "$1" clip.mkv mask=median size=31 iterations=1000 backend=cpu n-threads=1 2>given-up &
    program=$!
    has_begun "$program" "$1" && sleep 2 || return
    kill -STOP "$program" # for both signals at once
    kill -INT "$program"
    kill -TERM "$program"
    kill -CONT "$program"
    wait "$program" || code=$?
    cat given-up
    echo "exit code $code"
    [ "$code" = 130 ] && no_part || return
    [ -e "$1" ] || return 0
    [ "$(frames_of "$1")" -ge 1 ] || return # the file was complete before the second signal came
    rm "$1"
  done
  return 1
}
is_interrupted_early() { # FILE SIGNAL [CODE]: before the first frame, which leaves what was there
  local code=0 program
  echo earlier >"$1"
  ulimit -c 0
  env --default-signal="$2" "$player" -q -o "$1" clip.mkv mask=median size=31 iterations=1000 backend=cpu n-threads=1 &
  program=$!
  has_begun "$program" "$1" && kill "-$2" "$program" || return
  wait "$program" || code=$?
  echo "exit code $code"
  [ "$code" = "${3:-130}" ] && [ "$(cat "$1")" = earlier ] && no_part
}
is_ended() { # by signals that a program has its own end of
  is_interrupted_early early.webm QUIT 131 && is_interrupted_early early.webm XCPU 152
}
hangs_up() { # FILE: when the terminal closes, the file is finished, but not under nohup
  local code=0 program
  # The tests may run under nohup themselves.
  env --default-signal=HUP "$player" -q -o "$1" clip.mkv mask=median size=31 iterations=300 backend=cpu n-threads=1 2>hung-up &
  program=$!
  has_begun "$program" "$1" && sleep 2 && kill -HUP "$program" || return
  wait "$program" || code=$?
  echo "exit code $code, $(frames_of "$1") frames"
  [ "$code" = 130 ] && [ "$(frames_of "$1")" -lt 50 ] && no_part || return
  nohup "$player" -q -o "$1" clip.mkv mask=median size=31 iterations=5 backend=cpu n-threads=1 &
  program=$!
  has_begun "$program" "$1" && kill -HUP "$program" || return
  wait "$program" && [ "$(frames_of "$1")" = 50 ]
}
loses_its_reader() { # FILE: nobody reads what is printed
  { sleep 0.3 && "$player" -o "$1" clip.mkv mask=custom coefficients='1 2 1' sigma=3; } 2>&1 | true
  [ "${PIPESTATUS[0]}" = 0 ] && [ "$(frames_of "$1")" = 50 ] && no_part
}
named() { # NAME: a file of this name is filtered, though it looks like a URI
  cp clip.mkv "$1.mkv"
  "$player" -q -o "$1.webm" "$1.mkv" mask=box3 && [ "$(frames_of "$1.webm")" = 50 ]
}
refuses_values() {
  local setting
  for setting in mask= amount= sigma=nan sigma=-2 sigma=1e999 size=99999 size=-3 size=4294967299 size=big; do
    refuses "$setting is not a value of that property" "$clip" mask=gauss "$setting" || return
  done
  refuses "stats can only be read" "$clip" stats=1
}
refuses_at() {
  local output
  for output in none refused.webm refused.MP4; do
    refuses "--at is for a picture of a video" "$clip" -o "$output" --at=1 || return
  done
  refuses "--at is for a picture of a video" photos/a.png -o refused.png --at=1 &&
    refuses "--at is for a picture of a video" photos -o refused --at=1 &&
    refuses "no frame at that moment" "$clip" -o refused.png --at=100 &&
    cp photos/a.png picture && refuses "leave --at out" picture -o refused.png --at=1 &&
    refuses "--animate is for a video" photos/a.png -o refused.png mask=gauss --animate=sigma=1:2
}
converts_bmp() { # or says why not: of its only frame GStreamer may know nothing beforehand
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! avenc_bmp ! filesink location=one.bmp </dev/null
  "$player" -q -o bmp.webm one.bmp >bmp.log 2>&1 || true
  cat bmp.log
  [ -s bmp.log ] && ! grep CRITICAL bmp.log
}
refuses_sound() {
  local output
  gst-launch-1.0 -q audiotestsrc num-buffers=9 ! vorbisenc ! oggmux ! filesink location=sound.ogg </dev/null
  for output in none refused.png refused.webm; do
    refuses "cudaconv-play: there is no video in it" sound.ogg -q -o "$output" || return
  done
}
refuses_video() { # without a decoder, beside sound that has one
  gst-launch-1.0 -q matroskamux name=mux ! filesink location=theora.mkv videotestsrc num-buffers=9 ! theoraenc ! mux. \
    audiotestsrc num-buffers=9 ! vorbisenc ! mux. </dev/null
  GST_PLUGIN_FEATURE_RANK=theoradec:NONE,avdec_theora:NONE \
    refuses "cudaconv-play: there is no decoder for its video" theora.mkv && "$player" -o none theora.mkv
}
refuses_numbers() {
  local at width
  for at in -2 nan inf 1e30; do refuses "--at takes seconds" "$clip" -o refused.png --at="$at" || return; done
  for width in -5 40000; do refuses "--width takes pixels" "$clip" --width="$width" || return; done
}
refuses_to_animate() {
  local value
  for value in nan:2 1:nan a:b 1: :2 : 1:2:3 0:99999 inf:1 1,5:2; do
    refuses "is not a value of that property; it takes -1 to 250" "$clip" mask=gauss --animate="sigma=$value" || return
  done
}

# In a window on an invisible display. Sound is played if there is a device.
in_window() {
  local display server code=0
  start_display 640x480
  DISPLAY=$display timeout 60 "$player" clip.mkv mask=sobel >shown 2>log || code=$?
  kill "$server"
  cat log shown
  [ "$code" = 0 ] && grep -q '50 frames, .* as the clip has it' shown
}

# ---- Pictures

make_pictures() {
  mkdir -p photos
  gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=zone-plate kx2=12 ky2=9 ! video/x-raw,format=RGB,width=65,height=47 \
    ! tee name=t ! queue ! pngenc ! filesink location=photos/a.png t. ! queue ! jpegenc ! filesink location=photos/b.JPG
  cp photos/a.png photos/c.png
}
rgb_of() { # FILE OUTPUT [ELEMENT...]: its frames; decodebin alone now and then waits for the sound, which nothing takes
  gst-launch-1.0 -q uridecodebin uri="file://$PWD/$1" caps="video/x-raw(ANY)" expose-all-streams=false ! "${@:3}" videoconvert \
    ! video/x-raw,format=RGB ! filesink location="$2" </dev/null
}
filters_picture() {
  "$player" -q -o a.png photos/a.png mask=gauss sigma=3 && rgb_of a.png a.raw &&
    rgb_of photos/a.png want.raw cudaconv mask=gauss sigma=3 ! && [ -s a.raw ] && cmp a.raw want.raw
}
tells_of_animation() { # of a PNG whose header tells of three pictures
  python3 - photos/a.png moving.png <<'END'
import struct, sys, zlib
png = open(sys.argv[1], "rb").read()
body = b"acTL" + struct.pack(">II", 3, 0)
end = 33  # of the header
open(sys.argv[2], "wb").write(png[:end] + struct.pack(">I", 8) + body + struct.pack(">I", zlib.crc32(body)) + png[end:])
END
  cp moving.png moving.apng
  local input output
  for input in moving.png moving.apng; do
    for output in still.png still.webm; do
      "$player" -q -o "$output" "$input" mask=box3 2>&1 | tee said
      [ "$(grep -c 'moving[.a]*png is an animated PNG: all but its first picture is left out' said)" = 1 ] || return
    done
  done
  "$player" -q -o still.png photos/a.png mask=box3 2>&1 | tee said
  ! grep animated said
}
turns_photo() { # as its tag says
  gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=zone-plate kx2=12 ky2=9 ! video/x-raw,format=GRAY8,width=65,height=47 \
    ! jpegenc ! filesink location=upright.jpg
  head -c 2 upright.jpg >turned.jpg
  printf '\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0' >>turned.jpg
  tail -c +3 upright.jpg >>turned.jpg
  "$player" -q -o turned.png turned.jpg mask=identity && "$player" -q -o upright.png upright.jpg mask=identity && rgb_of turned.png turned.raw &&
    rgb_of upright.png want.raw videoflip video-direction=90r ! && [ -s turned.raw ] && cmp turned.raw want.raw
}
refuses_precision() { # the decoder says why
  LC_ALL=C sed 's/\xff\xc0\x00\x11\x08/\xff\xc0\x00\x11\x0c/' photos/b.JPG >deep.jpg
  refuses "Unsupported JPEG data precision 12" deep.jpg -o refused.png
}
into_a_pipe() {
  mkfifo pipe.png
  "$player" -q -o pipe.png "$clip" mask=sobel &
  timeout 60 cat pipe.png >read.png
  wait $! || return
  "$player" -q -o written.png "$clip" mask=sobel && [ -p pipe.png ] && cmp read.png written.png
}
gives_up_pipe() { # INPUT: whose reader waits; the second Ctrl-C at the latest ends the program
  local program code=0
  rm -f stuck.png
  mkfifo stuck.png
  exec 3<>stuck.png
  "$player" -q -o stuck.png "$1" mask=sobel &
  program=$!
  head -c 1 <&3 >first  # it has begun to write more than the pipe holds
  for _ in {1..10}; do
    ! kill -INT "$program" 2>/dev/null || sleep 0.5
  done
  ! kill -KILL "$program" 2>/dev/null || echo "it still runs"
  exec 3<&-
  wait "$program" || code=$?
  echo "exit code $code"
  [ "$code" = 130 ]
}
keeps_originals() {
  cp -r photos originals
  refuses "the output is the input" -o photos/a.png photos/a.png && refuses "the output is the input" -o ./photos photos &&
    refuses "the output is the input" -o photos/a.png "file://$PWD/photos/a.png" &&
    diff -r photos originals
}
of_any_name() { # the decoder follows what is in the file
  cp photos/a.png photo.jpg
  cp photos/b.JPG scan.png
  "$player" -q -o named.png photo.jpg mask=gauss sigma=3 && cmp a.png named.png &&
    "$player" -q -o scanned.png scan.png mask=box3 && "$player" -q -o want.png photos/b.JPG mask=box3 && cmp want.png scanned.png ||
    return
  printf 'RIFF1234WEBPVP8 ' >web.jpg
  refuses "neither a PNG nor a JPEG picture" web.jpg -o refused.png
}
of_uri() {
  "$player" -q -o of-uri.png "file://$PWD/photos/a.png" mask=gauss sigma=3 && cmp a.png of-uri.png &&
    refuses "a picture is read from a file" http://localhost:9/a.png -o refused.png
}
writes_through_link() {
  mkdir -p elsewhere
  echo earlier >elsewhere/linked.png
  ln -sf elsewhere/linked.png link.png
  "$player" -q -o link.png photos/a.png mask=gauss sigma=3 && [ -L link.png ] && cmp a.png elsewhere/linked.png
}
to_jpeg() { "$player" -q -o a.jpg photos/a.png mask=gauss && rgb_of a.jpg a.raw && [ "$(stat -c %s a.raw)" = $((196 * 47)) ]; }
filters_folder() {
  "$player" -q -o filtered photos mask=gauss sigma=3 && [ "$(cd filtered && echo ./*)" = "./a.png ./b.JPG ./c.png" ] &&
    cmp a.png filtered/a.png && cmp a.png filtered/c.png
}
is_interrupted_among_pictures() { # at the first one, and at the first one of another kind
  local name code program done=0
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,width=640,height=480 ! jpegenc ! filesink location=large.jpg
  for name in a.jpg c.jpg; do
    rm -rf slow stopped
    mkdir slow && cp photos/a.png slow/b.png && cp large.jpg "slow/$name"
    "$player" -q -o stopped slow mask=median size=31 iterations=1000 backend=cpu n-threads=1 >among &
    program=$! code=0
    has_begun "$program" "stopped/$name" && sleep 1 && kill -INT "$program" || return
    wait "$program" || code=$?
    echo "exit code $code, $(cat among), $(cd stopped && echo ./*)"
    [ "$code" = 130 ] && grep -q "^$done of 2 pictures" among && [ ! -e "stopped/$name" ] && no_part || return
    done=1
  done
}
keeps_depth() { # 16 bits of grey, and alpha
  local format file
  for format in GRAY16_BE RGBA; do
    gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=solid-color foreground-color=0x40ff8020 \
      ! "video/x-raw,format=$format,width=65,height=47" ! pngenc ! filesink location=deep.png &&
      "$player" -q -o kept.png deep.png mask=identity || return
    for file in deep kept; do
      gst-launch-1.0 -q filesrc location="$file.png" ! pngdec ! "video/x-raw,format=$format" ! filesink location="$file.raw" || return
    done
    cmp deep.raw kept.raw || return
  done
}
reads_deep_colors() { # 16 bits of colour become 8, and alpha stays. The gdk-pixbuf of newer systems rounds some up.
  local format
  python3 - <<'END'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for name, kind, channels in ("RGB", 2, 3), ("RGBA", 6, 4):
    rows = [bytes((7 * x + 50 * y + 31) % 256 for x in range(4 * channels)) for y in range(4)]
    deep = b"".join(b"\0" + bytes(b for sample in row for b in (sample, sample)) for row in rows)
    with open(name + ".png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">2I5B", 4, 4, 16, kind, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(deep)) + chunk(b"IEND", b""))
    with open(name + ".raw", "wb") as file:
        file.write(b"".join(rows))
END
  for format in RGB RGBA; do
    "$player" -q -o kept.png "$format.png" mask=identity &&
      gst-launch-1.0 -q filesrc location=kept.png ! pngdec ! "video/x-raw,format=$format" ! filesink location=kept.raw &&
      python3 -c "import sys; a, b = (open(f, 'rb').read() for f in sys.argv[1:3])
sys.exit(len(a) != len(b) or any(y - x not in (0, int(sys.argv[3])) for x, y in zip(a, b)))" \
        "$format.raw" kept.raw "$([ "$format" = RGB ] && echo 0 || echo 1)" || return
  done
  head -c -15 RGB.png >short.png
  refuses "short.png: the picture is not complete" -o kept.png short.png mask=identity
}
damaged_in_folder() { # other pictures are filtered, and the exit code reports the failure
  echo nonsense >photos/b.png
  local code=0
  "$player" -q -o mended photos mask=gauss 2>damaged || code=$?
  cat damaged
  [ "$code" = 1 ] && grep -q 'photos/b.png' damaged && [ "$(cd mended && echo ./*)" = "./a.png ./b.JPG ./c.png" ]
}

no_h264="no encoder for H.264 (gstreamer1.0-plugins-ugly)"
for element in x264enc openh264enc; do ! gst-inspect-1.0 --exists $element || no_h264=; done
no_aac="no encoder for AAC (gstreamer1.0-plugins-bad)"
for element in voaacenc fdkaacenc avenc_aac; do ! gst-inspect-1.0 --exists $element || no_aac=; done
no_pixbuf=
gst-inspect-1.0 --exists gdkpixbufdec || no_pixbuf="no gdkpixbufdec (gstreamer1.0-plugins-good)"
no_jpegparse=
gst-inspect-1.0 --exists jpegparse || no_jpegparse="no jpegparse (gstreamer1.0-plugins-bad)"
no_bmp=
gst-inspect-1.0 --exists avenc_bmp || no_bmp="no avenc_bmp (gstreamer1.0-libav)"
no_y4m=
gst-inspect-1.0 --exists y4mdec || no_y4m="no y4mdec (gstreamer1.0-plugins-bad)"
no_window=
command -v Xvfb >/dev/null || no_window="no Xvfb (xvfb)"
gst-inspect-1.0 --exists ximagesink || no_window="no ximagesink (gstreamer1.0-x)"
make_clip
make_pictures

echo "1..81"
expect "a video" video plain.webm
expect "a property that changes with time" video animated.webm --animate=sigma=0.5:8
expect "its frames differ" differ plain.webm.frames animated.webm.frames
expect "its first frames too" animates_all
expect "a picture" picture
expect_unless "$no_y4m" "a picture of bare frames" picture_of_bare
expect "a live source" of_live_source
expect "a live source that fails" refuses_dead_source
expect "a missing file" refuses "nothing-there" nothing-there.mp4
expect "a protocol without a source" names_the_missing
expect "a file without video" refuses "decode" "$self"
expect "a file with sound only" refuses_sound
expect_unless "$no_bmp" "a bitmap" converts_bmp
expect "a video without a decoder" refuses_video
head -c 4000 "$clip" >head.webm
G_DEBUG=fatal-criticals expect "a file that is cut off before its first frame" refuses "no frame came through" head.webm
expect "examples in --help" helps
expect "an unknown property" refuses "no property msk; gst-inspect-1.0 cudaconv lists them; did you mean mask?" "$clip" msk=sobel
expect "an unknown value" refuses "mask=gaussian is not a value of that property; these are: identity box3" \
  "$clip" mask=gaussian
expect "and a name that is near" refuses " bilateral; did you mean gauss?" "$clip" mask=gaussian
expect "no display" in_no_window "no display" "$clip" mask=sobel
expect "no display, but first an unknown property" in_no_window "no property msk" "$clip" msk=sobel
expect "WebM" converts converted.webm
expect "the sound does not change" keeps_sound_as_it_is
expect "it names the streams that a container does not support" says_what_is_left_out
expect "fields into WebM" says_what_is_interlaced
expect "alpha into WebM" says_that_alpha_is_left_out
expect "subtitles that WebM does not have" leaves_ass_out
expect "Matroska" converts converted.mkv
expect "its sound in FLAC" keeps_flac
expect "its subtitles" keeps_text converted.mkv
expect "its title" has_title converted.mkv
expect_unless "$no_h264$no_aac" "MP4" converts converted.mp4
expect_unless "$no_h264$no_aac" "surround sound into MP4" mixes_surround
expect_unless "$no_h264" "an odd size into MP4" takes_even_sizes
expect_unless "$no_h264" "an odd size into Matroska" takes_odd_sizes
expect_unless "$no_h264" "fields into H.264" takes_fields
expect "a size that changes" takes_new_sizes
expect "a clip by a turned camera into WebM" takes_turned_clip turned.webm
expect_unless "$no_h264" "into MP4" takes_turned_clip turned.mp4
expect_unless "$no_h264" "into Matroska" takes_turned_clip turned.mkv
expect_unless "$no_h264$no_aac" "an interrupted MP4" is_interrupted cut.mp4
expect "an interrupted WebM" is_interrupted cut.webm
expect "a second interruption" is_given_up none.webm
expect_unless "$no_h264" "an interruption before the first frame" is_interrupted_early early.mp4 INT
expect "a termination before the first frame" is_interrupted_early early.webm TERM
expect "Ctrl-\\ and a limit of time" is_ended
expect "a terminal that closes" hangs_up hung.webm
expect "output that nobody reads" loses_its_reader unread.webm
no_terminal=
python3 -c 'import pty; pty.openpty()' 2>/dev/null || no_terminal="no pseudo-terminal can be made"
expect_unless "$no_terminal" "a narrow terminal" fits_terminal
expect "a name with a colon" named "scene:1"
expect "values that a property does not take" refuses_values
expect "options that are out of range" refuses_numbers
expect "options that have no effect" refuses_at
expect "a preset without a name" refuses "--preset has an empty value" --preset= "$clip"
expect "an output without a name" in_no_window "--output has an empty value" -o '' "$clip"
expect "an animation of such values" refuses_to_animate
expect_unless "$no_window" "a window" in_window
expect "a picture in, a picture out" filters_picture
expect "a picture of another kind than its name says" of_any_name
expect "a picture by its URI" of_uri
expect "a picture to where a link points" writes_through_link
expect "a JPEG" to_jpeg
expect "16-bit grey and alpha in a PNG" keeps_depth
expect_unless "$no_pixbuf" "16-bit colour in a PNG" reads_deep_colors
expect_unless "$no_jpegparse" "a photo by a turned camera" turns_photo
expect "an animated PNG" tells_of_animation
expect "a JPEG that its decoder does not support" refuses_precision
expect "a picture into a pipe" into_a_pipe
gst-launch-1.0 -q videotestsrc num-buffers=1 pattern=snow ! video/x-raw,width=640,height=480 ! pngenc ! filesink location=snow.png
expect "a picture into a pipe that nobody reads" gives_up_pipe snow.png
expect "a picture of a video into it" gives_up_pipe "$clip"
expect "a picture and a folder onto themselves" keeps_originals
expect "a folder of pictures" filters_folder
expect "an interruption among them" is_interrupted_among_pictures
expect "a damaged one among them" damaged_in_folder
expect "a preset" same_as "mask=unsharp sigma=1.5 amount=1.5 chroma=copy" --preset="Sharpen scans"
expect "a preset, and a property that is set after it" same_as "mask=unsharp sigma=1.5 amount=3 chroma=copy" \
  --preset="Sharpen scans" amount=3
expect "a preset that also has a part for roihold" same_as "mask=fill" --preset="Portrait privacy strict"
expect "its part, with another property" same_as "mask=sobel roi-meta=true" --preset="Portrait privacy strict" \
  mask=sobel unmarked=pass
expect "a property of roihold" same_as "mask=sobel" mask=sobel roi-meta=true unmarked=mark
expect "a preset that is not there" refuses "there is no preset Shine; these are: Denoise bilateral, " \
  "$clip" --preset=Shine
expect "a filter that cannot be carried out" refuses "coefficients" "$clip" mask=custom coefficients="1 2; x"
finish
