//===- SupportTest.cpp - The table of what is supported -------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/Support.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

TEST(SupportTest, PredicatesTellTypesApart) {
  MLIRContext context;
  EXPECT_TRUE(support::isDataType(Float16Type::get(&context)));
  EXPECT_FALSE(support::isDataType(Float64Type::get(&context)));
  EXPECT_TRUE(support::isParameterType(BFloat16Type::get(&context)));
  EXPECT_FALSE(support::isParameterType(Float16Type::get(&context)));
  EXPECT_TRUE(support::isBoundaryType(IntegerType::get(&context, 64)));
  EXPECT_FALSE(support::isBoundaryType(
      IntegerType::get(&context, 32, IntegerType::Unsigned)));
  EXPECT_TRUE(support::isChunkSize(32));
  EXPECT_FALSE(support::isChunkSize(48));
}

TEST(SupportTest, TableNamesWhatThePredicatesTake) {
  std::string table = support::supportTable();
  EXPECT_NE(table.find("| q, k, v, o | bf16, f16, f32 |"), std::string::npos);
  EXPECT_NE(table.find("| gate, beta, states, gate parameters | f32, bf16 |"),
            std::string::npos);
  EXPECT_NE(table.find("| chunk length | 16, 32, 64 |"), std::string::npos);
}

/// The README shows the table as the compiler prints it.
TEST(SupportTest, ReadmeHasTheTable) {
  auto readme = llvm::MemoryBuffer::getFile(GDN_README);
  ASSERT_TRUE(bool(readme));
  EXPECT_NE((*readme)->getBuffer().find(support::supportTable()),
            llvm::StringRef::npos)
      << "expected this table in README.md:\n"
      << support::supportTable();
}

} // namespace
