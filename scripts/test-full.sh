#!/usr/bin/env bash
# Runs what scripts/test.sh and scripts/test-python.sh leave out, after both of them: about an hour on two cores.
# - the wheel with all kernels, as users install it; python/kernels/hashes.txt gets their hashes
# - the package's tests with that wheel, those marked `full` among them, and plug-ins over the engines' own Python
# - a larger sample of the numerical matrix, its regressions with all of LLVM's optimisations, and other random tile
#   programs than the tests'
# - a build without the precompiled headers of our dialects: each file includes what it uses of them
# - fuzzing: mutated files, each pass alone over all tests' files, element types exchanged
# The closing line is that of scripts/test.sh. SECONDS_OF_FUZZING=N makes each kind of fuzzing longer or shorter (300).
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_OF_FUZZING:-300}
# Another seed every day: a failure prints the command that repeats it.
seed=$(date +%Y%m%d)
numerics=build/test/Integration/cpu/gdn-numerics
checks=()

# check NAME COMMAND...: one test of the closing line.
check() {
  local name=$1 status=0
  shift
  echo "== $name"
  "$@" || status=$?
  checks+=(--check "$name=$status")
}

# build_without_dialects: in a tree of its own, which stays for the next time.
build_without_dialects() {
  cmake --preset default -B build-includes -DGDN_PRECOMPILE_DIALECTS=OFF >build/includes.log &&
    cmake --build build-includes --target all
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
scripts/test.sh | tee "$log"
first=$(tail -n 1 "$log")
scripts/test-python.sh --full | tee "$log"
second=$(tail -n 1 "$log")

check "engines" scripts/test-engines.sh
for op in chunk recurrent backward; do
  check "matrix, $op" "$numerics" --sample=60 --settings=3 --seed="$seed" --only op=$op --save-dir=build/matrix
done
check "regressions" "$numerics" --regressions --save-dir=build/matrix
check "tile programs" test/Integration/sm90/differential.py check --seed "$seed" --count 300 --bin build/bin --work build/differential
check "includes" build_without_dialects
check "mutated files" test/Fuzz/fuzz.py --seed "$seed" --seconds "$seconds" --count 1000000
check "passes alone" test/Fuzz/passes.py --seed "$seed" --seconds "$seconds"
check "element types" test/Fuzz/element_types.py --seed "$seed" --seconds "$seconds"
echo "== all"
third=$(python3 scripts/count-results.py "${checks[@]}" | tail -n 1)
exec python3 scripts/count-results.py --sum "$first" "$second" "$third"
