//===- Kernels.cpp - The table of kernels, and which of them run here -----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include <cstdlib>
#include <cstring>
#include <type_traits>

using namespace gdn::cpu;

// The build writes one line a set: GDN_KERNELS(algorithm, decay, element,
// channels, isa, name) and GDN_BACKWARD_KERNELS(Backward, decay, channels, isa,
// name). The functions' names begin with `name`.
#define GDN_KERNELS(algorithm, decay, element, channels, isa, name)            \
  extern "C" std::remove_pointer_t<Kernel> _mlir_ciface_##name##_kv,           \
      _mlir_ciface_##name##_kv_l2, _mlir_ciface_##name##_vk,                   \
      _mlir_ciface_##name##_vk_l2;
#define GDN_BACKWARD_KERNELS(backward, decay, channels, isa, name)             \
  extern "C" std::remove_pointer_t<BackwardKernel> _mlir_ciface_##name##_log,  \
      _mlir_ciface_##name##_linear;
#include "Kernels.inc"
#undef GDN_KERNELS
#undef GDN_BACKWARD_KERNELS

#define GDN_BACKWARD_KERNELS(...)
static const KernelSet table[] = {
#define GDN_KERNELS(algorithm, decay, element, channels, isa, name)            \
  {Algorithm::algorithm,                                                       \
   Decay::decay,                                                               \
   Element::element,                                                           \
   channels,                                                                   \
   Isa::isa,                                                                   \
   #name,                                                                      \
   {{_mlir_ciface_##name##_kv, _mlir_ciface_##name##_kv_l2},                   \
    {_mlir_ciface_##name##_vk, _mlir_ciface_##name##_vk_l2}}},
#include "Kernels.inc"
};

#undef GDN_KERNELS
#undef GDN_BACKWARD_KERNELS

#define GDN_KERNELS(...)
static const BackwardKernelSet backwardTable[] = {
#define GDN_BACKWARD_KERNELS(backward, decay, channels, isa, name)             \
  {Decay::decay,                                                               \
   channels,                                                                   \
   Isa::isa,                                                                   \
   #name,                                                                      \
   _mlir_ciface_##name##_log,                                                  \
   _mlir_ciface_##name##_linear},
#include "Kernels.inc"
};

std::span<const KernelSet> gdn::cpu::allKernels() { return table; }

std::span<const BackwardKernelSet> gdn::cpu::allBackwardKernels() {
  return backwardTable;
}

/// The levels that the CPU has, as a number of them.
static int countLevels() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("x86-64-v3"))
    return 0;
  if (!__builtin_cpu_supports("x86-64-v4"))
    return 1;
  return __builtin_cpu_supports("avx512bf16") ? 3 : 2;
}

/// The levels worth using. Intel's CPUs issue vdpbf16ps at half the rate of
/// fused multiply-adds: there the conversion to float32 is the faster way
/// (148 against 123 GFLOP/s per core, docs/experiments/cpu.md).
static int preferredLevels(int count) {
  return count == 3 && !__builtin_cpu_is("amd") ? 2 : count;
}

const Isa *gdn::cpu::getHostIsa() {
  static constexpr Isa levels[] = {Isa::V3, Isa::V4, Isa::V4BF16};
  static const Isa *host = [] {
    int all = countLevels(), count = preferredLevels(all);
    const char *wanted = std::getenv("GDN_CPU_ISA");
    for (int i = 0; wanted && i < all; ++i)
      if (std::strcmp(wanted, nameOf(levels[i])) == 0)
        count = i + 1;
    return count ? &levels[count - 1] : nullptr;
  }();
  return host;
}

/// The smallest of the kernels that `serves` accepts with at least `channels`
/// channels for this CPU, in its highest level; null if there is none.
template <typename Set, typename Predicate>
static const Set *findSmallest(std::span<const Set> sets, int64_t channels,
                               Predicate serves) {
  const Isa *host = getHostIsa();
  const Set *best = nullptr;
  if (!host)
    return best;
  for (const Set &set : sets) {
    if (!serves(set) || set.channels < channels || set.isa > *host)
      continue;
    bool better = !best || set.channels < best->channels ||
                  (set.channels == best->channels && set.isa > best->isa);
    if (better)
      best = &set;
  }
  return best;
}

const KernelSet *gdn::cpu::findKernel(Algorithm algorithm, Decay decay,
                                      Element element, int64_t channels) {
  return findSmallest(allKernels(), channels, [&](const KernelSet &set) {
    return set.algorithm == algorithm && set.decay == decay &&
           set.element == element;
  });
}

const BackwardKernelSet *gdn::cpu::findBackwardKernel(Decay decay,
                                                      int64_t channels) {
  return findSmallest(
      allBackwardKernels(), channels,
      [&](const BackwardKernelSet &set) { return set.decay == decay; });
}
