#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds and runs every test with the GStreamer and the compiler of a newer Debian: tests/newer.sh [trixie|sid] [COMMAND...]
#
# Makes a root of that release, once, in build/newer-SUITE, and runs tests/run.sh there, or another command, in a copy of
# the project that keeps its build between calls. A CUDA toolkit of this machine is used there too. Needs root rights
# and debootstrap, some 5 GB and, on two cores, half an hour. Exit code 77: this machine lacks something.
set -euo pipefail

suite=${1:-trixie}
case $suite in
  trixie | sid) ;;
  *) sed -n '4,8s/^# \{0,1\}//p' "$0" && exit ;;
esac
shift || true
cd "$(dirname "$(realpath "$0")")/.."
root=$PWD/build/newer-$suite
skip() {
  echo "$(basename "$0"): $1" >&2
  exit 77
}
[ "$(id -u)" = 0 ] || skip "needs root rights"
command -v debootstrap >/dev/null || skip "no debootstrap"

mounts=()
unmount() {
  local i
  for ((i = ${#mounts[@]} - 1; i >= 0; i--)); do umount "${mounts[i]}" 2>/dev/null || umount --lazy "${mounts[i]}"; done
}
trap unmount EXIT
bind() { # FOLDER: makes a folder of this machine, without what is mounted in it, visible in the root
  mkdir -p "$root$1"
  mount --bind "$1" "$root$1" || skip "may not mount folders here"
  mounts+=("$root$1")
}

if [ ! -e "$root/ready" ]; then
  # shellcheck disable=SC2016  # apt-get expands it
  archive=$(apt-get indextargets --format '$(REPO_URI) $(SUITE)' 'Origin: Debian' | grep -v -e '-security$' | head -n 1) ||
    skip "this is no Debian"
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "${archive% *}" \
    "$([ -e "/usr/share/debootstrap/scripts/$suite" ] || echo /usr/share/debootstrap/scripts/sid)"
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" # how this machine reaches the archive
  touch "$root/ready"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"
for folder in /proc /dev; do bind "$folder"; done
if nvcc=$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc); then
  toolkit=$(dirname "$(dirname "$(realpath "$nvcc")")")
  bind "$toolkit"
  ln -sfn "$toolkit" "$root/usr/local/cuda"
fi

# What git knows or would add. Files that stayed the same keep their times, so that little is built again.
mkdir -p "$root/cudaconv"
git ls-files --cached --others --exclude-standard -z | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null --files-from=- --create | tar --extract --keep-newer-files --directory "$root/cudaconv" 2>/dev/null
[ $# -gt 0 ] || set -- tests/run.sh
chroot "$root" env -i -C /cudaconv PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LC_ALL=C.UTF-8 "$@"
