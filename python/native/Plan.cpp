//===- Plan.cpp - What a call will run ------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace gdn::cpu;

namespace {
/// What one core does with a kernel, by which calls are planned. Rough on
/// purpose: a plan only asks which way is faster, and whether a thread pays.
struct Rate {
  /// Kernels of this level.
  Isa isa;
  Element element;
  /// GFLOP/s of the chunked kernels, counted as in Plan::flop.
  double chunkGflops;
  /// State entries that the recurrent kernels update a nanosecond.
  double recurrentUpdates;
};
} // namespace

// Measured on one core of a Xeon with AVX512_BF16 (docs/Performance.md).
static constexpr Rate rates[] = {
    {Isa::V3, Element::BF16, 96, 4.2},      {Isa::V3, Element::F16, 90, 4.2},
    {Isa::V3, Element::F32, 103, 4.2},      {Isa::V4, Element::BF16, 148, 4.3},
    {Isa::V4, Element::F16, 156, 4.3},      {Isa::V4, Element::F32, 177, 4.3},
    {Isa::V4BF16, Element::BF16, 150, 4.3},
};
/// Tokens of a compiled chunk.
static constexpr int64_t kChunkTokens = 32;
/// What an item costs besides its tokens: buffers, the state in and out.
static constexpr double kItemSeconds = 5e-6;
/// A further thread must have this much to do.
static constexpr double kThreadSeconds = 1e-4;

static const Rate &rateOf(const KernelSet &kernel) {
  for (const Rate &rate : rates)
    if (rate.isa == kernel.isa && rate.element == kernel.element)
      return rate;
  return rates[0];
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

static double chunkSeconds(const Problem &p, const KernelSet &kernel) {
  auto D = static_cast<double>(kernel.channels);
  double flopsOfChunk = kChunkTokens * (6 * D * D + 8 * 64 * D);
  double seconds = 0;
  for (int64_t n = 0; n < p.sequences(); ++n) {
    int64_t chunks = (lengthOf(p, n) + kChunkTokens - 1) / kChunkTokens;
    seconds += kItemSeconds +
               chunks * flopsOfChunk / (rateOf(kernel).chunkGflops * 1e9);
  }
  return seconds * p.valueHeads();
}

static double recurrentSeconds(const Problem &p, const KernelSet &kernel) {
  auto D = static_cast<double>(kernel.channels);
  double tokens = 0;
  for (int64_t n = 0; n < p.sequences(); ++n)
    tokens += static_cast<double>(lengthOf(p, n));
  double items = p.sequences() * kItemSeconds;
  return p.valueHeads() *
         (items + tokens * D * D / (rateOf(kernel).recurrentUpdates * 1e9));
}

double gdn::cpu::countFlop(const Problem &p) {
  auto K = static_cast<double>(p.keyChannels());
  auto V = static_cast<double>(p.valueChannels());
  return static_cast<double>(p.batches()) * p.tokens() * p.valueHeads() *
         (6 * K * V + 4 * 64 * (K + V));
}

double gdn::cpu::countBytes(const Problem &p) {
  double keys = 2.0 * p.batches() * p.tokens() * p.keyHeads() *
                p.keyChannels() * sizeOf(p.q.element);
  double heads = static_cast<double>(p.batches()) * p.tokens() * p.valueHeads();
  double values = 2 * heads * p.valueChannels() * sizeOf(p.v.element);
  double gates = (p.gate.isPresent() ? sizeOf(p.gate.element) : 0) +
                 (p.beta.isPresent() ? sizeOf(p.beta.element) : 0);
  double state = static_cast<double>(p.sequences()) * p.valueHeads() *
                 p.keyChannels() * p.valueChannels();
  double states = 0;
  for (const Array *array : {&p.initialState, &p.finalState})
    if (array->isPresent())
      states += state * sizeOf(array->element);
  return keys + values + heads * gates + states;
}

static int64_t countWorkspace(const Problem &p, const Plan &plan) {
  int64_t longest = 0;
  for (int64_t n = 0; n < p.sequences(); ++n)
    longest = std::max(longest, lengthOf(p, n));
  int64_t D = plan.kernel->channels;
  int64_t gates = 2 * longest * sizeOf(Element::F32);
  int64_t states = 3 * D * D * sizeOf(Element::F32);
  int64_t copies = plan.padded ? 4 * std::min(longest, kSegmentTokens) * D *
                                     sizeOf(p.q.element)
                               : 0;
  return plan.threads * (gates + states + copies);
}

Error gdn::cpu::makePlan(const Problem &p, Plan &plan) {
  if (!getHostIsa())
    return {"RuntimeError",
            "gdn: expected a CPU of level x86-64-v3 (AVX2, FMA) or above, got "
            "an older one"};
  int64_t channels = std::max(p.keyChannels(), p.valueChannels());
  const KernelSet *chunk = findKernel(Algorithm::Chunk, p.q.element, channels);
  const KernelSet *recurrent =
      findKernel(Algorithm::Recurrent, p.q.element, channels);
  if (!chunk || !recurrent)
    return {"RuntimeError", "gdn: expected kernels for " +
                                std::string(nameOf(p.q.element)) + " and " +
                                std::to_string(channels) +
                                " channels in this build, got none"};
  plan.items = p.sequences() * p.valueHeads();
  plan.chunkSeconds = chunkSeconds(p, *chunk);
  plan.recurrentSeconds = recurrentSeconds(p, *recurrent);
  bool byToken = p.recurrent || plan.recurrentSeconds < plan.chunkSeconds;
  plan.kernel = byToken ? recurrent : chunk;
  plan.padded = plan.kernel->channels != p.keyChannels() ||
                plan.kernel->channels != p.valueChannels();
  double seconds = byToken ? plan.recurrentSeconds : plan.chunkSeconds;
  double useful = std::clamp(seconds / kThreadSeconds, 1.0, 4096.0);
  plan.threads = static_cast<int>(
      std::min({static_cast<double>(p.threads), useful,
                static_cast<double>(std::max<int64_t>(plan.items, 1))}));
  plan.seconds = seconds / plan.threads;
  plan.flop = countFlop(p);
  plan.bytes = countBytes(p);
  plan.workspaceBytes = countWorkspace(p, plan);
  return {};
}

std::string gdn::cpu::toJson(const Problem &p, const Plan &plan) {
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
      "\"forced_recurrent\": %s}",
      plan.kernel->name,
      plan.kernel->algorithm == Algorithm::Chunk ? "chunk" : "recurrent",
      nameOf(plan.kernel->isa), static_cast<long long>(plan.kernel->channels),
      plan.padded ? "true" : "false",
      static_cast<long long>(
          plan.kernel->algorithm == Algorithm::Chunk ? kChunkTokens : 1),
      static_cast<long long>(plan.items), plan.threads,
      static_cast<long long>(p.sequences()), plan.flop, plan.bytes,
      static_cast<long long>(plan.workspaceBytes), plan.seconds,
      plan.chunkSeconds, plan.recurrentSeconds, p.recurrent ? "true" : "false");
  return text;
}
