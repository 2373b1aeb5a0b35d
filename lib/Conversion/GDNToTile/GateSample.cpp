//===- GateSample.cpp - What a sample of the gates says of segments -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that follows waits for the kernel that cuts, so a sample is small: some
// tokens, spread over the sequence, of some of the heads. All of its loads are
// under way at a time.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace mlir;
using namespace mlir::gdn;

/// Tokens of a head that are looked at. By four of them the slowest of 128
/// channels is too often one that happened to be slow.
static constexpr int64_t kSampledTokens = 8;
/// With a gate a channel, heads that are looked at, which one warp activates,
/// and the bytes of their gates that its registers have room for.
static constexpr int64_t kHeadsOfChannels = 4, kGroupBytes = 16384;
/// Tokens in which the slowest channel of a head must decay if that is to be
/// found: two thirds of those that are walked over at most, since keys may slow
/// the bound of those.
static constexpr int64_t kSlowestTokens = 64;

/// Of `samples` of `size`, spread evenly, the place of number `sample`.
static Value samplePlace(TileBuilder &b, Value size, int64_t sample,
                         int64_t samples) {
  return arith::DivUIOp::create(
      b, arith::MulIOp::create(b, size, b.index(2 * sample + 1)),
      b.index(2 * samples));
}

/// The token of number `sample`.
static Value sampledToken(Program &p, Value tokens, int64_t sample) {
  return arith::AddIOp::create(
      p.b, p.begin, samplePlace(p.b, tokens, sample, kSampledTokens));
}

/// A number of tokens in f32.
static Value countInFloat(TileBuilder &b, Value tokens) {
  return arith::SIToFPOp::create(
      b, b.getF32Type(), arith::IndexCastOp::create(b, b.getI32Type(), tokens));
}

/// Whether head `h` keeps a state over `length` tokens, by its log gates.
static Value keepsState(Program &p, Value h, Value tokens, Value length) {
  TileBuilder &b = p.b;
  Value sum = b.scalar(0.0);
  for (int64_t sample = 0; sample < kSampledTokens; ++sample) {
    Value t = sampledToken(p, tokens, sample);
    Value gate =
        memref::LoadOp::create(b, p["sampled_gate"], ValueRange{p.batch, t, h});
    sum = b.add(sum, b.f32(gate));
  }
  Value decay =
      b.scaled(b.mul(sum, countInFloat(b, length)), 1.0 / kSampledTokens);
  return arith::CmpFOp::create(b, arith::CmpFPredicate::OGT, decay,
                               b.scalar(std::log(p.facts.tolerance)));
}

namespace {
/// A head whose gates, one a channel, are looked at: its program, and the gates
/// as they lie in memory.
struct SampledHead {
  Program program;
  SmallVector<Value> gates;
};
} // namespace

static SampledHead loadHead(Program &p, Value h, Value tokens) {
  SampledHead head = {p, {}};
  head.program.facts.C = 1;
  head.program.head = h;
  for (auto [name, array] : {std::pair("gate", "sampled_gate"),
                             {"a_log", "sampled_a_log"},
                             {"dt_bias", "sampled_dt_bias"}})
    head.program.arrays[name] = p[array];
  for (int64_t sample = 0; sample < kSampledTokens; ++sample)
    head.gates.push_back(
        loadChannelGate(head.program, sampledToken(p, tokens, sample)));
  head.program.fetchGateParameters();
  return head;
}

/// Whether a channel of a head keeps a state over so many tokens, in f32.
static Value keepsChannel(SampledHead &head, Value length) {
  Program &p = head.program;
  TileBuilder &b = p.b;
  p.prepareGateParameters();
  Value sum;
  for (Value gate : head.gates) {
    Value log2 = activateChannelGate(p, gate);
    sum = sum ? b.add(sum, log2) : log2;
  }
  Value decay = b.mul(sum, b.splat(length, p.facts.K));
  return arith::CmpFOp::create(
      b, arith::CmpFPredicate::OGT, b.maximum(decay),
      b.scalar(kSampledTokens * std::log2(p.facts.tolerance)));
}

/// Tells `report` for each of some heads whether a channel of it keeps a state.
static void findLiveChannels(Program &p, ArrayRef<Value> heads, Value tokens,
                             Value length, function_ref<void(Value)> report) {
  auto type = cast<MemRefType>(p["sampled_gate"].getType());
  int64_t bytes =
      kSampledTokens * p.facts.K * type.getElementTypeBitWidth() / 8;
  size_t group = std::max<int64_t>(kGroupBytes / bytes, 1);
  while (!heads.empty()) {
    size_t count = std::min(group, heads.size());
    std::vector<SampledHead> sampled;
    for (Value head : heads.take_front(count))
      sampled.push_back(loadHead(p, head, tokens));
    for (SampledHead &head : sampled)
      report(keepsChannel(head, length));
    heads = heads.drop_front(count);
  }
}

/// Tells `report` for each head of the sample whether it keeps a state over
/// `length` tokens. With a gate a channel over fewer: where the slowest channel
/// has not decayed by then, the stage that finds out gives up.
static void findLiveHeads(Program &p, Value tokens, Value length,
                          function_ref<void(Value)> report) {
  TileBuilder &b = p.b;
  bool hasChannels = p.facts.decay == DecayKind::Channel;
  int64_t count = hasChannels ? kHeadsOfChannels : support::sampledHeads;
  Value all = memref::DimOp::create(b, p["sampled_gate"], 2);
  SmallVector<Value> heads;
  for (int64_t sample = 0; sample < count; ++sample) {
    heads.push_back(samplePlace(b, all, sample, count));
    if (!hasChannels)
      report(keepsState(p, heads.back(), tokens, length));
  }
  if (!hasChannels)
    return;
  Value walked = arith::MinUIOp::create(b, length, b.index(kSlowestTokens));
  findLiveChannels(p, heads, tokens, countInFloat(b, walked), report);
}

Value gdn::callsForShorter(Program &p, Value tokens, Value length) {
  TileBuilder &b = p.b;
  Value one = b.index(1),
        no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  // Once, unless there is no token: all loads are under way at a time.
  auto once = scf::ForOp::create(
      b, p.zero, arith::MinUIOp::create(b, tokens, one), one, no);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(once.getBody());
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  Value live = number(0);
  findLiveHeads(p, tokens, length, [&](Value isLive) {
    Value one = arith::ExtUIOp::create(b, b.getI32Type(), isLive);
    live = arith::AddIOp::create(b, live, one);
  });
  // What is below the least becomes the largest.
  auto [least, most] = p.facts.liveHeads;
  scf::YieldOp::create(b, ValueRange{arith::CmpIOp::create(
                              b, arith::CmpIPredicate::ult,
                              arith::SubIOp::create(b, live, number(least)),
                              number(most - least + 1))});
  return once.getResult(0);
}
