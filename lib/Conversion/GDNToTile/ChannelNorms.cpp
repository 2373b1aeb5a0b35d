//===- ChannelNorms.cpp - Gradients of rows in front of their norm --------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If y = r x was normalised, dx = r (dy - y (y . dy)) (spec 5.5), and the inner
// product has all of a row. Pieces of K are made by different warps of a
// kernel, so each piece takes the row dots of the others.
//
//===----------------------------------------------------------------------===//

#include "ChannelRows.h"
#include "GradientGroups.h"

using namespace mlir;
using namespace mlir::gdn;

void gdn::writeNormedPieces(Program &p, GradientChunk &chunk) {
  TileBuilder &b = p.b;
  SmallVector<DecayedPiece> pieces;
  auto forEachPiece = [&](function_ref<void(DecayedPiece &, size_t)> body) {
    for (auto [number, piece] : llvm::enumerate(pieces)) {
      b.step(pieceStep(p, number));
      body(piece, number);
    }
  };
  for (size_t number = 0; number < chunk.in.k.size(); ++number) {
    b.step(pieceStep(p, number));
    pieces.emplace_back(p, chunk, number).notesDots = true;
  }
  Pieces gradients(pieces.size());
  // A warp waits for the dots of others, and reads its rows behind that: in
  // front of it there are no registers for them.
  auto store = [&](StringRef name, Value norm, Value DecayedPiece::*dots,
                   Value (DecayedPiece::*rows)()) {
    forEachPiece([&](DecayedPiece &piece, size_t number) {
      Value along = piece.*dots;
      for (DecayedPiece &other : pieces)
        if (&other != &piece)
          along = b.add(along, other.*dots);
      Value dx = b.mulAxis((piece.*rows)(), b.neg(along), 0);
      dx = b.mulAxis(b.add(gradients[number], dx), norm, 0);
      Value channel = b.index(number * shapeOf(dx)[1]);
      b.store(dx, p[name], tokenOffsets(p, chunk.t, p.keyHead, channel), {1, 3},
              p.end);
      gradients[number] = Value();
    });
  };
  forEachPiece([&](DecayedPiece &piece, size_t number) {
    piece.addKeys(gradients[number]);
  });
  store("dk", chunk.keyNorm, &DecayedPiece::keyDots, &DecayedPiece::plainKeys);
  forEachPiece([&](DecayedPiece &piece, size_t number) {
    piece.addQueries(gradients[number]);
  });
  SmallVector<Value> states;
  forEachPiece([&](DecayedPiece &piece, size_t number) {
    states.push_back(b.mul(sumStates(p, chunk.in, number), piece.whole()));
  });
  store("dq", chunk.queryNorm, &DecayedPiece::queryDots,
        &DecayedPiece::plainQueries);
  forEachPiece([&](DecayedPiece &piece, size_t number) {
    storeGateGradient(p, chunk.t, number, piece.sumGates(states[number]));
  });
}
