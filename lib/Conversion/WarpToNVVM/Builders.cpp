//===- Builders.cpp - Thread numbers, addresses, vectors ------------------===//
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
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

Value warp::createI32(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getI32IntegerAttr(value));
}

Value warp::createIndex(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantOp::create(b, b.getIndexAttr(value));
}

Value warp::createThread(ImplicitLocOpBuilder &b) {
  return NVVM::ThreadIdXOp::create(b, b.getI32Type());
}

LLVM::InlineAsmOp warp::createAsm(ImplicitLocOpBuilder &b, TypeRange results,
                                  ValueRange operands, StringRef text,
                                  StringRef constraints, bool hasSideEffects) {
  return LLVM::InlineAsmOp::create(
      b, results, operands, text, constraints, hasSideEffects,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
}

LLVM::LLVMStructType warp::getStruct(MLIRContext *context, Type element,
                                     size_t count) {
  return LLVM::LLVMStructType::getLiteral(context,
                                          SmallVector<Type>(count, element));
}

SmallVector<Value> warp::unpackStruct(ImplicitLocOpBuilder &b, Value value) {
  SmallVector<Value> elements;
  size_t count = cast<LLVM::LLVMStructType>(value.getType()).getBody().size();
  for (size_t i = 0; i < count; ++i)
    elements.push_back(LLVM::ExtractValueOp::create(b, value, i));
  return elements;
}

SmallVector<Value> warp::createTied(ImplicitLocOpBuilder &b, StringRef text,
                                    ArrayRef<Value> tied,
                                    ArrayRef<Value> inputs,
                                    StringRef inputConstraints) {
  std::string constraints;
  llvm::raw_string_ostream stream(constraints);
  for (size_t i = 0; i < tied.size(); ++i)
    stream << "=f,";
  for (size_t i = 0; i < tied.size(); ++i)
    stream << i << ',';
  stream << inputConstraints << "~{memory}";
  SmallVector<Value> operands(tied);
  llvm::append_range(operands, inputs);
  auto call =
      createAsm(b, getStruct(b.getContext(), b.getF32Type(), tied.size()),
                operands, text, constraints);
  return unpackStruct(b, call.getResult(0));
}

Value warp::createThreadHere(ImplicitLocOpBuilder &b) {
  return createAsm(b, b.getI32Type(), {}, "mov.u32 $0, %tid.x;", "=r")
      .getResult(0);
}

Value warp::createLane(ImplicitLocOpBuilder &b, Value thread) {
  return arith::AndIOp::create(b, thread ? thread : createThread(b),
                               createI32(b, format::kWarpThreads - 1));
}

Value warp::createGroupWarp(ImplicitLocOpBuilder &b, Value thread) {
  Value warp = arith::DivUIOp::create(b, thread ? thread : createThread(b),
                                      createI32(b, format::kWarpThreads));
  return arith::AndIOp::create(b, warp,
                               createI32(b, format::kWarpgroupWarps - 1));
}

Value warp::createLanePlace(ImplicitLocOpBuilder &b, int64_t size) {
  int64_t last = std::min(size, format::kWarpThreads) - 1;
  return arith::AndIOp::create(b, createThread(b), createI32(b, last));
}

/// All lanes of a warp.
static Value createFullMask(ImplicitLocOpBuilder &b) {
  return createI32(b, -1);
}

static NVVM::ShflKind getShuffle(ShuffleKind kind) {
  switch (kind) {
  case ShuffleKind::Up:
    return NVVM::ShflKind::up;
  case ShuffleKind::Down:
    return NVVM::ShflKind::down;
  case ShuffleKind::Xor:
    return NVVM::ShflKind::bfly;
  case ShuffleKind::Index:
    return NVVM::ShflKind::idx;
  }
  llvm_unreachable("a ShuffleKind has no other value");
}

Value warp::createShuffle(ImplicitLocOpBuilder &b, ShuffleKind kind,
                          Value value, Value lane, int64_t width) {
  // Bits 0-4 clamp the lane that is read: at lane 0 going up, at 31 else. Bits
  // 8-12 are those of a lane's number that the read one has, too.
  int64_t clamp = kind == ShuffleKind::Up ? 0 : format::kWarpThreads - 1;
  clamp |= (format::kWarpThreads - width) << 8;
  return NVVM::ShflOp::create(b, value.getType(), createFullMask(b), value,
                              lane, createI32(b, clamp), getShuffle(kind),
                              UnitAttr());
}

Value warp::createReduction(ImplicitLocOpBuilder &b, Value value,
                            NVVM::ReduxKind kind) {
  return NVVM::ReduxOp::create(b, value.getType(), value, kind,
                               createFullMask(b));
}

Value warp::createSum(ImplicitLocOpBuilder &b, Value value) {
  return createReduction(b, value, NVVM::ReduxKind::ADD);
}

Value warp::createQuad(ImplicitLocOpBuilder &b, Value thread) {
  return arith::DivUIOp::create(b, createLane(b, thread), createI32(b, 4));
}

Value warp::createFragmentRow(ImplicitLocOpBuilder &b, Value thread) {
  // 16 w + l / 4, if rows are not turned
  Value first = arith::MulIOp::create(b, createGroupWarp(b, thread),
                                      createI32(b, format::kWarpRows));
  return arith::AddIOp::create(b, first, turnRows(b, createQuad(b, thread)));
}

Value warp::createFragmentColumn(ImplicitLocOpBuilder &b, Value thread) {
  // 2 (l mod 4)
  Value inQuad =
      arith::AndIOp::create(b, createLane(b, thread), createI32(b, 3));
  return arith::MulIOp::create(b, inQuad, createI32(b, 2));
}

void warp::createWarpSync(ImplicitLocOpBuilder &b) {
  createCompilerFence(b);
  NVVM::SyncWarpOp::create(b, createFullMask(b));
  createCompilerFence(b);
}

void warp::createCompilerFence(ImplicitLocOpBuilder &b) {
  createAsm(b, {}, {}, "", "~{memory}");
}

Value warp::createAddress(ImplicitLocOpBuilder &b, Value base, Value offset,
                          int64_t constant) {
  Type type = base.getType(), byte = b.getI8Type();
  if (offset)
    base = LLVM::GEPOp::create(b, type, byte, base,
                               ArrayRef<LLVM::GEPArg>{offset});
  if (constant != 0)
    base = LLVM::GEPOp::create(
        b, type, byte, base,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(constant)});
  return base;
}

