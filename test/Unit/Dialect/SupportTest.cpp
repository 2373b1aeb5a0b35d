//===- SupportTest.cpp - Which types and sizes the ops take ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

TEST(SupportTest, PredicatesTellTypesApart) {
  MLIRContext context;
  EXPECT_TRUE(support::isDataType(Float16Type::get(&context)));
  EXPECT_FALSE(support::isDataType(Float64Type::get(&context)));
  EXPECT_TRUE(support::isParameterType(BFloat16Type::get(&context)));
  EXPECT_TRUE(support::isParameterType(Float16Type::get(&context)));
  EXPECT_FALSE(support::isParameterType(Float64Type::get(&context)));
  EXPECT_TRUE(support::isBoundaryType(IntegerType::get(&context, 64)));
  EXPECT_FALSE(support::isBoundaryType(
      IntegerType::get(&context, 32, IntegerType::Unsigned)));
  EXPECT_TRUE(support::isChunkSize(32));
  EXPECT_FALSE(support::isChunkSize(48));
}

} // namespace
