//===- Products.cpp - Products become wgmma -------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Descriptors (PTX ISA, "Matrix Descriptor Format")
//===----------------------------------------------------------------------===//

/// Addresses and offsets are in units of 16 bytes.
static constexpr int64_t kUnit = 16;

/// A number of at most 14 bits that differs between the branches around an op
/// and those that are taken instead; 1 where there are none.
static int64_t numberBranch(Operation *op) {
  int64_t number = 1;
  for (; number < (1 << 13) && op; op = op->getParentOp())
    if (auto choice = dyn_cast_or_null<scf::IfOp>(op->getParentOp());
        choice && !choice.getElseRegion().empty())
      number = 2 * number + op->getParentRegion()->getRegionNumber();
  return number;
}

/// Whether products other than `product` read `view`. LLVM would keep the
/// descriptors of all steps in registers from the first product to the last.
static bool isShared(Value view, WgmmaOp product) {
  return llvm::any_of(view.getUsers(), [&](Operation *user) {
    return isa<WgmmaOp>(user) && user != product;
  });
}

/// The descriptor of a swizzled view as an operand of `product` whose K
/// dimension is contiguous (`kMajor`) or whose other dimension is.
static Value createDescriptor(ImplicitLocOpBuilder &b, WgmmaOp product,
                              Value operand, Value address, bool kMajor) {
  auto view = cast<ViewType>(operand.getType());
  Value low = LLVM::PtrToIntOp::create(b, b.getI32Type(), address);
  low = arith::ShRUIOp::create(b, low, createI32(b, llvm::Log2_64(kUnit)));
  low = arith::AndIOp::create(b, low, createI32(b, 0x3FFF));
  // Panel to panel along the rows or columns of the product. Unused where K
  // lies along the panel; by convention 1, but of equal descriptors in two
  // branches ptxas makes each step by five instructions and not by one.
  int64_t leading = kMajor ? numberBranch(product) : view.getStride() / kUnit;
  low = arith::AddIOp::create(
      b, low, createI32(b, view.getColumn() / kUnit + (leading << 16)));
  int64_t eightRows = 8 * format::kPanelBytes / kUnit;
  // Bits 62 and 63 say how panels are swizzled: 1 is 128 bytes.
  int64_t high = eightRows + (int64_t(1) << 30);
  // Of halves that LLVM sees it makes each step's descriptor by an `or`, which
  // ptxas turns into two instructions; a 64-bit sum is one.
  return createAsm(b, b.getI64Type(), low,
                   "mov.b64 $0, {$1, " + std::to_string(high) + "};", "=l,r",
                   /*hasSideEffects=*/isShared(operand, product))
      .getResult(0);
}

