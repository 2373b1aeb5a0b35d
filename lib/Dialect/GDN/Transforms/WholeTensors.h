//===- WholeTensors.h - Work around layer ops, as linalg --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_WHOLETENSORS_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_WHOLETENSORS_H

#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// Builds linalg ops on whole tensors whose dimensions have letters, as
/// "bthk", or "btn" for value heads. An input may leave dimensions out; all
/// values are f32 inside.
class WholeTensors : public ImplicitLocOpBuilder {
public:
  WholeTensors(OpBuilder &b, DeltaRuleOpInterface op)
      : ImplicitLocOpBuilder(op->getLoc(), b), values(op.getV()),
        packed(static_cast<bool>(op.getCuSeqlens())) {}
  using Body = function_ref<Value(ImplicitLocOpBuilder &, ValueRange)>;

  /// out[letters of out] = body(inputs), of type `element`.
  Value map(StringRef out, ArrayRef<std::pair<Value, StringRef>> inputs,
            Type element, Body body) {
    return generic(out, out, inputs, element, body);
  }
  /// out[letters of out] = sum of body(inputs) over the other letters.
  Value sum(StringRef out, StringRef all,
            ArrayRef<std::pair<Value, StringRef>> inputs, Body body) {
    return generic(out, all, inputs, getF32Type(), body);
  }
  /// The same with the sum in f64: one over all tokens has more terms than f32
  /// has digits for, and they cancel.
  Value longSum(StringRef out, StringRef all,
                ArrayRef<std::pair<Value, StringRef>> inputs, Body body) {
    return generic(out, all, inputs, getF64Type(), body);
  }

  /// `product`, which is zero where the gradient among its factors is.
  Value guard(ImplicitLocOpBuilder &b, Value gradient, Value product) const;

private:
  Value generic(StringRef out, StringRef all,
                ArrayRef<std::pair<Value, StringRef>> inputs, Type element,
                Body body);
  OpFoldResult sizeOf(char letter,
                      ArrayRef<std::pair<Value, StringRef>> inputs);
  AffineMap map(StringRef letters, StringRef all) {
    SmallVector<AffineExpr> results;
    for (char letter : letters)
      results.push_back(getAffineDimExpr(all.find(letter)));
    return AffineMap::get(all.size(), 0, results, getContext());
  }

  /// [B, T, H, V]
  Value values;
  /// Whether there may be tokens of no sequence. Their gradients are zeros
  /// before the chain rules and behind them, whatever these tokens hold.
  bool packed;
};

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_WHOLETENSORS_H
