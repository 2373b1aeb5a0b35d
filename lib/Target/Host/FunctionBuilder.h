//===- FunctionBuilder.h - Functions that launch kernels --------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function around kernels becomes a table: Function.cpp reads its arguments
// and results, Steps.cpp the arithmetic of sizes, Arrays.cpp where arrays lie,
// Views.cpp arrays with other dimensions, Launches.cpp the kernels.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TARGET_HOST_FUNCTIONBUILDER_H
#define GDN_LIB_TARGET_HOST_FUNCTIONBUILDER_H

#include "Tables.h"

#include "gdn/Dialect/Tile/IR/Tile.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ShapedOpInterfaces.h"

namespace mlir::gdn::host {

/// An array of the function as it is known while its ops are read: where it
/// lies, and a step for each extent.
struct Array {
  /// Of kind 0 if it is only a shape so far.
  GdnOperand place;
  SmallVector<int32_t> extents;
  /// What its dimensions are of those of the array at `place`; empty if they
  /// are the same.
  SmallVector<GdnViewDim> dims;
};

/// Reads a function op by op.
class FunctionBuilder {
public:
  FunctionBuilder(func::FuncOp function, ArrayRef<KernelTable> kernels)
      : function(function), kernels(kernels) {}

  FailureOr<FunctionTable> build();

private:
  // Arguments and results.
  LogicalResult addArgument(unsigned number, Type type, bool isResult);
  LogicalResult addInputs();
  LogicalResult addOutputs();
  void addBoundaryRules();
  void addRules(int32_t symbol, int32_t step);
  void addHeadRule();
  void noteDestinations();
  void noteResults();

  // The arithmetic of sizes.
  int32_t addSymbol(const std::string &name, int32_t argument, int32_t dim,
                    bool isOptional);
  int32_t addStep(GdnIndexStep step);
  int32_t getExtent(int32_t argument, int64_t dim);
  FailureOr<int32_t> getIndex(Operation *user, Value value, const char *rule);
  LogicalResult visitConstant(arith::ConstantOp op);
  LogicalResult visitCast(arith::IndexCastOp op);
  LogicalResult visitBinary(Operation *op, int32_t kind);
  LogicalResult visitDim(ShapedDimOpInterface op);

  // Arrays.
  LogicalResult visitEmpty(tensor::EmptyOp op);
  LogicalResult visitView(Operation *op, Value source);
  LogicalResult visitMaterialize(bufferization::MaterializeInDestinationOp op);
  LogicalResult checkOutput(Operation *op, int32_t argument,
                            ArrayRef<int32_t> extents);
  FailureOr<Array> readArray(Operation *user, Value value);
  void noteRead(const Array &array);
  FailureOr<Array> addOutput(tile::LaunchOp launch, unsigned index);
  FailureOr<Array> addInPlace(tile::LaunchOp launch, unsigned index);
  FailureOr<Array> addTemporary(tile::LaunchOp launch, Array array, Type type);
  void noteWrite(tile::LaunchOp launch, unsigned index, const Array &array);

  // Views.
  FailureOr<Array> readViewed(Operation *op, Value source);
  LogicalResult addView(Operation *op, Value source, Array view);
  LogicalResult visitCollapse(tensor::CollapseShapeOp op);
  LogicalResult visitExpand(tensor::ExpandShapeOp op);
  LogicalResult visitSlice(tensor::ExtractSliceOp op);
  FailureOr<int32_t> getStep(Operation *op, OpFoldResult value);
  GdnOperand makeOperand(const Array &array);
  int32_t getExtentAt(const GdnOperand &place, int32_t dim);
  LogicalResult requireExtent(Operation *op, const GdnOperand &place,
                              int32_t dim, int32_t step);
  LogicalResult requireExtents(Operation *op, const Array &array);

  // Launches.
  LogicalResult visit(Operation *op);
  LogicalResult visitLaunch(tile::LaunchOp op);
  LogicalResult visitReturn(func::ReturnOp op);
  FailureOr<Array> readInput(tile::LaunchOp launch, Value input);
  LogicalResult addOperands(tile::LaunchOp launch, ArrayRef<Array> inputs,
                            ArrayRef<Array> outputs, LaunchTable &result);

  func::FuncOp function;
  ArrayRef<KernelTable> kernels;
  FunctionTable table;
  llvm::StringMap<int32_t> symbols;
  /// The first extent of each symbol among arrays that are always there; -1 if
  /// there is none.
  SmallVector<int32_t> symbolSteps;
  llvm::DenseMap<Value, int32_t> indices;
  llvm::DenseMap<Value, Array> arrays;
  /// Where results of launches go that have memory of the caller: to an
  /// argument, with other dimensions where it is returned as a view.
  struct Destination {
    int32_t argument;
    SmallVector<GdnViewDim> dims;
  };
  llvm::DenseMap<Value, Destination> destinations;
  /// The argument that each result of the function is.
  SmallVector<int32_t> resultArguments;
  /// Values whose memory a later launch has written, and that launch.
  llvm::DenseMap<Value, Operation *> overwritten;
};

} // namespace mlir::gdn::host

#endif // GDN_LIB_TARGET_HOST_FUNCTIONBUILDER_H
