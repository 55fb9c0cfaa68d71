#!/usr/bin/env bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Builds the Debian packages gstreamer1.0-cudaconv and cudaconv-tune from the last commit, and tests them:
#
#   tests/package/build.sh [--cuda[=FOLDER]] [--check] [SUITE...]
#
# For each SUITE, bookworm if none is named: makes a fresh root with debootstrap, builds in it, runs lintian, installs
# the packages in a second fresh root, and runs their tests there. Packages are left in build/package/SUITE.
#
#   --cuda    builds with CUDA, with the toolkit in FOLDER, or else of the nvcc on the PATH
#   --check   runs the project's tests during the build, like Debian's own builds
#
# Needs root rights, a mirror ($DEBIAN_MIRROR, or Debian's), and some minutes. Exits with 77 without root rights or a
# mirror.
set -euo pipefail

skip() { echo "SKIP: $1"; exit 77; }

if [ -z "${CUDACONV_PACKAGE_MOUNTS:-}" ]; then
  [ "$(id -u)" = 0 ] || skip "this needs root rights"
  command -v debootstrap >/dev/null || skip "no debootstrap"
  # In a separate mount namespace, so that all mounts in the roots end with the script, even if it is killed. In a
  # chroot, whose root is not a mount, mounts cannot be private.
  propagation=private
  unshare --mount --propagation private true 2>/dev/null || propagation=unchanged
  why_not=$(unshare --mount --propagation $propagation true 2>&1) ||
    skip "this may not mount anything ($why_not): run it outside of the container, or with CAP_SYS_ADMIN"
  CUDACONV_PACKAGE_MOUNTS=1 exec unshare --mount --propagation $propagation "$0" "$@"
fi

toolkit=
build_options="nocheck parallel=$(nproc)"
suites=()
for argument in "$@"; do
  case $argument in
    --cuda)
      toolkit=$(realpath "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")
      toolkit=${toolkit%/bin/nvcc} ;;
    --cuda=*) toolkit=$(realpath "${argument#*=}") ;;
    --check) build_options="parallel=$(nproc)" ;;
    -*) sed -n '4,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) suites+=("$argument") ;;
  esac
