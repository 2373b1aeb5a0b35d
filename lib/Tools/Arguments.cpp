//===- Arguments.cpp - Which operand an argument feeds --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Arguments.h"

#include "gdn/Dialect/ElementTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;

llvm::SmallVector<std::pair<Value, Role>>
tools::operandsOf(DeltaRuleOpInterface op) {
  llvm::SmallVector<std::pair<Value, Role>> operands = {
      {op.getQ(), Role::Q},
      {op.getK(), Role::K},
      {op.getV(), Role::V},
      {op.getBeta(), Role::Beta},
      {op.getGate(), Role::Gate},
      {op.getInitialState(), Role::InitialState},
      {op.getCuSeqlens(), Role::CuSeqlens},
      {op.getALog(), Role::ALog},
      {op.getDtBias(), Role::DtBias},
      {op.getStateIndices(), Role::StateIndices},
      {op.getHasInitialState(), Role::HasInitialState},
      {op.getStepStates(), Role::StepStates},
      {op.getStepIndices(), Role::StepIndices},
      {op.getNumAccepted(), Role::NumAccepted},
      {op.getParents(), Role::Parents},
      {op.getStepStarts(), Role::StepStarts},
      {op.getStepIntervals(), Role::StepIntervals}};
  if (auto backward = dyn_cast<ChunkGatedDeltaRuleBwdOp>(op.getOperation())) {
    operands.emplace_back(backward.getDO(), Role::DOut);
    operands.emplace_back(backward.getDFinalState(), Role::DFinalState);
  }
  return operands;
}

/// The role of `value` as an operand of `op`.
static Role roleOf(DeltaRuleOpInterface op, Value value) {
  for (auto [operand, role] : operandsOf(op))
    if (operand == value)
      return role;
  return Role::Other;
}

llvm::SmallVector<llvm::StringRef> tools::dimNamesOf(DeltaRuleOpInterface op,
                                                     Role role, int64_t rank) {
  switch (role) {
  case Role::Q:
  case Role::K:
    return {"B", "T", "Hq", "K"};
  case Role::V:
  case Role::DOut:
    return {"B", "T", "H", "V"};
  case Role::Beta:
    return {"B", "T", "H"};
  case Role::Gate:
    return rank == 3 ? llvm::SmallVector<llvm::StringRef>{"B", "T", "H"}
                     : llvm::SmallVector<llvm::StringRef>{"B", "T", "H", "K"};
  case Role::InitialState:
  case Role::StepStates:
  case Role::DFinalState: {
    llvm::StringRef states = role == Role::StepStates ? "R"
                             : op.getStateIndices()   ? "P"
                                                      : "N";
    return op.getStateLayout() == StateLayout::KV
               ? llvm::SmallVector<llvm::StringRef>{states, "H", "K", "V"}
               : llvm::SmallVector<llvm::StringRef>{states, "H", "V", "K"};
  }
  case Role::StateIndices:
  case Role::HasInitialState:
  case Role::NumAccepted:
  case Role::StepIntervals:
    return {"N"};
  case Role::StepIndices:
  case Role::Parents:
    return {"N", "steps"};
  case Role::CuSeqlens:
  case Role::StepStarts:
    return {"N+1"};
  case Role::ALog:
    return {"H"};
  case Role::DtBias:
    return rank == 1 ? llvm::SmallVector<llvm::StringRef>{"H"}
                     : llvm::SmallVector<llvm::StringRef>{"H", "K"};
  case Role::Other:
    return {};
  }
  llvm_unreachable("covered switch");
}

/// Fills role, op and names from the first delta rule that `value` reaches.
static void findRole(Value value, Argument &argument) {
  // A worklist: casts may chain as long as the file likes.
  llvm::SmallVector<Value> values = {value};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (auto cast = dyn_cast<tensor::CastOp>(user))
        values.push_back(cast.getResult());
      auto op = dyn_cast<DeltaRuleOpInterface>(user);
      auto type = dyn_cast<RankedTensorType>(values[i].getType());
      if (!op || !type)
        continue;
      argument.role = roleOf(op, values[i]);
      argument.op = op;
      argument.operandType = type;
      argument.dimNames = dimNamesOf(op, argument.role, type.getRank());
      if (static_cast<int64_t>(argument.dimNames.size()) == type.getRank())
        return;
    }
  argument.role = Role::Other;
  argument.op = nullptr;
  argument.operandType = argument.type;
  argument.dimNames.clear();
}

