//===- KernelChoice.cpp - What a call will run ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CPU.h"

#include <cstdio>
#include <cstring>

using namespace gdn::cpu;
namespace cost = gdn::cost;
using gdn::cost::CoreOperand;

//===----------------------------------------------------------------------===//
// The kernels, and which of them run here
//===----------------------------------------------------------------------===//

// The build writes a line for each function, and one for each set:
// GDN_KERNELS(algorithm, decay, element, channels, isa, name, functions...).
#define GDN_KERNEL(name) extern "C" void name();
#include "Kernels.inc"

static const KernelSet table[] = {
#define GDN_KERNELS(algorithm, decay, element, channels, isa, name, ...)       \
  {Algorithm::algorithm, Decay::decay, Element::element, channels, Isa::isa,   \
   CoreOperand::element, name,         {__VA_ARGS__}},
#include "Kernels.inc"
};

std::span<const KernelSet> gdn::cpu::allKernels() { return table; }

static constexpr const char *isaNames[] = {
#define GDN_CPU_ISA(key, name) name,
#include "Manifest.inc"
};

/// How many levels the CPU has, from the lowest one on, as far as they are
/// worth using or the environment variable GDN_CPU_ISA names them.
static int countLevels() {
  __builtin_cpu_init();
  const bool has[] = {__builtin_cpu_supports("x86-64-v3") != 0,
                      __builtin_cpu_supports("x86-64-v4") != 0,
                      __builtin_cpu_supports("avx512bf16") != 0};
  int all = static_cast<int>(std::find(has, std::end(has), false) - has);
  // Intel's CPUs issue vdpbf16ps at half the rate of fused multiply-adds: there
  // the conversion to float32 is the faster way (148 against 123 GFLOP/s per
  // core, docs/experiments/cpu.md).
  int count = all == 3 && !__builtin_cpu_is("amd") ? 2 : all;
  const char *wanted = std::getenv("GDN_CPU_ISA");
  for (int i = 0; wanted && i < all; ++i)
    if (std::strcmp(wanted, isaNames[i]) == 0)
      count = i + 1;
  return count;
}

static const int numLevels = countLevels();

const char *gdn::cpu::getIsa() {
  return numLevels ? isaNames[numLevels - 1] : "none";
}

