//===- KernelChoice.cpp - What a call will run ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelChoice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace gdn::cpu;

/// Tokens of a compiled chunk.
static constexpr int64_t kChunkTokens = gdn::manifest::CPUChunkTokens;
/// A further thread must have this much to do. Starting one takes 0.02 ms where
/// its core is free. Between the operations of a model it is not: threads of
/// torch's OpenMP wait there, spinning, and ours gets its turn after
/// milliseconds.
static constexpr double kThreadSeconds = 5e-4;

static const gdn::cost::Core &coreOf(const KernelSet &kernel) {
  using gdn::cost::CoreLevel, gdn::cost::CoreOperand;
  CoreLevel level = kernel.isa == Isa::V3   ? CoreLevel::V3
                    : kernel.isa == Isa::V4 ? CoreLevel::V4
                                            : CoreLevel::V4BF16;
  CoreOperand operand = kernel.element == Element::BF16  ? CoreOperand::BF16
                        : kernel.element == Element::F16 ? CoreOperand::F16
                                                         : CoreOperand::F32;
  return gdn::cost::coreOf(level, operand);
}

/// Tokens of sequence n, as far as they are known.
static int64_t lengthOf(const Problem &p, int64_t n) {
  const Array &cu = p.cuSeqlens;
  if (!cu.isPresent())
    return p.tokens();
  if (!cu.data) // only described: sequences of the same length
    return p.tokens() / std::max<int64_t>(p.sequences(), 1);
  auto at = [&](int64_t i) {
    return loadInteger(cu.data, cu.element, i * cu.strides[0]);
  };
  return at(n + 1) - at(n);
}

/// How much longer kernels with gates per channel take than others of float32:
/// measured on one core of a Xeon, 64 to 2048 tokens, 64 and 128 channels.
static double factorOf(const KernelSet &kernel) {
  if (kernel.decay == Decay::Head)
    return 1;
  return kernel.algorithm == Algorithm::Chunk ? 1.5 : 1.2;
}

static double chunkSeconds(const Problem &p, const KernelSet &kernel) {
  int64_t D = kernel.channels;
  double seconds = 0;
  for (int64_t n = 0; n < p.sequences(); ++n)
    seconds += gdn::cost::chunkedSeconds(coreOf(kernel), lengthOf(p, n), D, D,
                                         kChunkTokens);
  return seconds * factorOf(kernel) * static_cast<double>(p.valueHeads());
}

static double recurrentSeconds(const Problem &p, const KernelSet &kernel) {
  int64_t D = kernel.channels;
  double seconds = 0;
  for (int64_t n = 0; n < p.sequences(); ++n)
    seconds +=
        gdn::cost::recurrentSeconds(coreOf(kernel), lengthOf(p, n), D, D);
  return seconds * factorOf(kernel) * static_cast<double>(p.valueHeads());
}

gdn::cost::Problem gdn::cpu::describe(const Problem &p) {
  auto bytesOf = [](const Array &array) {
    return array.isPresent() ? sizeOf(array.element) : 0;
  };
  cost::Problem problem;
  problem.sequences = p.sequences();
  problem.tokens = p.tokens();
  problem.packed = p.cuSeqlens.isPresent();
  if (p.maxSeqlen > 0)
    problem.longest = p.maxSeqlen;
  problem.keyHeads = p.keyHeads();
  problem.heads = p.valueHeads();
  problem.keyChannels = p.keyChannels();
  problem.valueChannels = p.valueChannels();
  problem.vTiles =
      std::max<int64_t>(1, p.valueChannels() / cost::kVTileChannels);
  problem.dataBytes = sizeOf(p.q.element);
  problem.gateBytes = bytesOf(p.gate) * p.gatesOfHead() + bytesOf(p.beta);
  problem.gatesChannels = p.hasChannelGates();
  problem.stateBytes = bytesOf(p.initialState) + bytesOf(p.finalState);
  problem.stateVFirst = problem.stateBytes != 0 && p.stateVFirst;
  return problem;
}

static int64_t countWorkspace(const Problem &p, const KernelChoice &chosen) {
  int64_t longest = 0;
  for (int64_t n = 0; n < p.sequences(); ++n)
    longest = std::max(longest, lengthOf(p, n));
  int64_t D = chosen.kernel->channels;
  int64_t channels = p.hasChannelGates() ? D : 1;
  int64_t gates = (channels + 1) * longest * sizeOf(Element::F32);
  int64_t states = 3 * D * D * sizeOf(Element::F32);
  int64_t copies = chosen.padded ? 4 * std::min(longest, kSegmentTokens) * D *
                                       sizeOf(chosen.kernel->element)
                                 : 0;
  return chosen.threads * (gates + states + copies);
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

Error gdn::cpu::chooseKernel(const Problem &p, KernelChoice &chosen) {
  if (!getHostIsa())
    return {"RuntimeError",
            "gdn: expected a CPU of level x86-64-v3 (AVX2, FMA) or above, got "
            "an older one"};
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
    return {"RuntimeError", "gdn: expected kernels for " +
                                std::string(nameOf(p.q.element)) + " and " +
                                std::to_string(channels) +
                                " channels in this build, got none"};
  chosen.items = p.sequences() * p.valueHeads();
  chosen.chunkSeconds = chunkSeconds(p, *chunk);
  chosen.recurrentSeconds = recurrentSeconds(p, *recurrent);
  bool isFaster = chosen.recurrentSeconds < chosen.chunkSeconds;
  bool byToken = p.recurrent || (isFaster && !p.hasFixedKernels());
  chosen.kernel = byToken ? recurrent : chunk;
  chosen.padded = chosen.kernel->channels != p.keyChannels() ||
                  chosen.kernel->channels != p.valueChannels() ||
                  chosen.kernel->element != p.q.element || hasGaps(p.q) ||
                  hasGaps(p.k) || hasGaps(p.v) || hasGaps(p.o);
  double seconds = byToken ? chosen.recurrentSeconds : chosen.chunkSeconds;
  chosen.threads = countThreads(p, chosen.items, seconds);
  chosen.seconds = seconds / chosen.threads;
  cost::Problem described = describe(p);
  chosen.flop = cost::countFlop(described);
  chosen.bytes = cost::countBytes(described);
  chosen.workspaceBytes = countWorkspace(p, chosen);
  return {};
}

std::string gdn::cpu::toJson(const Problem &p, const KernelChoice &chosen) {
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
      chosen.kernel->name,
      chosen.kernel->algorithm == Algorithm::Chunk ? "chunk" : "recurrent",
      nameOf(chosen.kernel->isa),
      static_cast<long long>(chosen.kernel->channels),
      chosen.padded ? "true" : "false",
      static_cast<long long>(
          chosen.kernel->algorithm == Algorithm::Chunk ? kChunkTokens : 1),
      static_cast<long long>(chosen.items), chosen.threads,
      static_cast<long long>(p.sequences()), chosen.flop, chosen.bytes,
      static_cast<long long>(chosen.workspaceBytes), chosen.seconds,
      chosen.chunkSeconds, chosen.recurrentSeconds,
      p.recurrent ? "true" : "false", p.hasFixedKernels() ? "true" : "false");
  return text;
}
