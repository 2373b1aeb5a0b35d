//===- Kernel.cpp - Kernels become functions, roles become branches -------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lowering.h"

#include "gdn/Dialect/Warp/IR/Arch.h"
#include "gdn/Dialect/Warp/IR/Formats.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;

/// The types that an argument as written becomes.
static void appendArgumentTypes(Type type, SmallVectorImpl<Type> &types) {
  auto array = dyn_cast<MemRefType>(type);
  if (!array) {
    types.push_back(type);
    return;
  }
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  (void)array.getStridesAndOffset(strides, offset);
  types.push_back(LLVM::LLVMPointerType::get(type.getContext(), kGlobalSpace));
  Type i64 = IntegerType::get(type.getContext(), 64);
  types.append(array.getNumDynamicDims() +
                   llvm::count_if(strides, ShapedType::isDynamic),
               i64);
}

/// The array behind the function's arguments from `next` on.
static Array takeArray(ImplicitLocOpBuilder &b, MemRefType type,
                       int64_t argument, Block &entry, unsigned &next) {
  Array array{argument, entry.getArgument(next++), {}, {}};
  int64_t offset = 0;
  SmallVector<int64_t> strides;
  (void)type.getStridesAndOffset(strides, offset);
  auto take = [&](ArrayRef<int64_t> values, SmallVectorImpl<Value> &out) {
    for (int64_t value : values)
      out.push_back(ShapedType::isDynamic(value)
                        ? arith::IndexCastOp::create(b, b.getIndexType(),
                                                     entry.getArgument(next++))
                        : createIndex(b, value));
  };
  take(type.getShape(), array.sizes);
  take(strides, array.strides);
  return array;
}

/// The tensor maps of a kernel's copies, each once, in the order of first use.
static llvm::SetVector<TensorMapAttr> collectTensorMaps(KernelOp kernel) {
  llvm::SetVector<TensorMapAttr> maps;
  auto add = [&](auto copy) {
    auto type = cast<MemRefType>(copy.getArray().getType());
    int64_t argument = cast<BlockArgument>(copy.getArray()).getArgNumber();
    ViewType view = copy.getView().getType();
    maps.insert(getTensorMap(type, argument, copy.getAxes(), view));
    if (copy.getEnd())
      maps.insert(getTensorMap(type, argument, copy.getAxes(), view,
                               /*isCut=*/true));
  };
  kernel.walk([&](BulkTensorLoadOp copy) { add(copy); });
  kernel.walk([&](BulkTensorStoreOp copy) { add(copy); });
  return maps;
}

static LLVM::LLVMFuncOp createFunction(ImplicitLocOpBuilder &b, KernelOp kernel,
                                       ArrayRef<TensorMapAttr> maps) {
  SmallVector<Type> types;
  for (Type type : kernel.getBody().getArgumentTypes())
    appendArgumentTypes(type, types);
  unsigned firstMap = types.size();
  types.append(maps.size(), LLVM::LLVMPointerType::get(b.getContext()));
  auto function = LLVM::LLVMFuncOp::create(
      b, kernel.getSymName(),
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()),
                                  types));
  // Roles of a warp each would make a jump table of the choice of a role.
  function.setPassthroughAttr(
      b.getArrayAttr(b.getStrArrayAttr({"no-jump-tables", "true"})));
  // A tensor map travels by value in the parameter space; grid_constant keeps
  // it there, where copies may read it (PTX ISA, cp.async.bulk.tensor).
  Type map = LLVM::LLVMArrayType::get(b.getI8Type(), 128);
  for (unsigned i = firstMap; i < types.size(); ++i) {
    function.setArgAttr(i, "llvm.byval", TypeAttr::get(map));
    function.setArgAttr(i, "llvm.align", b.getI32IntegerAttr(64));
    function.setArgAttr(i, "nvvm.grid_constant", b.getUnitAttr());
  }
  for (StringRef name : {StringRef(TargetAttr::kName),
                         StringRef(WarpDialect::getStageAttrName())})
    if (Attribute attribute = kernel->getAttr(name))
      function->setAttr(name, attribute);
  function->setAttr("nvvm.kernel", b.getUnitAttr());
  if (mayTurnRows(kernel))
    function->setAttr(kTurnedRows, b.getUnitAttr());
  // Without both of them ptxas ignores setmaxnreg (C7508).
  function->setAttr(
      "nvvm.maxntid",
      b.getDenseI32ArrayAttr({static_cast<int32_t>(kernel.getThreads())}));
  function->setAttr("nvvm.minctasm", b.getI32IntegerAttr(kernel.getMinCtas()));
  if (kernel.getCluster() > 1)
    function->setAttr("nvvm.cluster_dim",
                      b.getDenseI32ArrayAttr(
                          {static_cast<int32_t>(kernel.getCluster()), 1, 1}));
  SmallVector<Attribute> arguments, mapAttrs(maps.begin(), maps.end());
  for (Type type : kernel.getBody().getArgumentTypes())
    arguments.push_back(TypeAttr::get(type));
  function->setAttr(
      WarpDialect::getLaunchAttrName(),
      LaunchAttr::get(b.getContext(), kernel.getThreads(),
                      kernel.getSharedBytes(), kernel.getCluster(),
                      kernel.getPersistent() ? kernel.getMinCtas() : 0,
                      !kernel.getBody().getOps<GridDependencyWaitOp>().empty(),
                      b.getArrayAttr(arguments), b.getArrayAttr(mapAttrs)));
  return function;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

/// Registers of a thread at launch: ptxas gives each of them an equal share.
static int64_t getLaunchRegisters(KernelOp kernel) {
  return getArch(kernel).launchRegisters(
      kernel.getThreads(), static_cast<int64_t>(kernel.getMinCtas()));
}

