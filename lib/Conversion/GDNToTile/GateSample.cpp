//===- GateSample.cpp - What a sample of the gates says of segments -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that follows waits for the kernel that cuts, so a sample is small: some
// tokens, spread over the sequence, of some of the heads. All loads of a head
// are under way at a time; a schedule may begin those of the next heads, too.
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace mlir::gdn;

/// Tokens of a head that are looked at. By four of them the slowest of 128
/// channels is too often one that happened to be slow.
static constexpr int64_t kSampledTokens = 8;
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

/// The head of number `sample`, one of each eighth of all. Heads of one place
/// in each group of a power of two of them are found, too.
static Value sampledHead(Program &p, Value heads, Value sample) {
  TileBuilder &b = p.b;
  constexpr int64_t kParts = support::sampledHeads;
  static_assert(llvm::isPowerOf2_64(kParts), "5 i + 3 takes all places");
  auto plus = [&](Value x, int64_t factor, Value y) -> Value {
    return arith::AddIOp::create(
        b, arith::MulIOp::create(b, x, b.index(factor)), y);
  };
  Value place =
      arith::RemUIOp::create(b, plus(sample, 5, b.index(3)), b.index(kParts));
  return arith::DivUIOp::create(
      b, arith::MulIOp::create(b, heads, plus(sample, kParts, place)),
      b.index(kParts * kParts));
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

/// The number of heads of the sample of which a channel keeps a state over
/// `length` tokens, in i32. A loop: all of their code would take longer to come
/// from memory than it runs.
static Value countLiveChannels(Program &p, Value all, Value tokens,
                               Value length) {
  TileBuilder &b = p.b;
  Value none = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  auto loop = scf::ForOp::create(b, p.zero, b.index(support::sampledHeads),
                                 b.index(1), none);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value h = sampledHead(p, all, loop.getInductionVar());
  SampledHead head = loadHead(p, h, tokens);
  Value isLive =
      arith::ExtUIOp::create(b, b.getI32Type(), keepsChannel(head, length));
  Value live = arith::AddIOp::create(b, loop.getRegionIterArg(0), isLive);
  scf::YieldOp::create(b, live);
  return loop.getResult(0);
}

/// The number of heads of the sample that keep a state over `length` tokens, in
/// i32. All loads are under way at a time.
static Value countLiveHeads(Program &p, Value all, Value tokens, Value length) {
  TileBuilder &b = p.b;
  Value live = arith::ConstantOp::create(b, b.getI32IntegerAttr(0));
  for (int64_t sample = 0; sample < support::sampledHeads; ++sample) {
    Value h = samplePlace(b, all, sample, support::sampledHeads);
    Value isLive = arith::ExtUIOp::create(b, b.getI32Type(),
                                          keepsState(p, h, tokens, length));
    live = arith::AddIOp::create(b, live, isLive);
  }
  return live;
}

Value gdn::callsForShorter(Program &p, Value tokens, Value length) {
  TileBuilder &b = p.b;
  Value all = memref::DimOp::create(b, p["sampled_gate"], 2);
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
  };
  // What is below the least becomes the largest.
  auto [least, most] = p.facts.liveHeads;
  auto isInRange = [&, least = least, most = most](Value live) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                 arith::SubIOp::create(b, live, number(least)),
                                 number(most - least + 1));
  };
  Value no = arith::ConstantOp::create(b, b.getBoolAttr(false));
  // An empty sequence has no token to look at.
  if (p.facts.decay == DecayKind::Channel) {
    // Where the slowest channel has not decayed over fewer tokens, the stage
    // that finds out gives up.
    Value walked = arith::MinUIOp::create(b, length, b.index(kSlowestTokens));
    Value slowest = countInFloat(b, walked);
    b.step("gates");
    Value isEmpty =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, tokens, p.zero);
    return choose(
               p, isEmpty, [&]() -> SmallVector<Value> { return {no}; },
               [&]() -> SmallVector<Value> {
                 return {isInRange(countLiveChannels(p, all, tokens, slowest))};
               })
        .front();
  }
  Value one = b.index(1);
  auto once = scf::ForOp::create(
      b, p.zero, arith::MinUIOp::create(b, tokens, one), one, no);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(once.getBody());
  scf::YieldOp::create(b, isInRange(countLiveHeads(p, all, tokens, length)));
  return once.getResult(0);
}
