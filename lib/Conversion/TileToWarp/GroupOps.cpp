//===- GroupOps.cpp - Which ops on whole tensors share a program ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WholeTensorOp.h"

using namespace mlir;
using namespace mlir::gdn;
using InputKind = WholeTensorOp::InputKind;
using Reduction = WholeTensorOp::Reduction;

bool gdn::isOverwritten(Value array, Operation *first, Operation *second) {
  return llvm::any_of(array.getUsers(), [&](Operation *user) {
    auto launch = dyn_cast<tile::LaunchOp>(user);
    return launch && launch->getBlock() == first->getBlock() &&
           first->isBeforeInBlock(launch) && launch->isBeforeInBlock(second) &&
           llvm::is_contained(launch.getOutputs(), array);
  });
}

bool WholeTensorGroup::makes(Value value) const {
  return llvm::any_of(
      ops, [&](const WholeTensorOp &op) { return op.result == value; });
}

bool WholeTensorGroup::isRead(const WholeTensorOp &op) const {
  return llvm::any_of(op.result.getUsers(), [&](Operation *user) {
    return llvm::none_of(
        ops, [&](const WholeTensorOp &own) { return own.op == user; });
  });
}

bool WholeTensorGroup::mixesLayouts() const {
  return columns() != 0 && llvm::any_of(ops, [&](const WholeTensorOp &op) {
           bool storesSums = op.reduction == Reduction::Columns && isRead(op);
           return storesSums || llvm::any_of(op.inputs, [&](const auto &input) {
                    return input.kind == InputKind::PerToken &&
                           !makes(input.array);
                  });
         });
}

/// Whether two sizes are known to be the same.
static bool isSameSize(OpFoldResult x, OpFoldResult y) {
  if (isEqualConstantIntOrValue(x, y))
    return true;
  auto sizeOf = [](OpFoldResult size) {
    auto value = dyn_cast<Value>(size);
    return value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  };
  tensor::DimOp left = sizeOf(x), right = sizeOf(y);
  return left && right && left.getSource() == right.getSource() &&
         left.getConstantIndex() &&
         left.getConstantIndex() == right.getConstantIndex();
}

/// Whether one op reads what the other makes or reads, or both make vectors of
/// the same sizes.
static bool isLinked(const WholeTensorOp &first, const WholeTensorOp &second) {
  if (first.columns != second.columns)
    return false;
  auto isShared = [&](const WholeTensorOp::Input &input) {
    return input.array == first.result ||
           (input.kind != InputKind::PerHead &&
            input.kind != InputKind::PerChannel &&
            llvm::any_of(first.inputs, [&](const WholeTensorOp::Input &other) {
              return other.array == input.array && other.kind == input.kind;
            }));
  };
  if (llvm::any_of(second.inputs, isShared))
    return true;
  bool areVectors = first.columns == 0 && first.reduction == Reduction::None &&
                    second.reduction == Reduction::None &&
                    !first.inputs.empty() && !second.inputs.empty();
  tensor::EmptyOp out = first.out, other = second.out;
  return areVectors &&
         llvm::equal(out.getMixedSizes(), other.getMixedSizes(), isSameSize);
}

/// Whether nobody else reads a result of the group before `op`, where the
/// launch would be, and what the group reads is still there.
static bool canWait(const WholeTensorGroup &group, const WholeTensorOp &op) {
  if (group.ops.front().op->getBlock() != op.op->getBlock())
    return false;
  return llvm::all_of(group.ops, [&](const WholeTensorOp &own) {
    if (llvm::any_of(own.inputs, [&](const WholeTensorOp::Input &input) {
          return isOverwritten(input.array, own.op, op.op);
        }))
      return false;
    return llvm::all_of(own.result.getUsers(), [&](Operation *user) {
      Operation *reader = op.op->getBlock()->findAncestorOpInBlock(*user);
      bool isOwn = llvm::any_of(group.ops, [&](const WholeTensorOp &other) {
        return other.op == user;
      });
      return isOwn || user == op.op ||
             (reader && op.op->isBeforeInBlock(reader));
    });
  });
}

/// Whether the op reads a sum over tokens of the group, which only a second
/// program has.
static bool readsSum(const WholeTensorGroup &group, const WholeTensorOp &op) {
  return llvm::any_of(op.inputs, [&](const WholeTensorOp::Input &input) {
    return llvm::any_of(group.ops, [&](const WholeTensorOp &own) {
      return own.reduction == Reduction::Tokens && own.result == input.array;
    });
  });
}

SmallVector<WholeTensorGroup> gdn::groupOps(ArrayRef<WholeTensorOp> ops) {
  SmallVector<WholeTensorGroup> groups;
  for (const WholeTensorOp &op : ops) {
    WholeTensorGroup own;
    llvm::erase_if(groups, [&](WholeTensorGroup &group) {
      bool joins = canWait(group, op) && !readsSum(group, op) &&
                   llvm::any_of(group.ops, [&](const WholeTensorOp &other) {
                     return isLinked(other, op);
                   });
      if (joins)
        own.ops.append(group.ops);
      return joins;
    });
    llvm::sort(own.ops, [](const WholeTensorOp &x, const WholeTensorOp &y) {
      return x.op->isBeforeInBlock(y.op);
    });
    own.ops.push_back(op);
    groups.push_back(own);
  }
  return groups;
}
