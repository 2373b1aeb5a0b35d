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

/// Threads of a role with tiles, and rows of a tile that they hold at a time.
static constexpr int64_t kThreads = 128,
                         kRows = kThreads / WholeTensorGroup::kLanesPerRow;
/// Registers of a multiprocessor for each of these threads.
static constexpr int64_t kRegisters = 512;

int64_t WholeTensorGroup::countLoaded(int64_t tokens) const {
  llvm::SmallDenseMap<Value, int64_t> bits;
  for (const WholeTensorOp &op : ops)
    for (const WholeTensorOp::Input &input : op.inputs)
      if (!makes(input.array) &&
          (input.kind == InputKind::Whole || input.kind == InputKind::Grouped))
        bits[input.array] = getElementTypeOrSelf(input.array.getType())
                                .getIntOrFloatBitWidth() *
                            (input.kind == InputKind::Grouped ? op.group : 1);
  int64_t all = 0;
  for (auto [array, width] : bits)
    all += width;
  return tokens * columns() * all / (32 * kThreads);
}

int64_t WholeTensorGroup::tokens() const {
  constexpr int64_t kVectors = 8, kElements = 8, kFewLoaded = 8;
  if (!columns())
    return kVectors;
  int64_t rows = kThreads * kElements / columns() / kRows * kRows;
  return sumsTokens() || countLoaded(2 * rows) > kFewLoaded ? rows : 2 * rows;
}

bool WholeTensorGroup::loadsAhead() const {
  constexpr int64_t kMostLoaded = 48;
  return columns() && countLoaded(tokens()) <= kMostLoaded;
}

bool WholeTensorGroup::fillsLanes() const {
  return !columns() && llvm::all_of(ops, [&](const WholeTensorOp &op) {
    tensor::EmptyOp out = op.out;
    int64_t own = out.getType().getShape().back();
    return ShapedType::isStatic(own) && own % heads() == 0;
  });
}

int64_t WholeTensorGroup::ctas() const {
  constexpr int64_t kVectorCtas = 5, kMostCtas = 10, kRest = 32;
  if (!columns()) {
    if (!fillsLanes())
      return kVectorCtas;
    // Without guards, ptxas moves all loads of a chunk to its front. So a
    // thread has them at once, and beside them the number of each token and
    // the address and stride of each array, of 64 bits.
    llvm::SmallDenseSet<Value> read;
    int64_t written = 0;
    for (const WholeTensorOp &op : ops) {
      written += op.reduction == Reduction::None && isRead(op);
      for (const WholeTensorOp::Input &input : op.inputs)
        if (input.kind == InputKind::Whole && !makes(input.array))
          read.insert(input.array);
    }
    int64_t loaded = read.size();
    int64_t needed = kRest + (loaded + 2) * tokens() + 4 * (loaded + written);
    return std::clamp<int64_t>(kRegisters / needed, 1, kVectorCtas);
  }
  int64_t elements = tokens() * columns() / kThreads, sums = 0, vectors = 0;
  for (const WholeTensorOp &op : ops) {
    sums += op.reduction == Reduction::Tokens;
    vectors += llvm::count_if(op.inputs, [](const WholeTensorOp::Input &input) {
      return input.kind == InputKind::PerChannel;
    });
  }
  int64_t needed = kRest + (loadsAhead() ? 2 : 1) * countLoaded(tokens()) +
                   sums * elements + (vectors ? columns() / kLanesPerRow : 0);
  return std::clamp<int64_t>(kRegisters / needed, 1, kMostCtas);
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

/// Whether the op makes numbers of rows from sums of rows of the group alone.
static bool isOfSums(const WholeTensorGroup &group, const WholeTensorOp &op) {
  auto isSum = [&](const WholeTensorOp::Input &input) {
    return llvm::any_of(group.ops, [&](const WholeTensorOp &own) {
      return own.reduction == Reduction::Columns && own.result == input.array;
    });
  };
  return op.columns == 0 && op.reduction == Reduction::None &&
         !op.inputs.empty() && llvm::all_of(op.inputs, isSum);
}

SmallVector<WholeTensorGroup> gdn::groupOps(ArrayRef<WholeTensorOp> ops) {
  SmallVector<WholeTensorGroup> groups;
  for (const WholeTensorOp &op : ops) {
    WholeTensorGroup own;
    auto isOpen = [&](const WholeTensorGroup &group) {
      return canWait(group, op) && !readsSum(group, op);
    };
    bool isVectorOfRows =
        llvm::any_of(groups, [&](const WholeTensorGroup &group) {
          return isOpen(group) && isOfSums(group, op);
        });
    auto isLinkedTo = [&](const WholeTensorGroup &group) {
      if (isVectorOfRows)
        return isOfSums(group, op);
      return group.columns() == op.columns &&
             llvm::any_of(group.ops, [&](const WholeTensorOp &other) {
               return isLinked(other, op);
             });
    };
    llvm::erase_if(groups, [&](WholeTensorGroup &group) {
      bool joins = isOpen(group) && isLinkedTo(group);
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
