#!/usr/bin/env bash
# Sets up, builds and runs all tests. The closing line counts every suite:
# "N passed, N failed[, N skipped]"; the exit code is 0 only if something ran and nothing failed.
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-default}
build=build
[ "$preset" = default ] || build="build-$preset"
results="$build/test/results.json"

# A step before the tests that fails is a failure of its own.
stop() {
  echo "error: $1 failed" >&2
  echo "0 passed, 1 failed"
  exit 1
}

scripts/setup.sh || stop "set-up"
# A download, beside the build.
scripts/setup-ptxas.sh &
ptxas=$!
echo "== configure ($preset)"
scripts/configure.sh "$preset" || stop "configure"
echo "== build"
cmake --build --preset "$preset" --target all check-gdn-tools || stop "build"
echo "== format"
format=0
git ls-files '*.h' '*.c' '*.cpp' | xargs -P "$(nproc)" -n 64 clang-format-22 --dry-run -Werror || format=1
wait $ptxas || echo "warning: no ptxas of CUDA 12.8; tests may be unsupported" >&2
echo "== tests"
rm -f "$results"
cmake --build --preset "$preset" --target check-gdn
python3 scripts/count-results.py --exit-code $? --check "format=$format" "$results"
