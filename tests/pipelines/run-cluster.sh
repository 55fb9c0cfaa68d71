#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Sets up a Slurm cluster of one node, filters a clip on it, and shuts it down: run-cluster.sh FILTER_VIDEO
#
# Output is in the Test Anything Protocol. GST_PLUGIN_PATH_1_0 is the plugin's folder.
# shellcheck disable=SC2317  # shellcheck does not see through `expect`
set -euo pipefail
# shellcheck source=tests/tap.sh
. "$(dirname "$0")/../tap.sh"
# shellcheck source=tests/pipelines/clips.sh
. "$(dirname "$0")/clips.sh"

skip() { echo "1..0 # SKIP $1"; exit; }

PATH=$PATH:/usr/sbin
filter_video=$(realpath "$1")
tools=$(realpath "$(dirname "$0")")
for program in slurmctld slurmd sbatch munged; do
  command -v $program >/dev/null || skip "no $program (slurm-wlm, munge)"
done
[ "$(id -u)" = 0 ] || skip "slurmd needs root rights"
"$filter_video" --help >/dev/null 2>&1 ||
  skip "no GStreamer bindings for Python (python3-gi, gir1.2-gstreamer-1.0)"
for element in avenc_ffv1 vp8enc; do
  gst-inspect-1.0 --exists $element || skip "no element $element (gstreamer1.0-libav, gstreamer1.0-plugins-good)"
done

scratch=$(mktemp -d)
daemons=()
clean_up() {
  [ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null || true
  wait
  rm -rf "$scratch"
}
trap clean_up EXIT

# Prints unused ports: free_ports COUNT
free_ports() {
  /usr/bin/python3 - "$1" <<'END'
import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(s.getsockname()[1] for s in sockets))
END
}

