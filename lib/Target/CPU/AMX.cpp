//===- AMX.cpp - Leave to use the tile registers --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMX.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicsX86.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

#if defined(__linux__) && defined(__x86_64__)
#include <unistd.h>
#endif

using namespace mlir::gdn;

/// The arguments of Linux' call on x86-64: arch_prctl, ARCH_REQ_XCOMP_PERM and
/// XFEATURE_XTILEDATA. The headers of older systems have no names for them.
static constexpr long kRequest[] = {158, 0x1023, 18};

bool cpu::requestAMX() {
#if defined(__linux__) && defined(__x86_64__)
  return syscall(kRequest[0], kRequest[1], kRequest[2]) == 0;
#else
  return false;
#endif
}

void cpu::addAMXRequest(llvm::Module &module) {
  bool usesTiles = llvm::any_of(module, [](const llvm::Function &function) {
    return function.getIntrinsicID() ==
           llvm::Intrinsic::x86_tileloadd64_internal;
  });
  if (!usesTiles)
    return;
  llvm::IRBuilder<> b(module.getContext());
  llvm::Function *request = llvm::Function::createWithDefaultAttr(
      llvm::FunctionType::get(b.getVoidTy(), false),
      llvm::GlobalValue::InternalLinkage, 0, "gdn.request_amx", &module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "", request));
  llvm::FunctionCallee call = module.getOrInsertFunction(
      "syscall", llvm::FunctionType::get(b.getInt64Ty(), b.getInt64Ty(),
                                         /*isVarArg=*/true));
  b.CreateCall(call, {b.getInt64(kRequest[0]), b.getInt64(kRequest[1]),
                      b.getInt64(kRequest[2])});
  b.CreateRetVoid();
  llvm::appendToGlobalCtors(module, request, /*Priority=*/0);
}
