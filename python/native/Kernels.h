//===- Kernels.h - The compiled CPU kernels ---------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_KERNELS_H
#define GDN_PYTHON_NATIVE_KERNELS_H

#include "Elements.h"

#include <span>

namespace gdn::cpu {

/// The arguments of a kernel in the compiler's C interface
/// (gdn/Pipelines/Pipelines.h).
template <int rank> struct MemRef {
  void *allocated;
  void *aligned;
  int64_t offset;
  int64_t sizes[rank];
  int64_t strides[rank];
};

/// One item of the grid, a sequence and a value head: q, k, v, beta, gate,
/// initial state, o, final state. B = Hq = H = 1; gates are logarithms, a
/// MemRef<3> of one a token or a MemRef<4> of one a token and key channel.
using Kernel = void (*)(MemRef<4> *q, MemRef<4> *k, MemRef<4> *v,
                        MemRef<3> *beta, void *gate, MemRef<4> *initialState,
                        MemRef<4> *o, MemRef<4> *finalState);

enum class Algorithm : uint8_t {
#define GDN_CPU_ALGORITHM(key) key,
#include "Manifest.inc"
};

/// What a gate decays: the state of a head, or a key channel of it.
enum class Decay : uint8_t {
#define GDN_DECAY(key) key,
#include "Manifest.inc"
};

/// Levels of x86-64 that kernels are compiled for, in ascending order.
enum class Isa : uint8_t {
#define GDN_CPU_ISA(key, name) key,
#include "Manifest.inc"
};

/// The kernels of one size: with states [K, V] and [V, K], without and with
/// normalised q and k.
struct KernelSet {
  Algorithm algorithm;
  Decay decay;
  Element element;
  /// K = V.
  int64_t channels;
  Isa isa;
  /// The name that people see.
  const char *name;
  Kernel kernels[2][2];

  Kernel get(bool stateVFirst, bool l2norm) const {
    return kernels[stateVFirst][l2norm];
  }
};

/// All that this build carries.
std::span<const KernelSet> allKernels();

/// The smallest kernel of at least `channels` channels for this CPU, in its
/// highest level; null if there is none.
const KernelSet *findKernel(Algorithm algorithm, Decay decay, Element element,
                            int64_t channels);

/// The gradients of one item, in float32: q, k, v, beta, gate, initial state,
/// those of o and of the final state; then those of the first six, written.
/// Gates and their gradient are as in `Kernel`.
using BackwardKernel = void (*)(MemRef<4> *q, MemRef<4> *k, MemRef<4> *v,
                                MemRef<3> *beta, void *gate,
                                MemRef<4> *initialState, MemRef<4> *dO,
                                MemRef<4> *dFinalState, MemRef<4> *dQ,
                                MemRef<4> *dK, MemRef<4> *dV, MemRef<3> *dBeta,
                                void *dGate, MemRef<4> *dInitialState);

/// The kernels of one size, with states [K, V]: of gates as logarithms, and of
/// gates as factors, whose gradient divides by none.
struct BackwardKernelSet {
  Decay decay;
  /// K = V.
  int64_t channels;
  Isa isa;
  /// The name that people see.
  const char *name;
  BackwardKernel log, linear;
};

std::span<const BackwardKernelSet> allBackwardKernels();

/// As `findKernel`.
const BackwardKernelSet *findBackwardKernel(Decay decay, int64_t channels);

constexpr const char *nameOf(Isa isa) {
  constexpr const char *names[] = {
#define GDN_CPU_ISA(key, name) name,
#include "Manifest.inc"
  };
  return names[static_cast<int>(isa)];
}

/// The fastest level of this CPU, or the one of its levels that the environment
/// variable GDN_CPU_ISA names; null if it has none.
const Isa *getHostIsa();

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_KERNELS_H
