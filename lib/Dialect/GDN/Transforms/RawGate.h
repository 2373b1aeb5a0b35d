//===- RawGate.h - The chain rule of a raw gate -----------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_DIALECT_GDN_TRANSFORMS_RAWGATE_H
#define GDN_LIB_DIALECT_GDN_TRANSFORMS_RAWGATE_H

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::gdn {

/// One element of a raw gate; f32 scalars.
struct RawGateElement {
  /// The operand and dt_bias together.
  Value x;
  /// A_log, null for 0.
  Value logRate;
  /// The gradient of the log gate.
  Value dg;
  GateDomain domain;
  /// Of a form whose formula has it.
  double lowerBound;
};

/// What elementwise work on the gates of an op takes, with the letters of the
/// dimensions (WholeTensors): the gate, its gradient if there is one, and A_log
/// and dt_bias if the gate is raw.
class RawGateOperands {
public:
  RawGateOperands(DeltaRuleOpInterface op, StringRef all, Value dg = {});
  /// The element of f32 scalars, one for each input.
  RawGateElement read(ImplicitLocOpBuilder &b, ValueRange args) const;

  SmallVector<std::pair<Value, StringRef>> inputs;

private:
  bool hasGradient, hasRate = false, hasBias = false;
  GateDomain domain;
  double lowerBound = 0.0;
};

/// The gradient of x (spec 5.5). Like that of A_log it is right for any finite
/// A_log and x, and x of infinity, wherever f32 has room for it: no factor of
/// it is infinite while another one is 0.
Value differentiateRawGate(ImplicitLocOpBuilder &b, const RawGateElement &e);
/// The element's part in the gradient of A_log.
Value differentiateRate(ImplicitLocOpBuilder &b, const RawGateElement &e);

/// 1 / (1 + exp(-x)) of an f32 scalar.
Value createSigmoid(ImplicitLocOpBuilder &b, Value x);

} // namespace mlir::gdn

#endif // GDN_LIB_DIALECT_GDN_TRANSFORMS_RAWGATE_H
