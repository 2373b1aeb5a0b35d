#!/usr/bin/env bash
# Builds our own code with ASan and UBSan (build-sanitize) and runs all tests with it. LLVM and MLIR
# stay as Debian built them.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh libclang-rt-22-dev

# allow_user_poisoning: LLVM's arena poisons its memory in our code and does not know about it in
# Debian's libLLVM, which would make every mixed use look like an error.
export ASAN_OPTIONS=allow_user_poisoning=0:detect_stack_use_after_return=1
export LSAN_OPTIONS=suppressions="$PWD/test/sanitizer-leaks.txt":print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
exec scripts/test.sh sanitize
