//===- RuleTest.cpp - Sizes, inferred types, effects of delta rules -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/GDN/IR/RuleDims.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// Parses a function and finds its first op of a kind.
class RuleTest : public ::testing::Test {
protected:
  RuleTest() { context.loadDialect<func::FuncDialect, GDNDialect>(); }

  template <typename Op> Op parse(StringRef function) {
    module = parseSourceString<ModuleOp>(function, &context);
    EXPECT_TRUE(module);
    Op found;
    module->walk([&](Op op) { found = op; });
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr StringLiteral packedLayer = R"mlir(
  func.func @f(%q: tensor<1x?x2x32xbf16>, %v: tensor<1x64x6x16xbf16>,
               %b: tensor<?x?x6xf32>, %g: tensor<1x?x6x32xf32>,
               %h: tensor<?x6x16x32xbf16>, %cu: tensor<4xi32>) {
    %o, %s = gdn.chunk_gated_delta_rule q(%q : tensor<1x?x2x32xbf16>)
        k(%q : tensor<1x?x2x32xbf16>) v(%v : tensor<1x64x6x16xbf16>)
        beta(%b : tensor<?x?x6xf32>) gate(%g : tensor<1x?x6x32xf32>)
        initial_state(%h : tensor<?x6x16x32xbf16>) cu_seqlens(%cu : tensor<4xi32>)
        {output_final_state, state_layout = #gdn.state_layout<vk>}
        -> tensor<?x?x6x16xbf16>, tensor<?x6x16x32xbf16>
    return
  })mlir";

TEST_F(RuleTest, SizesAreLearntFromAllOperands) {
  auto op = parse<ChunkGatedDeltaRuleOp>(packedLayer);
  RuleDims dims = getRuleDims(op);
  EXPECT_EQ(dims.B, 1);
  EXPECT_EQ(dims.T, 64);
  EXPECT_EQ(dims.Hq, 2);
  EXPECT_EQ(dims.H, 6);
  EXPECT_EQ(dims.K, 32);
  EXPECT_EQ(dims.V, 16);
  EXPECT_EQ(dims.N, 3);
  EXPECT_EQ(dims.get(Dim::Boundaries), 4);
  EXPECT_TRUE(isChannelGate(op));
  EXPECT_DOUBLE_EQ(getScale(op), 0.17677669529663687);
}

TEST_F(RuleTest, BuilderInfersResultTypes) {
  auto op = parse<ChunkGatedDeltaRuleOp>(packedLayer);
  OpBuilder builder(op);
  SmallVector<Type> types;
  ASSERT_TRUE(succeeded(ChunkGatedDeltaRuleOp::inferReturnTypes(
      &context, op.getLoc(), op->getOperands(), op->getRawDictionaryAttrs(),
      op->getPropertiesStorage(), op->getRegions(), types)));
  ASSERT_EQ(types.size(), 2u);
  Type bf16 = builder.getBF16Type();
  EXPECT_EQ(types[0], RankedTensorType::get({1, 64, 6, 16}, bf16));
  EXPECT_EQ(types[1], RankedTensorType::get({3, 6, 16, 32}, bf16));
}

TEST_F(RuleTest, CompatibleTypesDifferInDynamicSizesOnly) {
  auto type = [&](ArrayRef<int64_t> shape, Type element) -> Type {
    return RankedTensorType::get(shape, element);
  };
  Type f32 = Float32Type::get(&context), bf16 = BFloat16Type::get(&context);
  auto compatible = [](Type lhs, Type rhs) {
    return ChunkGatedDeltaRuleOp::isCompatibleReturnTypes(lhs, rhs);
  };
  int64_t dynamic = ShapedType::kDynamic;
  EXPECT_TRUE(compatible(type({1, dynamic}, f32), type({1, 64}, f32)));
  EXPECT_FALSE(compatible(type({1, 63}, f32), type({1, 64}, f32)));
  EXPECT_FALSE(compatible(type({1, 64}, bf16), type({1, 64}, f32)));
}

TEST_F(RuleTest, OnlyTheTensorFormWithoutBoundariesMayMove) {
  auto packed = parse<ChunkGatedDeltaRuleOp>(packedLayer);
  EXPECT_TRUE(isMemoryEffectFree(packed));
  EXPECT_FALSE(isSpeculatable(packed));
  auto batched = parse<RecurrentGatedDeltaRuleOp>(R"mlir(
    func.func @f(%q: tensor<8x1x2x32xf32>, %b: tensor<8x1x2xf32>) {
      %o = gdn.recurrent_gated_delta_rule q(%q : tensor<8x1x2x32xf32>)
          k(%q : tensor<8x1x2x32xf32>) v(%q : tensor<8x1x2x32xf32>)
          beta(%b : tensor<8x1x2xf32>) -> tensor<8x1x2x32xf32>
      return
    })mlir");
  EXPECT_TRUE(isSpeculatable(batched));
}

TEST_F(RuleTest, BufferFormReadsInputsAndWritesOuts) {
  auto op = parse<RecurrentGatedDeltaRuleOp>(R"mlir(
    func.func @f(%q: memref<8x1x2x32xf32>, %b: memref<8x1x2xf32>,
                 %o: memref<8x1x2x32xf32>) {
      gdn.recurrent_gated_delta_rule q(%q : memref<8x1x2x32xf32>)
          k(%q : memref<8x1x2x32xf32>) v(%q : memref<8x1x2x32xf32>)
          beta(%b : memref<8x1x2xf32>) outs(%o : memref<8x1x2x32xf32>)
      return
    })mlir");
  EXPECT_TRUE(hasEffect<MemoryEffects::Read>(op, op.getQ()));
  EXPECT_TRUE(hasEffect<MemoryEffects::Read>(op, op.getBeta()));
  EXPECT_FALSE(hasEffect<MemoryEffects::Write>(op, op.getQ()));
  EXPECT_TRUE(hasEffect<MemoryEffects::Write>(op, op.getOuts()[0]));
  EXPECT_FALSE(hasEffect<MemoryEffects::Read>(op, op.getOuts()[0]));
  EXPECT_FALSE(isSpeculatable(op));
}

} // namespace