start_cluster() {
  local host controller_port node_port
  host=$(hostname -s)
  read -r controller_port node_port < <(free_ports 2)
  mkdir "$scratch"/{munge,state,spool}
  export SLURM_CONF=$scratch/slurm.conf
  cat >"$SLURM_CONF" <<END
ClusterName=trial
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$controller_port
SlurmdPort=$node_port
SlurmUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$scratch/munge/socket
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
END
  head -c 1024 /dev/urandom >"$scratch/munge/key"
  chmod -R go= "$scratch/munge/key"
  chmod 755 "$scratch"
  munged --foreground --force --key-file="$scratch/munge/key" --socket="$scratch/munge/socket" \
    --pid-file="$scratch/munge/pid" --seed-file="$scratch/munge/seed" --log-file="$scratch/munge/log" \
    >"$scratch/munged.log" 2>&1 &
  daemons+=($!)
  slurmctld -D -f "$SLURM_CONF" >"$scratch/slurmctld.log" 2>&1 &
  daemons+=($!)
  slurmd -D -f "$SLURM_CONF" >"$scratch/slurmd.log" 2>&1 &
  daemons+=($!)
  local try
  for ((try = 0; try < 60; ++try)); do
    [ "$(sinfo --noheader -o %t 2>/dev/null)" != idle ] || return 0
    sleep 0.5
  done
  tail -n 15 "$scratch"/*.log
  return 1
}

cd "$scratch"
frames=120
make_clip() {
  gst-launch-1.0 -q videotestsrc num-buffers=$frames pattern=ball motion=sweep \
    ! video/x-raw,format=I420,width=320,height=240,framerate=30000/1001 \
    ! vp8enc deadline=1 cpu-used=8 keyframe-max-dist=10 ! matroskamux ! filesink location=clip.mkv
}
# A slow filter, so that jobs can be interrupted while it runs.
filter=(backend=cpu n-threads=1 mask=median size=9 iterations=8)
decode() { # FILE SINK_FILE [ELEMENT...]
  gst-launch-1.0 -q filesrc location="$1" ! decodebin ! "${@:3}" ! filesink location="$2" </dev/null
}
filter_here() { decode clip.mkv here.raw cudaconv "${filter[@]/n-threads=1/n-threads=0}"; }
same_frames() { # FILE: has the frames of a run without a cluster, and no other file remains
  decode "$1" "$1.raw" identity
  sha256sum here.raw "$1.raw"
  [ "$(stat -c %s here.raw)" = $((frames * 320 * 240 * 3 / 2)) ] && cmp here.raw "$1.raw" && [ ! -e "$1.parts" ]
}
by_tasks() { # TASKS
  timeout 120 "$filter_video" --wait --tasks="$1" clip.mkv "by-$1.mkv" "${filter[@]}" && same_frames "by-$1.mkv"
}
of_clip_with_sound() { # which is left out; sbatch has a meaning of its own for %j
  gst-launch-1.0 -q matroskamux name=m ! filesink location=sound.mkv filesrc location=clip.mkv ! matroskademux ! queue ! m. \
    audiotestsrc num-buffers=180 ! vorbisenc ! queue ! m. </dev/null
  timeout 60 "$filter_video" --wait --tasks=2 sound.mkv "silent%j.mkv" "${filter[@]}" && same_frames "silent%j.mkv"
}
turns_upright() { # a clip by a camera that was turned
  make_turned_clip
  timeout 60 "$filter_video" --wait --tasks=2 turned.mov upright.mkv mask=identity || return
  decode upright.mkv upright.raw videoconvert ! video/x-raw,format=GRAY8
  decode turned.mov turned.raw videoflip video-direction=90r ! videoconvert ! video/x-raw,format=GRAY8
  [ "$(stat -c %s upright.raw)" = $((3 * 160 * 120)) ] && cmp upright.raw turned.raw
}
keeps_range() { # of a clip in full range, which qtdemux misreads before GStreamer 1.26
  gst-launch-1.0 -q videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48,colorimetry=1:3:5:1 ! x264enc \
    ! mp4mux ! filesink location=full.mp4 </dev/null
  timeout 60 "$filter_video" --wait --tasks=1 full.mp4 full.mkv mask=identity &&
    gst-launch-1.0 -v filesrc location=full.mkv ! matroskademux ! fakesink </dev/null | grep "colorimetry=(string)1:3:5:1"
}
# Clips whose parts or formats are not plain. Those of FFmpeg: an edit list begins within a frame; qtdemux 1.22 seeks
# wrongly in the fragments.
make_odd_clips() {
  local small=video/x-raw,width=64,height=48 ffmpeg="ffmpeg -v error -f lavfi -i testsrc2=s=64x48:r=25:d=2"
  gst-launch-1.0 -q videotestsrc num-buffers=8 ! $small,format=RGB ! pngenc ! qtmux ! filesink location=rgb.mov </dev/null
  gst-launch-1.0 -q videotestsrc num-buffers=8 ! $small,format=v210 ! qtmux ! filesink location=v210.mov </dev/null
  gst-launch-1.0 -q videotestsrc num-buffers=8 ! $small,format=I420 ! y4menc ! filesink location=bare.y4m </dev/null
  [ -z "$no_ffmpeg" ] || return 0
  $ffmpeg -c:v libx264 -g 10 -bf 2 -movflags frag_keyframe+empty_moov fragments.mp4 </dev/null
  $ffmpeg -c:v libx264 -g 10 -bf 2 whole.mp4 </dev/null
  ffmpeg -v error -ss 0.5 -i whole.mp4 -c copy edited.mp4 </dev/null
  # The only key frame is not shown.
  $ffmpeg -c:v libx264 -bf 2 long.mp4 </dev/null
  ffmpeg -v error -ss 1.2 -i long.mp4 -c copy keyless.mp4 </dev/null
  $ffmpeg -c:v libvpx-vp9 -pix_fmt yuva420p -g 10 alpha.webm </dev/null
  # Their frames have no times before they are decoded.
  $ffmpeg -c:v mpeg4 -bf 2 -g 10 untimed.avi </dev/null
  $ffmpeg -c:v libx264 -bf 2 -g 10 untimed.h264 </dev/null
  $ffmpeg -c:v mpeg2video -bf 2 -g 10 untimed.mpg </dev/null
}
filter_odd_clips() { # side by side
  local file running=()
  for file in rgb.mov v210.mov bare.y4m fragments.mp4 edited.mp4 keyless.mp4 alpha.webm untimed.{avi,h264,mpg}; do
    [ -e "$file" ] || continue
    timeout 120 "$filter_video" --wait --rounds=1 "$file" "$file.mkv" mask=identity &>"$file.log" &
    running+=($!)
  done
  wait "${running[@]}" || true
}
same_as_source() { # FILE FORMAT: all frames are in the output, and lossless in this format
  cat "$1.log" "$1".mkv.parts/*.log 2>/dev/null || true
  decode "$1" before.raw videoconvert ! "video/x-raw,format=$2" &&
    decode "$1.mkv" after.raw videoconvert ! "video/x-raw,format=$2" && [ -s before.raw ] && cmp before.raw after.raw
}
is_end_of() { # FILE WHOLE FRAMES: the last frames of a whole clip, at least FRAMES; other elements may lose some
  cat "$1.log" "$1".mkv.parts/*.log 2>/dev/null || true
  decode "$2" before.raw videoconvert ! video/x-raw,format=I420 && decode "$1.mkv" after.raw videoconvert ! video/x-raw,format=I420 &&
    [ "$(stat -c %s after.raw)" -ge $(($3 * 64 * 48 * 3 / 2)) ] && tail -c "$(stat -c %s after.raw)" before.raw | cmp - after.raw
}
same_times() {
  local file
  for file in by-1.mkv by-4.mkv; do
    gst-launch-1.0 -v filesrc location="$file" ! matroskademux ! identity silent=false ! fakesink silent=true |
      grep -o 'chain.*pts: [0-9:.]*' | sed 's/.*pts/pts/' >"$file.times"
  done
  [ "$(sort -u by-1.mkv.times | wc -l)" = "$frames" ] && cmp by-1.mkv.times by-4.mkv.times
}
wait_for_file() { # PATTERN: prints its name
  local try
  for ((try = 0; try < 300; ++try)); do
    if compgen -G "$1"; then return; fi
    sleep 0.1
  done
  return 1
}
# While they filter, the process of one part is killed, and the job of another part is cancelled.
survives() {
  timeout 240 "$filter_video" --wait --tasks=4 clip.mkv killed.mkv "${filter[@]}" >killed.log 2>&1 &
  local waiting=$! unfinished jobs
  unfinished=$(wait_for_file "killed.mkv.parts/part-00000.mkv.*") && kill -9 "${unfinished##*.}" &&
    wait_for_file "killed.mkv.parts/part-00001.mkv.*" && jobs=$(cat killed.mkv.parts/jobs) && scancel "${jobs%,*}_1"
  echo "killed ${unfinished##*.}, cancelled ${jobs%,*}_1"
  [ ! -e killed.mkv.parts/part-00000.mkv ] && [ ! -e killed.mkv.parts/part-00001.mkv ] || return
  wait_for_file "killed.mkv.parts/join.log" || return
  tail --pid="$waiting" -c +1 -f killed.mkv.parts/join.log || true
  cat killed.log
  wait "$waiting" && same_frames killed.mkv
}
refuses() { # TEXT FILE ARGUMENT...: prints TEXT, and makes no file
  local output
  ! output=$(timeout 120 "$filter_video" --wait --rounds=2 clip.mkv "$2" "${@:3}" 2>&1) || return
  echo "$output"
  [[ $output == *"$1"* ]]
}
into_theora() { # whose headers are no frames
  timeout 60 "$filter_video" --wait --tasks=2 --encoder=theoraenc clip.mkv theora.mkv mask=identity &&
    decode theora.mkv theora.raw identity && [ "$(stat -c %s theora.raw)" = $((frames * 320 * 240 * 3 / 2)) ]
}
refuses_untimed() { # frames without times, which matroskamux writes or matroskademux gives
  ! timeout 60 "$filter_video" --wait --rounds=1 --tasks=2 --encoder=avenc_mpeg4 clip.mkv untimed.mkv mask=identity || return
  cat untimed.mkv.parts/part-*.log
  [ "$(grep -c "lose their times in Matroska" untimed.mkv.parts/part-*.log | sort -u | wc -l)" = 2 ] && [ ! -e untimed.mkv ]
}
refuses_joined() { # videos, of which GStreamer shows the frames of the first one alone
  local width
  for width in 160 320; do
    gst-launch-1.0 -q videotestsrc num-buffers=25 ! "video/x-raw,width=$width,height=120" ! theoraenc ! oggmux \
      ! filesink location="$width.ogv" </dev/null
  done
  cat 160.ogv 320.ogv >joined.ogv
  refuses_input joined.ogv "several videos, one after the other"
}
refuses_gif() { # which GStreamer may read for ever
  python3 "$tools/make-gif.py" endless.gif 0 && refuses_input endless.gif "is a GIF"
}
refuses_input() { # FILE TEXT
  local output
  ! output=$(timeout 60 "$filter_video" --wait "$1" refused.mkv mask=box 2>&1) || return
  echo "$output"
  [[ $output == *"$2"* ]]
}
is_interrupted() { # while its input is stuck
  mkfifo stuck
  exec 3<>stuck
  printf abc >&3
  local code=0
  timeout --foreground --preserve-status -k 20 -s INT 3 "$filter_video" stuck interrupted.mkv mask=box >interrupted.log 2>&1 || code=$?
  echo "exit code $code: $(cat interrupted.log)"
  [ "$code" = 130 ] && [ "$(cat interrupted.log)" = "filter-video: interrupted; submitted jobs go on" ]
}
without_slurm() { # one line says so
  local output
  ! output=$(env PATH=/nowhere "$filter_video" clip.mkv alone.mkv 2>&1) || return
  echo "$output"
  [[ $output == "filter-video: "*sbatch* ]]
}

no_y4m=
gst-inspect-1.0 --exists y4mdec || no_y4m="no element y4mdec"
no_mpeg4=
gst-inspect-1.0 --exists avenc_mpeg4 || no_mpeg4="no element avenc_mpeg4"
no_h264=
gst-inspect-1.0 --exists x264enc || no_h264="no element x264enc"
no_ffmpeg=
command -v ffmpeg >/dev/null || no_ffmpeg="no ffmpeg"
gst-inspect-1.0 --exists avdec_h264 || no_ffmpeg="no element avdec_h264"
no_alpha=$no_ffmpeg
gst-inspect-1.0 --exists vp9alphadecodebin || no_alpha="no element vp9alphadecodebin"
if ! start_cluster >log 2>&1; then
  sed 's/^/# /' log
  skip "Slurm does not start here"
fi
make_clip
make_odd_clips
filter_here
filter_odd_clips
echo "1..31"
expect "one task" by_tasks 1
expect "four tasks give the same bytes" by_tasks 4
expect "and the same timestamps" same_times
expect "a clip with sound" of_clip_with_sound
expect "a clip that is turned" turns_upright
expect "a clip in RGB" same_as_source rgb.mov RGB
expect "a clip of a format that the filter does not take" same_as_source v210.mov I422_10LE
expect_unless "$no_y4m" "a clip without a container" same_as_source bare.y4m I420
expect_unless "$no_ffmpeg" "a fragmented MP4" same_as_source fragments.mp4 I420
expect_unless "$no_ffmpeg" "a clip that begins within a frame" is_end_of edited.mp4 whole.mp4 37
expect_unless "$no_ffmpeg" "a clip whose key frame is not shown" is_end_of keyless.mp4 long.mp4 20
expect_unless "$no_alpha" "a clip with alpha" same_as_source alpha.webm AYUV
for file in untimed.{avi,h264,mpg}; do
  expect_unless "$no_ffmpeg" "$file, whose frames have no times" same_as_source "$file" I420
done
expect_unless "$no_h264" "a clip in full range" keeps_range
expect "Theora" into_theora
expect_unless "$no_mpeg4" "an encoder that gives no times" refuses_untimed
expect "with a killed task and a cancelled one, the bytes are the same" survives
expect "a part that always fails" refuses "failed 2 times" failing.mkv backend=cuda cuda-device-id=99
expect "an unknown property" refuses "msk=box" none.mkv msk=box
for setting in mask=mosiac size=99999 sigma=big; do
  expect "an unknown value, $setting" refuses "$setting is not a value" none.mkv "$setting"
done
expect "another container" refuses "ends in .mkv" none.mp4 mask=box
expect "joined videos" refuses_joined
expect "a GIF" refuses_gif
expect "Ctrl-C" is_interrupted
expect "no Slurm" without_slurm
expect "an existing file" refuses "there already" by-1.mkv mask=box
expect "a name that Slurm gives no log" refuses "has a backslash" 'back\slash.mkv' mask=box
finish
