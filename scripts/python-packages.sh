#!/usr/bin/env bash
# Installs what scripts/test-python.sh needs of PyPI: into .venv-python what the tests import, and in a folder of its own
# there the oldest Transformers that gdn.transformers promises. Does nothing where all of it is there; a second call waits
# for the first.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=5.17.0

scripts/setup.sh
python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || scripts/setup.sh python3-venv
mkdir -p build
exec 9>build/python-packages.lock
flock 9
[ -x .venv-python/bin/python ] || python3 -m venv .venv-python
# Python compiles what is imported. All files of torch and Transformers take a minute of a processor.
install=(.venv-python/bin/python -m pip --disable-pip-version-check --quiet install --no-compile)
wanted=$(sha256sum pyproject.toml) stamp=.venv-python/packages.txt
# Python 3.10 has no tomllib: pip asks for them then when the wheel is installed.
if [ "$(cat $stamp 2>/dev/null)" != "$wanted" ] && packages=$(python3 -c '
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
print(*project["dependencies"], *project["optional-dependencies"]["test"], sep="\n")' 2>/dev/null); then
  "${install[@]}" -r /dev/stdin <<<"$packages"
  echo "$wanted" >$stamp
fi
older=.venv-python/transformers-$oldest
if [ ! -d "$older" ]; then
  rm -rf "$older.new"
  "${install[@]}" --no-deps --target "$older.new" "transformers==$oldest" "huggingface_hub<2"
  mv "$older.new" "$older"
fi
