//===- Entries.cpp - Functions of C that launch ---------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tables.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::host;

/// The type of a C parameter for an argument: a pointer to a GdnTensor, or a
/// scalar.
static llvm::Type *getParameterType(llvm::IRBuilder<> &b, int32_t kind) {
  switch (kind) {
  case GDN_ARG_I32:
    return b.getInt32Ty();
  case GDN_ARG_I64:
    return b.getInt64Ty();
  case GDN_ARG_F32:
    return b.getFloatTy();
  default:
    return b.getPtrTy();
  }
}

/// Defines `<function><suffix>(argument..., tail...)`, which packs the
/// arguments into GdnArgs and calls `callee(description, args, count,
/// tail...)`.
static void addEntry(llvm::Module &module, const FunctionTable &function,
                     llvm::Constant *description, StringRef suffix,
                     StringRef callee, ArrayRef<llvm::Type *> tail) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  size_t count = function.arguments.size();
  SmallVector<llvm::Type *> types;
  for (const ArgumentTable &argument : function.arguments)
    types.push_back(getParameterType(b, argument.kind));
  types.append(tail.begin(), tail.end());
  SmallVector<llvm::Type *> calleeTypes = {b.getPtrTy(), b.getPtrTy(),
                                           b.getInt32Ty()};
  calleeTypes.append(tail.begin(), tail.end());
  auto *entry = llvm::Function::Create(
      llvm::FunctionType::get(b.getInt32Ty(), types, /*isVarArg=*/false),
      llvm::GlobalValue::ExternalLinkage, function.name + suffix, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", entry));
  // GdnArg: a kind, and the union behind its padding.
  auto *argument = llvm::StructType::get(b.getInt32Ty(), b.getPtrTy());
  assert(module.getDataLayout().getTypeAllocSize(argument) == sizeof(GdnArg));
  auto *array = llvm::ArrayType::get(argument, count);
  llvm::Value *args = b.CreateAlloca(array);
  for (size_t i = 0; i < count; ++i) {
    llvm::Value *element = b.CreateConstInBoundsGEP2_32(array, args, 0, i);
    b.CreateStore(b.getInt32(function.arguments[i].kind), element);
    b.CreateStore(entry->getArg(i), b.CreateStructGEP(argument, element, 1));
  }
  SmallVector<llvm::Value *> operands = {description, args, b.getInt32(count)};
  for (size_t i = count; i < types.size(); ++i)
    operands.push_back(entry->getArg(i));
  b.CreateRet(b.CreateCall(
      module.getOrInsertFunction(
          callee, llvm::FunctionType::get(b.getInt32Ty(), calleeTypes,
                                          /*isVarArg=*/false)),
      operands));
}

void host::writeEntries(llvm::Module &module, const FunctionTable &function,
                        llvm::Constant *description) {
  llvm::LLVMContext &context = module.getContext();
  llvm::IRBuilder<> b(context);
  auto *prepareType = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()},
                                              /*isVarArg=*/false);
  auto *prepare =
      llvm::Function::Create(prepareType, llvm::GlobalValue::ExternalLinkage,
                             (function.name + prepareSuffix).str(), module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "", prepare));
  auto *calleeType = llvm::FunctionType::get(
      b.getInt32Ty(), {b.getPtrTy(), b.getInt32Ty()}, /*isVarArg=*/false);
  b.CreateRet(
      b.CreateCall(module.getOrInsertFunction("gdnFunctionPrepare", calleeType),
                   {description, prepare->getArg(0)}));
  addEntry(module, function, description, workspaceSuffix,
           "gdnFunctionGetWorkspaceBytes", {b.getPtrTy()});
  addEntry(module, function, description, "", "gdnFunctionLaunch",
           {b.getPtrTy(), b.getInt64Ty(), b.getPtrTy()});
}
