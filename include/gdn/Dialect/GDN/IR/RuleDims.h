//===- RuleDims.h - Named dimensions of a delta rule ------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_RULEDIMS_H
#define GDN_DIALECT_GDN_IR_RULEDIMS_H

#include "mlir/IR/BuiltinTypes.h"
#include <optional>

namespace mlir::gdn {
class DeltaRuleOpInterface;

/// The dimensions that the dialect names. `Boundaries` is N + 1,
/// `BatchBoundaries` B + 1, `SegmentBoundaries` S + 1, `KeptStates` the states
/// that gradients read, P those of a pool, and R those that are kept after
/// tokens, for the first `Steps` of each sequence. Where the sequences are
/// segments, `Cut` counts the sequences that were cut, and `CutBoundaries` one
/// more. `VTiles` are those that report. `One` is 1.
enum class Dim {
  B,
  T,
  Hq,
  H,
  K,
  V,
  N,
  P,
  R,
  Steps,
  C,
  S,
  KeptStates,
  Boundaries,
  BatchBoundaries,
  SegmentBoundaries,
  Cut,
  CutBoundaries,
  VTiles,
  One
};

/// Sizes of a delta rule, `ShapedType::kDynamic` where no operand tells.
struct RuleDims {
  int64_t B = ShapedType::kDynamic;
  int64_t T = ShapedType::kDynamic;
  int64_t Hq = ShapedType::kDynamic;
  int64_t H = ShapedType::kDynamic;
  int64_t K = ShapedType::kDynamic;
  int64_t V = ShapedType::kDynamic;
  int64_t N = ShapedType::kDynamic;
  /// States of a pool.
  int64_t P = ShapedType::kDynamic;
  /// States that are kept after tokens, and how many tokens of a sequence.
  int64_t R = ShapedType::kDynamic;
  int64_t steps = ShapedType::kDynamic;
  /// Tokens of a chunk, where the op says so.
  int64_t C = ShapedType::kDynamic;
  /// Segments of all sequences.
  int64_t S = ShapedType::kDynamic;
  /// Those of which gradients read the states before.
  int64_t keptStates = ShapedType::kDynamic;
  /// The sequences whose segments are the sequences here.
  int64_t cut = ShapedType::kDynamic;
  /// V tiles that report how far they are.
  int64_t vTiles = ShapedType::kDynamic;
  int64_t one = 1;

  /// The size called `dim`; of boundaries it is one more than what they bound.
  int64_t get(Dim dim) const;
  /// Sets the size called `dim`.
  void set(Dim dim, int64_t size);
};

/// The segments that sequences are cut into: `segments` of each, or, if that is
/// absent, those of `length` tokens. Dynamic if the sizes do not tell.
int64_t countCuts(const RuleDims &dims, std::optional<int64_t> segments,
                  std::optional<int64_t> length, bool isPacked);

/// S, the segments that states are kept of: `segments` a sequence, or, if that
/// is absent, those of `length` tokens. Dynamic if the sizes do not tell.
int64_t countSegments(const RuleDims &dims, std::optional<int64_t> segments,
                      std::optional<int64_t> length);

/// What all operands of an op together tell about its sizes.
RuleDims getRuleDims(DeltaRuleOpInterface op);

/// Whether there is one gate a channel (Kimi Delta Attention).
bool isChannelGate(DeltaRuleOpInterface op);

/// An operand or result of an op by the names that people know it and its
/// dimensions by: "q", ["B", "T", "Hq", "K"]. A dimension of N + 1 is "N+1".
struct NamedArray {
  StringRef name;
  /// Null for a result.
  Value operand;
  SmallVector<StringRef, 4> dims;
};

/// The array operands that are present, `outs` not among them, in their order.
SmallVector<NamedArray> getNamedOperands(Operation *op);

/// What an op of the dialect returns.
SmallVector<NamedArray> getNamedResults(Operation *op);

/// K^(-1/2), the factor of the read-out where the op names none.
double getDefaultScale(int64_t channels);

/// The factor of the read-out: the attribute, or the default.
double getScale(DeltaRuleOpInterface op);

} // namespace mlir::gdn

#endif // GDN_DIALECT_GDN_IR_RULEDIMS_H