done
[ ${#suites[@]} -gt 0 ] || suites=(bookworm)

cd "$(dirname "$(realpath "$0")")/../.."
mkdir -p build
steps=$((6 * ${#suites[@]}))
. tests/setup.sh
[ -z "$toolkit" ] || [ -x "$toolkit/bin/nvcc" ] || die "there is no bin/nvcc in $toolkit"
git rev-parse --verify -q HEAD >/dev/null || die "this is no git checkout"

mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
work=$(mktemp -d)
clean_up() {
  awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/mounts | xargs -r umount
  rm -rf --one-file-system "$work"
}
trap clean_up EXIT
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive

in_root() { # ROOT COMMAND...: runs the command in the root, as user root
  chroot "$1" env -u TMPDIR PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "${@:2}"
}
apt_get() { # ROOT ARGUMENT...: keeps configuration files that were copied from this machine
  in_root "$1" apt-get -q -y -o Dpkg::Options::=--force-confold "${@:2}"
}
as_builder() { # COMMAND...: runs it in the folder of the source, in the root to build in, as an ordinary user
  # shellcheck disable=SC2016  # sh expands them
  chroot --userspec=builder "$root" env -u TMPDIR PATH=/usr/bin:/bin HOME=/build \
    DEB_BUILD_OPTIONS="$build_options" DEB_BUILD_PROFILES="$profiles" \
    sh -c 'cd "$0" && exec "$@"' "/build/cudaconv-$version" "$@"
}

# `logged` runs the functions below. Within it a command that fails does not end the script, so they use &&.

make_roots() { # SUITE
  debootstrap --variant=minbase "$1" "$root" "$mirror" &&
    use_sources_of_this_machine "$1" &&
    apt_get "$root" update &&
    cp -a "$root" "$user" &&
    mount -t proc proc "$root/proc" &&
    mount -t proc proc "$user/proc"
}

# If this machine is also a Debian, copies apt's settings, since they name its package sources.
use_sources_of_this_machine() { # SUITE
  grep -qx 'ID=debian' /etc/os-release || return 0
  local here
  here=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release) &&
    rm -r "$root/etc/apt" &&
    cp -a /etc/apt "$root/etc" &&
    find "$root/etc/apt" \( -name '*.list' -o -name '*.sources' \) -exec sed -i "s/\b$here\b/$1/g" {} +
}

# Puts the folder `debian` into the source, and the original archive beside it, as Debian has them.
lay_out() {
  local source=$root/build/cudaconv-$version
  mkdir "$root/build" &&
    git archive --prefix="cudaconv-$version/" HEAD | gzip -9n >"$root/build/cudaconv_$version.orig.tar.gz" &&
    tar -x -C "$root/build" -f "$root/build/cudaconv_$version.orig.tar.gz" &&
    cp -a "$source/tests/package/debian" "$source/" &&
    in_root "$root" useradd --home-dir /build --shell /bin/sh builder &&
    in_root "$root" chown -R builder: /build || return
  [ -z "$toolkit" ] || { mkdir -p "$root/usr/local/cuda" && mount --bind -o ro "$toolkit" "$root/usr/local/cuda"; }
}

install_build_depends() {
  lay_out &&
    apt_get "$root" install --no-install-recommends build-essential lintian &&
    DEB_BUILD_OPTIONS=$build_options DEB_BUILD_PROFILES=$profiles \
      apt_get "$root" build-dep --no-install-recommends "/build/cudaconv-$version" &&
    check_version
}

check_version() {
  local packaged
  packaged=$(as_builder dpkg-parsechangelog -S Version)
  [ "${packaged%-*}" = "$version" ] ||
    { echo "tests/package/debian/changelog is of version $packaged, and meson.build of $version" && false; }
}

build_package() {
  as_builder dpkg-buildpackage -us -uc && cp "$root"/build/*.{deb,dsc,xz,gz,buildinfo,changes} "$out"
}

# Does not use lintian's --fail-on, which also counts overridden tags.
run_lintian() {
  as_builder lintian --version &&
    as_builder lintian --show-overrides --tag-display-limit 0 "../$(cd "$out" && echo *.changes)" | tee "$work/tags" &&
    ! grep '^[EW]: ' "$work/tags"
}

# shellcheck disable=SC2046,SC2086,SC2010  # a list of packages, whose names have no blanks
install_package() {
  local packages
  packages=$(cd "$root/build" && ls -- *.deb | grep -v dbgsym) &&
    (cd "$root/build" && cp -t "$user/root" $packages) &&
    apt_get "$user" install --no-install-recommends $(printf '/root/%s ' $packages) gstreamer1.0-tools &&
    in_root "$user" env -u GST_PLUGIN_PATH -u GST_PLUGIN_PATH_1_0 -u GST_PLUGIN_SYSTEM_PATH \
      -u GST_PLUGIN_SYSTEM_PATH_1_0 gst-inspect-1.0 cudaconv >"$out/gst-inspect.txt" || return
  grep -q '^  Filename  *\(/usr\)\?/lib/.*/gstreamer-1.0/libgstcudaconv.so$' "$out/gst-inspect.txt" ||
    { echo "the plugin is found elsewhere" && false; } || return
  local with_cuda=yes
  ! grep -q '(built without CUDA)' "$out/gst-inspect.txt" || with_cuda=
  [ "${toolkit:+yes}" = "$with_cuda" ] || { echo "the plugin is built ${with_cuda:-without} CUDA" && false; }
}

run_package_tests() {
  local tests=/root/tests depends name
  depends=$(sed -n 's/^Depends: *//p' tests/package/debian/tests/control | tr ',' '\n' | grep -v '@' | sort -u)
  # shellcheck disable=SC2086  # a list of packages
  cp -a "$root/build/cudaconv-$version/debian/tests" "$user/root" &&
    apt_get "$user" install --no-install-recommends $depends || return
  for name in $(sed -n 's/^Tests: *//p' "$user$tests/control" | tr ',' ' '); do
    in_root "$user" "$tests/$name" || return
  done
}

step() { # TEXT NAME COMMAND...
  begin "$suite: $1"
  logged "package/$suite/$2" "${@:3}" || die "failed at $suite: $1"
}
show() { grep -E -- "$2" "$out/$1.log" | sed 's/^/      /' || true; } # NAME PATTERN: prints lines of a step's log

version=$(git show HEAD:meson.build | sed -n "s/^ *version: '\(.*\)',\$/\1/p" | head -n 1)
profiles=$([ -n "$toolkit" ] || echo pkg.cudaconv.nocuda)
for suite in "${suites[@]}"; do
  wget -q --spider "$mirror/dists/$suite/InRelease" || skip "there is no $mirror/dists/$suite"
  root=$work/$suite-build user=$work/$suite-user out=build/package/$suite
  rm -rf "$out"
  mkdir -p "$out"
  step "making a root" root make_roots "$suite"
  step "installing what the build needs" build-depends install_build_depends
  step "building $version $([ -n "$toolkit" ] && echo "with CUDA of $toolkit" || echo "for the CPU")" \
    build build_package
  step "running lintian" lintian run_lintian
  show lintian .
  step "installing the package where no build tools are" install install_package
  step "running the package's tests" tests run_package_tests
  show tests '^(good|  [DFV])'
done
echo "Done. The packages:"
find build/package -name '*.deb' -exec du -h --apparent-size {} + | sed 's/^/  /'
