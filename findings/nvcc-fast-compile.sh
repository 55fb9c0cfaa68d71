#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# nvcc 13.5.37: --Ofast-compile refuses __dp4a for GPUs before compute capability 10.0.
#
# The option makes compilation faster and code slower. With it the sum of four products is an "unsupported operation".
# The message names a line of sm_61_intrinsics.hpp and no line of the source. All levels fail: min, mid, max. Without it,
# or for compute_100 and newer, the same source compiles. nvcc 13.2.78 takes it; 13.4.92 does not.
#
# Needs g++ 15 or older. Installs the packages in a temporary folder. Exit code 0: as described. 1: the behaviour has
# changed.
# Seen: nvcc 13.2.78: compute_90 compiles, with --Ofast-compile=max compiles
#       nvcc 13.5.37: compute_90 compiles, with --Ofast-compile=max unsupported operation
#       nvcc 13.5.37: compute_100 compiles, with --Ofast-compile=max compiles
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '__global__ void sum(int *a) { *a = __dp4a(a[1], a[2], a[3]); }' >"$folder/sum.cu"
python3 -m venv "$folder/venv"

compiles() { # VERSION ARCHITECTURE [OPTION]
  local output
  if output=$("$folder/$1/nvidia/cu13/bin/nvcc" "${@:3}" -arch="$2" -ptx -o "$folder/sum.ptx" "$folder/sum.cu" 2>&1); then
    echo compiles
  else
    grep -o "unsupported operation" <<<"$output" || echo "$output"
  fi
}
check() { # VERSION ARCHITECTURE EXPECTED
  local line
  line="nvcc $1: $2 $(compiles "$1" "$2"), with --Ofast-compile=max $(compiles "$1" "$2" --Ofast-compile=max)"
  echo "$line"
  [ "$line" = "nvcc $1: $2 compiles, with --Ofast-compile=max $3" ]
}
for version in 13.2.78 13.5.37; do
  "$folder/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$folder/$version" \
    nvidia-cuda-nvcc==$version nvidia-cuda-crt==$version nvidia-nvvm==$version "nvidia-cuda-runtime==${version%.*}.*"
done
check 13.2.78 compute_90 compiles
check 13.5.37 compute_90 "unsupported operation"
check 13.5.37 compute_100 compiles