const KernelSet *gdn::cpu::findKernel(Algorithm algorithm, Decay decay,
                                      Element element, int64_t channels) {
  const KernelSet *best = nullptr;
  for (const KernelSet &set : table) {
    bool serves = set.algorithm == algorithm && set.decay == decay &&
                  set.element == element && set.channels >= channels &&
                  static_cast<int>(set.isa) < numLevels;
    bool isBetter = !best || set.channels < best->channels ||
                    (set.channels == best->channels && set.isa > best->isa);
    if (serves && isBetter)
      best = &set;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// Tokens of a compiled chunk.
static constexpr int64_t kChunkTokens = gdn::manifest::CPUChunkTokens;
/// A further thread must have this much to do. Starting one takes 0.02 ms where
/// its core is free. Between the operations of a model it is not: threads of
/// torch's OpenMP wait there, spinning, and ours gets its turn after
/// milliseconds.
static constexpr double kThreadSeconds = 5e-4;

/// What all heads of the sequences take one thread.
static double predictSeconds(const Problem &p, const KernelSet &kernel,
                             const Ranges &sequences) {
  const int64_t D = kernel.channels;
  const bool isWide = p.hasChannelGates();
  const cost::Core &core = cost::coreOf(kernel.isa, kernel.operand);
  double seconds = 0;
  for (const Range &range : sequences)
    seconds += kernel.algorithm == Algorithm::Chunk
                   ? cost::chunkedSeconds(core, range.length(), D, D,
                                          kChunkTokens, isWide)
                   : cost::recurrentSeconds(core, range.length(), D, D, isWide);
  return seconds * static_cast<double>(p.valueHeads());
}

/// Whether the channels of a head do not lie side by side.
static bool hasGaps(const Array &array) {
  return array.sizes[3] > 1 && array.strides[3] != 1;
}

int gdn::cpu::countThreads(const Problem &p, int64_t items, double seconds) {
  double useful = std::clamp(seconds / kThreadSeconds, 1.0, 4096.0);
  return static_cast<int>(
      std::min({static_cast<double>(p.threads), useful,
                static_cast<double>(std::max<int64_t>(items, 1))}));
}

/// Whether f16 may not hold o as a kernel writes it, but holds what the caller
/// asked for. The scale of kernels is K^(-1/2), and a smaller one comes after.
static bool overflowsBeforeScale(const Problem &p) {
  double keys = static_cast<double>(p.keyChannels());
  return p.q.element == Element::F16 &&
         std::abs(p.scale) * std::sqrt(keys) < 1 - 1e-6;
}

KernelChoice gdn::cpu::chooseKernel(const Problem &p, const Ranges &sequences) {
  if (!numLevels)
    fail("gdn", "a CPU of level x86-64-v3 (AVX2, FMA) or above", "an older one",
         "RuntimeError");
  int64_t channels = std::max(p.keyChannels(), p.valueChannels());
  Decay decay = p.hasChannelGates() ? Decay::Channel : Decay::Head;
  // Kernels with gates per channel compute in float32.
  bool isWide = overflowsBeforeScale(p) || p.hasChannelGates();
  Element array = isWide ? Element::F32 : p.q.element;
  // Kernels token by token compute in float32 whatever the type of arrays.
  Element operand = p.float32Arithmetic ? Element::F32 : array;
  const KernelSet *chunk =
      findKernel(Algorithm::Chunk, decay, operand, channels);
  const KernelSet *recurrent =
      findKernel(Algorithm::Recurrent, decay, array, channels);
  if (!chunk || !recurrent)
    fail("gdn",
         "kernels for " + std::string(nameOf(p.q.element)) + " and " +
             std::to_string(channels) + " channels in this build",
         "none", "RuntimeError");
  KernelChoice chosen;
  chosen.chunkSeconds = predictSeconds(p, *chunk, sequences);
  chosen.recurrentSeconds = predictSeconds(p, *recurrent, sequences);
  bool isFaster = chosen.recurrentSeconds < chosen.chunkSeconds;
  bool byToken = p.recurrent || (isFaster && !p.hasFixedKernels());
  chosen.kernel = byToken ? recurrent : chunk;
  chosen.padded = chosen.kernel->channels != p.keyChannels() ||
                  chosen.kernel->channels != p.valueChannels() ||
                  chosen.kernel->element != p.q.element || hasGaps(p.q) ||
                  hasGaps(p.k) || hasGaps(p.v) || hasGaps(p.o);
  double seconds = byToken ? chosen.recurrentSeconds : chosen.chunkSeconds;
  chosen.threads =
      countThreads(p, std::ssize(sequences) * p.valueHeads(), seconds);
  return chosen;
}

/// The call as the cost model counts its work.
static cost::Problem countedOf(const Problem &p) {
  // That of an absent array has no bytes.
  auto bytesOf = [](const Array &array) { return sizeOf(array.element); };
  cost::Problem problem;
  problem.sequences = p.sequences();
  problem.tokens = p.tokens();
  problem.packed = p.cuSeqlens.isPresent();
  problem.keyHeads = p.keyHeads();
  problem.heads = p.valueHeads();
  problem.keyChannels = p.keyChannels();
  problem.valueChannels = p.valueChannels();
  problem.dataBytes = sizeOf(p.q.element);
  problem.gateBytes = bytesOf(p.gate) * p.gatesOfHead() + bytesOf(p.beta);
  problem.stateBytes = bytesOf(p.initialState) + bytesOf(p.finalState);
  return problem;
}

/// Memory that a call of such sequences allocates while it runs.
static int64_t countWorkspace(const Problem &p, const KernelChoice &chosen,
                              const Ranges &sequences) {
  int64_t longest = 0;
  for (const Range &range : sequences)
    longest = std::max(longest, range.length());
  int64_t D = chosen.kernel->channels;
  int64_t channels = p.hasChannelGates() ? D : 1;
  int64_t gates = (channels + 1) * longest * sizeOf(Element::F32);
  int64_t states = 3 * D * D * sizeOf(Element::F32);
  int64_t copies = chosen.padded ? 4 * std::min(longest, kSegmentTokens) * D *
                                       sizeOf(chosen.kernel->element)
                                 : 0;
  return chosen.threads * (gates + states + copies);
}

std::string gdn::cpu::describe(const Problem &p) {
  const Ranges sequences = rangesOf(p);
  const KernelChoice chosen = chooseKernel(p, sequences);
  const KernelSet &kernel = *chosen.kernel;
  bool isChunk = kernel.algorithm == Algorithm::Chunk;
  double seconds = isChunk ? chosen.chunkSeconds : chosen.recurrentSeconds;
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  auto truth = [](bool value) { return value ? "true" : "false"; };
  // FLOP are those of the recurrence in chunks of 64, the measure that kernels
  // of all kinds are compared by; bytes those of all arrays, read or written
  // once.
  char text[1024];
  std::snprintf(
      text, sizeof(text),
      "{\"device\": \"cpu\", \"kernel\": \"%s\", \"algorithm\": \"%s\", "
      "\"isa\": \"%s\", \"kernel_channels\": %lld, \"padded\": %s, "
      "\"chunk_size\": %lld, \"items\": %lld, \"threads\": %d, "
      "\"schedule\": \"items\", \"ctas\": 0, "
      "\"sequences\": %lld, \"flop\": %.0f, \"bytes\": %.0f, "
      "\"workspace_bytes\": %lld, \"seconds\": %.9g, "
      "\"chunk_seconds\": %.9g, \"recurrent_seconds\": %.9g, "
      "\"forced_recurrent\": %s, \"fixed_kernels\": %s}",
      kernel.name, isChunk ? "chunk" : "recurrent",
      isaNames[static_cast<int>(kernel.isa)], number(kernel.channels),
      truth(chosen.padded), number(isChunk ? kChunkTokens : 1),
      number(p.sequences() * p.valueHeads()), chosen.threads,
      number(p.sequences()), cost::countFlop(countedOf(p)),
      cost::countBytes(countedOf(p)),
      number(countWorkspace(p, chosen, sequences)), seconds / chosen.threads,
      chosen.chunkSeconds, chosen.recurrentSeconds, truth(p.recurrent),
      truth(p.hasFixedKernels()));
  return text;
}

void gdn::cpu::run(const Problem &p) {
  if (p.kind == Kind::Saving)
    fail("gdn", "a GPU for a forward that saves", "the CPU",
         "NotImplementedError");
  check(p);
  checkMemory(p);
  const Ranges sequences = rangesOf(p);
  if (p.kind == Kind::Backward)
    return runBackward(p, sequences);
  // Nothing but the caller cuts sequences on a CPU.
  if (p.hasFixedKernels() || (p.split == GDN_SPLIT_SEGMENTS && p.splitBy > 1))
    runInSegments(p, sequences);
  else
    runForward(p, chooseKernel(p, sequences), sequences);
  // Of tokens that belong to no sequence: those from the last boundary on, as
  // it was read.
  if (p.cuSeqlens.isPresent())
    clearOutputs(p, {.begin = sequences.back().end, .end = p.tokens()});
}