/// first <= value < first + count.
static Value createInRange(ImplicitLocOpBuilder &b, Value value, int64_t first,
                           int64_t count) {
  if (count == 1)
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, value,
                                 createIndex(b, first));
  Value difference = arith::SubIOp::create(b, value, createIndex(b, first));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, difference,
                               createIndex(b, count));
}

/// Begins `if (condition)` and goes on behind its `else`, so that no warp that
/// has done its role meets another condition.
static Block *createBranch(ImplicitLocOpBuilder &b, Value condition) {
  auto branch =
      scf::IfOp::create(b, TypeRange(), condition, /*withElseRegion=*/true);
  b.setInsertionPointToStart(branch.elseBlock());
  return branch.thenBlock();
}

/// Moves the body of a role to before the end of `block`.
static void moveBody(RoleOp role, Block *block) {
  Block &body = role.getBody().front();
  block->getOperations().splice(block->without_terminator().end(),
                                body.getOperations());
  role.erase();
}

/// setmaxnreg is one instruction for a whole warpgroup, so the roles that share
/// one have it in front of the branch between them (PTX ISA, "setmaxnreg").
static void createRegisters(ImplicitLocOpBuilder &b, RoleOp role,
                            int64_t launch) {
  std::optional<uint64_t> registers = role.getRegisters();
  if (!registers || static_cast<int64_t>(*registers) == launch)
    return;
  bool more = static_cast<int64_t>(*registers) > launch;
  NVVM::SetMaxRegisterOp::create(b, *registers,
                                 more ? NVVM::SetMaxRegisterAction::increase
                                      : NVVM::SetMaxRegisterAction::decrease);
}

/// Roles --> branches on the warpgroup, and on the warp where several roles
/// share a warpgroup.
static void lowerRoles(Block &entry, KernelOp kernel) {
  SmallVector<RoleOp> roles(entry.getOps<RoleOp>());
  if (roles.empty())
    return;
  int64_t group = format::kWarpgroupWarps, launch = getLaunchRegisters(kernel);
  ImplicitLocOpBuilder b(kernel.getLoc(), &entry, Block::iterator(roles[0]));
  Value warp = IdOp::create(b, IdKind::Warp);
  Value warpgroup = arith::DivUIOp::create(b, warp, createIndex(b, group));
  // A role that has moved is gone, so the list holds those that have not.
  while (!roles.empty()) {
    RoleOp role = roles.front();
    int64_t first = role.getFirst() / group;
    int64_t count = std::max<int64_t>(role.getCount() / group, 1);
    auto shares = [&](RoleOp other) {
      int64_t its = static_cast<int64_t>(other.getFirst()) / group;
      return its >= first && its < first + count;
    };
    SmallVector<RoleOp> sharing = llvm::filter_to_vector(roles, shares);
    llvm::erase_if(roles, shares);
    Block *block = createBranch(b, createInRange(b, warpgroup, first, count));
    ImplicitLocOpBuilder inner =
        ImplicitLocOpBuilder::atBlockBegin(role.getLoc(), block);
    createRegisters(inner, role, launch);
    bool whole = role.getCount() % group == 0;
    for (RoleOp other : sharing)
      moveBody(other,
               whole ? block
                     : createBranch(inner,
                                    createInRange(inner, warp, other.getFirst(),
                                                  other.getCount())));
  }
}

/// One thread brings the tensor maps near while the others still prepare, so
/// that the first copies need not fetch them.
static void createPrefetches(ImplicitLocOpBuilder &b, ValueRange maps) {
  if (maps.empty())
    return;
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        createThread(b), createI32(b, 0));
  auto branch = scf::IfOp::create(b, isFirst);
  ImplicitLocOpBuilder inner =
      ImplicitLocOpBuilder::atBlockBegin(b.getLoc(), branch.thenBlock());
  for (Value map : maps)
    NVVM::PrefetchOp::create(
        inner, NVVM::PrefetchCacheLevelAttr(),
        NVVM::CacheEvictionPriorityAttr(), map, /*predicate=*/Value(),
        /*tensormap=*/inner.getUnitAttr(), /*uniform=*/UnitAttr(),
        /*in_param_space=*/UnitAttr());
}

LLVM::LLVMFuncOp warp::lowerKernel(KernelOp kernel, LoweredKernels &kernels) {
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel);
  llvm::SetVector<TensorMapAttr> maps = collectTensorMaps(kernel);
  LLVM::LLVMFuncOp function = createFunction(b, kernel, maps.getArrayRef());
  Block &entry = *function.addEntryBlock(b);
  b.setInsertionPointToStart(&entry);
  Block &body = kernel.getBody().front();
  unsigned next = 0;
  for (BlockArgument argument : body.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    if (!type) {
      argument.replaceAllUsesWith(entry.getArgument(next++));
      continue;
    }
    Array array = takeArray(b, type, argument.getArgNumber(), entry, next);
    // Stands for the array until its accesses are lowered.
    auto cast = UnrealizedConversionCastOp::create(b, type, array.pointer);
    argument.replaceAllUsesWith(cast.getResult(0));
    kernels.arrays[cast.getResult(0)] = std::move(array);
  }
  createPrefetches(b, entry.getArguments().drop_front(next));
  for (TensorMapAttr map : maps)
    kernels.tensorMaps[{function, map}] = entry.getArgument(next++);
  entry.getOperations().splice(entry.end(), body.getOperations());
  b.setInsertionPointToEnd(&entry);
  LLVM::ReturnOp::create(b, ValueRange());
  lowerRoles(entry, kernel);
  kernel.erase();
  return function;
}
