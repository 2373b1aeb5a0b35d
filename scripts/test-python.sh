#!/usr/bin/env bash
# Builds a wheel and tests it: scripts/test-python.sh [--full] [ARGUMENTS OF PYTEST].
# - The wheel has the sample of kernels that python/gdn/kernels.json names or, with --full, all of them: the one that
#   users install. Its tag, its size and what its library links are checked. Its kernels are compiled by
#   build/bin/gdn-compile, which scripts/test.sh builds too, as it does the C++ of the sample's library. Without
#   GDN_COMPILER and GDN_PYTHON_OBJECTS a wheel's build makes its own (test/Scripts/wheel.test).
# - Its kernels are those of the last full test (scripts/kernel-hashes.py), a sample of all others too.
# - In a fresh environment with nothing else (.venv-wheel), `python -m gdn` runs its self-test.
# - In one with torch (.venv-python), pytest runs test/python; with --full tests that are marked so, too. PyTorch's CPU
#   build will do.
# - Small models of the oldest Transformers that gdn.transformers promises run too.
# The closing line is that of scripts/test.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=build/wheels
ptxas=$PWD/.venv-ptxas/nvidia/cuda_nvcc/bin/ptxas
limit=$((60 * 1000 * 1000))
oldest=5.17.0
old_tests="logits or pieces or packed or gradients"
full=0 build=build/wheel-sample sample=ON code=ON objects=$PWD/build/python-objects.txt
if [ "${1:-}" = --full ]; then
  full=1 build=build/wheel-full sample=OFF objects=
  shift
elif ! nvidia-smi -L >/dev/null 2>&1; then
  # No GPU runs the sample, and LLVM must get what it got in the last full test (kernel-hashes.py).
  code=OFF
fi
export GDN_TEST_FULL=$full

fail() {
  echo "error: $1" >&2
  echo "0 passed, 1 failed"
  exit 1
}

scripts/setup.sh || fail "expected the Debian packages, got a failed set-up"
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || scripts/setup.sh python3-venv
pip=(-m pip --disable-pip-version-check --quiet)
# Python compiles what is imported. All files of torch and Transformers take a minute of a processor.
install=("${pip[@]}" install --no-compile)
[ -x .venv-python/bin/python ] || python3 -m venv .venv-python
older=.venv-python/transformers-$oldest

# While kernels are compiled: a download leaves the processors idle, and an environment is one processor's work.
packages() {
  rm -rf .venv-wheel
  python3 -m venv .venv-wheel
  python3 -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")' 2>/dev/null |
    .venv-python/bin/python "${install[@]}" -r /dev/stdin || true # Python 3.10 has no tomllib: pip asks for them below
  # In a folder of its own in front of the newest.
  [ -d "$older" ] || .venv-python/bin/python "${install[@]}" --no-deps --target "$older" \
    "transformers==$oldest" "huggingface_hub<2"
}
packages &
downloads=$!

echo "== compiler"
scripts/configure.sh && cmake --build --preset default --target gdn-compile gdn-calls ||
  fail "expected gdn-compile, got a failed build"

echo "== wheel"
# A ptxas that stays where it is: with one in pip's environment of a build, the next build compiles all kernels again.
scripts/setup-ptxas.sh || fail "expected ptxas of CUDA 12.8, got a failed installation"
rm -rf "$wheels"

.venv-python/bin/python "${pip[@]}" wheel . --no-deps --wheel-dir "$wheels" \
  --config-settings=build-dir="$build" --config-settings=cmake.define.GDN_PTXAS="$ptxas" \
  --config-settings=cmake.define.GDN_PYTHON_SAMPLE=$sample --config-settings=cmake.define.GDN_PYTHON_CODE=$code \
  --config-settings=cmake.define.GDN_UNITY_BUILD=ON --config-settings=cmake.define.GDN_PYTHON_OBJECTS="$objects" \
  --config-settings=cmake.define.GDN_COMPILER="$PWD/build/bin/gdn-compile" || fail "expected a wheel, got a failed build"
wheel=$(echo "$wheels"/gdn-*-py3-none-linux_x86_64.whl)
[ -f "$wheel" ] || fail "expected a wheel of tag py3-none-linux_x86_64, got $(ls "$wheels")"
if [ $full = 1 ]; then
  # The build compresses less than it could.
  python3 scripts/compress-wheel.py "$wheel" || fail "expected a wheel to compress, got another file"
fi
size=$(wc -c <"$wheel")
[ "$size" -lt "$limit" ] || fail "expected a wheel below $limit bytes, got $size"
echo "$wheel: $size bytes"

echo "== kernels"
if [ $full = 1 ]; then
  python3 scripts/kernel-hashes.py "$build/python/kernels" --write || fail "expected the hashes of all kernels, got an error"
else
  python3 scripts/kernel-hashes.py "$build/python/kernels" || fail "expected the kernels of the last full test, got others"
fi

echo "== a fresh environment"
wait $downloads || fail "expected the packages of the tests, got a failed installation"
# The other environment gets the wheel meanwhile, which may have been installed before, under the same version.
{
  .venv-python/bin/python "${install[@]}" --no-deps --force-reinstall "$wheel" &&
    .venv-python/bin/python "${install[@]}" "$wheel[test]"
} &
other=$!
.venv-wheel/bin/python "${install[@]}" "$wheel"
library=$(.venv-wheel/bin/python -c 'from gdn import _library; print(_library.path())')
needed=$(llvm-readelf-22 --dynamic "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v -E '^(ld-linux-x86-64|lib(c|m|dl|pthread))\.so' || true)
[ -z "$needed" ] || fail "expected a library that needs libc and libm alone, got $needed"
# From a folder where no source of the package is in reach.
(cd "$wheels" && ../../.venv-wheel/bin/python -m gdn) || fail "expected a self-test that passes"

echo "== tests"
wait $other || fail "expected an environment with the wheel, got a failed installation"

# run_tests RESULTS ARGUMENTS: pytest on two processors; prints the closing line. A process that has no tests left takes
# some of the other's: the last ones are long.
run_tests() {
  local results=$1 status=0
  shift
  rm -f "$results"
  .venv-python/bin/python -P -m pytest -q --numprocesses 2 --dist worksteal --junitxml="$results" "$@" >&2 || status=$?
  python3 scripts/count-results.py --exit-code $status "$results" | tail -n 1
}
newest=$(run_tests build/python-results.xml test/python "$@") || true
if [ $# -gt 0 ]; then
  echo "$newest"
  [[ $newest == *" 0 failed"* ]]
  exit
fi

# The oldest Transformers that gdn.transformers promises.
echo "== Transformers $oldest"
old=$(PYTHONPATH="$PWD/$older" run_tests build/python-transformers-results.xml test/python/test_transformers*.py -k "$old_tests") || true
echo "== all"
exec python3 scripts/count-results.py --sum "$newest" "$old"
