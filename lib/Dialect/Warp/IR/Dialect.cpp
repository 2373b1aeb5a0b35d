//===- Dialect.cpp - The gdn_warp dialect and its encodings ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rows.h"

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn::warp;

#include "gdn/Dialect/Warp/IR/Dialect.cpp.inc"
#include "gdn/Dialect/Warp/IR/Enums.cpp.inc"

/// A list of plans in brackets, which may be empty.
template <typename Spec>
static ParseResult parseSpecList(AsmParser &parser,
                                 SmallVectorImpl<Spec> &specs) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    FailureOr<Spec> spec = FieldParser<Spec>::parse(parser);
    if (succeeded(spec))
      specs.push_back(*spec);
    return ParseResult(spec);
  });
}

template <typename Spec>
static void printSpecList(AsmPrinter &printer, ArrayRef<Spec> specs) {
  printer << '[';
  llvm::interleaveComma(specs, printer, [&](Spec spec) {
    printer.printStrippedAttrOrType(spec);
  });
  printer << ']';
}

#define GET_ATTRDEF_CLASSES
#include "gdn/Dialect/Warp/IR/Attributes.cpp.inc"

void WarpDialect::initialize() {
  for (const Arch &arch : kArchs)
    addArch(arch);
  addAttributes<
#define GET_ATTRDEF_LIST
#include "gdn/Dialect/Warp/IR/Attributes.cpp.inc"
      >();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "gdn/Dialect/Warp/IR/Ops.cpp.inc"
      >();
}

/// A target names a chip that there is.
static LogicalResult verifyTarget(Operation *op, Attribute attribute,
                                  const WarpDialect &dialect) {
  auto target = dyn_cast<TargetAttr>(attribute);
  if (!target)
    return op->emitOpError("expected ")
           << TargetAttr::kName << " to be a #gdn_warp.target, got "
           << attribute;
  if (!dialect.findArch(target.getChip()))
    return op->emitOpError("expected a target of ")
           << dialect.listArchs() << ", got " << target.getChip();
  return success();
}

/// A schedule fits the chip that its program or kernel is for.
static LogicalResult verifySchedule(Operation *op, Attribute attribute) {
  if (auto schedule = dyn_cast<ScheduleAttr>(attribute))
    return schedule.verifyFor(op, getArch(op));
  return op->emitOpError("expected ")
         << ScheduleAttr::kName << " to be a #gdn_warp.schedule, got "
         << attribute;
}

/// Schedules of stages have names.
static LogicalResult verifySchedules(Operation *op, NamedAttribute attribute) {
  auto choices = dyn_cast<DictionaryAttr>(attribute.getValue());
  if (choices && llvm::all_of(choices, [](NamedAttribute choice) {
        return isa<StringAttr>(choice.getValue());
      }))
    return success();
  return op->emitOpError("expected a dictionary of strings in ")
         << attribute.getName().getValue() << ", got " << attribute.getValue();
}

/// A stage is part of a kernel's name.
static LogicalResult verifyStage(Operation *op, NamedAttribute attribute) {
  auto stage = dyn_cast<StringAttr>(attribute.getValue());
  if (stage && format::isName(stage.getValue()))
    return success();
  return op->emitOpError("expected ")
         << attribute.getName().getValue() << " of " << format::kNames
         << ", got " << attribute.getValue();
}

LogicalResult WarpDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == getLikelyAttrName() &&
      (!isa<scf::IfOp>(op) || !isa<BoolAttr>(attribute.getValue())))
    return op->emitOpError("expected ")
           << name << " on an scf.if, true or false, got "
           << attribute.getValue();
  if (name == TargetAttr::kName)
    return verifyTarget(op, attribute.getValue(), *this);
  if (name == ScheduleAttr::kName)
    return verifySchedule(op, attribute.getValue());
  if (name == getSchedulesAttrName())
    return verifySchedules(op, attribute);
  if (name == getStageAttrName())
    return verifyStage(op, attribute);
  if (name == getScratchBytesAttrName()) {
    auto bytes = dyn_cast<IntegerAttr>(attribute.getValue());
    if (bytes && bytes.getInt() > 0)
      return success();
    return op->emitOpError("expected a number of bytes in ")
           << name << ", got " << attribute.getValue();
  }
  if (name == getScratchApartAttrName()) {
    if (isa<linalg::ReduceOp>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("expected ")
           << name << " on a linalg.reduce, without a value, got "
           << attribute.getValue();
  }
  if (name == getScratchAttrName() || name == getRowsAttrName()) {
    auto pair = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (pair && pair.size() == 2 && name == getScratchAttrName())
      return success();
    if (pair && pair.size() == 2)
      return countRows(op, format::kWgmmaRows, pair.asArrayRef());
    return op->emitOpError("expected two integers in ")
           << name << ", got " << attribute.getValue();
  }
  if (name != getUnrollAttrName() && name != getChunksAttrName() &&
      name != getPiecesAttrName())
    return success();
  auto factor = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!isa<scf::ForOp>(op) || !factor || factor.getInt() < 2)
    return op->emitOpError("expected ")
           << name << " on an scf.for, with an integer of at least 2, got "
           << attribute.getValue();
  return success();
}

