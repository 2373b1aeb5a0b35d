//===- Object.cpp - Compiled functions in this process --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Object.h"

#include "gdn/Target/Host.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"

using namespace mlir::gdn;
using namespace mlir::gdn::tools;

Object::Object(std::unique_ptr<llvm::orc::LLJIT> session)
    : session(std::move(session)) {}
Object::Object(Object &&) noexcept = default;
Object &Object::operator=(Object &&) noexcept = default;
Object::~Object() = default;

/// What the entries of an object call.
static llvm::Error addRuntime(llvm::orc::LLJIT &session) {
  llvm::orc::SymbolMap symbols;
  auto add = [&](llvm::StringRef name, auto *function) {
    symbols[session.mangleAndIntern(name)] = {
        llvm::orc::ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  add("gdnFunctionPrepare", &gdnFunctionPrepare);
  add("gdnFunctionGetWorkspaceBytes", &gdnFunctionGetWorkspaceBytes);
  add("gdnFunctionLaunch", &gdnFunctionLaunch);
  return session.getMainJITDylib().define(
      llvm::orc::absoluteSymbols(std::move(symbols)));
}

llvm::Expected<Object>
Object::load(std::unique_ptr<llvm::MemoryBuffer> object) {
  // LLVM's registry is process-wide and not made for several threads at once.
  static const bool failed = llvm::InitializeNativeTarget();
  if (failed)
    return llvm::createStringError(
        "expected LLVM to load objects for this machine, got no such target");
  std::string name = object->getBufferIdentifier().str();
  llvm::Expected<std::unique_ptr<llvm::orc::LLJIT>> session =
      llvm::orc::LLJITBuilder().create();
  if (!session)
    return session.takeError();
  if (llvm::Error error = addRuntime(**session))
    return std::move(error);
  if (llvm::Error error = (*session)->addObjectFile(std::move(object)))
    return llvm::createStringError(name +
                                   ": expected an object file, got one with " +
                                   llvm::toString(std::move(error)));
  return Object(std::move(*session));
}

llvm::Expected<const GdnFunctionDesc *>
Object::lookup(llvm::StringRef function) {
  auto symbol = session->lookup((function + host::descriptionSuffix).str());
  if (!symbol)
    return llvm::createStringError(
        "expected an object that gdn-compile made of @" + function + ", got " +
        llvm::toString(symbol.takeError()));
  return symbol->toPtr<const GdnFunctionDesc *>();
}
