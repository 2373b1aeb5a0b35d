//===- TargetTest.cpp - The chip that a kernel is for ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/CostModel/CostModel.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {

/// A chip that is nobody's, with half of what the first one has.
Arch makeHalf() {
  Arch half = getDefaultArch();
  half.chip = "sm_half";
  half.sharedBytes /= 2;
  half.maxThreads /= 2;
  half.multiprocessors /= 2;
  return half;
}

class TargetTest : public ::testing::Test {
protected:
  TargetTest() {
    context.getOrLoadDialect<WarpDialect>()->addArch(half);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
  }

  OwningOpRef<ModuleOp> parse(const std::string &sizes, StringRef chip) {
    return parseSourceString<ModuleOp>("gdn_warp.kernel @k() " + sizes +
                                           " attributes {gdn_warp.target = "
                                           "#gdn_warp.target<chip = \"" +
                                           chip.str() + "\">} {}",
                                       &context);
  }

  const Arch half = makeHalf();
  MLIRContext context;
  std::string message;
};

TEST_F(TargetTest, KernelHasTheNumbersOfItsChip) {
  OwningOpRef<ModuleOp> module = parse("threads(128) shared(0)", "sm_half");
  ASSERT_TRUE(module);
  KernelOp kernel = *module->getOps<KernelOp>().begin();
  EXPECT_EQ(&getArch(kernel), &half);
  EXPECT_EQ(&getArch(*module), &getDefaultArch());
  kernel->removeAttr(TargetAttr::kName);
  EXPECT_EQ(&getArch(kernel), &getDefaultArch());
  (*module)->setAttr(TargetAttr::kName, TargetAttr::get(&context, "sm_half"));
  EXPECT_EQ(&getArch(kernel), &half);
}

TEST_F(TargetTest, VerifierGoesByTheChip) {
  EXPECT_TRUE(parse("threads(1024) shared(0)", "sm_90a"));
  EXPECT_FALSE(parse("threads(1024) shared(0)", "sm_half"));
  EXPECT_NE(message.find("threads up to 512, or warps of one, got 1024"),
            std::string::npos)
      << message;
  EXPECT_FALSE(parse("threads(128) shared(0)", "sm_none"));
  EXPECT_NE(message.find("expected a target of sm_90a, sm_half, got sm_none"),
            std::string::npos)
      << message;
}

TEST_F(TargetTest, PassesGoByTheChip) {
  PassManager manager(&context);
  manager.addPass(createVerifyExplicitFormPass());
  std::string sizes =
      "threads(128) shared(" + std::to_string(half.sharedBytes + 16) + ")";
  OwningOpRef<ModuleOp> fits = parse(sizes, "sm_90a"),
                        large = parse(sizes, "sm_half");
  ASSERT_TRUE(fits && large);
  EXPECT_TRUE(succeeded(manager.run(*fits)));
  EXPECT_TRUE(failed(manager.run(*large)));
  EXPECT_NE(message.find("expected at most " +
                         std::to_string(half.sharedBytes) + " bytes"),
            std::string::npos)
      << message;
}

TEST_F(TargetTest, CostModelGoesByTheChip) {
  EXPECT_EQ(::gdn::cost::getChip(half).multiprocessors, half.multiprocessors);
  EXPECT_EQ(::gdn::cost::getChip(half, 7).multiprocessors, 7);
}

} // namespace
