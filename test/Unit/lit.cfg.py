# Runs every GoogleTest program of the build tree; each TEST counts as one test.

import os

import lit.formats

config.name = "gdn-unit"
config.suffixes = []
config.test_source_root = config.test_exec_root = os.path.join(config.gdn_binary_dir, "test", "Unit")
config.test_format = lit.formats.GoogleTest(".", "Tests")

for variable in ("ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if variable in os.environ:
        config.environment[variable] = os.environ[variable]
