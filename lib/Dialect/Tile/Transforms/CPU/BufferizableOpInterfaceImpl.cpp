//===- BufferizableOpInterfaceImpl.cpp - Bufferize launches ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Tile/Transforms/CPU/BufferizableOpInterfaceImpl.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/IR/DialectRegistry.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mlir::gdn::tile;

namespace {
/// A launch is destination style: it writes `outs` in place and reads the rest.
/// The program may leave parts of `outs` alone, so their old values count as
/// read.
struct LaunchModel
    : DstBufferizableOpInterfaceExternalModel<LaunchModel, LaunchOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options,
                          BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    IRMapping buffers;
    for (Value operand : launch->getOperands()) {
      if (!isa<TensorType>(operand.getType()))
        continue;
      FailureOr<Value> buffer = getBuffer(rewriter, operand, options, state);
      if (failed(buffer))
        return failure();
      buffers.map(operand, *buffer);
    }
    SmallVector<Value> results;
    for (Value output : launch.getOutputs())
      if (isa<TensorType>(output.getType()))
        results.push_back(buffers.lookup(output));
    // The copy has no results: outs on memrefs are written in place.
    OperationState copy(launch.getLoc(), launch->getName());
    copy.addAttributes(launch->getAttrs());
    for (Value operand : launch->getOperands())
      copy.operands.push_back(buffers.lookupOrDefault(operand));
    rewriter.create(copy);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};
} // namespace

void mlir::gdn::tile::registerBufferizableOpInterfaceExternalModels(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, TileDialect *) {
    LaunchOp::attachInterface<LaunchModel>(*context);
  });
}
