//===- Check.cpp - Results against float64 --------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Check.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
namespace reference = ::gdn::reference;

/// Which row of spec 9 a result stands in.
static reference::Tolerance toleranceOf(Element result,
                                        const Evaluated &expected,
                                        llvm::StringRef operandType) {
  if (!expected.output)
    return {0, 0};
  bool float32Products =
      operandType == "f32" ||
      (operandType == "auto" && expected.dataType == Element::F32);
  reference::Numerics numerics;
  numerics.float32Operands = float32Products && result == Element::F32;
  numerics.roundedState = result != Element::F32;
  return reference::tolerance(*expected.output, numerics);
}

OutputCheck tools::checkOutput(const HostArray &actual,
                               const Evaluated &expected,
                               llvm::StringRef operandType) {
  OutputCheck check;
  check.name = expected.output ? name(*expected.output).str() : "value";
  check.tolerance = toleranceOf(actual.getElement(), expected, operandType);
  std::vector<double> values;
  // A wrong shape with the right number of elements must not pass: no values
  // against some is an infinite error.
  bool sameShape = actual.getShape() == llvm::ArrayRef(expected.shape);
  if (sameShape)
    values = actual.toDoubles();
  check.error = reference::compare(values, *expected.values, expected.spread);
  check.pass = sameShape && reference::accepts(check.tolerance, check.error);
  return check;
}
