//===- States.cpp - Loads and stores of states ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "States.h"

#include "gdn/Dialect/Tile/IR/LoopAttributes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

std::pair<SmallVector<Value>, SmallVector<int64_t>>
gdn::stateAccess(Program &p, Value row) {
  if (p.facts.stateLayout == StateLayout::KV)
    return {{row, p.head, p.zero, p.firstV}, {3, 2}};
  return {{row, p.head, p.firstV, p.zero}, {2, 3}};
}

bool gdn::isOptional(const Program &p, StringRef name) {
  return llvm::is_contained(p.facts.optionalArrays, name);
}

Value gdn::readIfThere(Program &p, StringRef name, Value otherwise,
                       function_ref<Value()> read) {
  TileBuilder &b = p.b;
  if (!isOptional(p, name))
    return read();
  // A loop, which any role of a kernel may run over numbers: it takes no turn
  // where the array is absent.
  Value one = b.index(1);
  Value turns =
      arith::MinUIOp::create(b, memref::DimOp::create(b, p[name], 0), one);
  auto loop = scf::ForOp::create(b, p.zero, turns, one, otherwise);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, read());
  return loop.getResult(0);
}

Value gdn::isRow(Program &p, Value row, Value count) {
  // Below zero it is a large number.
  Value is = arith::CmpIOp::create(p.b, arith::CmpIPredicate::ult, row, count);
  if (Value first = p["first_state"])
    is = arith::AndIOp::create(
        p.b, is,
        arith::CmpIOp::create(p.b, arith::CmpIPredicate::sge, row, first));
  return is;
}

Value gdn::countSteps(Program &p) {
  return memref::DimOp::create(p.b, p["step_indices"], 1);
}

/// Where the sequence's last accepted token was kept. Whatever the number of
/// accepted ones is, it is one of its row's.
static Value readAcceptedRow(Program &p) {
  TileBuilder &b = p.b;
  Value accepted = arith::MinSIOp::create(
      b, loadNumber(p, "num_accepted", {p.sequence}), countSteps(p));
  Value step = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, accepted, b.index(1)), p.zero);
  return loadNumber(p, "step_indices", {p.sequence, step});
}

void Program::readStateIndex() {
  // A pool that is updated is an output.
  Value pool = (*this)["initial_state"];
  if (!pool)
    pool = arrays["initial_state"] = (*this)["final_state"];
  Value count = (*this)["num_states"];
  bool areOfSegments = static_cast<bool>(count);
  if (!count)
    count = memref::DimOp::create(b, pool, 0);
  Value row = loadNumber(*this, "state_indices",
                         {areOfSegments ? savedSequence : sequence});
  if ((*this)["num_accepted"])
    row = readIfThere(*this, "num_accepted", row,
                      [&] { return readAcceptedRow(*this); });
  isNamed = isRow(*this, row, count);
  if (areOfSegments)
    return;
  stateRow = row;
  hasState = isNamed;
}

void gdn::skipUnnamed(Program &p) {
  if (!p.isNamed)
    return;
  TileBuilder &b = p.b;
  tile::ClearOp::create(
      b, p["o"], tokenOffsets(p, p.begin, p.head, p.firstV), p.end,
      /*dim=*/1, /*columns=*/p.facts.vTileChannels, b.isNot(p.isNamed));
  p.begin = arith::SelectOp::create(b, p.isNamed, p.begin, p.end);
}

Value gdn::isThere(Program &p, StringRef name) {
  if (p.hasState)
    return p.hasState;
  if (!isOptional(p, name))
    return {};
  Value rows = memref::DimOp::create(p.b, p[name], 0);
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::ne, rows, p.zero);
}

/// Whether the sequence begins with its row of a pool, and not with zeros. A
/// call without flags has none that says no.
static Value beginsWithRow(Program &p) {
  TileBuilder &b = p.b;
  StringRef name = "has_initial_state";
  Value yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  return readIfThere(p, name, yes, [&]() -> Value {
    Value flag = memref::LoadOp::create(b, p[name], p.sequence);
    Value no = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, no);
  });
}

