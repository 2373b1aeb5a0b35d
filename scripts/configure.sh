#!/usr/bin/env bash
# Configures a build tree: scripts/configure.sh [PRESET]. Quiet unless it fails. GDN_CMAKE_OPTIONS: further options of CMake.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-default}
build=build
[ "$preset" = default ] || build="build-$preset"

# An upgraded header keeps its packager's date, which is older than our objects: no build tool sees
# it, and clang then refuses the precompiled header. So a tree made with other packages goes.
packages=(clang-22 libc6-dev libgtest-dev libmlir-22-dev libstdc++-12-dev linux-libc-dev llvm-22-dev)
versions=$(dpkg-query --show "${packages[@]}")
stamp="$build/packages.txt"
if [ -f "$stamp" ] && [ "$versions" != "$(cat "$stamp")" ]; then
  echo "the compiler or its headers were upgraded: building anew"
  rm -rf "$build"
fi
mkdir -p "$build"
echo "$versions" >"$stamp"
log="$build/configure.log"
cmake --preset "$preset" ${GDN_CMAKE_OPTIONS:-} >"$log" 2>&1 || { cat "$log"; exit 1; }