SmallVector<Value> warp::unpack(ImplicitLocOpBuilder &b, Value vector) {
  SmallVector<Value> elements;
  int64_t count = cast<VectorType>(vector.getType()).getNumElements();
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(vector::ExtractOp::create(b, vector, i));
  return elements;
}

Value warp::pack(ImplicitLocOpBuilder &b, VectorType type,
                 ArrayRef<Value> elements) {
  return vector::FromElementsOp::create(b, type, elements);
}

std::array<Value, 2> warp::widenPair(ImplicitLocOpBuilder &b, Value word) {
  Value lower = arith::ShLIOp::create(b, word, createI32(b, 16));
  Value upper = arith::AndIOp::create(b, word, createI32(b, -(1 << 16)));
  Type f32 = b.getF32Type();
  return {arith::BitcastOp::create(b, f32, lower),
          arith::BitcastOp::create(b, f32, upper)};
}

ViewAddress::ViewAddress(ImplicitLocOpBuilder &b, ViewType view, Value base,
                         Value row, Value byte)
    : b(b), view(view), base(base) {
  if (!view.isSwizzled()) {
    Value start = arith::MulIOp::create(b, row, createI32(b, view.getStride()));
    thread = arith::AddIOp::create(b, start, byte);
    return;
  }
  // The constant part of the byte shares no bit with the thread's and that of
  // the row is a multiple of 8, so the swizzle of the thread's part is that of
  // the whole.
  Value start =
      arith::MulIOp::create(b, row, createI32(b, format::kPanelBytes));
  Value phase = arith::MulIOp::create(
      b, arith::AndIOp::create(b, row, createI32(b, 7)), createI32(b, 16));
  thread =
      arith::OrIOp::create(b, start, arith::XOrIOp::create(b, byte, phase));
}

Value ViewAddress::get(int64_t rows, int64_t bytes) {
  if (!view.isSwizzled())
    return createAddress(b, base, thread, rows * view.getStride() + bytes);
  int64_t panel = format::kPanelBytes, total = view.getColumn() + bytes;
  Value offset = arith::XOrIOp::create(b, thread, createI32(b, total % panel));
  return createAddress(b, base, offset,
                       total / panel * view.getStride() + rows * panel);
}

Value warp::createOffsetAddress(ImplicitLocOpBuilder &b, const Array &array,
                                Type element, Value offset) {
  Value wide = arith::IndexCastOp::create(b, b.getI64Type(), offset);
  return LLVM::GEPOp::create(b, array.pointer.getType(), element, array.pointer,
                             ArrayRef<LLVM::GEPArg>{wide});
}

Value warp::createArrayOffset(ImplicitLocOpBuilder &b, const Array &array,
                              ValueRange indices) {
  Value sum = createIndex(b, 0);
  for (auto [index, stride] : llvm::zip(indices, array.strides))
    sum =
        arith::AddIOp::create(b, sum, arith::MulIOp::create(b, index, stride));
  return sum;
}

Value warp::createElementAddress(ImplicitLocOpBuilder &b, const Array &array,
                                 Type element, ValueRange indices) {
  return createOffsetAddress(b, array, element,
                             createArrayOffset(b, array, indices));
}
