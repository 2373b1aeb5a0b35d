#!/usr/bin/env bash
# Sets up, builds the tools, takes a layer as large as one of Qwen3-Next from MLIR text through every
# level to code for this CPU, runs it and compares the results with float64.
set -euo pipefail
cd "$(dirname "$0")/.."
layer=docs/examples/layer.mlir
out=build/demo

scripts/setup.sh
echo "== configure"
scripts/configure.sh
mkdir -p "$out"
echo "== build"
cmake --build --preset default --target gdn-tools

echo "== $layer"
sed '/^\/\//d' "$layer"
# emit LEVEL FILE PATTERN: takes the layer down to a level and shows the first lines that match.
emit() {
  build/bin/gdn-compile "$layer" --emit="$1" -o "$out/$2"
  echo "== level $1: $out/$2, $(wc -l <"$out/$2") lines; among them"
  grep -m 10 -E "$3" "$out/$2" | cut -c 1-120
}
emit stages layer.stages.mlir 'gdn\.stage'
emit tile layer.tile.mlir 'gdn_tile\.(program|load|solve|store|launch)|scf\.for|linalg\.contract'
emit llvm layer.ll '^define'
build/bin/gdn-compile "$layer" --emit=obj -o "$out/layer.o"
echo "== object for this CPU: $out/layer.o, $(wc -c <"$out/layer.o") bytes"
echo "== run, and compare with float64"
build/bin/gdn-run "$layer" --check
