//===- Arrays.cpp - Where the arrays of a function lie --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An array is an argument of the function or a temporary in the workspace. The
// result of a launch lies where its `outs` say: an empty tensor is new memory,
// or the caller's if the function returns the result; an array that is already
// somewhere is updated in place. What an update has overwritten is no longer
// there to be read, which is checked.
//
//===----------------------------------------------------------------------===//

#include "FunctionBuilder.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// An empty tensor is a shape; the launch that writes it says where it lies.
LogicalResult FunctionBuilder::visitEmpty(tensor::EmptyOp op) {
  Array array{{0, 0}, {}, {}};
  unsigned next = 0;
  for (int64_t size : op.getType().getShape()) {
    if (!ShapedType::isDynamic(size)) {
      array.extents.push_back(addStep({GDN_INDEX_CONSTANT, 0, 0, size}));
      continue;
    }
    FailureOr<int32_t> index = getIndex(op, op.getDynamicSizes()[next++],
                                        "expected sizes made from extents");
    if (failed(index))
      return failure();
    array.extents.push_back(*index);
  }
  arrays[op] = std::move(array);
  return success();
}

/// A cast, or a memref as a tensor: the array that it is of.
LogicalResult FunctionBuilder::visitView(Operation *op, Value source) {
  auto array = arrays.find(source);
  if (array == arrays.end())
    return op->emitOpError("expected an array of the function, got ")
           << source.getType();
  return addView(op, source, array->second);
}

/// The value lies in its destination already, for the launch that made it was
/// told so.
LogicalResult FunctionBuilder::visitMaterialize(
    bufferization::MaterializeInDestinationOp op) {
  auto destination = arrays.find(op.getDest());
  auto array = arrays.find(op.getSource());
  if (destination == arrays.end() || array == arrays.end() ||
      array->second.place.kind != GDN_OPERAND_ARGUMENT ||
      array->second.place.index != destination->second.place.index)
    return op.emitOpError("expected a result of a kernel, which no other op "
                          "returns or materializes, and an argument of the "
                          "function");
  if (!array->second.dims.empty())
    return op.emitOpError("expected an array as the argument has it, got a "
                          "view of it");
  if (failed(checkOutput(op, array->second.place.index, array->second.extents)))
    return failure();
  // From here on the memory is what the program says it is.
  overwritten.erase(op.getDest());
  if (op->getNumResults()) {
    Array result = destination->second;
    arrays[op->getResult(0)] = std::move(result);
  }
  return success();
}

/// The caller's output must have the extents that the function gives it.
LogicalResult FunctionBuilder::checkOutput(Operation *op, int32_t argument,
                                           ArrayRef<int32_t> extents) {
  const ArgumentTable &output = table.arguments[argument];
  if (output.shape.size() != extents.size())
    return op->emitOpError("expected outs of rank ")
           << output.shape.size() << ", got " << extents.size();
  for (auto [dim, step] : llvm::enumerate(extents))
    if (failed(requireExtent(op, {GDN_OPERAND_ARGUMENT, argument},
                             static_cast<int32_t>(dim), step)))
      return failure();
  return success();
}

/// The array that `user` reads.
FailureOr<Array> FunctionBuilder::readArray(Operation *user, Value value) {
  auto array = arrays.find(value);
  if (array == arrays.end() || array->second.place.kind == 0)
    return user->emitOpError("expected inputs that are arguments of the "
                             "function or results of kernels, got ")
           << value.getType();
  if (Operation *writer = overwritten.lookup(value)) {
    InFlightDiagnostic error =
        user->emitOpError("expected inputs that are still there, got one whose "
                          "memory has been written since");
    error.attachNote(writer->getLoc()) << "this launch updates it in place";
    return error;
  }
  noteRead(array->second);
  return array->second;
}

/// Takes note that what the caller has put there is read.
void FunctionBuilder::noteRead(const Array &array) {
  if (array.place.kind != GDN_OPERAND_ARGUMENT)
    return;
  ArgumentTable &argument = table.arguments[array.place.index];
  argument.isRead |= !argument.isWritten;
}

FailureOr<Array> FunctionBuilder::addTemporary(tile::LaunchOp launch,
                                               Array array, Type type) {
  array.place = {GDN_OPERAND_TEMPORARY,
                 static_cast<int32_t>(table.temporaries.size())};
  table.temporaries.push_back(
      {getDType(getElementTypeOrSelf(type)), array.extents});
  if (!table.temporaries.back().dtype)
    return launch.emitOpError(
               "expected outs of bf16, f16, f32, i8, i32 or i64, "
               "got ")
           << type;
  return array;
}

/// True for a memref and for a tensor that the caller lets the function write.
static bool isWritable(func::FuncOp function, unsigned argument) {
  if (isa<MemRefType>(function.getArgument(argument).getType()))
    return true;
  auto writable = function.getArgAttrOfType<BoolAttr>(
      argument, bufferization::BufferizationDialect::kWritableAttrName);
  return writable && writable.getValue();
}

/// An array that is already somewhere, as outs of a launch.
FailureOr<Array> FunctionBuilder::addInPlace(tile::LaunchOp launch,
                                             unsigned index) {
  auto known = arrays.find(launch.getOutputs()[index]);
  if (known == arrays.end() || known->second.place.kind == 0)
    return launch.emitOpError("expected outs #")
           << index
           << " to be a tensor.empty, an argument of the function or the "
              "result of a kernel, got another array";
  Array array = known->second;
  bool isInput = array.place.kind == GDN_OPERAND_ARGUMENT &&
                 array.place.index < static_cast<int32_t>(table.numInputs);
  if (isInput && !isWritable(function, array.place.index))
    return launch.emitOpError("expected outs #")
           << index << " to be an argument with bufferization.writable = true, "
           << "got argument " << array.place.index << " without it";
  // A program may read what it updates.
  noteRead(array);
  return array;
}

FailureOr<Array> FunctionBuilder::addOutput(tile::LaunchOp launch,
                                            unsigned index) {
  Value out = launch.getOutputs()[index];
  if (!out.getDefiningOp<tensor::EmptyOp>()) {
    FailureOr<Array> array = addInPlace(launch, index);
    if (succeeded(array))
      noteWrite(launch, index, *array);
    return array;
  }
  Array array = arrays[out];
  auto argument = destinations.find(launch.getResult(index));
  if (argument == destinations.end())
    return addTemporary(launch, std::move(array), out.getType());
  array.place = {GDN_OPERAND_ARGUMENT, argument->second.argument};
  array.dims = argument->second.dims;
  // Of a view it is what is returned that has all of the argument's extents.
  if (failed(array.dims.empty()
                 ? checkOutput(launch, array.place.index, array.extents)
                 : requireExtents(launch, array)))
    return failure();
  noteWrite(launch, index, array);
  return array;
}

/// Takes note that the memory of `array` has outs #`index` of a launch now. A
/// tensor is what it was, so it is no longer there. A memref is its memory, but
/// where the program writes it later only.
void FunctionBuilder::noteWrite(tile::LaunchOp launch, unsigned index,
                                const Array &array) {
  if (array.place.kind == GDN_OPERAND_ARGUMENT)
    table.arguments[array.place.index].isWritten = true;
  bool isMemRef = isa<MemRefType>(launch.getOutputs()[index].getType());
  for (const auto &[value, known] : arrays)
    if (known.place.kind == array.place.kind &&
        known.place.index == array.place.index &&
        !(isMemRef && isa<MemRefType>(value.getType())))
      overwritten[value] = launch;
}
