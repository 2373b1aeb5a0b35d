//===- host_calls.cpp - Times what a call of a function costs a host ------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Usage: gdn-host-calls LAYER.so [--function layer] [--runs 5]
//
// LAYER.so is an object of gdn-compile for a GPU, linked with the runtime, and
// all its arrays have fixed extents. Nothing runs: the tests' fake driver takes
// the launches, so the environment names it:
//
//   gdn-compile layer.mlir --target=sm_90a --emit=obj -o layer.o
//   c++ -shared layer.o -o layer.so -L LIB -lgdn-runtime
//   GDN_CUDA_DRIVER=LIB/libgdn-fake-cuda.so \
//     FAKE_CUDA_MISSING=cuKernelGetParamInfo gdn-host-calls layer.so
//
// Prints microseconds of CPU time a call, the minimum and the median of the
// runs: of calls with the same arrays, with arrays that move at every call, and
// with one of five views in turn.
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace {
/// Arguments of a function over arrays that are not there.
struct Arguments {
  std::vector<GdnTensor> tensors;
  std::vector<std::vector<int64_t>> strides;
  std::vector<GdnArg> list;

  /// `view` is the stride of leading dimensions of one element, which says
  /// nothing: it makes views that differ.
  Arguments(const GdnFunctionDesc &function, uint64_t address, int64_t view) {
    for (int i = 0; i < function.num_args; ++i) {
      const GdnArgDesc &arg = function.args[i];
      std::vector<int64_t> steps(static_cast<size_t>(arg.rank));
      int64_t step = 1;
      for (int d = arg.rank - 1; d >= 0; --d) {
        if (arg.shape[d] < 0) {
          std::fprintf(stderr, "error: expected fixed extents of %s\n",
                       arg.name);
          std::exit(1);
        }
        steps[static_cast<size_t>(d)] = arg.shape[d] == 1 ? view : step;
        step *= arg.shape[d];
      }
      strides.push_back(std::move(steps));
      tensors.push_back({reinterpret_cast<void *>(address), arg.dtype, arg.rank,
                         arg.shape, nullptr});
      address += uint64_t(1) << 32;
    }
    for (size_t i = 0; i < tensors.size(); ++i) {
      tensors[i].strides = strides[i].data();
      GdnArg arg = {};
      arg.kind = GDN_ARG_TENSOR;
      arg.value.tensor = &tensors[i];
      list.push_back(arg);
    }
  }
};
} // namespace

static void check(GdnRuntimeStatus status) {
  if (status == GDN_SUCCESS)
    return;
  std::fprintf(stderr, "error: %s\n", gdnGetLastErrorMessage());
  std::exit(1);
}

static double cpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

/// Prints what calls with the arguments in turn cost.
static void time(const char *name, const GdnFunctionDesc &function,
                 const std::vector<Arguments> &arguments, uint64_t bytes,
                 int runs) {
  constexpr uint64_t workspace = uint64_t(1) << 44;
  constexpr int calls = 20000;
  std::vector<double> times;
  for (int run = 0; run < runs; ++run) {
    double start = cpuSeconds();
    for (size_t i = 0; i < calls; ++i) {
      const std::vector<GdnArg> &list = arguments[i % arguments.size()].list;
      check(gdnFunctionLaunchOn(&function, 0, list.data(), function.num_args,
                                reinterpret_cast<void *>(workspace), bytes,
                                nullptr));
    }
    times.push_back((cpuSeconds() - start) / calls * 1e6);
  }
  std::sort(times.begin(), times.end());
  std::printf("%s: minimum %.2f, median %.2f us\n", name, times.front(),
              times[times.size() / 2]);
}

int main(int argc, char **argv) {
  std::string file, name = "layer";
  int runs = 5;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--function") == 0 && i + 1 < argc)
      name = argv[++i];
    else if (std::strcmp(argv[i], "--runs") == 0 && i + 1 < argc)
      runs = std::max(std::atoi(argv[++i]), 1);
    else
      file = argv[i];
  }
  void *library = dlopen(file.c_str(), RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "error: expected a library of a layer, got %s\n",
                 dlerror());
    return 1;
  }
  auto *function = static_cast<const GdnFunctionDesc *>(
      dlsym(library, (name + "_function").c_str()));
  if (!function) {
    std::fprintf(stderr, "error: expected a function '%s' in %s\n",
                 name.c_str(), file.c_str());
    return 1;
  }
  check(gdnFunctionPrepare(function, 0));
  constexpr uint64_t here = uint64_t(1) << 45, there = uint64_t(1) << 46;
  std::vector<Arguments> same, moved, views;
  same.emplace_back(*function, here, 64);
  moved.emplace_back(*function, here, 64);
  moved.emplace_back(*function, there, 64);
  for (int64_t view = 1; view <= 5; ++view)
    views.emplace_back(*function, here, view * 64);
  uint64_t bytes = 0;
  check(gdnFunctionGetWorkspaceBytes(function, same.front().list.data(),
                                     function->num_args, &bytes));
  std::printf("%d launches\n", function->num_launches);
  time("the same arrays", *function, same, bytes, runs);
  time("arrays that move", *function, moved, bytes, runs);
  time("five views in turn", *function, views, bytes, runs);
  return 0;
}
