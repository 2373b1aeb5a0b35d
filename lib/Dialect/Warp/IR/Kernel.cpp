//===- Kernel.cpp - Syntax and checks of kernels and roles ----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/NamedArguments.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     TypeRange arguments, int64_t threads, int64_t sharedBytes,
                     int64_t minCTAs, int64_t cluster) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getThreadsAttrName(state.name),
                     builder.getI64IntegerAttr(threads));
  state.addAttribute(getSharedBytesAttrName(state.name),
                     builder.getI64IntegerAttr(sharedBytes));
  state.addAttribute(getMinCtasAttrName(state.name),
                     builder.getI64IntegerAttr(minCTAs));
  state.addAttribute(getClusterAttrName(state.name),
                     builder.getI64IntegerAttr(cluster));
  auto block = std::make_unique<Block>();
  for (Type type : arguments)
    block->addArgument(type, state.location);
  state.addRegion()->push_back(block.release());
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  setNames(getBody().getArguments(), getArgNames(), setName);
}

/// Parses `keyword(integer)` into an i64 attribute; absent it stays unset.
static ParseResult parseFact(OpAsmParser &parser, StringRef keyword,
                             StringAttr attribute, OperationState &result) {
  if (failed(parser.parseOptionalKeyword(keyword)))
    return success();
  int64_t value = 0;
  if (parser.parseLParen() || parser.parseInteger(value) ||
      parser.parseRParen())
    return failure();
  result.addAttribute(attribute, parser.getBuilder().getI64IntegerAttr(value));
  return success();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      parser.parseArgumentList(arguments, OpAsmParser::Delimiter::Paren,
                               /*allowType=*/true))
    return failure();
  result.addAttribute(getArgNamesAttrName(result.name),
                      getNames(parser.getBuilder(), arguments));
  Region *body = result.addRegion();
  if (parseFact(parser, "threads", getThreadsAttrName(result.name), result) ||
      parseFact(parser, "shared", getSharedBytesAttrName(result.name),
                result) ||
      parseFact(parser, "min_ctas", getMinCtasAttrName(result.name), result) ||
      parseFact(parser, "cluster", getClusterAttrName(result.name), result))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("persistent")))
    result.addAttribute(getPersistentAttrName(result.name),
                        parser.getBuilder().getUnitAttr());
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes) ||
      parser.parseRegion(*body, arguments))
    return failure();
  if (body->empty())
    body->emplaceBlock();
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printArguments(printer, getBody().getArguments());
  printer << " threads(" << getThreads() << ") shared(" << getSharedBytes()
          << ')';
  if (getMinCtas() != 1)
    printer << " min_ctas(" << getMinCtas() << ')';
  if (getCluster() != 1)
    printer << " cluster(" << getCluster() << ')';
  if (getPersistent())
    printer << " persistent";
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getThreadsAttrName(), getSharedBytesAttrName(),
       getMinCtasAttrName(), getClusterAttrName(), getPersistentAttrName(),
       getArgNamesAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

LogicalResult KernelOp::verify() {
  const Arch &arch = getArch(*this);
  int64_t threads = getThreads(),
          group = format::kWarpThreads * format::kWarpgroupWarps;
  bool isPart = threads < group && threads % format::kWarpThreads == 0;
  if (threads <= 0 || threads > arch.maxThreads ||
      (threads % group != 0 && !isPart))
    return emitOpError("expected whole warpgroups of ")
           << group << " threads up to " << arch.maxThreads
           << ", or warps of one, got " << threads;
  if (static_cast<int64_t>(getSharedBytes()) < 0)
    return emitOpError("expected shared bytes of at least 0, got ")
           << static_cast<int64_t>(getSharedBytes());
  int64_t minCTAs = getMinCtas(), maxCTAs = arch.maxResidentThreads / threads;
  if (minCTAs < 1 || minCTAs > maxCTAs)
    return emitOpError("expected min_ctas of 1 to ")
           << maxCTAs << ", as many threads as a multiprocessor has, got "
           << minCTAs;
  int64_t cluster = getCluster();
  if (cluster < 1 || cluster > arch.maxCluster)
    return emitOpError("expected a cluster of 1 to ")
           << arch.maxCluster << " CTAs, got " << cluster;
  for (BlockArgument argument : getBody().getArguments()) {
    Type type = argument.getType();
    if (auto array = dyn_cast<MemRefType>(type)) {
      int64_t offset = 0;
      SmallVector<int64_t> strides;
      if (failed(array.getStridesAndOffset(strides, offset)) || offset != 0)
        return emitOpError("expected arrays with strides and no offset, got ")
               << type;
      if (failed(verifyArrayOrTile(*this, array, ElementLevel::Warp)))
        return failure();
    } else if (!isElementType(type, ElementLevel::Warp)) {
      return emitOpError("expected arguments that are memrefs or scalars of ")
             << listElementTypes(ElementLevel::Warp) << ", got " << type;
    }
  }
  return verifyNames(*this, getBody().getArguments(), getArgNames());
}

LogicalResult KernelOp::verifyRegions() {
  return verifyArraysAndTiles(*this, ElementLevel::Warp);
}

LogicalResult GridDependencyWaitOp::verify() {
  if (getThenLaunch() + getLaunchLater() + getLastCta() > 1)
    return emitOpError(
        "expected one of then_launch, launch_later and last_cta, got more");
  return success();
}

int64_t RoleOp::countTogether() {
  Attribute turns = (*this)->getAttr(WarpDialect::getRoundRobinAttrName());
  if (!turns)
    return getCount();
  auto together = dyn_cast<IntegerAttr>(turns);
  return together ? together.getInt() : 1;
}

LogicalResult RoleOp::verify() {
  if (getBody().getNumArguments() != 0)
    return emitOpError("expected no block arguments, got ")
           << getBody().getNumArguments();
  int64_t first = getFirst(), count = getCount();
  int64_t warps = cast<KernelOp>((*this)->getParentOp()).getThreads() /
                  format::kWarpThreads;
  if (first < 0 || count <= 0 || first + count > warps)
    return emitOpError("expected warps in [0, ")
           << warps << "), got " << first << " .. " << first + count;
  int64_t group = format::kWarpgroupWarps;
  bool wholeGroups = first % group == 0 && count % group == 0;
  bool inOneGroup = first / group == (first + count - 1) / group;
  if (!wholeGroups && !inOneGroup)
    return emitOpError("expected whole warpgroups or warps of one, got ")
           << first << " .. " << first + count;
  int64_t together = countTogether();
  bool isTurn = together == 1 || (together > 0 && together % group == 0 &&
                                  count % together == 0);
  if ((*this)->hasAttr(WarpDialect::getRoundRobinAttrName()) && !isTurn)
    return emitOpError("expected turns of one warp, or of whole warpgroups "
                       "that divide the role's, got turns of ")
           << together << " of " << count << " warps";
  if (std::optional<uint64_t> registers = getRegisters()) {
    int64_t value = *registers;
    if (value < format::kMinSetRegisters || value > format::kMaxSetRegisters ||
        value % format::kRegisterUnit != 0)
      return emitOpError("expected a multiple of ")
             << format::kRegisterUnit << " registers from "
             << format::kMinSetRegisters << " to " << format::kMaxSetRegisters
             << ", got " << value;
  }
  return success();
}
