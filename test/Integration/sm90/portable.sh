#!/usr/bin/env bash
# Links gdn-run and gdn-compile with LLVM and MLIR inside, for a GPU machine that has neither. One such
# process holds one copy of MLIR, as every other process of ours does.
#
# Usage: portable.sh BUILD OUT: takes the objects of a finished build, writes OUT/gdn-run, OUT/gdn-compile,
# and OUT/lib with the libraries that a bare machine may lack.
set -euo pipefail
build=$(realpath "$1")
mkdir -p "$2/lib"
out=$(realpath "$2")
config=${LLVM_CONFIG:-llvm-config-22}
lib=$("$config" --libdir)
cd "$build"

link() {
  # --icf and --gc-sections: the registries reach far more code than runs. Symbol tables of packaged
  # archives make lld warn about every file.
  "${CXX:-clang++-22}" -fuse-ld=lld -O2 -s -Wl,--gc-sections,--icf=all,--as-needed,--no-warnings \
    -static-libstdc++ -static-libgcc "$@" lib/libGDN*.a \
    -Wl,--start-group $(ls "$lib"/libMLIR*.a | grep -Ev 'CAPI|Test|ExecutionEngineShared') \
    "$lib"/libLLVM*.a -Wl,--end-group -Wl,-rpath,'$ORIGIN/lib' -Llib -lgdn-runtime \
    -l:libz.a -l:libzstd.so.1 -l:libxml2.so.2 -lrt -ldl -lm -lpthread
}
link tools/gdn-run/CMakeFiles/gdn-run.dir/*.o -o "$out/gdn-run"
link tools/gdn-compile/CMakeFiles/gdn-compile.dir/*.o -o "$out/gdn-compile"
cp -L lib/libgdn-runtime.so.0 "$out/lib/"
for library in libzstd.so.1 libomp.so.5; do
  path=$(ldconfig -p | awk -v name="$library" '$1 == name { print $NF; exit }')
  [ -z "$path" ] || cp -L "$path" "$out/lib/"
done
# What would be looked for on the other machine.
for tool in gdn-run gdn-compile; do
  echo "$tool: $(readelf -d "$out/$tool" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | xargs)"
done
