//===- Iterations.cpp - Which iteration a number is of --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Iterations.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::gdn::warp;

namespace {
/// A sum of values, each a number of times, and a number, modulo the width of
/// their type.
struct Sum {
  llvm::MapVector<Value, int64_t> terms;
  int64_t number = 0;

  void add(Value value, int64_t times);
};
} // namespace

void Sum::add(Value value, int64_t times) {
  if (std::optional<int64_t> known = getConstantIntValue(value)) {
    number += *known * times;
    return;
  }
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::AddIOp, arith::SubIOp>(op)) {
    add(op->getOperand(0), times);
    return add(op->getOperand(1), isa<arith::SubIOp>(op) ? -times : times);
  }
  auto product = dyn_cast_if_present<arith::MulIOp>(op);
  std::optional<int64_t> factor =
      product ? getConstantIntValue(product.getRhs()) : std::nullopt;
  if (factor)
    return add(product.getLhs(), times * *factor);
  if ((terms[value] += times) == 0)
    terms.erase(value);
}

/// The most that `value`, which is zero or more, may be.
static std::optional<int64_t> findMost(Value value) {
  auto loop =
      dyn_cast_if_present<scf::ForOp>(value.getParentBlock()->getParentOp());
  if (!loop || value != loop.getInductionVar() ||
      getConstantIntValue(loop.getLowerBound()).value_or(-1) < 0)
    return {};
  std::optional<int64_t> end = getConstantIntValue(loop.getUpperBound());
  return end ? std::optional(*end - 1) : std::nullopt;
}

/// The i32 of which `index` is `unit` times, and less than one unit more.
static Value findWhole(Value index, int64_t unit) {
  Sum sum;
  sum.add(index, 1);
  Value whole;
  int64_t rest = sum.number;
  for (auto [value, times] : sum.terms) {
    auto cast = value.getDefiningOp<arith::IndexCastUIOp>();
    if (cast && times == unit && !whole) {
      whole = cast.getIn();
      continue;
    }
    std::optional<int64_t> most = findMost(value);
    if (times < 0 || !most)
      return {};
    rest += times * *most;
  }
  bool isLess = sum.number >= 0 && rest < unit;
  return whole && whole.getType().isInteger(32) && isLess ? whole : Value();
}

/// `number` without casts to and from an index, and divisions of one.
static Value strip(Value number) {
  while (auto cast = number.getDefiningOp<arith::IndexCastUIOp>()) {
    Value index = cast.getIn(), whole;
    if (auto other = index.getDefiningOp<arith::IndexCastUIOp>())
      whole = other.getIn();
    else if (auto division = index.getDefiningOp<arith::DivUIOp>())
      if (std::optional<int64_t> unit = getConstantIntValue(division.getRhs()))
        whole = findWhole(division.getLhs(), *unit);
    if (!whole || whole.getType() != number.getType())
      break;
    number = whole;
  }
  return number;
}

std::optional<Iteration> gdn::warp::findIteration(Value number) {
  if (!number.getType().isInteger(32))
    return {};
  Sum sum;
  sum.add(strip(number), 1);
  for (auto [value, times] : sum.terms) {
    auto loop =
        dyn_cast_if_present<scf::ForOp>(value.getParentBlock()->getParentOp());
    if (times != 1 || !loop || value != loop.getInductionVar() ||
        !isConstantIntValue(loop.getStep(), 1))
      continue;
    sum.add(value, -1);
    sum.add(loop.getLowerBound(), 1);
    // 32 bits, with a sign.
    return sum.terms.empty() ? std::optional<Iteration>(
                                   {loop, static_cast<int32_t>(sum.number)})
                             : std::nullopt;
  }
  return {};
}

bool gdn::warp::runsFrom(Operation *op, scf::ForOp loop, int64_t first) {
  for (; op->getParentOp() && op != loop; op = op->getParentOp()) {
    auto branch = dyn_cast<scf::IfOp>(op->getParentOp());
    auto compare = branch ? branch.getCondition().getDefiningOp<arith::CmpIOp>()
                          : arith::CmpIOp();
    if (!compare || compare.getPredicate() != arith::CmpIPredicate::uge ||
        op->getParentRegion() != &branch.getThenRegion())
      continue;
    std::optional<Iteration> of = findIteration(compare.getLhs());
    std::optional<int64_t> least = getConstantIntValue(compare.getRhs());
    if (of && least && of->loop == loop && of->ahead >= 0 &&
        *least - of->ahead >= first)
      return true;
  }
  return false;
}
