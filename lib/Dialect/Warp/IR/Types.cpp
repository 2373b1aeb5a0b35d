//===- Types.cpp - Syntax and checks of views -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

#define GET_TYPEDEF_CLASSES
#include "gdn/Dialect/Warp/IR/Types.cpp.inc"

void WarpDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "gdn/Dialect/Warp/IR/Types.cpp.inc"
      >();
}

int64_t ViewType::getDenseStride(ArrayRef<int64_t> shape, Type elementType,
                                 int64_t swizzle) {
  if (swizzle != 0)
    return shape.front() * format::kPanelBytes;
  return shape.back() * elementType.getIntOrFloatBitWidth() / 8;
}

int64_t ViewType::getPanels() const {
  if (!isSwizzled())
    return 1;
  return llvm::divideCeil(getColumn() + getColumns() * getElementBytes(),
                          format::kPanelBytes);
}

int64_t ViewType::getSpan() const {
  if (isSwizzled())
    return (getPanels() - 1) * getStride() + getRows() * format::kPanelBytes;
  return (getRows() - 1) * getStride() + getColumns() * getElementBytes();
}

LogicalResult ViewType::verify(function_ref<InFlightDiagnostic()> emitError,
                               ArrayRef<int64_t> shape, Type elementType,
                               int64_t swizzle, int64_t stride,
                               int64_t column) {
  if (shape.empty() || shape.size() > 2 ||
      llvm::any_of(shape, [](int64_t size) { return size <= 0; }))
    return emitError() << "expected one or two positive sizes, got [" << shape
                       << "]";
  if (!isElementType(elementType, ElementLevel::Warp) ||
      elementType.getIntOrFloatBitWidth() % 8 != 0)
    return emitError() << "expected elements of whole bytes among "
                       << listElementTypes(ElementLevel::Warp) << ", got "
                       << elementType;
  if (swizzle != 0 && swizzle != format::kPanelBytes)
    return emitError() << "expected swizzle 0 or " << format::kPanelBytes
                       << ", got " << swizzle;
  int64_t columnBytes = shape.back() * elementType.getIntOrFloatBitWidth() / 8;
  if (swizzle == 0) {
    if (column != 0)
      return emitError() << "expected column 0 without a swizzle, got "
                         << column;
    if (stride < columnBytes)
      return emitError() << "expected a stride of at least " << columnBytes
                         << " bytes, got " << stride;
    return success();
  }
  if (shape.size() != 2)
    return emitError() << "expected a swizzled view of rank 2, got rank "
                       << shape.size();
  if (column < 0 || column >= format::kPanelBytes || column % 32 != 0)
    return emitError() << "expected a column byte in [0, "
                       << format::kPanelBytes
                       << ") that is a multiple of 32, got " << column;
  if (stride <= 0 || stride % format::kSwizzleAlignment != 0)
    return emitError() << "expected a panel stride that is a multiple of "
                       << format::kSwizzleAlignment << ", got " << stride;
  return success();
}

/// The parameters behind the element type, by name.
static ParseResult parseViewOptions(AsmParser &parser, int64_t &swizzle,
                                    std::optional<int64_t> &stride,
                                    int64_t &column) {
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    int64_t value = 0;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name) || parser.parseEqual() ||
        parser.parseInteger(value))
      return failure();
    if (name == "swizzle")
      swizzle = value;
    else if (name == "stride")
      stride = value;
    else if (name == "column")
      column = value;
    else
      return parser.emitError(loc, "expected swizzle, stride or column, got ")
             << name;
  }
  return success();
}

Type ViewType::parse(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<int64_t> shape;
  Type elementType;
  int64_t swizzle = 0, column = 0;
  std::optional<int64_t> stride;
  if (parser.parseLess() ||
      parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(elementType) ||
      parseViewOptions(parser, swizzle, stride, column) ||
      parser.parseGreater())
    return {};
  if (!stride && !shape.empty() && elementType.isIntOrFloat())
    stride = getDenseStride(shape, elementType, swizzle);
  return getChecked([&] { return parser.emitError(loc); }, parser.getContext(),
                    shape, elementType, swizzle, stride.value_or(0), column);
}

void ViewType::print(AsmPrinter &printer) const {
  printer << '<';
  for (int64_t size : getShape())
    printer << size << 'x';
  printer << getElementType();
  if (isSwizzled())
    printer << ", swizzle = " << getSwizzle();
  if (getStride() != getDenseStride(getShape(), getElementType(), getSwizzle()))
    printer << ", stride = " << getStride();
  if (getColumn() != 0)
    printer << ", column = " << getColumn();
  printer << '>';
}
