#!/usr/bin/env bash
# Builds the wheel and tests it: scripts/test-python.sh [ARGUMENTS OF PYTEST].
# - The wheel is checked: its tag, its size, what its library links. Its kernels are compiled by build/bin/gdn-compile,
#   which scripts/test.sh builds too. Without GDN_COMPILER a wheel's build makes its own (test/Scripts/wheel.test).
# - In a fresh environment with nothing else (.venv-wheel), `python -m gdn` runs its self-test.
# - In one with torch (.venv-python), pytest runs test/python. PyTorch's CPU build will do.
# - Small models of the oldest Transformers that gdn.transformers promises run too.
# The closing line is that of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=build/wheels
ptxas=$PWD/.venv-ptxas/nvidia/cuda_nvcc/bin/ptxas
limit=$((20 * 1000 * 1000))
oldest=5.17.0
old_tests="logits or pieces or packed or gradients"

fail() {
  echo "error: $1" >&2
  echo "0 passed, 1 failed"
  exit 1
}

scripts/setup.sh || fail "expected the Debian packages, got a failed set-up"
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || scripts/setup.sh python3-venv
pip=(-m pip --disable-pip-version-check --quiet)

echo "== compiler"
scripts/configure.sh && cmake --build --preset default --target gdn-compile || fail "expected gdn-compile, got a failed build"

echo "== wheel"
# A ptxas that stays where it is: with one in pip's environment of a build, the next build compiles all kernels again.
scripts/setup-ptxas.sh || fail "expected ptxas of CUDA 12.8, got a failed installation"
[ -x .venv-python/bin/python ] || python3 -m venv .venv-python
rm -rf "$wheels"
.venv-python/bin/python "${pip[@]}" wheel . --no-deps --wheel-dir "$wheels" \
  --config-settings=build-dir=build/wheel-tested --config-settings=cmake.define.GDN_PTXAS="$ptxas" \
  --config-settings=cmake.define.GDN_COMPILER="$PWD/build/bin/gdn-compile" || fail "expected a wheel, got a failed build"
wheel=$(echo "$wheels"/gdn-*-py3-none-linux_x86_64.whl)
[ -f "$wheel" ] || fail "expected a wheel of tag py3-none-linux_x86_64, got $(ls "$wheels")"
# The build compresses less than it could.
python3 scripts/compress-wheel.py "$wheel" || fail "expected a wheel to compress, got another file"
size=$(wc -c <"$wheel")
[ "$size" -lt "$limit" ] || fail "expected a wheel below $limit bytes, got $size"
echo "$wheel: $size bytes"

echo "== a fresh environment"
rm -rf .venv-wheel
python3 -m venv .venv-wheel
.venv-wheel/bin/python "${pip[@]}" install "$wheel"
library=$(.venv-wheel/bin/python -c 'from gdn import _library; print(_library.path())')
needed=$(llvm-readelf-22 --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -E '^(ld-linux-x86-64|lib(c|m|dl|pthread))\.so' || true)
[ -z "$needed" ] || fail "expected a library that needs libc and libm alone, got $needed"
# From a folder where no source of the package is in reach.
(cd "$wheels" && ../../.venv-wheel/bin/python -m gdn) || fail "expected a self-test that passes"

echo "== tests"
.venv-python/bin/python "${pip[@]}" install "$wheel[test]"
# The wheel may have been installed before, under the same version.
.venv-python/bin/python "${pip[@]}" install --no-deps --force-reinstall "$wheel"
results=build/python-results.xml
rm -f "$results"
status=0
.venv-python/bin/python -P -m pytest test/python -q --junitxml="$results" "$@" || status=$?

newest=$(python3 scripts/count-results.py --exit-code $status "$results" | tail -n 1) || true
if [ $# -gt 0 ]; then
  echo "$newest"
  [[ $newest == *" 0 failed"* ]]
  exit
fi

# The oldest Transformers that gdn.transformers promises, in a folder of its own in front of the newest.
echo "== Transformers $oldest"
folder=.venv-python/transformers-$oldest
[ -d "$folder" ] || .venv-python/bin/python "${pip[@]}" install --no-deps --target "$folder" \
  "transformers==$oldest" "huggingface_hub<2" || fail "expected Transformers $oldest, got a failed installation"
results=build/python-transformers-results.xml
rm -f "$results"
status=0
PYTHONPATH="$PWD/$folder" .venv-python/bin/python -P -m pytest test/python/test_transformers*.py -q -k "$old_tests" \
  --junitxml="$results" || status=$?
old=$(python3 scripts/count-results.py --exit-code $status "$results" | tail -n 1) || true
echo "== all"
exec python3 scripts/count-results.py --sum "$newest" "$old"
