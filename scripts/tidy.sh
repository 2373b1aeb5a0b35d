#!/usr/bin/env bash
# Runs clang-tidy on the source files that differ from a commit: scripts/tidy.sh [BASE], by default
# the last commit before this branch left main, or HEAD on main itself. About a minute a file.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh clang-tidy-22
base=${1:-$(git merge-base HEAD main 2>/dev/null || echo HEAD)}
mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cpp')
if [ ${#files[@]} -eq 0 ]; then
  echo "no source file differs from $base"
  exit 0
fi
# The generated headers and the precompiled header must be there.
scripts/configure.sh
cmake --build --preset default
status=0
for file in "${files[@]}"; do
  echo "== $file"
  clang-tidy-22 --quiet -p build --warnings-as-errors='*' "$file" || status=1
done
exit $status