LogicalResult FragmentAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 2 || shape[0] != format::kWgmmaRows || shape[1] <= 0 ||
      shape[1] % format::kWgmmaColumnUnit != 0 ||
      shape[1] > format::kMaxWgmmaColumns)
    return emitError() << "expected a fragment of " << format::kWgmmaRows
                       << " rows and a multiple of " << format::kWgmmaColumnUnit
                       << " columns up to " << format::kMaxWgmmaColumns
                       << ", got shape [" << shape << "]";
  return success();
}

LogicalResult ColumnsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type elementType,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 1 || shape[0] <= 0 ||
      shape[0] % format::kWgmmaColumnUnit != 0 ||
      shape[0] > format::kMaxWgmmaColumns)
    return emitError() << "expected a vector of a multiple of "
                       << format::kWgmmaColumnUnit << " columns up to "
                       << format::kMaxWgmmaColumns << ", got shape [" << shape
                       << "]";
  return success();
}

LogicalResult
RowsAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                         function_ref<InFlightDiagnostic()> emitError) const {
  if (shape.size() != 1 || shape[0] != format::kWgmmaRows)
    return emitError() << "expected a vector of " << format::kWgmmaRows
                       << " rows, got shape [" << shape << "]";
  return success();
}

LogicalResult
LanesAttr::verifyEncoding(ArrayRef<int64_t> shape, Type elementType,
                          function_ref<InFlightDiagnostic()> emitError) const {
  constexpr int64_t kLanes = format::kWarpThreads;
  if (shape.size() != 1 || shape[0] <= 0 ||
      (shape[0] % kLanes != 0 && kLanes % shape[0] != 0))
    return emitError() << "expected a vector of a multiple or a divisor of "
                       << kLanes << " elements, got shape [" << shape << "]";
  return success();
}

int64_t gdn::warp::getThreadElements(RankedTensorType tensor) {
  // A quad of lanes shares a row's columns; eight quads of each of the four
  // warps share the rows, two to a lane.
  constexpr int64_t kQuad = 4, kRowsPerThread = 2;
  if (isEncoded<FragmentAttr>(tensor))
    return tensor.getDimSize(1) / kQuad * kRowsPerThread;
  if (isEncoded<ColumnsAttr>(tensor))
    return tensor.getDimSize(0) / kQuad;
  if (isEncoded<RowsAttr>(tensor))
    return kRowsPerThread;
  if (isEncoded<LanesAttr>(tensor))
    return llvm::divideCeil(tensor.getDimSize(0), format::kWarpThreads);
  if (isEncoded<UniformAttr>(tensor))
    return tensor.getNumElements();
  if (auto slice = dyn_cast_or_null<SliceAttr>(tensor.getEncoding()))
    return countAlong(slice.getOf(), slice.getAxis(), tensor.getDimSize(0));
  if (auto spread = dyn_cast_or_null<SpreadAttr>(tensor.getEncoding()))
    return countAlong(spread, 0, tensor.getDimSize(0)) *
           countAlong(spread, 1, tensor.getDimSize(1));
  return 0;
}

int64_t gdn::warp::getScratchBytes(Operation *op) {
  auto bytes =
      op->getAttrOfType<IntegerAttr>(WarpDialect::getScratchBytesAttrName());
  return bytes ? bytes.getInt() : 0;
}

bool gdn::warp::isUnlikely(Operation *op, StringRef likely) {
  for (; op->getParentOp(); op = op->getParentOp()) {
    auto branch = dyn_cast<scf::IfOp>(op->getParentOp());
    auto usual = branch ? branch->getAttrOfType<BoolAttr>(likely) : BoolAttr();
    if (usual && usual.getValue() !=
                     branch.getThenRegion().isAncestor(op->getParentRegion()))
      return true;
  }
  return false;
}