std::optional<Element> tools::scalarOf(Type type) {
  if (!isScalarArgument(type))
    return std::nullopt;
  return type.isIndex() ? Element::I64 : elementOf(type);
}

/// The numbers of which the ops of a function expect a positive multiple in
/// what an argument says of segments: these have whole chunks and, if states
/// are saved, whole intervals between these.
static void addMultiples(func::FuncOp func, StringRef cut,
                         llvm::SmallVectorImpl<int64_t> &multiples) {
  multiples.push_back(1);
  if (cut == GDNDialect::kSegmentParts)
    return;
  func.walk([&](DeltaRuleOpInterface op) {
    for (StringRef name : {"chunk_size", "state_interval"})
      if (auto tokens = op->getAttrOfType<IntegerAttr>(name))
        multiples.push_back(tokens.getInt());
  });
}

/// The numbers of which the ops that take `scalar` expect a positive multiple:
/// segments have whole chunks, and there are parts of them.
static llvm::SmallVector<int64_t, 1> multiplesOf(func::FuncOp func,
                                                 BlockArgument scalar) {
  llvm::SmallVector<int64_t, 1> multiples;
  if (auto cut = func.getArgAttrOfType<StringAttr>(
          scalar.getArgNumber(), GDNDialect::getCutAttrName()))
    addMultiples(func, cut.getValue(), multiples);
  llvm::SmallVector<Value> values = {scalar};
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (auto cast = dyn_cast<arith::IndexCastOp>(user))
        values.push_back(cast.getResult());
      if (auto cut = dyn_cast<SegmentBoundariesStageOp>(user))
        multiples.push_back(cut.getParts() == values[i] ? 1
                                                        : cut.getChunkSize());
    }
  return multiples;
}

llvm::Expected<std::vector<Argument>> tools::getArguments(func::FuncOp func) {
  std::vector<Argument> arguments;
  for (BlockArgument value : func.getArguments()) {
    Argument argument;
    argument.index = value.getArgNumber();
    argument.isOptional = static_cast<bool>(
        func.getArgAttr(argument.index, GDNDialect::getOptionalAttrName()));
    argument.type = dyn_cast<RankedTensorType>(value.getType());
    if (std::optional<Element> scalar = scalarOf(value.getType())) {
      argument.isScalar = true;
      argument.multiples = multiplesOf(func, value);
      if (auto cut = func.getArgAttrOfType<StringAttr>(
              argument.index, GDNDialect::getCutAttrName()))
        argument.cut = cut.getValue();
      Type element = value.getType();
      if (scalar == Element::I64)
        element = IntegerType::get(element.getContext(), 64);
      argument.type = RankedTensorType::get({}, element);
    }
    if (!argument.type || !elementOf(argument.type.getElementType())) {
      std::string type;
      llvm::raw_string_ostream(type) << value.getType();
      return llvm::createStringError(llvm::formatv(
          "expected argument {0} of @{1} to be a tensor of f32, bf16, f16, i8, "
          "i32 "
          "or i64, or a scalar of {2}, got {3}",
          argument.index, func.getSymName(), kScalarArguments, type));
    }
    findRole(value, argument);
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

void tools::noteParts(llvm::MutableArrayRef<Argument> arguments,
                      const std::map<unsigned, double> &scalars) {
  for (const Argument &argument : arguments) {
    if (argument.cut != GDNDialect::kSegmentParts)
      continue;
    double parts = scalars.at(argument.index);
    if (!(parts >= 1 && parts < std::numeric_limits<int32_t>::max()))
      continue;
    for (Argument &other : arguments)
      if (!other.cut.empty() && other.index != argument.index)
        other.multiples.push_back(static_cast<int64_t>(parts));
  }
}
