//===- Views.cpp - Arrays with other dimensions ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A view launches nothing: a kernel takes the array's memory with other extents
// and strides. Where a result is returned as a view, the kernel writes it to
// the caller's array, seen as what the kernel makes.
//
//===----------------------------------------------------------------------===//

#include "Views.h"

#include "FunctionBuilder.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

static constexpr GdnViewDim kUnitDim = {0, -1, -1, -1, -1};

/// Those of the array at `place` itself.
static SmallVector<GdnViewDim> makeIdentity(size_t rank) {
  SmallVector<GdnViewDim> dims;
  for (size_t d = 0; d < rank; ++d)
    dims.push_back(
        {static_cast<int32_t>(d), static_cast<int32_t>(d), -1, -1, -1});
  return dims;
}

static size_t countMembers(ArrayRef<ReassociationIndices> groups) {
  size_t count = 0;
  for (const ReassociationIndices &group : groups)
    count += group.size();
  return count;
}

static bool isUnit(const GdnViewDim &dim) { return dim.last < dim.first; }

static bool isWhole(const GdnViewDim &dim) {
  return dim.offset < 0 && dim.extent < 0 && dim.stride < 0;
}

/// Whether it is a dimension of the array.
static bool isSingle(const GdnViewDim &dim) {
  return isWhole(dim) && dim.first == dim.last;
}

/// Whether the dimensions are those of an array of so many, in order.
static bool isIdentity(ArrayRef<GdnViewDim> dims, size_t rank) {
  return dims.size() == rank &&
         llvm::all_of(llvm::enumerate(dims), [](auto entry) {
           auto place = static_cast<int32_t>(entry.index());
           return isSingle(entry.value()) && entry.value().first == place;
         });
}

/// Whether a part of a dimension is joined with others, which is no dimension.
static bool joinsParts(ArrayRef<GdnViewDim> dims,
                       ArrayRef<ReassociationIndices> groups) {
  return llvm::any_of(groups, [&](const ReassociationIndices &group) {
    auto large = llvm::make_filter_range(
        group, [&](int64_t member) { return !isUnit(dims[member]); });
    return std::distance(large.begin(), large.end()) > 1 &&
           llvm::any_of(large,
                        [&](int64_t member) { return !isWhole(dims[member]); });
  });
}

SmallVector<GdnViewDim> host::joinDims(ArrayRef<GdnViewDim> dims,
                                       ArrayRef<ReassociationIndices> groups) {
  SmallVector<GdnViewDim> all = dims.empty()
                                    ? makeIdentity(countMembers(groups))
                                    : SmallVector<GdnViewDim>(dims);
  SmallVector<GdnViewDim> joined;
  for (const ReassociationIndices &group : groups) {
    GdnViewDim whole = kUnitDim;
    for (int64_t member : group) {
      if (isUnit(all[member]))
        continue;
      if (isUnit(whole))
        whole = all[member];
      else
        whole.last = all[member].last;
    }
    joined.push_back(whole);
  }
  return joined;
}

/// Whether a dimension joins so many of the array.
static bool joins(const GdnViewDim &dim, size_t count) {
  return isWhole(dim) &&
         dim.last - dim.first + 1 == static_cast<int64_t>(count);
}