/// The descriptor of step `step` along K.
static Value createStep(ImplicitLocOpBuilder &b, ViewType view, Value first,
                        bool kMajor, int64_t step) {
  int64_t offset;
  if (kMajor) {
    int64_t begin = view.getColumn() % format::kPanelBytes;
    int64_t byte = begin + step * format::kWgmmaDepth * view.getElementBytes();
    offset = byte / format::kPanelBytes * view.getStride() +
             byte % format::kPanelBytes - begin;
  } else {
    offset = step * format::kWgmmaDepth * format::kPanelBytes;
  }
  return arith::AddIOp::create(
      b, first,
      arith::ConstantOp::create(b, b.getI64IntegerAttr(offset / kUnit)));
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// The registers of a product that is alone, moved by the instructions of
/// `text`: LLVM, which knows nothing of products under way, has no reason to
/// copy any of them in between. `opens` moves what goes in to before the text,
/// else to behind it.
static SmallVector<Value> createMoves(ImplicitLocOpBuilder &b, StringRef text,
                                      ArrayRef<Value> values, bool opens) {
  std::string moves, constraints;
  llvm::raw_string_ostream stream(moves), list(constraints);
  size_t count = values.size();
  SmallVector<Type> types;
  auto isFloat = [](Value value) { return isa<FloatType>(value.getType()); };
  for (Value value : values) {
    types.push_back(value.getType());
    list << (isFloat(value) ? "=&f," : "=&r,");
  }
  if (!opens)
    stream << text << '\n';
  for (auto [i, value] : llvm::enumerate(values)) {
    list << (isFloat(value) ? "f," : "r,");
    stream << (isFloat(value) ? "mov.f32 $" : "mov.b32 $") << i << ", $"
           << count + i << ";\n";
  }
  if (opens)
    stream << text;
  list << "~{memory}";
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  return unpackStruct(
      b, createAsm(b, type, values, moves, constraints).getResult(0));
}

/// wgmma with the left operand in four registers, which nvvm lacks.
static SmallVector<Value>
createRegisterProduct(ImplicitLocOpBuilder &b, ArrayRef<Value> accumulator,
                      ArrayRef<Value> a, Value descriptorB, Type element,
                      bool accumulate, bool negate, bool transposed) {
  size_t count = accumulator.size();
  std::string text;
  llvm::raw_string_ostream stream(text);
  StringRef type = element.isBF16() ? "bf16" : "f16";
  stream << "{\n.reg .pred p;\nsetp.ne.b32 p, " << (accumulate ? 1 : 0)
         << ", 0;\nwgmma.mma_async.sync.aligned.m64n" << count * 2 << "k16.f32."
         << type << '.' << type << " {";
  for (size_t i = 0; i < count; ++i)
    stream << (i ? ", $" : "$") << i;
  // The tied inputs take numbers of their own.
  size_t next = 2 * count;
  stream << "}, {$" << next << ", $" << next + 1 << ", $" << next + 2 << ", $"
         << next + 3 << "}, $" << next + 4 << ", p, " << (negate ? -1 : 1)
         << ", 1, " << (transposed ? 1 : 0) << ";\n}";
  SmallVector<Value> inputs(a);
  inputs.push_back(descriptorB);
  return createTied(b, text, accumulator, inputs, "r,r,r,r,l,");
}

/// wgmma with both operands in shared memory.
static SmallVector<Value>
createSharedProduct(ImplicitLocOpBuilder &b, ArrayRef<Value> accumulator,
                    Value descriptorA, Value descriptorB, Type element,
                    bool accumulate, bool negate, bool kMajorA, bool kMajorB) {
  MLIRContext *context = b.getContext();
  auto type = getStruct(context, b.getF32Type(), accumulator.size());
  Value packed = LLVM::PoisonOp::create(b, type);
  if (accumulate)
    for (auto [i, value] : llvm::enumerate(accumulator))
      packed = LLVM::InsertValueOp::create(b, packed, value,
                                           static_cast<int64_t>(i));
  NVVM::WGMMATypes operand =
      element.isBF16() ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f16;
  auto shape = NVVM::MMAShapeAttr::get(
      context, format::kWgmmaRows, accumulator.size() * 2, format::kWgmmaDepth);
  Value result = NVVM::WgmmaMmaAsyncOp::create(
      b, type, packed, descriptorA, descriptorB, shape, operand, operand,
      NVVM::WGMMATypes::f32,
      accumulate ? NVVM::WGMMAScaleOut::one : NVVM::WGMMAScaleOut::zero,
      negate ? NVVM::WGMMAScaleIn::neg : NVVM::WGMMAScaleIn::one,
      NVVM::WGMMAScaleIn::one,
      kMajorA ? NVVM::MMALayout::row : NVVM::MMALayout::col,
      kMajorB ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      NVVM::MMAIntOverflowAttr());
  return unpackStruct(b, result);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
struct LowerWgmma : OpConversionPattern<WgmmaOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto result =
        cast<VectorType>(getTypeConverter()->convertType(op.getType()));
    auto viewA = dyn_cast<ViewType>(op.getA().getType());
    ViewType viewB = op.getB().getType();
    bool kMajorA = !op.getTransposeA(), kMajorB = op.getTransposeB();
    int64_t depth = viewB.getShape()[kMajorB ? 1 : 0];
    Type element = viewB.getElementType();

    Value firstA,
        firstB = createDescriptor(b, op, op.getB(), adaptor.getB(), kMajorB);
    SmallVector<Value> registers;
    if (viewA) {
      firstA = createDescriptor(b, op, op.getA(), adaptor.getA(), kMajorA);
    } else {
      auto words = VectorType::get(
          cast<VectorType>(adaptor.getA().getType()).getNumElements() / 2,
          b.getI32Type());
      registers =
          unpack(b, vector::BitCastOp::create(b, words, adaptor.getA()));
    }
    SmallVector<Value> accumulator;
    if (adaptor.getAccumulator())
      accumulator = unpack(b, adaptor.getAccumulator());
    else
      accumulator.assign(result.getNumElements(),
                         LLVM::PoisonOp::create(b, b.getF32Type()));
    if (op.getAlone())
      begin(b, accumulator, registers);
    for (int64_t step = 0; step < depth / format::kWgmmaDepth; ++step) {
      bool accumulate = step > 0 || adaptor.getAccumulator();
      Value b16 = createStep(b, viewB, firstB, kMajorB, step);
      accumulator =
          viewA
              ? createSharedProduct(
                    b, accumulator, createStep(b, viewA, firstA, kMajorA, step),
                    b16, element, accumulate, op.getNegate(), kMajorA, kMajorB)
              : createRegisterProduct(
                    b, accumulator, ArrayRef(registers).slice(4 * step, 4), b16,
                    element, accumulate, op.getNegate(), !kMajorB);
    }
    if (op.getAlone()) {
      NVVM::WgmmaGroupSyncAlignedOp::create(b);
      accumulator = createMoves(b, "wgmma.wait_group.sync.aligned 0;",
                                accumulator, /*opens=*/false);
    }
    rewriter.replaceOp(op, pack(b, result, accumulator));
    return success();
  }

  /// The fence before a product that is alone, with registers of its own.
  static void begin(ImplicitLocOpBuilder &b, SmallVector<Value> &accumulator,
                    SmallVector<Value> &registers) {
    size_t count = accumulator.size();
    SmallVector<Value> values(accumulator);
    for (Value &value : values)
      if (value.getDefiningOp<LLVM::PoisonOp>())
        value = arith::ConstantOp::create(b, b.getF32FloatAttr(0.0f));
    llvm::append_range(values, registers);
    values =
        createMoves(b, "wgmma.fence.sync.aligned;", values, /*opens=*/true);
    accumulator.assign(values.begin(), values.begin() + count);
    registers.assign(values.begin() + count, values.end());
  }
};

