#!/usr/bin/env bash
# Puts together what device.py needs on a GPU machine that has neither LLVM nor this build: the tools with
# LLVM and MLIR inside, the runtime, ptxas if setup-ptxas.sh was run, a C program with an object, functions, device.py.
# (One such process holds one copy of MLIR, as every other process of ours does.)
#
# Usage: pack.sh BUILD OUT: writes OUT/gdn.tar.xz and OUT/device.sh.
#        on the machine: OUT/device.sh check|sanitize|bench LOG
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../../.." && pwd)
build=$(realpath "$1")
mkdir -p "$2"
out=$(realpath "$2")
lib=$("${LLVM_CONFIG:-llvm-config-22}" --libdir)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir "$stage/lib"
cd "$build"

# link TARGET: a tool of the build as it is, but with archives in place of shared libraries.
link() {
  local name objects
  name=$(basename "$1")
  objects=$(ninja -t commands -s "$1" | grep -o '[^ ]*\.cpp\.o')
  # --gc-sections: registries reach far more code than runs. The symbol tables of the packaged archives
  # make lld warn about every file.
  "${CXX:-clang++-22}" -fuse-ld=lld -O2 -s -Wl,--gc-sections,--icf=safe,--as-needed,--no-warnings \
    -static-libstdc++ -static-libgcc $objects lib/libGDN*.a \
    -Wl,--start-group $(ls "$lib"/libMLIR*.a | grep -Ev 'CAPI|Test') "$lib"/libLLVM*.a -Wl,--end-group \
    -Wl,-rpath,'$ORIGIN/lib' -Llib -lgdn-runtime -l:libz.a -l:libzstd.so.1 -l:libxml2.so.2 \
    -lrt -ldl -lm -lpthread -o "$stage/$name"
}
link bin/gdn-run
link bin/gdn-compile
link test/Integration/cpu/gdn-numerics
cp -L lib/libgdn-runtime.so.0 "$stage/lib/"
cp -L "$(ldconfig -p | awk '$1 == "libzstd.so.1" { print $NF; exit }')" "$stage/lib/"

ptxas="$source/.venv-ptxas/nvidia/cuda_nvcc/bin/ptxas"
if [ -x "$ptxas" ]; then
  cp "$ptxas" "$stage/ptxas"
  inputs="$source/test/Target/Host/Inputs"
  compile() { GDN_PTXAS="$ptxas" bin/gdn-compile "$1" --target=sm_90a --emit=obj -o "$2"; }
  compile "$inputs/squares.mlir" "$stage/squares.o"
  "${CC:-clang-22}" -std=c99 -I"$source/include" -I"$stage" "$inputs/squares.c" "$stage/squares.o" -Llib \
    -Wl,-rpath,'$ORIGIN/lib' -lgdn-runtime -o "$stage/squares"
  sed -f "$inputs/forward.sed" "$source/test/Target/PTX/forward.mlir" >"$stage/forward.mlir"
  compile "$stage/forward.mlir" "$stage/forward.o"
  cp "$inputs/forward-layer.mlir" "$stage/forward.mlir"
fi
cp "$here/device.py" "$source"/test/Integration/emulator/Inputs/backward-kda{,-groups}.mlir "$stage/"
# The same with gates of any strength.
for name in backward-kda backward-kda-groups; do
  sed -E 's/gate_domain = #gdn.gate_domain<bounded>, lower_bound = -5.0( : f64)?/chunk_size = 16/' "$stage/$name.mlir" >"$stage/$name-any.mlir"
done

# The tools are mostly the same code: a dictionary that holds all of them halves the archive.
tar -C "$stage" -c . | xz -T1 --lzma2=preset=1,dict=256MiB >"$out/gdn.tar.xz"
cat >"$out/device.sh" <<'END'
#!/usr/bin/env bash
# device.sh check|sanitize|bench LOG [options of device.py]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=${GDN_DEVICE_ROOT:-/tmp/gdn}
if [ ! -e "$root/device.py" ] || [ "$here/gdn.tar.xz" -nt "$root/device.py" ]; then
  rm -rf "$root" && mkdir -p "$root"
  xz -dc "$here/gdn.tar.xz" | tar -C "$root" -xmf -
fi
command=$1 log=$2
shift 2
exec python3 "$root/device.py" "$command" "$root" --log "$log" "$@"
END
chmod +x "$out/device.sh"
ls -l "$out"
