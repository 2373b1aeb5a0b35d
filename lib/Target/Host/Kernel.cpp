//===- Kernel.cpp - Lowered kernels as tables -----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "gdn/Dialect/ElementTypes.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// The alignment that a kernel relies on in an array whose strides it knows:
/// that of its widest accesses.
static constexpr uint32_t kDenseAlignment = 16;

int32_t host::getDType(Type type) {
  if (type.isBF16())
    return GDN_DTYPE_BF16;
  if (type.isF16())
    return GDN_DTYPE_F16;
  if (type.isF32())
    return GDN_DTYPE_F32;
  if (type.isInteger(32))
    return GDN_DTYPE_I32;
  if (type.isInteger(64))
    return GDN_DTYPE_I64;
  return type.isInteger(8) ? GDN_DTYPE_U8 : 0;
}

int32_t host::getScalarKind(Type type) {
  if (!isScalarArgument(type))
    return 0;
  if (type.isF32())
    return GDN_ARG_F32;
  return type.isInteger(32) ? GDN_ARG_I32 : GDN_ARG_I64;
}

namespace {
/// Collects what the arguments of a kernel become.
class KernelBuilder {
public:
  KernelBuilder(LLVM::LLVMFuncOp kernel, warp::LaunchAttr launch)
      : kernel(kernel), launch(launch) {}

  FailureOr<KernelTable> build();

private:
  LogicalResult addArgument(Type type);
  LogicalResult addArray(MemRefType type, ArgumentTable &argument);
  void addSizes(MemRefType type, ArgumentTable &argument);
  LogicalResult addStrides(MemRefType type, ArgumentTable &argument);
  void addTensorMap(warp::TensorMapAttr map);
  void addParameter(int32_t kind, int64_t index, int64_t dim = 0,
                    int32_t dtype = 0) {
    table.parameters.push_back(
        {kind, static_cast<int32_t>(index), static_cast<int32_t>(dim), dtype});
  }

  LLVM::LLVMFuncOp kernel;
  warp::LaunchAttr launch;
  KernelTable table;
};
} // namespace

void KernelBuilder::addSizes(MemRefType type, ArgumentTable &argument) {
  int64_t index = table.arguments.size();
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      argument.shape.push_back(size);
      continue;
    }
    addParameter(GDN_PARAM_EXTENT, index, dim, GDN_DTYPE_I64);
    argument.shape.push_back(GDN_SYMBOL(table.symbols.size()));
    table.symbols.push_back({index, dim});
  }
}

/// Strides are either all the caller's, but for a last one of 1, or those of a
/// dense row-major array.
LogicalResult KernelBuilder::addStrides(MemRefType type,
                                        ArgumentTable &argument) {
  int64_t offset = 0, rank = type.getRank();
  SmallVector<int64_t> strides;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return failure();
  if (type.getLayout().isIdentity()) {
    argument.flags |= GDN_ARG_FLAG_CONTIGUOUS;
    argument.alignment = kDenseAlignment;
  } else if (rank > 0 && strides.back() == 1) {
    argument.flags |= GDN_ARG_FLAG_LAST_CONTIGUOUS;
    strides.back() = ShapedType::kDynamic;
  }
  int64_t index = table.arguments.size();
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    bool isTaken = !type.getLayout().isIdentity();
    if (isTaken && !ShapedType::isDynamic(stride))
      return failure();
    // The last one is known to be 1 where it was flagged so.
    bool isKnown = (argument.flags & GDN_ARG_FLAG_LAST_CONTIGUOUS) &&
                   static_cast<int64_t>(dim) + 1 == rank;
    if (ShapedType::isDynamic(stride) && !isKnown)
      addParameter(GDN_PARAM_STRIDE, index, dim, GDN_DTYPE_I64);
  }
  return success();
}

LogicalResult KernelBuilder::addArray(MemRefType type,
                                      ArgumentTable &argument) {
  argument.dtype = getDType(type.getElementType());
  addParameter(GDN_PARAM_POINTER, table.arguments.size());
  addSizes(type, argument);
  if (argument.dtype && succeeded(addStrides(type, argument)))
    return success();
  return kernel.emitOpError(
             "expected arrays of bf16, f16, f32, i32, i64 or i8 that are "
             "dense, "
             "or whose strides are dynamic but for a last one of 1, got ")
         << type;
}

LogicalResult KernelBuilder::addArgument(Type type) {
  ArgumentTable argument;
  argument.name = "argument " + std::to_string(table.arguments.size());
  if (auto array = dyn_cast<MemRefType>(type)) {
    if (failed(addArray(array, argument)))
      return failure();
  } else {
    argument.kind = getScalarKind(type);
    if (!argument.kind)
      return kernel.emitOpError("expected scalars of ")
             << kScalarArguments << ", got " << type;
    addParameter(GDN_PARAM_SCALAR, table.arguments.size());
  }
  table.arguments.push_back(std::move(argument));
  return success();
}

void KernelBuilder::addTensorMap(warp::TensorMapAttr map) {
  addParameter(GDN_PARAM_TENSOR_MAP, table.tensorMaps.size());
  TensorMapTable result;
  result.argument = map.getArgument();
  result.swizzle = map.getSwizzle() ? GDN_SWIZZLE_128B : GDN_SWIZZLE_NONE;
  for (auto [dim, step, extent, box] :
       llvm::zip(map.getDims().asArrayRef(), map.getSteps().asArrayRef(),
                 map.getExtents().asArrayRef(), map.getBox().asArrayRef()))
    result.dims.push_back(
        {static_cast<int32_t>(dim), static_cast<uint32_t>(box), extent, step});
  table.tensorMaps.push_back(std::move(result));
}

FailureOr<KernelTable> KernelBuilder::build() {
  table.name = kernel.getSymName().str();
  table.threads = launch.getThreads();
  table.sharedBytes = launch.getSharedBytes();
  table.cluster = launch.getCluster();
  table.residentBlocks = launch.getResidentCtas();
  table.follows = launch.getFollows();
  for (Attribute argument : launch.getArguments()) {
    auto type = dyn_cast<TypeAttr>(argument);
    if (!type)
      return kernel.emitOpError("expected types of arguments, got ")
             << argument;
    if (failed(addArgument(type.getValue())))
      return failure();
  }
  for (Attribute attribute : launch.getTensorMaps()) {
    auto map = dyn_cast<warp::TensorMapAttr>(attribute);
    if (!map)
      return kernel.emitOpError("expected tensor maps, got ") << attribute;
    addTensorMap(map);
  }
  return std::move(table);
}

FailureOr<KernelTable> host::describeKernel(LLVM::LLVMFuncOp kernel,
                                            warp::LaunchAttr launch) {
  return KernelBuilder(kernel, launch).build();
}
