//===- States.cpp - Loads and stores of states ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::gdn;

/// Offsets and axes of S^T in an array of states.
static std::pair<SmallVector<Value>, SmallVector<int64_t>>
stateAccess(Program &p) {
  if (p.facts.stateLayout == StateLayout::KV)
    return {{p.stateRow, p.head, p.zero, p.firstV}, {3, 2}};
  return {{p.stateRow, p.head, p.firstV, p.zero}, {2, 3}};
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
  // Below zero it is a large number.
  isNamed = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, row, count);
  if (Value first = (*this)["first_state"])
    isNamed = arith::AndIOp::create(
        b, isNamed,
        arith::CmpIOp::create(b, arith::CmpIPredicate::sge, row, first));
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
  if (!llvm::is_contained(p.facts.optionalArrays, name))
    return {};
  Value rows = memref::DimOp::create(p.b, p[name], 0);
  return arith::CmpIOp::create(p.b, arith::CmpIPredicate::ne, rows, p.zero);
}

/// Whether the sequence begins with its row of a pool, and not with zeros. A
/// call without flags has none that says no: a loop, which any role of a kernel
/// may run over numbers, takes no turn then.
static Value beginsWithRow(Program &p) {
  TileBuilder &b = p.b;
  StringRef name = "has_initial_state";
  auto read = [&]() -> Value {
    Value flag = memref::LoadOp::create(b, p[name], p.sequence);
    Value no = arith::ConstantOp::create(b, b.getI8IntegerAttr(0));
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, flag, no);
  };
  if (!llvm::is_contained(p.facts.optionalArrays, name))
    return read();
  Value one = b.index(1),
        yes = arith::ConstantOp::create(b, b.getBoolAttr(true));
  Value turns =
      arith::MinUIOp::create(b, memref::DimOp::create(b, p[name], 0), one);
  auto loop = scf::ForOp::create(b, p.zero, turns, one, yes);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, read());
  return loop.getResult(0);
}

Value gdn::loadState(Program &p, StringRef name, ArrayRef<Value> offsets,
                     ArrayRef<int64_t> axes, ArrayRef<int64_t> shape) {
  TileBuilder &b = p.b;
  if (!p[name])
    return b.fill(0.0, shape);
  b.step("state");
  auto load = [&]() -> SmallVector<Value> {
    return {b.f32(b.load(p[name], offsets, axes, shape))};
  };
  Value there = isThere(p, name);
  if (p["has_initial_state"])
    there = arith::AndIOp::create(b, there, beginsWithRow(p));
  if (!there)
    return load()[0];
  return choose(p, there, load, [&]() -> SmallVector<Value> {
    return {b.fill(0.0, shape)};
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

Value gdn::loadStateT(Program &p, StringRef name) {
  auto [offsets, axes] = stateAccess(p);
  return loadState(p, name, offsets, axes, {p.facts.vTileChannels, p.facts.K});
}

void gdn::storeStateT(Program &p, Value state, StringRef name) {
  auto [offsets, axes] = stateAccess(p);
  storeState(p, state, name, offsets, axes);
}
