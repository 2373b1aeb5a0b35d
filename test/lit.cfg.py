# Configuration of the lit tests; lit.site.cfg.py.in hands over what CMake knows.
# docs/Testing.md describes the substitutions and features.

import os
import shutil
import subprocess

import lit.formats
from lit.llvm import llvm_config
from lit.llvm.subst import ToolSubst

config.name = "gdn"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.gdn_binary_dir, "test")

# A capture of one function must not satisfy another function's check.
config.environment["FILECHECK_OPTS"] = "-enable-var-scope"

llvm_config.use_default_substitutions()
llvm_config.with_environment("PATH", config.llvm_tools_dir, append_path=True)

# A tool that this build does not have stays a plain word, and its test fails.
tools = ["gdn-opt", "gdn-compile", "gdn-run", "gdn-lsp-server", "gdn-translate", "mlir-opt", "mlir-runner"]
llvm_config.add_tool_substitutions(
    [ToolSubst(tool, unresolved="ignore") for tool in tools],
    [config.gdn_tools_dir, config.llvm_tools_dir],
)
config.substitutions += [
    ("%python", config.python),
    ("%cmake", config.cmake),
    ("%cxx", config.cxx),
    ("%cc", config.cc),
    ("%gdn_src", config.gdn_source_dir),
    ("%gdn_build", config.gdn_binary_dir),
    ("%gdn_lib", config.gdn_lib_dir),
    ("%llvm_config", os.path.join(config.llvm_tools_dir, "llvm-config")),
    ("%linker_flags", config.linker_flags),
    ("%mlir_dir", config.mlir_dir),
]


def has_gpu():
    """True where the driver lists an NVIDIA GPU."""
    try:
        listing = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    except OSError:
        return False
    return listing.returncode == 0 and "GPU 0" in listing.stdout


def find_ptxas():
    """All places with a ptxas: the one of setup-ptxas.sh, which is the oldest, then others."""
    package = os.path.join(config.gdn_source_dir, ".venv-ptxas", "nvidia", "cuda_nvcc")
    places = [os.path.join(package, "bin", "ptxas"), os.environ.get("GDN_PTXAS"), shutil.which("ptxas")]
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        places.append(os.path.join(os.environ.get(variable, "/usr/local/cuda"), "bin", "ptxas"))
    return [place for place in places if place and os.access(place, os.X_OK)]


# Without the feature a test that REQUIRES it is UNSUPPORTED, never passed.
ptxas = find_ptxas()
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions += [("%ptxas_old", ptxas[0]), ("%ptxas_new", ptxas[-1])]
    if os.path.realpath(ptxas[0]) != os.path.realpath(ptxas[-1]):
        config.available_features.add("ptxas-newer")
if has_gpu():
    config.available_features.add("gpu")
if config.gdn_sanitizers:
    config.available_features.add("sanitizers")
# The whole numerical matrix instead of its sample: lit --param full=1, or GDN_TEST_FULL=1.
if lit_config.params.get("full", os.environ.get("GDN_TEST_FULL", "0")) == "1":
    config.available_features.add("full")

for variable in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