/// The wait takes the accumulators through, so that LLVM cannot move their
/// readers to before it.
struct LowerWgmmaWait : OpConversionPattern<WgmmaWaitOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult
  matchAndRewrite(WgmmaWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    if (adaptor.getAccumulators().empty()) {
      NVVM::WgmmaWaitGroupSyncOp::create(b, op.getPending());
      createCompilerFence(b);
      rewriter.eraseOp(op);
      return success();
    }
    SmallVector<Value> values;
    for (Value fragment : adaptor.getAccumulators())
      llvm::append_range(values, unpack(b, fragment));
    std::string text = "wgmma.wait_group.sync.aligned " +
                       std::to_string(op.getPending()) + ";";
    values = createTied(b, text, values, {}, "");
    SmallVector<Value> results;
    ArrayRef<Value> rest = values;
    for (Value fragment : adaptor.getAccumulators()) {
      auto type = cast<VectorType>(fragment.getType());
      results.push_back(pack(b, type, rest.take_front(type.getNumElements())));
      rest = rest.drop_front(type.getNumElements());
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

template <typename Op, typename Instruction>
struct LowerPlain : OpConversionPattern<Op> {
  using OpConversionPattern<Op>::OpConversionPattern;

  LogicalResult
  matchAndRewrite(Op op, typename Op::Adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Instruction::create(rewriter, op.getLoc());
    rewriter.eraseOp(op);
    return success();
  }
};
} // namespace

void warp::populateProductPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns) {
  patterns.add<LowerWgmma, LowerWgmmaWait,
               LowerPlain<WgmmaFenceOp, NVVM::WgmmaFenceAlignedOp>,
               LowerPlain<WgmmaCommitOp, NVVM::WgmmaGroupSyncAlignedOp>>(
      converter, patterns.getContext());
}
