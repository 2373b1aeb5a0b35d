//===- GradientPieces.cpp - Tiles of some channels of V or of K -----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GradientChunk.h"

using namespace mlir;
using namespace mlir::gdn;

int64_t gdn::pieceChannels(int64_t channels) {
  constexpr int64_t kPanel = 64;
  return channels % kPanel == 0 ? kPanel : channels;
}

Pieces gdn::makePieces(int64_t channels,
                       function_ref<Value(int64_t, int64_t)> make) {
  return makePieces(channels, pieceChannels(channels), make);
}

Pieces gdn::makePieces(int64_t channels, int64_t size,
                       function_ref<Value(int64_t, int64_t)> make) {
  Pieces pieces;
  for (int64_t first = 0; first < channels; first += size)
    pieces.push_back(make(first, size));
  return pieces;
}

Pieces gdn::loadRows(Program &p, StringRef name, StringRef step, Value t,
                     Value head, int64_t channels, bool isTurned) {
  TileBuilder &b = p.b;
  return makePieces(channels, [&](int64_t first, int64_t size) {
    SmallVector<int64_t> axes = {1, 3}, shape = {p.facts.C, size};
    if (isTurned) {
      std::swap(axes[0], axes[1]);
      std::swap(shape[0], shape[1]);
    }
    b.step(step);
    return b.round(b.load(p[name], tokenOffsets(p, t, head, b.index(first)),
                          axes, shape, p.end));
  });
}

/// Rows of shared memory hold a panel each, so what is loaded is not cut.
Pieces gdn::cutKeyPieces(Program &p, const Pieces &loaded) {
  int64_t size = keyPieceChannels(p);
  Pieces pieces;
  for (Value tile : loaded) {
    int64_t columns = shapeOf(tile)[1];
    if (columns == size) {
      pieces.push_back(tile);
      continue;
    }
    for (int64_t first = 0; first < columns; first += size)
      pieces.push_back(p.b.columns(tile, first, size));
  }
  return pieces;
}

Value gdn::product(TileBuilder &b, StringRef spec, const Pieces &x,
                   const Pieces &y) {
  Value sum;
  for (auto [left, right] : llvm::zip(x, y))
    sum = b.product(spec, left, right, sum);
  return sum;
}

/// Of two steps, that of the half of K with the piece.
static StringRef stepOfHalf(const Program &p, size_t piece,
                            ArrayRef<StringLiteral> steps) {
  int64_t first = static_cast<int64_t>(piece) * keyPieceChannels(p);
  return steps[2 * first / p.facts.K];
}

StringRef gdn::pieceStep(const Program &p, size_t piece) {
  return stepOfHalf(p, piece, {"low_keys", "high_keys"});
}

StringRef gdn::queryStep(const Program &p, size_t piece) {
  return stepOfHalf(p, piece, {"low_queries", "high_queries"});
}

StringRef gdn::pairStep(const Program &p, size_t piece) {
  return stepOfHalf(p, piece, {"low_pairs", "high_pairs"});
}

StringRef gdn::stateStep(size_t piece) {
  static constexpr StringLiteral kSteps[] = {"low_state", "high_state"};
  return kSteps[piece % std::size(kSteps)];
}
