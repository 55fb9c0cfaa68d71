#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Converts inputs whose streams come late, stop, change or are replaced:
# run-conversion.sh CUDACONV_PLAY CUDACONV_PRIVACY FOLDER_OF_THIS_SCRIPT files|network
#
# What comes over the network is recorded in time, which a busy machine cannot.
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder. Tests are skipped without the
# programs and the elements that make the inputs.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

player=$(realpath "$1")
privacy=$(realpath "$2")
tools=$(realpath "$3")
part=$4
scratch=$(mktemp -d)
servers=()
stop_servers() { [ ${#servers[@]} = 0 ] || kill "${servers[@]}" 2>/dev/null || true; }
trap 'stop_servers; rm -rf "$scratch"' EXIT
cd "$scratch"

python=$(python_with GstRtspServer)

# Starts a server, and sets `port` to its port: serve COMMAND...
serve() {
  rm -f served
  "$@" >served 2>served.log &
  servers+=($!)
  for _ in {1..100}; do
    [ ! -s served ] || break
    sleep 0.1
  done
  port=$(cat served)
}

# Starts a test in a folder of its own: start REASON NAME [COMMAND...], where NAME is the command if there is no other.
# A test with a REASON is skipped. After `wait`, passed NAME shows its output and succeeds if it did.
started=()
start() {
  [ -z "$1" ] || return 0
  mkdir "$2"
  (cd "$2" && "${@:$(($# > 2 ? 3 : 2))}" && touch passed) >"$2.log" 2>&1 </dev/null &
  started+=($!)
}
passed() { cat "$1.log" && [ -e "$1/passed" ]; }

# ---- What is in a file

demuxer_of() { case $1 in *.mp4) echo qtdemux ;; *) echo matroskademux ;; esac; }
# The coded frames of a file's first stream of a kind: coded FILE video|audio
coded() {
  rm -rf coded && mkdir coded
  timeout 60 gst-launch-1.0 -q filesrc location="$1" ! "$(demuxer_of "$1")" name=d "d.$2_0" ! queue \
    ! multifilesink location=coded/%05d </dev/null >/dev/null
  find coded -type f | wc -l
}
# The frames that a decoder makes of the video, each as RGB in its own file: rgb/
decode() { # FILE
  rm -rf rgb && mkdir rgb
  timeout 60 gst-launch-1.0 -q uridecodebin uri="file://$PWD/$1" caps="video/x-raw(ANY)" expose-all-streams=false \
    ! videoconvert ! video/x-raw,format=RGB ! multifilesink location=rgb/%05d </dev/null >/dev/null
  find rgb -type f | wc -l
}
# Milliseconds of sound: lasts FILE
lasts() {
  timeout 60 gst-launch-1.0 -q uridecodebin uri="file://$PWD/$1" caps=audio/x-raw expose-all-streams=false \
    ! audioconvert ! audioresample ! audio/x-raw,format=S16LE,rate=8000,channels=1 ! filesink location=sound.raw </dev/null
  echo $(($(stat -c %s sound.raw) / 16))
}
# has FILE FRAMES LEAST MOST: FRAMES frames can be decoded, and the sound lasts from LEAST to MOST milliseconds
has() {
  local frames sound=0
  frames=$(decode "$1")
  [ "$4" = 0 ] || sound=$(lasts "$1")
  echo "$1: $frames frames, $sound ms of sound"
  [ "$frames" = "$2" ] && [ "$sound" -ge "$3" ] && [ "$sound" -le "$4" ] && no_part
}
# converts FRAMES LEAST MOST FILE INPUT: ends by itself, without an error
converts() {
  rm -f "$4"
  timeout --foreground -k 1 60 "$player" -q -o "$4" "$5" mask=box3 2>said || { cat said && return 1; }
  cat said
  has "$4" "$1" "$2" "$3"
}

# ---- Streams that are replaced

ogg() { # FILE PATTERN WIDTH HEIGHT [PIXELS]: two seconds with sound
  gst-launch-1.0 -q oggmux name=m ! filesink location="$1" videotestsrc num-buffers=50 pattern="$2" \
    ! "video/x-raw,width=$3,height=$4,framerate=25/1,pixel-aspect-ratio=${5:-1/1}" ! theoraenc ! queue ! m. \
    audiotestsrc num-buffers=86 samplesperbuffer=1024 ! audio/x-raw,rate=44100,channels=2 ! vorbisenc ! queue ! m. </dev/null
}
mute_ogg() { # FILE: one second
  gst-launch-1.0 -q videotestsrc num-buffers=25 ! video/x-raw,width=160,height=120,framerate=25/1 ! theoraenc ! oggmux \
    ! filesink location="$1" </dev/null
}
make_parts() {
  ogg ball.ogv ball 160 120
  ogg smpte.ogv smpte 160 120
  ogg wide.ogv smpte 160 120 4/3
  mute_ogg mute.ogv
  cat ball.ogv smpte.ogv >chain.ogv
  cat ball.ogv wide.ogv >wider.ogv
  cat ball.ogv mute.ogv >mutes.ogv
  cat mute.ogv ball.ogv >sounds.ogv
}
# The first pixel of a decoded frame: black where the ball is, grey in the bars
is_black() { [ "$(od -An -tu1 -N1 "rgb/$1")" -lt 40 ]; }
chained() { # FILE: both parts in their order, with all sound
  converts 100 3800 4200 "$1" chain.ogv && is_black 00000 && is_black 00049 && ! is_black 00050 && ! is_black 00099
}
pictures() { # of both parts, though decodebin does not seek there
  local at
  for at in 0.5 3.5; do
    timeout --foreground -k 1 60 "$player" -q -o at.png --at="$at" chain.ogv mask=identity || return
    [ "$(decode at.png)" = 1 ] || return
    if [ "$at" = 0.5 ]; then is_black 00000; else ! is_black 00000; fi || return
  done
  timeout --foreground -k 1 60 "$player" -q -o at.png chain.ogv mask=identity # in the middle
}
counts() { # FRAMES FILE: into nothing
  timeout --foreground -k 1 60 "$player" -o none "$2" mask=box3 >said 2>&1 || { cat said && return 1; }
  cat said
  grep -q " $1 frames" said
}
counts_both() { # parts, with sound and without
  mute_ogg mute2.ogv
  cat mute.ogv mute2.ogv >silence.ogv
  counts 6 larger.ogv && counts 50 silence.ogv
}
ends_with_video() { # where the second part has only sound
  gst-launch-1.0 -q audiotestsrc num-buffers=43 ! vorbisenc ! oggmux ! filesink location=sound.ogg </dev/null
  cat ball.ogv sound.ogg >blind.ogv
  counts 50 blind.ogv && grep -q "the input goes on without the video" said || return
  ! "$player" -q -o none sound.ogg 2>said && cat said && grep -q "there is no video in it" said
}
# A region of a white picture, in bare frames: it stays where it is in the picture, which becomes twice as large.
follows_size() { # COMMAND...
  local size
  for size in 160x120 320x240; do
    gst-launch-1.0 -q oggmux name=m ! filesink location="$size.ogv" videotestsrc num-buffers=3 pattern=white \
      ! "video/x-raw,width=${size%x*},height=${size#*x},framerate=25/1" ! theoraenc ! queue ! m. \
      audiotestsrc num-buffers=6 samplesperbuffer=882 ! audio/x-raw,rate=44100 ! vorbisenc ! queue ! m. </dev/null
  done
  cat 160x120.ogv 320x240.ogv >larger.ogv
  rm -f larger.rgb
  timeout --foreground -k 1 60 "$@" -o larger.rgb larger.ogv --region=40,30,51,61 mask=fill roi-grow=0 || return
  python3 - <<'END'
data, at = open("larger.rgb", "rb").read(), 0
for scale in 3 * [1] + 3 * [2]:
    for y in range(120 * scale):
        for x in range(160 * scale):
            hidden = 40 <= x // scale < 91 and 30 <= y // scale < 91
            assert (data[at] == 0) if hidden else (data[at] > 200), (scale, x, y, data[at])
            at += 3
assert at == len(data), (at, len(data))
END
}
ends_its_sound() { converts 75 1800 2200 "$1" mutes.ogv && grep -q "the input goes on without" said; }
leaves_late_sound_out() { converts 75 0 0 "$1" sounds.ogv && grep -q "which begins after the other streams, is left out" said; }
# Two seconds with sound: transport FILE VIDEO SOUND WIDTH HEIGHT CAPS. VIDEO and SOUND identify the streams.
transport() {
  gst-launch-1.0 -q mpegtsmux name=m ! filesink location="$1" videotestsrc num-buffers=50 \
    ! "video/x-raw,width=$4,height=$5,$6" ! x264enc speed-preset=ultrafast key-int-max=25 ! h264parse ! queue \
    ! "m.sink_$2" audiotestsrc num-buffers=86 samplesperbuffer=1024 ! audio/x-raw,rate=44100,channels=2 ! voaacenc \
    ! aacparse ! queue ! "m.sink_$3" </dev/null
}
new_program() { # SUFFIX: other streams, in another size
  transport first.ts 65 66 160 120 framerate=25/1 && transport second.ts 75 76 320 240 framerate=25/1 || return
  cat first.ts second.ts >program.ts
  local output
  for output in program.{webm,mkv,mp4}; do converts 100 3800 4200 "$output" program.ts || return; done
}
# The same streams change: changes WIDTH HEIGHT CAPS. Some versions of tsdemux lose frames where the parts meet.
changes() {
  transport before.ts 65 66 160 120 framerate=25/1,pixel-aspect-ratio=16/15 && transport after.ts 65 66 "$1" "$2" "$3" || return
  cat before.ts after.ts >changing.ts
  local frames output
  frames=$(decode changing.ts)
  [ "$frames" -ge 70 ] || return
  for output in changed.{webm,mkv,mp4}; do converts "$frames" 3000 4300 "$output" changing.ts || return; done
}
keeps_shape() { # of a video that becomes wider: black bars above and below, in H.264 and VP8
  local output
  for output in wider.{webm,mkv,mp4}; do
    converts 100 3800 4200 "$output" wider.ogv && grep -q "scaled to its first size, 160x120" said || return
    [ "$(stat -c %s rgb/00099)" = $((160 * 120 * 3)) ] && is_black 00099 &&
      [ "$(od -An -tu1 -N1 -j $(((60 * 160) * 3)) rgb/00099)" -gt 100 ] || return
  done
}

# ---- Network

# record SECONDS SIGNAL OUTPUT... -- COMMAND...: writes each output at the same time, until the signal ends the file. A
# busy machine may take some seconds for it.
record() {
  local output outputs=() code seconds=$1 signal=$2 failed=0 program programs=()
  shift 2
  while [ "$1" != -- ]; do
    outputs+=("$1")
    shift
  done
  shift
  for output in "${outputs[@]}"; do
    rm -f "$output"
    "$@" -q -o "$output" >"$output.said" 2>&1 &
    programs+=($!)
  done
  # A busy machine starts late.
  for _ in {1..120}; do
    [ "$(find . -name '*.part' -size +1k | wc -l)" -lt "${wait_for_parts:-0}" ] ||
      { [ -n "${wait_for_text:-}" ] && ! grep -q "$wait_for_text" ./*.said; } || break
    sleep 0.5
  done
  sleep "$seconds"
  for program in "${!programs[@]}"; do
    output=${outputs[$program]} program=${programs[$program]} code=0
    kill "-$signal" "$program" 2>/dev/null || failed=1
    timeout 20 tail --pid="$program" -f /dev/null || failed=1
    kill -KILL "$program" 2>/dev/null || true
    wait "$program" || code=$?
    echo "$output: exit code $code"
    cat "$output.said"
    [ "$code" = 130 ] || failed=1
  done
  [ "$failed" = 0 ] && no_part
}
# Whether at least FRAMES frames of a file can be decoded, and it has sound: holds FILE FRAMES
holds() {
  local frames sound
  frames=$(decode "$1") sound=$(coded "$1" audio)
  echo "$1: $frames frames, $sound buffers of sound"
  [ "$frames" -ge "$2" ] && [ "$sound" -ge 5 ]
}
camera() { # PATH PROGRAM...
  local output
  wait_for_parts=3 record 7 INT camera.{mkv,webm,mp4} -- "${@:2}" "rtsp://127.0.0.1:$cameras/$1" || return
  for output in camera.{mkv,webm,mp4}; do holds "$output" 12 || return; done
}
mute_camera() { # ten seconds later it is recorded without sound
  wait_for_text="is left out" record 5 INT mute.mkv -- "$player" "rtsp://127.0.0.1:$cameras/mute" &&
    grep -q "is left out" mute.mkv.said && [ "$(coded mute.mkv video)" -ge 25 ]
}
stalls() { # whatever the input does, a signal ends the file
  local output
  with_sound "$scratch/snow.mkv" 200 || return
  record 4 TERM stalled.{webm,mkv,mp4} none -- "$player" "http://127.0.0.1:$stalling/snow.mkv" &&
    record 4 INT hidden.{webm,mkv,mp4} -- "$privacy" --region=9,9,20,20 "http://127.0.0.1:$stalling/snow.mkv" || return
  for output in {stalled,hidden}.{webm,mkv,mp4}; do holds "$output" 12 || return; done
}
with_sound() { # FILE FRAMES
  gst-launch-1.0 -q matroskamux name=m streamable=true ! filesink location="$1" videotestsrc num-buffers="$2" pattern=snow \
    ! video/x-raw,width=160,height=120,framerate=25/1 ! theoraenc ! queue ! m. audiotestsrc num-buffers=$(($2 * 2)) \
    samplesperbuffer=882 ! audio/x-raw,rate=44100,channels=2 ! vorbisenc ! queue ! m. </dev/null
}
make_segments() { # with FFmpeg: a DASH presentation of two periods, and HLS in three sizes
  local i
  for i in 1 2; do
    ffmpeg -v error -f lavfi -i "testsrc2=s=$((160 * i))x120:r=25:d=2" -f lavfi -i "sine=$((440 * i)):d=2" -c:v libx264 -g 25 -c:a aac \
      -seg_duration 1 -use_template 1 -use_timeline 0 -init_seg_name "p$i-init-\$RepresentationID\$.m4s" \
      -media_seg_name "p$i-\$RepresentationID\$-\$Number\$.m4s" -f dash "p$i.mpd" </dev/null || return
  done
  python3 - <<'EOF'
import re
texts = [open(f"p{i}.mpd").read() for i in (1, 2)]
periods = [re.search(r"<Period.*?</Period>", text, re.S).group(0) for text in texts]
periods = [re.sub("<Period[^>]*>", f'<Period id="{i}" start="PT{2 * i}S" duration="PT2S">', p) for i, p in enumerate(periods)]
head = re.sub('mediaPresentationDuration="[^"]*"', 'mediaPresentationDuration="PT4S"', texts[0][: texts[0].index("<Period")])
open("periods.mpd", "w").write(head + "\n".join(periods) + "\n</MPD>\n")
EOF
  ffmpeg -v error -f lavfi -i testsrc2=s=640x480:r=25:d=12 -f lavfi -i sine=440:d=12 \
    -filter_complex "[0:v]split=3[a][b0][c0];[b0]scale=320x240[b];[c0]scale=160x120[c]" \
    -map "[a]" -map 1:a -map "[b]" -map 1:a -map "[c]" -map 1:a -c:v libx264 -preset veryfast -g 25 -keyint_min 25 -sc_threshold 0 \
    -b:v:0 3000k -b:v:1 600k -b:v:2 150k -c:a aac -f hls -hls_time 1 -hls_playlist_type vod \
    -var_stream_map "v:0,a:0 v:1,a:1 v:2,a:2" -master_pl_name master.m3u8 -hls_segment_filename "v%v_%03d.ts" v%v.m3u8 </dev/null
}
presentations() { # of two periods
  local output
  for output in periods.{webm,mkv,mp4}; do converts 100 3800 4300 "$output" "http://127.0.0.1:$swinging/periods.mpd" || return; done
  counts 100 "http://127.0.0.1:$swinging/periods.mpd" || return
  with_sound at.mkv 50 # a picture of it: this server sends files only from their beginning
  "$player" -q -o at.png --at=1.5 "http://127.0.0.1:$swinging/presentations/at.mkv" mask=box3
}
swings() { # among the sizes of a master playlist
  converts 300 11800 12500 swings.mp4 "http://127.0.0.1:$swinging/master.m3u8" &&
    grep -q "scaled to its first size" said
}

# ---- Files and names

plays_once() { # what a GIF says of rounds does not count
  local file decoder ranks
  python3 "$tools/make-gif.py" endless.gif 0
  python3 "$tools/make-gif.py" twice.gif 2
  python3 "$tools/make-gif.py" plain.gif
  for decoder in avdec_gif gifdec; do
    gst-inspect-1.0 --exists "$decoder" || continue
    ranks=gifdec:NONE
    [ "$decoder" = avdec_gif ] || ranks=avdec_gif:NONE,avdemux_gif:NONE
    for file in endless twice plain; do
      rm -f gif.webm
      GST_PLUGIN_FEATURE_RANK=$ranks timeout --foreground 20 "$player" -q -o gif.webm "$file.gif" mask=identity &&
        [ "$(decode gif.webm)" = 3 ] && times_of gif.webm | grep -x "0 100 300" || return
    done
    rm -f gif.png
    GST_PLUGIN_FEATURE_RANK=$ranks timeout --foreground 20 "$player" -q -o gif.png plain.gif mask=identity &&
      [ -s gif.png ] || return
  done
}
keeps_fast_sound() { # of which qtdemux gives each part the same time
  ffmpeg -v error -y -f lavfi -i testsrc=s=64x48:r=25:d=1 -f lavfi -i sine=r=96000:d=1 -c:v mpeg4 -c:a pcm_s16le fast.mov </dev/null &&
    converts 25 900 1100 "fast.$1" fast.mov
}
# cut.mp4, of which seven of nine seconds are not shown; near.mp4, of which 1.5 s are not, for streams; and cut.mov,
# with key frames alone
make_cut_clips() {
  local video
  for video in "libx264 -bf 0 cut.mp4" "mjpeg cut.mov"; do
    # shellcheck disable=SC2086  # several words
    ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=25:d=10 -f lavfi -i sine=d=10 -c:a aac -c:v ${video% *} "whole${video##* }" </dev/null
    ffmpeg -v error -ss 7 -i "whole${video##* }" -t 2 -c copy "${video##* }" </dev/null
  done
  ffmpeg -v error -ss 1.52 -i wholecut.mp4 -t 2 -c copy near.mp4 </dev/null
  # The edit list of a camera begins where it shows something: here all media are there, and nine seconds are left out.
  python3 - <<'END'
import re, struct
data = open("wholecut.mov", "rb").read()
def shorter(box):  # lasts a second, in units of a millisecond
    at = box.start() + 12
    return data[box.start():at] + struct.pack(">Ii", 1000, 9 * scales.pop(0))
scales = [struct.unpack(">I", data[at.start() + 16:at.start() + 20])[0] for at in re.finditer(b"mdhd", data)]
data = re.sub(rb"(?s)elst.{16}", shorter, data)
at = data.index(b"mvhd") + 20
open("edited.mov", "wb").write(data[:at] + struct.pack(">I", 1000) + data[at + 4:])
END
}
cut_clips() { # keep their frames and their sound, to the end
  make_cut_clips && converts 50 1900 2100 cut.mkv cut.mp4 && converts 50 1900 2100 cut.webm cut.mov &&
    converts 50 1900 2100 cut.mkv fd://0 <near.mp4 && converts 50 1900 2100 cut.mkv fd://0 < <(cat near.mp4) &&
    converts 25 900 1100 edited.webm edited.mov && timeout --foreground 60 "$player" -q -o edited.png --at=0.9 edited.mov mask=box3
}
cut_clip_in_python() { # COMMAND...
  local input
  for input in cut.mp4 fd://0; do
    "$@" -o cut.rgb "$input" --region=9,9,20,20 <near.mp4 && [ "$(stat -c %s cut.rgb)" = $((50 * 64 * 48 * 3)) ] || return
  done
}
keeps_short_streams() { # of a tenth of the whole: sound, and video, also in Python
  ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=25:d=6 -f lavfi -i sine=d=0.6 -c:v mpeg4 -c:a aac short.mp4 </dev/null
  converts 150 550 650 short.mkv short.mp4 || return
  ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=25:d=0.6 -f lavfi -i sine=d=6 -c:v mpeg4 -c:a aac brief.mp4 </dev/null
  converts 15 5900 6100 brief.mkv brief.mp4 || return
  [ -n "$no_script" ] || { "$(python_with Gst)" "$tools/../../pipelines/cudaconv-privacy.py" -o brief.rgb brief.mp4 \
    --region=9,9,20,20 && [ "$(stat -c %s brief.rgb)" = $((15 * 64 * 48 * 3)) ]; }
}
heard() { # FILE: its sound from the time 0 on, in heard.raw: 8000 samples a second
  ffmpeg -v error -y -i "$1" -vn -af aresample=async=1:first_pts=0 -ar 8000 -ac 1 -f s16le heard.raw </dev/null
}
sound_in_time() { # that begins after a second, also where AAC has priming before it
  local rank
  ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25:d=2 -f lavfi -i "aevalsrc='gte(t,1)*sin(2000*PI*t)':d=2:s=44100" \
    -c:v mpeg4 -c:a pcm_s16le sound.mov </dev/null
  for rank in voaacenc:300 avenc_aac:300; do
    ! gst-inspect-1.0 --exists "${rank%:*}" || GST_PLUGIN_FEATURE_RANK=$rank converts 50 1800 2100 sound.mp4 sound.mov || return
    heard sound.mp4 && /usr/bin/python3 - <<'END' || return
import array
loud = [i / 8 for i, sample in enumerate(array.array("h", open("heard.raw", "rb").read())) if abs(sample) > 8000]
print("the sound is from", loud[0], "to", loud[-1], "ms")
assert abs(loud[0] - 1000) < 5 and abs(loud[-1] - 2000) < 5
END
  done
}
whole_opus() { # of which players skip no sound but what the encoder has put before it
  gst-launch-1.0 -q webmmux name=m ! filesink location=opus.webm videotestsrc num-buffers=25 ! video/x-raw,framerate=25/1 ! vp8enc \
    ! queue ! m. audiotestsrc num-buffers=50 samplesperbuffer=960 ! audio/x-raw,rate=48000 ! opusenc ! queue ! m. </dev/null
  converts 25 950 1050 opus.mp4 opus.webm && ffmpeg -v error -y -i opus.mp4 -vn -ar 8000 -ac 1 -f s16le heard.raw </dev/null &&
    [ "$(stat -c %s heard.raw)" -gt $((2 * 7800)) ] || return
  ffmpeg -v error -i opus.webm -c:v theora -c:a copy opus.ogv </dev/null # Ogg has headers before the sound
  converts 25 950 1050 ogg.mp4 opus.ogv && [ "$(shown ogg.mp4 a)" = "$(shown opus.ogv a)" ]
}
same_aac() { # of a transport stream: it is not encoded again
  local suffix
  transport plain.ts 65 66 160 120 framerate=25/1
  for suffix in mp4 mkv; do
    converts 50 1900 2100 "plain.$suffix" plain.ts && ffmpeg -v error -y -i "plain.$suffix" -vn -c copy after.aac </dev/null &&
      ffmpeg -v error -y -i plain.ts -vn -c copy before.aac </dev/null &&
      /usr/bin/python3 -c 'a, b = (open(f, "rb").read() for f in ("before.aac", "after.aac")); assert b in a and len(b) > 0.9 * len(a)' ||
      return
  done
}
keeps_first_sound() { # which tsdemux puts 2 us before the video: 44 packets, after one that is 23 ms before
  # A packet of AC-3 whose first 5 ms are priming, which an edit list leaves out; and FLAC, whose headers differ.
  ffmpeg -v error -f lavfi -i testsrc2=s=160x120:r=25:d=1 -f lavfi -i sine=440:d=1:r=48000 -map 0 -map 1 -map 1 -c:v mpeg4 \
    -c:a:0 ac3 -c:a:1 flac -strict -2 begin.mp4 </dev/null
  converts 25 950 1050 begin.mkv begin.mp4 && [ "$(coded begin.mkv audio)" = 32 ] || return
  # Sound that .mp4 does not take is encoded, and begins with the video too.
  ffmpeg -v error -i begin.mp4 -map 0:v -map 0:a:0 -c:v copy -c:a eac3 other.mp4 </dev/null
  converts 25 950 1050 aac.mp4 other.mp4 &&
    ffprobe -v error -select_streams a -show_entries packet=pts -of csv=p=0 aac.mp4 >begins && cat begins && [ "$(sed -n 1p begins)" = 0 ] || return
  ffmpeg -v error -f lavfi -i testsrc2=s=160x120:r=25:d=1 -f lavfi -i sine=440:d=1 -c:v libx264 -bf 2 -c:a aac begin.ts </dev/null
  converts 25 950 1050 begin.mkv begin.ts && [ "$(coded begin.mkv audio)" = 44 ]
}
tells_of_programs() {
  local maps="-program st=0 -program st=1"
  # shellcheck disable=SC2086  # several words
  ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25:d=1 -f lavfi -i testsrc2=s=64x48:r=25:d=1 -map 0 -map 1 -c:v libx264 $maps two.ts </dev/null
  ffmpeg -v error -i two.ts -map 0:v:0 -c copy one.ts </dev/null
  "$player" -q -o two.mkv two.ts mask=box3 2>said && cat said && grep -q "the input has 2 programs: all but one are left out" said &&
    "$player" -q -o one.mkv one.ts mask=box3 2>said && cat said && ! grep programs said
}
shows_picture() { # as a video of one frame, which has a duration
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! jpegenc ! filesink location=one.jpg </dev/null
  "$player" -q -o one.mp4 one.jpg mask=box3 &&
    ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 one.mp4 | grep -x 1
}
shown() { ffprobe -v error -select_streams "$2" -show_entries packet=flags -of csv=p=0 "$1" | grep -cx '[^D]\+'; } # FILE STREAM
shows_last_frames() { # of a rate that varies, in .mp4: `D` are packets that players do not show
  ffmpeg -v error -f lavfi -i "testsrc=s=64x48:r=25:d=1,setpts='if(lt(N,10),N,3*N-20)/25/TB'" -fps_mode vfr -c:v mpeg4 vary.mkv </dev/null
  "$player" -q -o vary.mp4 vary.mkv mask=identity && [ "$(shown vary.mp4 v)" = 25 ]
}
shows_last_packets() { # without a duration: of a recording without a rate, and of AC-3
  gst-launch-1.0 -q videotestsrc num-buffers=10 ! video/x-raw,framerate=25/1 ! vp8enc \
    ! capssetter caps=video/x-vp8,framerate=0/1 ! webmmux ! filesink location=bare.webm </dev/null
  "$player" -q -o bare.mp4 bare.webm mask=identity && [ "$(shown bare.mp4 v)" = 10 ] || return
  ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25:d=1 -f lavfi -i sine=d=1:r=48000 -c:v mpeg4 -c:a ac3 last.mkv </dev/null
  "$player" -q -o last.mp4 last.mkv mask=identity && [ "$(shown last.mp4 a)" = "$(shown last.mkv a)" ]
}
refuses_animation() { # PROGRAM...: of a WebP, of which the beginning tells
  printf 'RIFF    WEBPVP8X    \2' >moves.webp
  ! "$@" -o moves.webm moves.webp 2>said && cat said &&
    grep -q "moves.webp is an animated WebP, which GStreamer does not decode" said
}
avi_times() { # with B frames
  ffmpeg -v error -f lavfi -i testsrc=s=64x48:r=25:d=1 -c:v mpeg4 -bf 2 -g 6 b.avi </dev/null
  "$player" -q -o b.webm b.avi mask=identity && times_of b.webm | tee times && [ "$(cat times)" = "$(seq -s ' ' 0 40 960)" ]
}
small() { # WIDTH HEIGHT
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! "video/x-raw,width=$1,height=$2" ! avenc_ffv1 ! matroskamux \
    ! filesink location=small.mkv </dev/null
}
tells_of_least_size() { # .webm takes frames from 16x16 on
  small 16 14 && "$player" -q -o small.webm small.mkv mask=identity 2>said && cat said &&
    grep -q "the video is scaled from 16x14 to 16x16" said && small 16 16 &&
    "$player" -q -o small.webm small.mkv mask=identity 2>said && cat said && ! grep "is scaled" said
}
names_decoder() {
  head -c 4000 "$1" >head.webm
  ! "$player" -q -o none head.webm 2>said && cat said && grep -q "no frame came through the filter: its decoder is vp8dec" said
}
refuses_torn_clip() { # each time, though decodebin may lose the demuxer's error
  local program
  gst-launch-1.0 -q videotestsrc num-buffers=10 ! jpegenc ! qtmux ! filesink location=whole.mov </dev/null
  head -c 20000 whole.mov >torn.mov
  for program in {"$player","$privacy --region=9,9,20,20"}" -q -o torn.webm torn.mov "{,,,,,}; do
    # shellcheck disable=SC2086  # several words
    ! timeout --foreground 20 $program 2>said || return
    cat said
    grep -q "no playable streams" said && no_part || return
  done
}
bare_rgb() { # with rows from top to bottom
  local name
  ffmpeg -v error -f lavfi -i testsrc2=size=64x48:rate=5:duration=1 -c:v rawvideo -pix_fmt bgr24 bare.avi </dev/null
  for name in bare.webm bare.mkv; do
    "$player" -q -o "$name" bare.avi mask=box3 && [ "$(decode "$name")" = 5 ] || return
  done
}
refuses_unread_frames() { # colours of a palette that is not there: nothing that chance has left in memory is written
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=BGR,width=64,height=16 ! avimux \
    ! filesink location=palette.avi </dev/null
  python3 - <<'END'
import struct
with open("palette.avi", "r+b") as clip:
    clip.seek(clip.read().index(b"strf") + 16)
    clip.write(struct.pack("<iHH", 48, 1, 8))  # height, planes, bits
END
  ! "$player" -q -o palette.webm palette.avi 2>said && cat said && grep -q "a frame cannot be read" said && no_part
}
keeps_links() { # also one whose file is not there yet
  ln -s later.webm link.webm
  ln -s "$PWD/link.webm" links.webm
  "$player" -q -o links.webm ball.ogv mask=box3 && [ -L links.webm ] && [ -L link.webm ] && [ -s later.webm ]
}
long_name() { # as long as file systems take it, in ASCII and in letters of two bytes
  local name
  for name in "$(printf 'x%.0s' {1..250}).webm" "$(printf 'é%.0s' {1..125}).webm" "$(printf 'x%.0s' {1..251}).png"; do
    "$player" -q -o "$name" ball.ogv mask=box3 && [ -s "$name" ] && no_part || return
    rm "$name"
  done
}
skips_pipe() { # in a folder of pictures
  mkdir -p album
  gst-launch-1.0 -q videotestsrc num-buffers=1 ! video/x-raw,width=64,height=48 ! pngenc ! filesink location=album/a.png </dev/null
  mkfifo album/b.png
  touch album/d.webp album/e.txt
  mkdir album/c.png
  timeout --foreground 30 "$player" -q -o filtered album mask=box3 >said 2>&1 || return
  cat said
  grep -q "1 of 1 pictures" said && grep -q "warning: album/b.png is no file" said &&
    grep -q "warning: what is no .png, .jpg or .jpeg in album is left out: 2 files" said && [ "$(ls filtered)" = a.png ]
}
without_h264() { # an encoder that is installed and does not work is not taken: VP8, or the packages of others
  local ranks=x264enc:NONE,openh264enc:NONE
  GST_PLUGIN_FEATURE_RANK=$ranks converts 25 0 0 without.mkv mute.ogv || return
  rm -f without.mp4
  GST_PLUGIN_FEATURE_RANK=$ranks "$player" -q -o without.mp4 mute.ogv mask=box3 2>said || grep -q "needs an encoder: install" said
}
keeps_permissions() { # of the file that is replaced: COMMAND...
  echo old >private.webm
  chmod 600 private.webm
  "$@" -o private.webm ball.ogv && [ "$(stat -c %a private.webm)" = 600 ] && [ "$(stat -c %s private.webm)" -gt 100 ]
}
keeps_protected() { # a file that may only be read: COMMAND...
  local drop=() # root may write all
  [ "$(id -u)" != 0 ] || drop=(setpriv --bounding-set=-dac_override)
  echo old >protected.webm
  chmod 444 protected.webm
  ! "${drop[@]}" "$@" -o protected.webm ball.ogv 2>said || return
  cat said
  grep -q "cannot write protected.webm: Permission denied" said && [ "$(cat protected.webm)" = old ] && no_part && rm -f protected.webm
}
too_large() { # for a limit of the system, as is GStreamer's registry
  ! (ulimit -f 1 && GST_REGISTRY_1_0=$PWD/fresh.bin "$player" -q -o large.webm ball.ogv mask=identity) 2>said && cat said &&
    grep -q "cannot write large.webm" said && grep -q "File too large" said && no_part
}
full_disk() { # names the file
  local name
  ln -s /dev/full full.webm
  ln -s /dev/full full.png
  for name in full.webm full.png; do
    ! "$player" -q -o "$name" ball.ogv mask=box3 2>said && cat said && grep -q "cannot write $name: No space left" said || return
  done
  ! "$player" -q -o full.png album/a.png mask=box3 2>said && cat said && grep -q "cannot write full.png: No space left" said
}
refuses_suffixes() { # before anything is written
  local name
  for name in x.avi x.mov x.ts x.m4v x.gif x.MOV x.ogv x.mpg x.flv x.wmv x.3gp x.mkv.bak x.webp x.rgb x webm; do
    ! "$player" -q -o "$name" ball.ogv mask=box3 >said 2>&1 && cat said && grep -q "ends in .webm, .mkv, .mp4, .png or .jpg, not as $name does" said &&
      [ ! -e "$name" ] && no_part || return
  done
}

# ---- What is missing here

needs() { local each; for each in "$@"; do gst-inspect-1.0 --exists "$each" || { echo "no element $each"; return; }; done; }
no_ogg=$(needs oggmux theoraenc theoradec vorbisenc)
no_h264=$(needs x264enc avdec_h264 voaacenc)
no_transport=$no_h264$(needs mpegtsmux tsdemux aacparse avdec_aac)
no_http=$no_ogg$(needs souphttpsrc)
no_camera=$no_h264$(needs rtspsrc rtph264pay mulawenc mulawdec)
[ -n "$python" ] || no_camera+="no GstRtspServer for Python (gir1.2-gst-rtsp-server-1.0)"
no_ffmpeg=
command -v ffmpeg >/dev/null || no_ffmpeg="no ffmpeg"
no_adaptive=$no_ffmpeg$no_h264$no_http$(needs dashdemux hlsdemux qtdemux)
no_gif=$(needs avdec_gif)
no_script=
[ -n "$(python_with Gst)" ] || no_script="no GStreamer bindings for Python"
no_drop=
[ "$(id -u)" != 0 ] || setpriv --bounding-set=-dac_override true 2>/dev/null || no_drop="root cannot drop its rights here"
no_full=
[ -c /dev/full ] || no_full="no /dev/full"

files() {
  echo "1..53"
  [ -n "$no_ogg" ] || make_parts
  local skip suffix
  for suffix in webm mkv mp4; do
    skip=$no_ogg
    [ "$suffix" = webm ] || skip=$no_ogg$no_h264
    expect_unless "$skip" "Ogg streams one after the other into .$suffix" chained "chained.$suffix"
  done
  expect_unless "$no_ogg" "into bare frames, of another size" follows_size "$privacy"
  expect_unless "$no_ogg" "into nothing" counts_both
  expect_unless "$no_ogg" "into pictures" pictures
  expect_unless "$no_ogg" "a second one without video" ends_with_video
  expect_unless "$no_ogg$no_script" "in Python" follows_size "$(python_with Gst)" "$tools/../../pipelines/cudaconv-privacy.py"
  expect_unless "$no_ogg" "a second one without sound" ends_its_sound mutes.webm
  expect_unless "$no_ogg$no_h264" "a second one without sound, into H.264" ends_its_sound mutes.mp4
  expect_unless "$no_ogg" "a second one with sound" leaves_late_sound_out sounds.webm
  expect_unless "$no_ogg$no_h264" "a second one with wider pixels" keeps_shape
  expect_unless "$no_transport" "a transport stream whose program changes" new_program
  expect_unless "$no_transport" "a broadcast that changes its aspect" changes 160 120 framerate=25/1,pixel-aspect-ratio=64/45
  expect_unless "$no_transport" "its size" changes 320 176 framerate=25/1,pixel-aspect-ratio=1/1
  expect_unless "$no_transport" "its rate" changes 160 120 framerate=50/1,pixel-aspect-ratio=16/15
  expect_unless "$no_transport" "its fields" changes 160 120 framerate=25/1,pixel-aspect-ratio=16/15,interlace-mode=interleaved
  expect_unless "$no_ffmpeg$no_h264" "the colours of a chart" python3 "$tools/color-chart.py" "$player" .webm .mkv .mp4
  expect_unless "$no_ffmpeg$no_h264$no_script" "in Python" env PYTHON="$(python_with Gst)" python3 "$tools/color-chart.py" \
    "$tools/../../pipelines/cudaconv-privacy.py" .webm
  expect_unless "$no_gif" "a GIF" plays_once
  expect_unless "$no_ffmpeg" "sound of 96 kHz into .webm" keeps_fast_sound webm
  expect_unless "$no_ffmpeg$no_h264" "into .mp4" keeps_fast_sound mp4
  expect_unless "$no_ffmpeg$no_h264" "sound in time" sound_in_time
  expect_unless "$no_ffmpeg$no_h264" "clips that were cut without encoding" cut_clips
  expect_unless "$no_ffmpeg$no_h264$no_script" "in Python" cut_clip_in_python "$(python_with Gst)" \
    "$tools/../../pipelines/cudaconv-privacy.py"
  expect_unless "$no_ffmpeg" "sound and video that are shorter than a fifth of the whole" keeps_short_streams
  expect_unless "$no_ffmpeg$no_h264$(needs opusenc)" "Opus into .mp4" whole_opus
  expect_unless "$no_ffmpeg$no_transport" "AAC of a transport stream" same_aac
  expect_unless "$no_ffmpeg$no_transport" "its first packet" keeps_first_sound
  expect_unless "$no_ffmpeg$no_transport" "two programs" tells_of_programs
  expect_unless "$no_ffmpeg$no_h264" "a picture into .mp4" shows_picture
  expect_unless "$no_ffmpeg$no_h264" "the last frames of a rate that varies" shows_last_frames
  expect_unless "$no_ffmpeg$no_h264" "a last frame and a last packet without a duration" shows_last_packets
  expect "an animated WebP" refuses_animation "$player"
  expect "in cudaconv-privacy" refuses_animation "$privacy" --region=9,9,20,20
  expect_unless "$no_script" "in Python" refuses_animation "$(python_with Gst)" \
    "$tools/../../pipelines/cudaconv-privacy.py" --region=9,9,20,20
  expect_unless "$no_ffmpeg$(needs avidemux avdec_mpeg4)" "the times of an AVI" avi_times
  expect_unless "$(needs avenc_ffv1 avdec_ffv1)" "a video smaller than .webm takes" tells_of_least_size
  expect "a file without its end" refuses_torn_clip
  expect_unless "$no_ffmpeg$no_h264" "bare RGB with rows from top to bottom" bare_rgb
  expect_unless "$(needs avimux avidemux)" "frames that cannot be read" refuses_unread_frames
  expect_unless "$no_ogg" "links" keeps_links
  expect "a decoder that gives no frame" names_decoder "$tools/../../pipelines/city.webm"
  expect_unless "$no_ogg" "a long name" long_name
  expect "a pipe and other files among pictures" skips_pipe
  expect_unless "$no_full$no_ogg" "a full disk" full_disk
  expect_unless "$no_ogg" "a file that becomes too large" too_large
  expect_unless "$no_ogg" "no encoder to H.264 that works" without_h264
  expect_unless "$no_ogg" "permissions of a file that is replaced" keeps_permissions "$player" -q
  expect_unless "$no_ogg$no_script" "in Python" keeps_permissions "$(python_with Gst)" \
    "$tools/../../pipelines/cudaconv-privacy.py" --region=9,9,20,20
  expect_unless "$no_ogg$no_drop" "a file that may only be read" keeps_protected "$player" -q
  expect_unless "$no_ogg$no_drop$no_script" "in Python" keeps_protected "$(python_with Gst)" \
    "$tools/../../pipelines/cudaconv-privacy.py" --region=9,9,20,20
  expect_unless "$no_ogg" "names of other formats" refuses_suffixes
}
network() {
  echo "1..8"
  serve python3 "$tools/slow-server.py" stalls
  stalling=$port
  serve python3 "$tools/slow-server.py" swings
  swinging=$port
  if [ -z "$no_camera" ]; then
    serve "$python" "$tools/rtsp-server.py"
    cameras=$port
  fi
  expect_unless "$no_adaptive" "segments of FFmpeg" make_segments
  # At the same time, since they mostly wait.
  start "$no_adaptive" presentations
  start "$no_adaptive" swings
  start "$no_http$no_h264" stalls
  start "$no_camera" sound_first camera sound-first "$player"
  start "$no_camera" video_first camera video-first "$player"
  start "$no_camera" private camera plain "$privacy" --region=9,9,20,20
  start "$no_camera" mute_camera
  [ ${#started[@]} = 0 ] || wait "${started[@]}" || true # not for the servers
  expect_unless "$no_adaptive" "a presentation of two periods" passed presentations
  expect_unless "$no_adaptive" "a playlist of three sizes" passed swings
  expect_unless "$no_http$no_h264" "an input that stalls" passed stalls
  expect_unless "$no_camera" "a camera whose sound comes first" passed sound_first
  expect_unless "$no_camera" "a camera whose video comes first" passed video_first
  expect_unless "$no_camera" "cudaconv-privacy with a camera" passed private
  expect_unless "$no_camera" "a camera whose sound never comes" passed mute_camera
}
"$part"
finish
