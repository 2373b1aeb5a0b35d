#!/usr/bin/env bash
# Runs the tests of the plug-ins over the engines' own Python, in .venv-engines, after scripts/test-python.sh: what it
# installed and built is used.
# - The wheels of vLLM and SGLang are unpacked without their compiled parts, beside packages that their modules import.
# - SGLang wants a torchvision of another build of torch: a package of that name without functions stands for it.
# A test that cannot import an engine is a failure here.
set -euo pipefail
cd "$(dirname "$0")/.."
engines="vllm==0.33.0 sglang==0.5.23"
folder=$PWD/.venv-engines python=$PWD/.venv-engines/bin/python
pip=(-m pip --disable-pip-version-check --quiet)
imported="aiohttp blake3 blobfile cachetools cbor2 cloudpickle compressed-tensors dill einops fastapi gguf ijson
  ipython llguidance loguru msgspec openai orjson oss-harmony partial-json-parser pillow prometheus-client
  psutil py-cpuinfo pybase64 pydantic python-dateutil python-multipart pyzmq regex sentencepiece
  setproctitle tiktoken tqdm triton==3.7.1 uvicorn uvloop watchfiles xgrammar xxhash zstandard"

if [ ! -x "$python" ]; then
  python3 -m venv "$folder"
  # torch and Transformers are those of the package's tests.
  "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' |
    { read -r packages && ls -d "$PWD"/.venv-python/lib/python3*/site-packages >"$packages/tests.pth"; }
fi
# shellcheck disable=SC2086
"$python" "${pip[@]}" install --no-compile $imported
mkdir -p "$folder/stand-in/torchvision"
cat >"$folder/stand-in/torchvision/__init__.py" <<'END'
import sys, types, unittest.mock

__version__ = "0.0"


class Module(types.ModuleType):
    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return unittest.mock.MagicMock()


for name in ("io", "ops", "transforms", "transforms.functional", "transforms.v2", "transforms.v2.functional"):
    sys.modules[f"{__name__}.{name}"] = globals()[name.split(".")[0]] = Module(name)
END

status=0
for engine in $engines; do
  name=${engine%%=*}
  if [ ! -d "$folder/$engine" ]; then
    "$python" "${pip[@]}" download --no-deps --dest "$folder/wheels" "$engine"
    "$python" - "$folder/wheels/$name"-*.whl "$folder/$engine" <<'END'
import sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    wheel.extractall(sys.argv[2], [name for name in wheel.namelist() if not name.endswith(".so")])
END
    rm "$folder/wheels/$name"-*.whl
  fi
  echo "== $engine"
  log=$folder/$name.log
  PYTHONPATH=$folder/$engine:$folder/stand-in${PYTHONPATH:+:$PYTHONPATH} "$python" -m pytest -q -rs \
    -p no:cacheprovider "test/python/test_$name.py" | tee "$log" || status=1
  if grep -E "SKIPPED .*could not import" "$log"; then
    echo "error: expected $engine, got a module that cannot be imported" >&2
    status=1
  fi
done
exit $status
