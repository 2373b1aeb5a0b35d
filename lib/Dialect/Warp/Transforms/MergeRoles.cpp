//===- MergeRoles.cpp - Roles whose code differs in numbers become one ----===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"
#include "gdn/Dialect/Warp/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"

namespace mlir::gdn::warp {
#define GEN_PASS_DEF_MERGEROLESPASS
#include "gdn/Dialect/Warp/Transforms/Passes.h.inc"
} // namespace mlir::gdn::warp

using namespace mlir;
using namespace mlir::gdn::warp;

//===----------------------------------------------------------------------===//
// Which roles become one
//===----------------------------------------------------------------------===//

static bool isCaptured(Value value, RoleOp role) {
  return !role.getBody().isAncestor(value.getParentRegion());
}

/// Whether the code of two roles differs in captured numbers alone. Attributes,
/// arrays and places that have a type of their own cannot be selected.
static bool haveAlikeCode(RoleOp one, RoleOp other) {
  DenseMap<Value, Value> twins;
  auto check = [&](Value left, Value right) {
    if (!isCaptured(left, one))
      return success(twins.lookup(left) == right);
    bool isNumber = left.getType().isIntOrIndexOrFloat();
    return success(left == right || (isNumber && isCaptured(right, other) &&
                                     left.getType() == right.getType()));
  };
  auto mark = [&](Value left, Value right) { twins[left] = right; };
  return OperationEquivalence::isRegionEquivalentTo(
      &one.getBody(), &other.getBody(), check, mark,
      OperationEquivalence::Flags::IgnoreLocations);
}

/// Whether the warps of `next` follow those of `role` and are as many, whole
/// warpgroups with the same registers: then nothing in a warpgroup depends on
/// which of the two roles it has.
static bool haveAlikeWarps(RoleOp role, RoleOp next) {
  return next.getFirst() == role.getFirst() + role.getCount() &&
         next.getCount() == role.getCount() &&
         role.getFirst() % format::kWarpgroupWarps == 0 &&
         role.getCount() % format::kWarpgroupWarps == 0 &&
         next.getRegisters() == role.getRegisters() &&
         next->getDiscardableAttrDictionary() ==
             role->getDiscardableAttrDictionary();
}

/// `first` and the roles directly behind it that may become one with it.
static SmallVector<RoleOp> collectAlike(RoleOp first) {
  SmallVector<RoleOp> roles = {first};
  while (auto next = dyn_cast_or_null<RoleOp>(roles.back()->getNextNode())) {
    if (!haveAlikeWarps(roles.back(), next) || !haveAlikeCode(first, next))
      break;
    roles.push_back(next);
  }
  return roles;
}

//===----------------------------------------------------------------------===//
// One role of them
//===----------------------------------------------------------------------===//

namespace {
/// Selects, at the beginning of a role, what each warp takes of the values that
/// several roles had in one place.
class Selection {
public:
  Selection(RoleOp role, ArrayRef<RoleOp> roles);

  /// The one of `values`, a value a role, that a warp takes at `user`.
  Value get(Operation *user, ArrayRef<Value> values);

private:
  Value select(ArrayRef<Value> values);
  Value selectDistance(Type type, ArrayRef<APInt> numbers);

  ImplicitLocOpBuilder b;
  /// Of each role but the first, whether the warp is one of it or of a later
  /// one.
  SmallVector<Value> isFrom;
  /// By the distances from the first role's number, of numbers of one type.
  DenseMap<Attribute, Value> distances;
};
} // namespace

Selection::Selection(RoleOp role, ArrayRef<RoleOp> roles)
    : b(ImplicitLocOpBuilder::atBlockBegin(role.getLoc(),
                                           &role.getBody().front())) {
  Value warp = IdOp::create(b, IdKind::Warp);
  for (RoleOp other : roles.drop_front())
    isFrom.push_back(arith::CmpIOp::create(
        b, arith::CmpIPredicate::uge, warp,
        arith::ConstantIndexOp::create(b, other.getFirst())));
}

Value Selection::select(ArrayRef<Value> values) {
  Value chosen = values.front();
  for (auto [value, isHere] : llvm::zip(values.drop_front(), isFrom))
    chosen = arith::SelectOp::create(b, isHere, value, chosen);
  return chosen;
}

Value Selection::selectDistance(Type type, ArrayRef<APInt> numbers) {
  SmallVector<Attribute> attributes =
      llvm::map_to_vector(numbers, [&](const APInt &number) -> Attribute {
        return b.getIntegerAttr(type, number - numbers.front());
      });
  Value &distance = distances[b.getArrayAttr(attributes)];
  if (!distance)
    distance =
        select(llvm::map_to_vector(attributes, [&](Attribute it) -> Value {
          return arith::ConstantOp::create(b, cast<TypedAttr>(it));
        }));
  return distance;
}

/// The integers that `values` are; none if one of them is no constant.
static SmallVector<APInt> getIntegers(ArrayRef<Value> values) {
  SmallVector<APInt> integers(values.size());
  for (auto [value, integer] : llvm::zip(values, integers))
    if (!matchPattern(value, m_ConstantInt(&integer)))
      return {};
  return integers;
}

Value Selection::get(Operation *user, ArrayRef<Value> values) {
  SmallVector<APInt> integers = getIntegers(values);
  if (integers.empty())
    return select(values);
  // Places of one kind lie as far apart in each role: one register has their
  // distance for all of them, where each of them would have its own.
  Value distance = selectDistance(values.front().getType(), integers);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(user);
  return arith::AddIOp::create(b, distance, values.front());
}

/// Operands in the order of a walk, which is the same for roles of alike code.
static SmallVector<OpOperand *> collectOperands(RoleOp role) {
  SmallVector<OpOperand *> operands;
  role.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      operands.push_back(&operand);
  });
  return operands;
}

/// Makes one role of `roles`, the first one. They stand directly behind each
/// other, so what any of them captures is there.
static void merge(ArrayRef<RoleOp> roles) {
  RoleOp role = roles.front();
  SmallVector<SmallVector<OpOperand *>> operands =
      llvm::map_to_vector(roles, collectOperands);
  Selection selection(role, roles);
  for (const auto &entry : llvm::enumerate(operands.front())) {
    OpOperand *operand = entry.value();
    if (!isCaptured(operand->get(), role))
      continue;
    SmallVector<Value> values = llvm::map_to_vector(
        operands, [&](const auto &list) { return list[entry.index()]->get(); });
    if (!llvm::all_equal(values))
      operand->set(selection.get(operand->getOwner(), values));
  }
  SmallVector<StringRef> names;
  for (RoleOp one : roles)
    names.push_back(one.getName());
  role.setName(llvm::join(names, "_"));
  role.setCount(role.getCount() * roles.size());
  role->removeAttr(WarpDialect::getShareCodeAttrName());
  for (RoleOp other : roles.drop_front())
    other.erase();
}

namespace {
struct MergeRoles : gdn::warp::impl::MergeRolesPassBase<MergeRoles> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    SmallVector<RoleOp> sharing = llvm::filter_to_vector(
        kernel.getBody().getOps<RoleOp>(), [](RoleOp role) {
          return role->hasAttr(WarpDialect::getShareCodeAttrName());
        });
    for (size_t i = 0; i < sharing.size();) {
      SmallVector<RoleOp> roles = collectAlike(sharing[i]);
      i += roles.size();
      if (roles.size() > 1)
        merge(roles);
    }
  }
};
} // namespace
