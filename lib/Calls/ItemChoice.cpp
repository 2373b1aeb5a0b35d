//===- ItemChoice.cpp - What a call on a CPU will run ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Items.h"
#include "Target.h"

#include <cstdio>

using namespace gdn::calls;
namespace cost = gdn::cost;

/// A further thread must have this much to do. Starting one takes 0.02 ms where
/// its core is free. Between the operations of a model it is not: threads of
/// torch's OpenMP wait there, spinning, and ours gets its turn after
/// milliseconds.
static constexpr double kThreadSeconds = 5e-4;
/// A backward is taken for this many times the forward in chunks. It decides on
/// threads alone.
static constexpr double kBackwardCost = 4.0;

[[noreturn]] static void refuseItems(const std::string &of, int64_t channels) {
  refuse(GDN_ERROR_UNSUPPORTED_DEVICE, "expected kernels for " + of +
                                           std::to_string(channels) +
                                           " channels in this build, got none");
}

/// The functions of an op for the fewest channels that hold a call's, in the
/// highest level that this CPU runs; null if there are none.
static const GdnItemDesc *findItems(const GdnCallTable &table,
                                    const ItemCall &p, std::string_view op,
                                    int32_t dtype) {
  GdnDeviceInfo cpu = {};
  cpu.struct_size = sizeof(cpu);
  gdnDeviceGetInfo(GDN_DEVICE_CPU, &cpu);
  if (!cpu.compute_capability)
    refuse(GDN_ERROR_UNSUPPORTED_DEVICE,
           "expected a CPU of level x86-64-v3 (AVX2, FMA) or above, got an "
           "older one");
  const int function =
      op == kBackwardOp ? p.backwardFunction() : p.forwardFunction();
  const GdnItemDesc *best = nullptr;
  for (int32_t i = 0; i < table.num_items; ++i) {
    const GdnItemDesc &one = table.items[i];
    bool serves =
        one.dtype == dtype && one.has_channel_gates == p.hasChannelGates &&
        one.channels >= p.channels() && one.level >= cpu.compute_capability &&
        one.functions[function] && isCalled(one.op, op);
    bool isBetter = !best || one.channels < best->channels ||
                    (one.channels == best->channels && one.level < best->level);
    if (serves && isBetter)
      best = &one;
  }
  return best;
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

/// What all heads of the sequences take one thread.
static double predictSeconds(const ItemCall &p, const GdnItemDesc &items,
                             const Ranges &sequences) {
  const int64_t D = items.channels;
  const bool isWide = p.hasChannelGates;
  // Both count levels and types from the first one on.
  const cost::Core &core = cost::coreOf(
      static_cast<cost::CoreLevel>(-1 - items.level),
      static_cast<cost::CoreOperand>(items.dtype - GDN_DTYPE_BF16));
  double seconds = 0;
  for (const Range &range : sequences)
    seconds += items.op == kChunkOp
                   ? cost::chunkedSeconds(core, range.length(), D, D,
                                          kChunkTokens, isWide)
                   : cost::recurrentSeconds(core, range.length(), D, D, isWide);
  return seconds * static_cast<double>(p.valueHeads());
}

/// Threads that are worth starting for so many items, which take one thread
/// `seconds`.
static int countThreads(const ItemCall &p, int64_t items, double seconds) {
  double useful = std::clamp(seconds / kThreadSeconds, 1.0, 4096.0);
  return static_cast<int>(
      std::min({static_cast<double>(p.threads), useful,
                static_cast<double>(std::max<int64_t>(items, 1))}));
}

/// Whether f16 may not hold o as a kernel writes it, but holds what the caller
/// asked for. The scale of kernels is K^(-1/2), and a smaller one comes after.
static bool overflowsBeforeScale(const ItemCall &p) {
  double keys = static_cast<double>(p.keyChannels());
  return p.element == GDN_DTYPE_F16 &&
         std::abs(p.scale) * std::sqrt(keys) < 1 - 1e-6;
}

ItemChoice gdn::calls::chooseItems(const GdnCallTable &table, const ItemCall &p,
                                   const Ranges &sequences) {
  // Kernels with gates per channel compute in float32.
  bool isWide = overflowsBeforeScale(p) || p.hasChannelGates;
  int32_t array = isWide ? GDN_DTYPE_F32 : p.element;
  // Kernels token by token compute in float32 whatever the type of arrays.
  int32_t operand = p.isInFloat32 ? GDN_DTYPE_F32 : array;
  const GdnItemDesc *chunk = findItems(table, p, kChunkOp, operand),
                    *recurrent = findItems(table, p, kTokenOp, array);
  // One will do for calls that do not say which.
  if (!recurrent && !p.isByToken)
    recurrent = chunk;
  if (!chunk && !p.isFixed)
    chunk = recurrent;
  if (!chunk || !recurrent)
    refuseItems(std::string(typeName(p.element)) + " and ", p.channels());
  ItemChoice chosen;
  chosen.chunkSeconds = predictSeconds(p, *chunk, sequences);
  chosen.recurrentSeconds = predictSeconds(p, *recurrent, sequences);
  bool isFaster = chosen.recurrentSeconds < chosen.chunkSeconds;
  bool byToken = p.isByToken || (isFaster && !p.isFixed);
  chosen.items = byToken ? recurrent : chunk;
  chosen.threads =
      countThreads(p, std::ssize(sequences) * p.valueHeads(), chosen.seconds());
  return chosen;
}

/// The functions of a backward. What they take follows from the forward.
static ItemChoice chooseBackward(const GdnCallTable &table, const ItemCall &p,
                                 const Ranges &sequences) {
  ItemChoice chosen = chooseItems(table, p, sequences);
  chosen.items = findItems(table, p, kBackwardOp, GDN_DTYPE_F32);
  if (!chosen.items)
    refuseItems("gradients of ", p.channels());
  chosen.chunkSeconds *= kBackwardCost;
  chosen.threads =
      countThreads(p, std::ssize(sequences) * p.keyHeads(), chosen.seconds());
  return chosen;
}

void gdn::calls::planItems(const GdnCallTable &table, const Call &call,
                           const ItemCall &p, GdnCallPlan &plan) {
  if (call.savedTokens())
    call.refuse("state_interval",
                "a GPU for a call that saves states or reads them", "the CPU",
                GDN_ERROR_NOT_SERVED);
  const Ranges sequences = rangesOf(p);
  ItemChoice chosen = call.isBackward() ? chooseBackward(table, p, sequences)
                                        : chooseItems(table, p, sequences);
  plan = {};
  plan.struct_size = sizeof(plan);
  plan.table = &table;
  plan.items = chosen.items;
  plan.threads = chosen.threads;
  plan.seconds = chosen.seconds() / chosen.threads;
}

void gdn::calls::runItems(const GdnCallPlan &plan, const Call &call,
                          const ItemCall &p) {
  const Ranges sequences = rangesOf(p);
  if (call.isBackward())
    return runBackward(p, *plan.items, plan.threads, sequences);
  // Nothing but the caller cuts sequences on a CPU.
  if (call.asksForSegments())
    runInSegments(*plan.table, p, call.get().split_value, sequences);
  else
    runForward(p, *plan.items, plan.threads, sequences);
  // Of tokens that belong to no sequence: those from the last boundary on, as
  // it was read.
  if (p.cuSeqlens.isPresent())
    clearOutputs(p, {.begin = sequences.back().end, .end = p.tokens()});
}

//===----------------------------------------------------------------------===//
// The description
//===----------------------------------------------------------------------===//

/// Memory that a call of such sequences allocates while it runs.
static int64_t countWorkspace(const ItemCall &p, const ItemChoice &chosen,
                              const Ranges &sequences) {
  int64_t longest = 0;
  for (const Range &range : sequences)
    longest = std::max(longest, range.length());
  int64_t D = chosen.items->channels;
  int64_t channels = p.hasChannelGates ? D : 1;
  int64_t gates = (channels + 1) * longest * sizeOf(GDN_DTYPE_F32);
  int64_t states = 3 * D * D * sizeOf(GDN_DTYPE_F32);
  int64_t copies = isPadded(p, *chosen.items)
                       ? 4 * std::min(longest, kSegmentTokens) * D *
                             sizeOf(chosen.items->dtype)
                       : 0;
  return chosen.threads * (gates + states + copies);
}

/// Why a call does not run by the other kernels.
static std::string alternativeTo(const Call &call, const ItemCall &p,
                                 const ItemChoice &chosen) {
  double chunk = chosen.chunkSeconds * 1e3,
         recurrent = chosen.recurrentSeconds * 1e3;
  if (p.isFixed && !p.isByToken)
    return alternative("recurrent",
                       "%s: no length of a sequence chooses the kernels",
                       sayOfSplit(call, "").c_str());
  if (chosen.items->op == kChunkOp)
    return alternative(
        "recurrent",
        "token by token: %.3g ms predicted, chunks %.3g ms (one thread)",
        recurrent, chunk);
  if (p.isByToken)
    return alternative(
        "chunk",
        "the function computes token by token (chunks: %.3g ms, one thread)",
        chunk);
  return alternative(
      "chunk", "chunks: %.3g ms predicted, token by token %.3g ms (one thread)",
      chunk, recurrent);
}

std::string gdn::calls::describeItems(const GdnCallTable &table,
                                      const Call &call, const ItemCall &p) {
  const Ranges sequences = rangesOf(p);
  const ItemChoice chosen = chooseItems(table, p, sequences);
  const GdnItemDesc &items = *chosen.items;
  bool isChunk = items.op == kChunkOp;
  cost::Workload counted = describe(call, signatureOf(call, kChunkOp));
  counted.stateBytes =
      sizeOf(p.initialState.tensor.dtype) + sizeOf(p.finalState.tensor.dtype);
  auto number = [](int64_t value) { return static_cast<long long>(value); };
  // FLOP are those of the recurrence in chunks of 64, the measure that kernels
  // of all kinds are compared by; bytes those of all arrays, read or written
  // once.
  char text[1024];
  std::snprintf(
      text, sizeof(text),
      "{\"device\": \"cpu\", \"kernel\": \"%s\", \"algorithm\": \"%s\", "
      "\"isa\": \"%s\", \"kernel_channels\": %d, \"padded\": %s, "
      "\"chunk_size\": %lld, \"items\": %lld, \"threads\": %d, "
      "\"schedule\": \"items\", \"ctas\": 0, "
      "\"sequences\": %lld, \"flop\": %.0f, \"bytes\": %.0f, "
      "\"workspace_bytes\": %lld, \"seconds\": %.9g, \"alternatives\": [",
      items.name, isChunk ? "chunk" : "recurrent", items.isa, items.channels,
      isPadded(p, items) ? "true" : "false", number(isChunk ? kChunkTokens : 1),
      number(p.sequences * p.valueHeads()), chosen.threads, number(p.sequences),
      cost::countFlop(counted), cost::countBytes(counted),
      number(countWorkspace(p, chosen, sequences)),
      chosen.seconds() / chosen.threads);
  return text + alternativeTo(call, p, chosen) + "]}";
}
