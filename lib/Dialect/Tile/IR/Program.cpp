//===- Program.cpp - Syntax and checks of gdn_tile.program ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/NamedArguments.h"
#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tile;

/// Names of the first coordinates of a work item, and of its tokens.
static constexpr StringLiteral kCoordinateNames[] = {"n", "h", "vt"},
                               kTokenNames[] = {"batch", "begin", "end"};

MemRefType tile::getArrayType(Type tensor, bool isContiguous) {
  auto type = cast<RankedTensorType>(tensor);
  SmallVector<int64_t> strides(type.getRank(), ShapedType::kDynamic);
  if (isContiguous && !strides.empty())
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic, strides);
  return MemRefType::get(type.getShape(), type.getElementType(), layout);
}

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                      TypeRange inputs, TypeRange outputs,
                      ArrayRef<StringRef> argNames, int64_t gridRank) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getNumInputsAttrName(state.name),
                     builder.getI64IntegerAttr(inputs.size()));
  if (!argNames.empty())
    state.addAttribute(getArgNamesAttrName(state.name),
                       builder.getStrArrayAttr(argNames));
  auto block = std::make_unique<Block>();
  for (TypeRange types : {inputs, outputs})
    for (Type type : types)
      block->addArgument(type, state.location);
  if (gridRank != kMinGridRank)
    state.addAttribute(getGridRankAttrName(state.name),
                       builder.getI64IntegerAttr(gridRank));
  for (int64_t i = 0; i < gridRank + kNumTokenArguments; ++i)
    block->addArgument(builder.getIndexType(), state.location);
  state.addRegion()->push_back(block.release());
}

void ProgramOp::getAsmBlockArgumentNames(Region &region,
                                         OpAsmSetValueNameFn setName) {
  setNames(getArrays(), getArgNames(), setName);
  for (auto [argument, name] : llvm::zip(getCoordinates(), kCoordinateNames))
    setName(argument, name);
  for (BlockArgument argument : getCoordinates().drop_front(kMinGridRank))
    setName(argument, "i");
  for (auto [argument, name] : llvm::zip(getTokenArguments(), kTokenNames))
    setName(argument, name);
}

/// Parses `(%a, %b, ...)` of `count` index arguments, or of more.
static ParseResult
parseWorkItem(OpAsmParser &parser, StringRef keyword, unsigned count,
              bool orMore, SmallVectorImpl<OpAsmParser::Argument> &arguments) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::Argument> parsed;
  if (parser.parseKeyword(keyword) ||
      parser.parseArgumentList(parsed, OpAsmParser::Delimiter::Paren))
    return failure();
  if (orMore ? parsed.size() < count : parsed.size() != count)
    return parser.emitError(loc, orMore ? "expected at least " : "expected ")
           << count << " arguments of '" << keyword << "', got "
           << parsed.size();
  for (OpAsmParser::Argument &argument : parsed)
    argument.type = parser.getBuilder().getIndexType();
  llvm::append_range(arguments, parsed);
  return success();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute(getNumInputsAttrName(result.name),
                      builder.getI64IntegerAttr(arguments.size()));
  SmallVector<OpAsmParser::Argument> outputs;
  if (succeeded(parser.parseOptionalKeyword("outs")) &&
      parser.parseArgumentList(outputs, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  llvm::append_range(arguments, outputs);
  result.addAttribute(getArgNamesAttrName(result.name),
                      getNames(builder, arguments));
  Region *body = result.addRegion();
  size_t arrays = arguments.size();
  if (parseWorkItem(parser, "work_item", kMinGridRank, /*orMore=*/true,
                    arguments))
    return failure();
  if (size_t rank = arguments.size() - arrays; rank != kMinGridRank)
    result.addAttribute(getGridRankAttrName(result.name),
                        builder.getI64IntegerAttr(rank));
  if (parseWorkItem(parser, "tokens", kNumTokenArguments, /*orMore=*/false,
                    arguments) ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printArguments(printer, getInputs());
  if (!getOutputs().empty()) {
    printer << " outs";
    printArguments(printer, getOutputs());
  }
  printer << " work_item";
  printArguments(printer, getCoordinates(),
                 /*withTypes=*/false);
  printer << " tokens";
  printArguments(printer, getTokenArguments(),
                 /*withTypes=*/false);
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getSymNameAttrName(), getNumInputsAttrName(),
                            getArgNamesAttrName(), getGridRankAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult ProgramOp::verify() {
  Region &body = getBody();
  if (static_cast<int64_t>(getGridRank()) <
          static_cast<int64_t>(kMinGridRank) ||
      static_cast<uint64_t>(getGridRank()) > body.getNumArguments())
    return emitOpError("expected grid_rank of ")
           << kMinGridRank << " to the number of block arguments, got "
           << static_cast<int64_t>(getGridRank());
  int64_t inputs = getNumInputs(),
          room = static_cast<int64_t>(body.getNumArguments()) -
                 getNumWorkItemArguments();
  if (inputs < 0 || inputs > room)
    return emitOpError("expected ")
           << inputs << " inputs and " << getNumWorkItemArguments()
           << " work item arguments, got " << body.getNumArguments()
           << " block arguments";
  for (BlockArgument argument : getWorkItemArguments())
    if (!argument.getType().isIndex())
      return emitOpError("expected work item arguments of type index, got ")
             << argument.getType();
  for (BlockArgument output : getOutputs())
    if (!isa<MemRefType>(output.getType()))
      return emitOpError("expected outputs to be memrefs, got ")
             << output.getType();
  for (BlockArgument input : getInputs())
    if (Type type = input.getType();
        !isa<MemRefType>(type) && !isElementType(type, ElementLevel::Tile))
      return emitOpError("expected inputs to be memrefs or scalars of ")
             << listElementTypes(ElementLevel::Tile) << ", got " << type;
  for (BlockArgument array : getArrays())
    if (failed(verifyArrayOrTile(*this, array.getType(), ElementLevel::Tile)))
      return failure();
  return verifyNames(*this, getArrays(), getArgNames());
}

LogicalResult ProgramOp::verifyRegions() {
  return verifyArraysAndTiles(*this, ElementLevel::Tile);
}