FailureOr<SmallVector<GdnViewDim>>
host::splitDims(ArrayRef<GdnViewDim> dims,
                ArrayRef<ReassociationIndices> groups, RankedTensorType type,
                llvm::function_ref<bool(int64_t, int32_t)> isOwn) {
  SmallVector<GdnViewDim> all = dims.empty() ? makeIdentity(groups.size())
                                             : SmallVector<GdnViewDim>(dims);
  SmallVector<GdnViewDim> split(type.getRank(), kUnitDim);
  for (auto [dim, group] : llvm::zip_equal(all, groups)) {
    SmallVector<int64_t> large;
    for (int64_t member : group)
      if (type.getDimSize(member) != 1)
        large.push_back(member);
    ArrayRef<int64_t> own;
    auto isEachOwn = [&isOwn, first = dim.first](ArrayRef<int64_t> members) {
      return llvm::all_of(llvm::enumerate(members), [&](auto at) {
        return isOwn(at.value(), first + static_cast<int32_t>(at.index()));
      });
    };
    if (isOwn && joins(dim, group.size()) && isEachOwn(group))
      own = group;
    else if (large.size() > 1 && joins(dim, large.size()))
      own = large;
    for (auto [place, member] : llvm::enumerate(own)) {
      int32_t number = dim.first + static_cast<int32_t>(place);
      split[member] = {number, number, -1, -1, -1};
    }
    if (!own.empty())
      continue;
    if (large.size() > 1)
      return failure();
    split[large.empty() ? group.front() : large.front()] = dim;
  }
  return split;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// The array that an op sees in another way.
FailureOr<Array> FunctionBuilder::readViewed(Operation *op, Value source) {
  auto array = arrays.find(source);
  if (array == arrays.end() || array->second.place.kind == 0)
    return op->emitOpError("expected an array of the function, got ")
           << source.getType();
  return array->second;
}

/// Notes what an op makes of `source`. What is an argument again has to have
/// the extents that the op gives it.
LogicalResult FunctionBuilder::addView(Operation *op, Value source,
                                       Array view) {
  if (view.place.kind == GDN_OPERAND_ARGUMENT &&
      isIdentity(view.dims, table.arguments[view.place.index].shape.size())) {
    view.dims.clear();
    if (view.place.index >= static_cast<int32_t>(table.numInputs) &&
        failed(checkOutput(op, view.place.index, view.extents)))
      return failure();
  }
  arrays[op->getResult(0)] = std::move(view);
  if (Operation *writer = overwritten.lookup(source))
    overwritten[op->getResult(0)] = writer;
  return success();
}

/// The step of an extent of an argument or of a temporary.
int32_t FunctionBuilder::getExtentAt(const GdnOperand &place, int32_t dim) {
  return place.kind == GDN_OPERAND_ARGUMENT
             ? getExtent(place.index, dim)
             : table.temporaries[place.index].shape[dim];
}

/// Dimension `dim` of an argument or of a temporary must have the extent that
/// the function gives it: a call's argument is checked, a temporary has that of
/// its tensor.empty.
LogicalResult FunctionBuilder::requireExtent(Operation *op,
                                             const GdnOperand &place,
                                             int32_t dim, int32_t step) {
  // Where the symbol or the constant says it all there is no rule to add. A
  // symbol that an output itself introduced says nothing of the inputs.
  if (getExtentAt(place, dim) == step)
    return success();
  if (place.kind != GDN_OPERAND_ARGUMENT)
    return op->emitOpError("expected the extents of the tensor.empty for "
                           "dimensions that tensor.collapse_shape has joined");
  bool isKnown = llvm::any_of(table.rules, [&](const GdnExtentRule &rule) {
    return rule.arg == place.index && rule.dim == dim && rule.step == step;
  });
  if (!isKnown)
    table.rules.push_back({place.index, dim, step});
  return success();
}

/// Extents that a launch gives dimensions of an argument which it writes.
LogicalResult FunctionBuilder::requireExtents(Operation *op,
                                              const Array &array) {
  for (auto [dim, step] : llvm::zip(array.dims, array.extents))
    if (isSingle(dim) &&
        failed(requireExtent(op, array.place, dim.first, step)))
      return failure();
  return success();
}

FailureOr<int32_t> FunctionBuilder::getStep(Operation *op, OpFoldResult value) {
  if (std::optional<int64_t> constant = getConstantIntValue(value))
    return addStep({GDN_INDEX_CONSTANT, 0, 0, *constant});
  return getIndex(op, cast<Value>(value), "expected sizes made from extents");
}

LogicalResult FunctionBuilder::visitCollapse(tensor::CollapseShapeOp op) {
  FailureOr<Array> view = readViewed(op, op.getSrc());
  if (failed(view))
    return failure();
  SmallVector<ReassociationIndices> groups = op.getReassociationIndices();
  if (!view->dims.empty() && joinsParts(view->dims, groups))
    return op.emitOpError("expected whole dimensions to join, got a part of "
                          "one");
  view->dims = joinDims(view->dims, groups);
  SmallVector<int32_t> extents;
  int32_t one = addStep({GDN_INDEX_CONSTANT, 0, 0, 1});
  for (const ReassociationIndices &group : groups) {
    int32_t extent = one;
    for (int64_t member : group) {
      int32_t own = view->extents[member];
      if (extent == one)
        extent = own;
      else if (own != one)
        extent = addStep({GDN_INDEX_MULTIPLY, extent, own, 0});
    }
    extents.push_back(extent);
  }
  view->extents = std::move(extents);
  return addView(op, op.getSrc(), std::move(*view));
}

LogicalResult FunctionBuilder::visitExpand(tensor::ExpandShapeOp op) {
  FailureOr<Array> view = readViewed(op, op.getSrc());
  if (failed(view))
    return failure();
  SmallVector<int32_t> extents;
  for (OpFoldResult size : op.getMixedOutputShape()) {
    FailureOr<int32_t> step = getStep(op, size);
    if (failed(step))
      return failure();
    extents.push_back(*step);
  }
  bool isArgument = view->place.kind == GDN_OPERAND_ARGUMENT;
  auto isConstant = [&](int32_t step) {
    return table.steps[step].kind == GDN_INDEX_CONSTANT;
  };
  auto isOwn = [&](int64_t member, int32_t dim) {
    int32_t own = getExtentAt(view->place, dim), step = extents[member];
    return own == step || (isArgument && !isConstant(own) && !isConstant(step));
  };
  SmallVector<GdnViewDim> joined = view->dims;
  auto split = splitDims(joined, op.getReassociationIndices(),
                         op.getResultType(), isOwn);
  if (failed(split))
    return op.emitOpError("expected dimensions of extent 1, or those that "
                          "tensor.collapse_shape has joined, got ")
           << op.getResultType() << " of " << op.getSrcType();
  for (auto [dim, group] : llvm::zip(joined, op.getReassociationIndices()))
    for (int64_t member : group)
      if (dim.last > dim.first && isSingle((*split)[member]) &&
          failed(requireExtent(op, view->place, (*split)[member].first,
                               extents[member])))
        return failure();
  view->dims = std::move(*split);
  view->extents = std::move(extents);
  return addView(op, op.getSrc(), std::move(*view));
}

LogicalResult FunctionBuilder::visitSlice(tensor::ExtractSliceOp op) {
  FailureOr<Array> view = readViewed(op, op.getSource());
  if (failed(view))
    return failure();
  if (op.getType().getRank() != op.getSourceType().getRank())
    return op.emitOpError("expected as many dimensions as the array has, got ")
           << op.getType();
  SmallVector<GdnViewDim> dims =
      view->dims.empty() ? makeIdentity(view->extents.size()) : view->dims;
  int32_t zero = addStep({GDN_INDEX_CONSTANT, 0, 0, 0});
  int32_t one = addStep({GDN_INDEX_CONSTANT, 0, 0, 1});
  for (auto [d, dim] : llvm::enumerate(dims)) {
    FailureOr<int32_t> offset = getStep(op, op.getMixedOffsets()[d]),
                       extent = getStep(op, op.getMixedSizes()[d]),
                       stride = getStep(op, op.getMixedStrides()[d]);
    if (failed(offset) || failed(extent) || failed(stride))
      return failure();
    if (*offset == zero && *stride == one && *extent == view->extents[d])
      continue;
    if (!isWhole(dim))
      return op.emitOpError("expected a part of a whole dimension, got one of "
                            "a part of dimension ")
             << d;
    dim.offset = *offset;
    dim.extent = view->extents[d] = *extent;
    dim.stride = *stride;
  }
  view->dims = std::move(dims);
  return addView(op, op.getSource(), std::move(*view));
}

/// An array as a kernel takes it.
GdnOperand FunctionBuilder::makeOperand(const Array &array) {
  if (array.dims.empty())
    return array.place;
  auto isSame = [&](const ViewTable &view) {
    return view.base.kind == array.place.kind &&
           view.base.index == array.place.index &&
           llvm::equal(view.dims, array.dims,
                       [](const GdnViewDim &a, const GdnViewDim &b) {
                         return a.first == b.first && a.last == b.last &&
                                a.offset == b.offset && a.extent == b.extent &&
                                a.stride == b.stride;
                       });
  };
  auto known = llvm::find_if(table.views, isSame);
  auto index = static_cast<int32_t>(known - table.views.begin());
  if (known == table.views.end())
    table.views.push_back({array.place, array.dims});
  return {GDN_OPERAND_VIEW, index};
}
