//===- GateSample.cpp - What a sample of the gates says of segments -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All that follows waits for the kernel that cuts, so a sample is small: some
// tokens, spread over the sequence, of some of the heads. All loads are under
// way at a time. Gates of channels are not sampled: whoever finds where
// segments begin knows which heads keep a state (ChannelStarts.cpp).
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

/// Tokens of a head that are looked at.
static constexpr int64_t kSampledTokens = 8;

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
  Value one = b.index(1);
  auto once = scf::ForOp::create(
      b, p.zero, arith::MinUIOp::create(b, tokens, one), one, no);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(once.getBody());
  scf::YieldOp::create(b, isInRange(countLiveHeads(p, all, tokens, length)));
  return once.getResult(0);
}