Value gdn::loadState(Program &p, StringRef name, ArrayRef<Value> offsets,
                     ArrayRef<int64_t> axes, ArrayRef<int64_t> shape,
                     Type element) {
  TileBuilder &b = p.b;
  if (!element)
    element = b.getF32Type();
  if (!p[name])
    return b.fill(0.0, shape, element);
  b.step("state");
  auto load = [&]() -> SmallVector<Value> {
    return {b.to(b.load(p[name], offsets, axes, shape), element)};
  };
  Value there = isThere(p, name);
  if (p["has_initial_state"])
    there = arith::AndIOp::create(b, there, beginsWithRow(p));
  if (!there)
    return load()[0];
  return choose(p, there, load, [&]() -> SmallVector<Value> {
    return {b.fill(0.0, shape, element)};
  })[0];
}

void gdn::storeState(Program &p, Value state, StringRef name,
                     ArrayRef<Value> offsets, ArrayRef<int64_t> axes) {
  if (!p[name])
    return;
  TileBuilder &b = p.b;
  b.step("state");
  OpBuilder::InsertionGuard guard(b);
  if (Value there = isThere(p, name)) {
    auto branch = scf::IfOp::create(b, there, /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  b.store(state, p[name], offsets, axes);
}

Value gdn::loadStateT(Program &p, StringRef name, Type element) {
  auto [offsets, axes] = stateAccess(p, p.stateRow);
  return loadState(p, name, offsets, axes, {p.facts.vTileChannels, p.facts.K},
                   element);
}

void gdn::storeStateT(Program &p, Value state, StringRef name) {
  auto [offsets, axes] = stateAccess(p, p.stateRow);
  storeState(p, state, name, offsets, axes);
}

//===----------------------------------------------------------------------===//
// States after tokens
//===----------------------------------------------------------------------===//

Value gdn::stepArray(Program &p) {
  return p["step_states"] ? p["step_states"] : p["final_state"];
}

namespace {
/// The place of a token of the sequence in rows of numbers.
struct Step {
  Value number, count, column;
  /// Whether there is one.
  Value isThere;
};
} // namespace

static Step stepOf(Program &p, Value t) {
  TileBuilder &b = p.b;
  Step step;
  step.number = arith::SubIOp::create(b, t, p.begin);
  step.count = countSteps(p);
  step.isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::slt,
                                       step.number, step.count);
  // Reads that are not wanted are of an entry that is there.
  step.column = arith::SelectOp::create(b, step.isThere, step.number, p.zero);
  return step;
}

/// The row of a step's state, and whether there is one.
static std::pair<Value, Value> stepRow(Program &p, Value column) {
  Value row = loadNumber(p, "step_indices", {p.sequence, column});
  Value count = memref::DimOp::create(p.b, stepArray(p), 0);
  return {row, isRow(p, row, count)};
}

Value gdn::loadStepT(Program &p, Value t, Value carried) {
  if (!p["parents"])
    return carried;
  TileBuilder &b = p.b;
  Step step = stepOf(p, t);
  Value parent = loadNumber(p, "parents", {p.sequence, step.column});
  // A token below zero is a large number. The one before is in registers.
  Value before = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, step.column, b.index(1)), p.zero);
  Value isOther =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, parent, before);
  parent = arith::SelectOp::create(b, isOther, parent, p.zero);
  auto [row, isKept] = stepRow(p, parent);
  Value jumps = arith::AndIOp::create(
      b, step.isThere, arith::AndIOp::create(b, isOther, isKept));
  auto [offsets, axes] = stateAccess(p, row);
  b.step("keep");
  return choose(
      p, jumps,
      [&, &offsets = offsets, &axes = axes]() -> SmallVector<Value> {
        return {b.f32(b.load(stepArray(p), offsets, axes, shapeOf(carried)))};
      },
      [&]() -> SmallVector<Value> { return {carried}; })[0];
}

Value gdn::keepStepT(Program &p, Value t, Value state) {
  if (!p["step_indices"])
    return state;
  TileBuilder &b = p.b;
  Step step = stepOf(p, t);
  auto [row, isKept] = stepRow(p, step.column);
  Value keeps = arith::AndIOp::create(b, step.isThere, isKept);
  auto [offsets, axes] = stateAccess(p, row);
  b.step("keep");
  // The next token reads what was kept.
  Value kept =
      b.to(state, cast<MemRefType>(stepArray(p).getType()).getElementType());
  {
    auto branch = scf::IfOp::create(b, keeps, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    tile::StoreOp store = b.store(kept, stepArray(p), offsets, axes);
    store->setAttr(tile::kOwnRowsAttrName, b.getUnitAttr());
  }
  return b.f32(kept);
}
