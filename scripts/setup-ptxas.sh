#!/usr/bin/env bash
# Puts the oldest ptxas that we support (CUDA 12.8) below .venv-ptxas, for the tests that ask for one;
# does nothing, and asks no network, where it is there already. Without it, and without another
# ptxas, those tests are UNSUPPORTED.
set -euo pipefail
cd "$(dirname "$0")/.."

[ -x .venv-ptxas/nvidia/cuda_nvcc/bin/ptxas ] && exit 0
python3 -m pip --version >/dev/null 2>&1 || scripts/setup.sh python3-pip
python3 -m pip install --quiet --disable-pip-version-check --no-deps --target .venv-ptxas \
  nvidia-cuda-nvcc-cu12==12.8.93
