//===- Function.cpp - Functions that launch kernels as tables -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FunctionBuilder.h"
#include "Views.h"

#include "gdn/Dialect/ElementTypes.h"
#include "gdn/Dialect/GDN/IR/GDN.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// What gdn-name-arguments noted of an argument or a result.
template <typename AttrType>
static AttrType getNote(func::FuncOp function, unsigned number, bool isResult,
                        StringRef name) {
  return isResult ? function.getResultAttrOfType<AttrType>(number, name)
                  : function.getArgAttrOfType<AttrType>(number, name);
}

LogicalResult FunctionBuilder::addArgument(unsigned number, Type type,
                                           bool isResult) {
  auto array = dyn_cast<ShapedType>(type);
  ArgumentTable argument;
  if (isa<RankedTensorType, MemRefType>(type))
    argument.dtype = getDType(array.getElementType());
  else if (!isResult && !array)
    argument.kind = getScalarKind(type);
  if (array ? !argument.dtype : !argument.kind || isResult)
    return function.emitOpError("expected ")
           << (isResult ? "results" : "arguments")
           << " to be tensors or memrefs of bf16, f16, f32, i8, i32 or i64"
           << (isResult ? "" : ", or scalars of ")
           << (isResult ? StringLiteral("") : kScalarArguments) << ", got "
           << type;
  if (getNote<UnitAttr>(function, number, isResult,
                        GDNDialect::getOptionalAttrName()))
    argument.flags |= GDN_ARG_FLAG_OPTIONAL;
  if (getNote<UnitAttr>(function, number, isResult,
                        GDNDialect::getStridedAttrName()))
    argument.flags |= GDN_ARG_FLAG_STRIDED;
  auto name = getNote<StringAttr>(function, number, isResult,
                                  GDNDialect::getNameAttrName());
  argument.name =
      name ? name.str()
           : (isResult ? "result" : "argument") + std::to_string(number);
  auto dims = getNote<ArrayAttr>(function, number, isResult,
                                 GDNDialect::getDimsAttrName());
  ArrayRef<int64_t> shape = array ? array.getShape() : ArrayRef<int64_t>();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (!ShapedType::isDynamic(size)) {
      argument.shape.push_back(size);
      continue;
    }
    StringAttr note = dims && dim < dims.size()
                          ? dyn_cast<StringAttr>(dims[dim])
                          : StringAttr();
    std::string symbol =
        note ? note.str() : argument.name + "." + std::to_string(dim);
    int32_t index = addSymbol(symbol, table.arguments.size(), dim,
                              argument.flags & GDN_ARG_FLAG_OPTIONAL);
    argument.shape.push_back(GDN_SYMBOL(index));
  }
  table.arguments.push_back(std::move(argument));
  return success();
}

LogicalResult FunctionBuilder::addInputs() {
  for (BlockArgument value : function.getArguments()) {
    int32_t number = value.getArgNumber();
    if (failed(addArgument(number, value.getType(), /*isResult=*/false)))
      return failure();
    if (value.getType().isIntOrIndex())
      indices[value] = addStep({GDN_INDEX_SCALAR, number, 0, /*value=*/0});
    Array array{{GDN_OPERAND_ARGUMENT, number}, {}, {}};
    for (size_t dim = 0; dim < table.arguments.back().shape.size(); ++dim)
      array.extents.push_back(getExtent(number, dim));
    arrays[value] = std::move(array);
  }
  table.numInputs = table.arguments.size();
  return success();
}

/// The value whose memory `value` is, as far as launches update it in place: an
/// argument of the function, or the result of the first launch. `dims` are its
/// dimensions among those of `value`; empty if they are the same.
static Value findOrigin(Value value, SmallVector<GdnViewDim> &dims) {
  while (true) {
    if (auto expand = value.getDefiningOp<tensor::ExpandShapeOp>()) {
      dims = joinDims(dims, expand.getReassociationIndices());
      value = expand.getSrc();
      continue;
    }
    if (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
      auto split = splitDims(dims, collapse.getReassociationIndices(),
                             collapse.getSrcType());
      if (failed(split))
        return value;
      dims = std::move(*split);
      value = collapse.getSrc();
      continue;
    }
    if (auto castOp = value.getDefiningOp<tensor::CastOp>()) {
      value = castOp.getSource();
    } else if (auto view = value.getDefiningOp<bufferization::ToTensorOp>()) {
      value = view.getBuffer();
    } else if (auto launch = value.getDefiningOp<tile::LaunchOp>()) {
      Value out = launch.getTiedOpOperand(cast<OpResult>(value))->get();
      if (out.getDefiningOp<tensor::EmptyOp>())
        return value;
      value = out;
    } else {
      return value;
    }
  }
}

