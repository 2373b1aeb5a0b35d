#!/usr/bin/env bash
# Builds our own code with ASan and UBSan (build-sanitize) and runs all tests with it. LLVM and MLIR
# stay as Debian built them.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh libclang-rt-22-dev
exec scripts/test.sh sanitize
