#!/bin/sh
# Draws the two schedules of the forward, docs/data/timeline-*.svg, from what the compiler chooses for
# docs/examples/layer.mlir. Usage: tools/timeline/forward.sh [--tools build/bin] [--check]; --check writes nothing and
# fails where a picture is not current.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=$root/build/bin check=
while [ $# -gt 0 ]; do
  case $1 in
  --tools) tools=$2; shift 2 ;;
  --check) check=1; shift ;;
  *) echo "error: expected --tools FOLDER or --check, got $1" >&2; exit 1 ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tools/gdn-compile" "$root/docs/examples/layer.mlir" --target=sm_90a --emit=tile -o "$work/tile.mlir"
for schedule in cta_per_head cta_per_v_tile; do
  name=timeline-$(echo $schedule | tr _ -).svg
  "$tools/gdn-opt" "$work/tile.mlir" --gdn-tile-stack-products \
    --gdn-warp-choose-schedule=schedule=$schedule -o "$work/$schedule.mlir"
  python3 "$root/tools/timeline/timeline.py" "$work/$schedule.mlir" --title "The schedule $schedule of a forward" \
    -o "$work/$name"
  if [ -z "$check" ]; then
    cp "$work/$name" "$root/docs/data/$name"
  elif ! cmp -s "$work/$name" "$root/docs/data/$name"; then
    echo "error: expected a current docs/data/$name; run tools/timeline/forward.sh" >&2
    exit 1
  fi
done
