//===- Ops.cpp - Interfaces of the layer ops ------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

unsigned gdn::getNumOuts(Operation *op) {
  return llvm::TypeSwitch<Operation *, unsigned>(op)
      .Case<ChunkGatedDeltaRuleOp, RecurrentGatedDeltaRuleOp,
            ChunkGatedDeltaRuleBwdOp>(
          [](auto layer) { return layer.getOuts().size(); })
      .Default([](Operation *) { return 0; });
}

/// Tensors have no effects; the buffer form reads its inputs and writes `outs`.
static void
addBufferEffects(Operation *op,
                 SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  unsigned firstOut = op->getNumOperands() - getNumOuts(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    if (operand.getOperandNumber() < firstOut)
      effects.emplace_back(MemoryEffects::Read::get(), &operand);
    else
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
}

/// A tensor form without boundaries computes for any values of its operands.
static Speculation::Speculatability getRuleSpeculatability(Operation *op,
                                                           Value boundaries) {
  bool total = !boundaries && isMemoryEffectFree(op);
  return total ? Speculation::Speculatable : Speculation::NotSpeculatable;
}

//===----------------------------------------------------------------------===//
// Result types and shapes
//===----------------------------------------------------------------------===//

/// Results that an adaptor's op returns.
static SmallVector<ResultShape>
getResults(ChunkGatedDeltaRuleOp::Adaptor adaptor, Rule &rule) {
  rule.stateInterval = adaptor.getStateIntervalAttr();
  rule.stateIndices = adaptor.getStateIndices();
  rule.stepStates = adaptor.getStepStates();
  return getForwardResults(rule, adaptor.getOutputFinalState());
}
static SmallVector<ResultShape>
getResults(RecurrentGatedDeltaRuleOp::Adaptor adaptor, Rule &rule) {
  rule.stateIndices = adaptor.getStateIndices();
  rule.stepStates = adaptor.getStepStates();
  return getForwardResults(rule, adaptor.getOutputFinalState());
}
static SmallVector<ResultShape> getResults(ChunkGatedDeltaRuleBwdOp::Adaptor,
                                           Rule &rule) {
  return getBackwardResults(rule);
}

template <typename Adaptor>
static LogicalResult inferTypes(Adaptor adaptor, std::optional<Location> loc,
                                SmallVectorImpl<Type> &types) {
  Rule rule = makeCommonRule(adaptor);
  for (Value operand : {rule.q, rule.k, rule.v, rule.beta})
    if (!isa<RankedTensorType, MemRefType>(operand.getType()))
      return emitOptionalError(
          loc, "expected a ranked tensor or a memref, got ", operand.getType());
  // The buffer form returns nothing.
  if (isa<MemRefType>(rule.q.getType()))
    return success();
  SmallVector<ResultShape> results = getResults(adaptor, rule);
  RuleDims dims = getRuleDims(rule);
  for (const ResultShape &result : results)
    types.push_back(getResultType(result, dims));
  return success();
}

static bool areCompatible(TypeRange lhs, TypeRange rhs) {
  return lhs.size() == rhs.size() &&
         llvm::all_of(llvm::zip(lhs, rhs), [](auto pair) {
           auto [left, right] = pair;
           return getElementTypeOrSelf(left) == getElementTypeOrSelf(right) &&
                  succeeded(verifyCompatibleShape(left, right));
         });
}

/// S = floor(B T / state_interval) + N.
static Value reifySavedStates(OpBuilder &builder, Location loc,
                              const Rule &rule) {
  auto size = [&](Dim dim) {
    return getValueOrCreateConstantIndexOp(builder, loc,
                                           reifyDim(builder, loc, rule, dim));
  };
  Value tokens =
      builder.createOrFold<arith::MulIOp>(loc, size(Dim::B), size(Dim::T));
  Value interval =
      arith::ConstantIndexOp::create(builder, loc, rule.stateInterval.getInt());
  Value whole = builder.createOrFold<arith::DivUIOp>(loc, tokens, interval);
  Value sequences = size(rule.cuSeqlens ? Dim::N : Dim::B);
  return builder.createOrFold<arith::AddIOp>(loc, whole, sequences);
}

OpFoldResult gdn::reifyDim(OpBuilder &builder, Location loc, const Rule &rule,
                           Dim dim) {
  int64_t size = getRuleDims(rule).get(dim);
  if (!ShapedType::isDynamic(size))
    return builder.getIndexAttr(size);
  auto sizeIn = [&](Dim name) -> Value {
    for (const NamedShape &shape : getOperandShapes(rule))
      for (auto [index, candidate] : llvm::enumerate(shape.dims))
        if (candidate == name)
          return builder.createOrFold<tensor::DimOp>(loc, shape.value, index);
    return nullptr;
  };
  if (Value value = sizeIn(dim))
    return value;
  if (dim == Dim::S)
    return reifySavedStates(builder, loc, rule);
  // Only N has no operand of its own: there is one boundary more.
  Value one = arith::ConstantIndexOp::create(builder, loc, 1);
  return builder.createOrFold<arith::SubIOp>(loc, sizeIn(Dim::Boundaries), one);
}

/// Sizes of all results; where a result's type says a size, it is a constant,
/// and where not, a value: users rely on that.
static LogicalResult reifyResults(OpBuilder &builder, Operation *op,
                                  ReifiedRankedShapedTypeDims &shapes) {
  Rule rule = getRule(op);
  for (auto [result, shape] :
       llvm::zip(op->getResults(), getResultShapes(op, rule))) {
    auto type = cast<RankedTensorType>(result.getType());
    SmallVector<OpFoldResult> &sizes = shapes.emplace_back();
    for (auto [dim, size] : llvm::zip(shape.dims, type.getShape())) {
      if (!ShapedType::isDynamic(size)) {
        sizes.push_back(builder.getIndexAttr(size));
        continue;
      }
      OpFoldResult reified = reifyDim(builder, op->getLoc(), rule, dim);
      sizes.push_back(
          getValueOrCreateConstantIndexOp(builder, op->getLoc(), reified));
    }
  }
  return success();
}

#define GDN_LAYER_OP(OP)                                                       \
  void OP::getEffects(                                                         \
      SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {               \
    addBufferEffects(*this, effects);                                          \
  }                                                                            \
  Speculation::Speculatability OP::getSpeculatability() {                      \
    return getRuleSpeculatability(*this, getCuSeqlens());                      \
  }                                                                            \
  LogicalResult OP::inferReturnTypes(                                          \
      MLIRContext *, std::optional<Location> loc, ValueRange operands,         \
      DictionaryAttr attributes, OpaqueProperties properties,                  \
      RegionRange regions, SmallVectorImpl<Type> &types) {                     \
    return inferTypes(Adaptor(operands, attributes, properties, regions), loc, \
                      types);                                                  \
  }                                                                            \
  bool OP::isCompatibleReturnTypes(TypeRange lhs, TypeRange rhs) {             \
    return areCompatible(lhs, rhs);                                            \
  }                                                                            \
  LogicalResult OP::reifyResultShapes(OpBuilder &builder,                      \
                                      ReifiedRankedShapedTypeDims &shapes) {   \
    return reifyResults(builder, *this, shapes);                               \
  }
GDN_LAYER_OP(ChunkGatedDeltaRuleOp)
GDN_LAYER_OP(RecurrentGatedDeltaRuleOp)
GDN_LAYER_OP(ChunkGatedDeltaRuleBwdOp)

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// Names an operand of a layer that stands behind one that it belongs before.
static ParseResult parseNoMoreOperands(OpAsmParser &parser,
                                       OpAsmParser::UnresolvedOperand &) {
  static constexpr StringRef kOrder[] = {"q",
                                         "k",
                                         "v",
                                         "beta",
                                         "gate",
                                         "initial_state",
                                         "cu_seqlens",
                                         "a_log",
                                         "dt_bias",
                                         "state_indices",
                                         "first_state",
                                         "has_initial_state",
                                         "step_states",
                                         "step_indices",
                                         "num_accepted",
                                         "parents",
                                         "step_starts",
                                         "step_intervals",
                                         "d_o",
                                         "d_final_state",
                                         "writes",
                                         "states",
                                         "outs"};
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseOptionalKeyword(&name, kOrder)))
    return success();
  return parser.emitError(loc, "expected operands in the order ")
         << llvm::join(ArrayRef(kOrder), ", ") << ", each once, got '" << name
         << "' behind a later one";
}
static void printNoMoreOperands(OpAsmPrinter &, Operation *, Value) {}

/// Says of a backward that it takes no pool, where one is written.
static ParseResult parseNoPool(OpAsmParser &parser,
                               OpAsmParser::UnresolvedOperand &) {
  SMLoc loc = parser.getCurrentLocation();
  if (failed(parser.parseOptionalKeyword("state_indices")))
    return success();
  return parser.emitError(loc, "expected no state_indices in a backward, got "
                               "them: gradients are those of states [N, ...]");
}
static void printNoPool(OpAsmPrinter &, Operation *, Value) {}

// Nearly half of this file's time went into optimising what TableGen made, in
// which a compilation spends next to no time.
#pragma clang optimize off
#define GET_OP_CLASSES
#include "gdn/Dialect/GDN/IR/Ops.cpp.inc"
#pragma clang optimize on
