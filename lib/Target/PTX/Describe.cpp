//===- Describe.cpp - What the host must know, as JSON --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Target/PTX.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::gdn;

static std::string toString(Type type) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << type;
  return text;
}

static llvm::json::Array toJSON(ArrayRef<int64_t> values) {
  llvm::json::Array result;
  for (int64_t value : values)
    result.push_back(ShapedType::isDynamic(value) ? llvm::json::Value(nullptr)
                                                  : llvm::json::Value(value));
  return result;
}

static llvm::json::Object describeArgument(Type type) {
  auto array = dyn_cast<MemRefType>(type);
  if (!array)
    return llvm::json::Object{{"kind", "scalar"}, {"type", toString(type)}};
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  (void)array.getStridesAndOffset(strides, offset);
  return llvm::json::Object{{"kind", "array"},
                            {"type", toString(array.getElementType())},
                            {"sizes", toJSON(array.getShape())},
                            {"strides", toJSON(strides)}};
}

static llvm::json::Object describeMap(warp::TensorMapAttr map) {
  return llvm::json::Object{{"argument", map.getArgument()},
                            {"type", toString(map.getElementType())},
                            {"dims", toJSON(map.getDims())},
                            {"steps", toJSON(map.getSteps())},
                            {"extents", toJSON(map.getExtents())},
                            {"box", toJSON(map.getBox())},
                            {"swizzle", map.getSwizzle()}};
}

llvm::Expected<std::string> ptx::describeKernels(ModuleOp module) {
  llvm::json::Array kernels;
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    auto launch = function->getAttrOfType<warp::LaunchAttr>(
        warp::WarpDialect::getLaunchAttrName());
    if (!launch)
      continue;
    llvm::json::Array arguments, maps;
    for (Attribute type : launch.getArguments())
      arguments.push_back(describeArgument(cast<TypeAttr>(type).getValue()));
    for (Attribute map : launch.getTensorMaps())
      maps.push_back(describeMap(cast<warp::TensorMapAttr>(map)));
    kernels.push_back(
        llvm::json::Object{{"name", function.getSymName()},
                           {"threads", launch.getThreads()},
                           {"shared_bytes", launch.getSharedBytes()},
                           {"cluster", launch.getCluster()},
                           {"resident_ctas", launch.getResidentCtas()},
                           {"follows", launch.getFollows()},
                           {"arguments", std::move(arguments)},
                           {"tensor_maps", std::move(maps)}});
  }
  if (kernels.empty())
    return llvm::createStringError(
        "expected a module with kernels that went through "
        "convert-gdn-warp-to-nvvm, got none");
  return llvm::formatv("{0:2}", llvm::json::Value(llvm::json::Object{
                                    {"kernels", std::move(kernels)}}))
      .str();
}