/// Results that update an argument in place are this argument; the others are
/// arguments of their own, behind the inputs.
LogicalResult FunctionBuilder::addOutputs() {
  auto end = dyn_cast<func::ReturnOp>(function.front().getTerminator());
  for (auto [number, type] : llvm::enumerate(function.getResultTypes())) {
    Value value = end ? end.getOperand(number) : Value();
    SmallVector<GdnViewDim> dims;
    Value origin = value ? findOrigin(value, dims) : Value();
    if (auto argument = dyn_cast_if_present<BlockArgument>(origin);
        argument && !isa<BlockArgument>(value)) {
      resultArguments.push_back(argument.getArgNumber());
      continue;
    }
    resultArguments.push_back(table.arguments.size());
    if (origin)
      destinations.try_emplace(
          origin, Destination{resultArguments.back(), std::move(dims)});
    if (failed(addArgument(number, type, /*isResult=*/true)))
      return failure();
  }
  return success();
}

/// Results of launches that are written to an argument have its memory.
void FunctionBuilder::noteDestinations() {
  for (auto op :
       function.front().getOps<bufferization::MaterializeInDestinationOp>()) {
    SmallVector<GdnViewDim> ofDest, ofSource;
    auto argument = dyn_cast<BlockArgument>(findOrigin(op.getDest(), ofDest));
    Value source = findOrigin(op.getSource(), ofSource);
    if (argument && ofDest.empty())
      destinations.try_emplace(
          source, Destination{static_cast<int32_t>(argument.getArgNumber()),
                              std::move(ofSource)});
  }
}

/// What the function gives back: its results or, if it has none, all arguments
/// that it writes.
void FunctionBuilder::noteResults() {
  table.results = resultArguments;
  for (auto [number, argument] : llvm::enumerate(table.arguments))
    if (resultArguments.empty() && argument.isWritten)
      table.results.push_back(number);
}

/// Boundaries [N + 1] belong to N sequences.
void FunctionBuilder::addBoundaryRules() {
  for (auto [index, name] : llvm::enumerate(table.symbols)) {
    StringRef sequences = name;
    if (!sequences.consume_back("+1") || !symbols.contains(sequences))
      continue;
    int32_t one = addStep({GDN_INDEX_CONSTANT, 0, 0, 1});
    int32_t count =
        addStep({GDN_INDEX_SUBTRACT, symbolSteps[index], one, /*value=*/0});
    addRules(symbols.lookup(sequences), count);
  }
}

/// The first array that is always there and has a symbol has what step `step`
/// gives, and so do those that may be absent.
void FunctionBuilder::addRules(int32_t symbol, int32_t step) {
  if (symbolSteps[symbol] >= 0) {
    const GdnIndexStep &extent = table.steps[symbolSteps[symbol]];
    table.rules.push_back({extent.left, extent.right, step});
  }
  for (auto [number, argument] : llvm::enumerate(table.arguments))
    for (auto [dim, extent] : llvm::enumerate(argument.shape))
      if ((argument.flags & GDN_ARG_FLAG_OPTIONAL) &&
          extent == GDN_SYMBOL(symbol))
        table.rules.push_back(
            {static_cast<int32_t>(number), static_cast<int32_t>(dim), step});
}

/// Every q/k head belongs to the same number of value heads: H = H / Hq * Hq.
void FunctionBuilder::addHeadRule() {
  if (!symbols.contains("H") || !symbols.contains("Hq"))
    return;
  int32_t heads = symbolSteps[symbols.lookup("H")],
          keyHeads = symbolSteps[symbols.lookup("Hq")];
  if (heads < 0 || keyHeads < 0)
    return;
  int32_t group = addStep({GDN_INDEX_DIVIDE, heads, keyHeads, 0});
  int32_t whole = addStep({GDN_INDEX_MULTIPLY, group, keyHeads, 0});
  const GdnIndexStep &extent = table.steps[heads];
  table.rules.push_back({extent.left, extent.right, whole});
}

//===----------------------------------------------------------------------===//
// Whole functions
//===----------------------------------------------------------------------===//

/// An attribute as JSON, as far as a tool without MLIR can use it.
static llvm::json::Value toJSON(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute))
    return text.str();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getInt();
  if (isa<UnitAttr>(attribute))
    return true;
  return nullptr;
}

static std::string makeSource(func::FuncOp function) {
  auto facts =
      function->getAttrOfType<DictionaryAttr>(GDNDialect::getSourceAttrName());
  if (!facts)
    return {};
  llvm::json::Object object;
  for (NamedAttribute fact : facts)
    object[fact.getName().getValue()] = toJSON(fact.getValue());
  return llvm::formatv("{0}", llvm::json::Value(std::move(object)));
}

FailureOr<FunctionTable> FunctionBuilder::build() {
  if (!llvm::hasSingleElement(function.getBody()))
    return function.emitOpError("expected one block, got ")
           << function.getBody().getBlocks().size();
  table.name = function.getSymName().str();
  table.source = makeSource(function);
  if (failed(addInputs()) || failed(addOutputs()))
    return failure();
  noteDestinations();
  for (Operation &op : function.front())
    if (failed(visit(&op)))
      return failure();
  addBoundaryRules();
  addHeadRule();
  noteResults();
  return std::move(table);
}

FailureOr<FunctionTable> host::describeFunction(func::FuncOp function,
                                                ArrayRef<KernelTable> kernels) {
  return FunctionBuilder(function, kernels).build();
}
