//===- Program.cpp - Compile a module for this process --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SectionMemory.h"

#include "gdn/Target/CPU.h"

#include "mlir/Dialect/OpenMP/OpenMPDialect.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::cpu;

/// Where LLVM's OpenMP runtime may be: beside the LLVM that we were built with,
/// then wherever the loader finds it.
static constexpr StringLiteral kOpenMPLibraries[] = {
    GDN_LLVM_LIBRARY_DIR "/libomp.so.5", "libomp.so.5", "libomp.so"};

/// Makes the symbols of LLVM's OpenMP runtime visible to compiled code. Threads
/// of the runtime outlive a program, so it is never unloaded.
static llvm::Error loadOpenMP() {
  if (llvm::sys::DynamicLibrary::SearchForAddressOfSymbol("__kmpc_fork_call"))
    return llvm::Error::success();
  std::string reasons;
  for (StringRef library : kOpenMPLibraries) {
    std::string reason;
    if (!llvm::sys::DynamicLibrary::LoadLibraryPermanently(
            library.str().c_str(), &reason))
      return llvm::Error::success();
    reasons += "\n  " + reason;
  }
  return llvm::createStringError("expected LLVM's OpenMP runtime (Debian "
                                 "package libomp5-22), got:" +
                                 reasons);
}

llvm::Expected<Program> Program::compile(ModuleOp module,
                                         const TargetOptions &options) {
  DialectRegistry registry;
  registerTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);

  auto isOpenMP = [](Operation *op) {
    return isa_and_nonnull<omp::OpenMPDialect>(op->getDialect())
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  if (module.walk(isOpenMP).wasInterrupted())
    if (llvm::Error error = loadOpenMP())
      return std::move(error);

  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  auto transform = [machine = machine->get(),
                    level = options.optLevel](llvm::Module *module) {
    optimize(*module, *machine, level);
    return llvm::Error::success();
  };
  auto memory = std::make_unique<SectionMemory>();
  ExecutionEngineOptions engineOptions;
  engineOptions.sectionMemoryMapper = memory.get();
  engineOptions.transformer = transform;
  engineOptions.jitCodeGenOptLevel = (*machine)->getOptLevel();
  // Listeners of debuggers and profilers register process-wide state.
  engineOptions.enableGDBNotificationListener = false;
  engineOptions.enablePerfNotificationListener = false;
  // The engine owns the machine from here on; the transformer runs inside.
  auto engine =
      ExecutionEngine::create(module, engineOptions, std::move(*machine));
  if (!engine)
    return engine.takeError();
  (*engine)->registerSymbols([](llvm::orc::MangleAndInterner interner) {
    llvm::orc::SymbolMap symbols;
    symbols[interner("malloc")] = {
        llvm::orc::ExecutorAddr::fromPtr(&allocateArray),
        llvm::JITSymbolFlags::Exported};
    return symbols;
  });
  (*engine)->initialize();
  return Program(std::move(memory), std::move(*engine));
}

Program::Program(std::unique_ptr<SectionMemory> memory,
                 std::unique_ptr<ExecutionEngine> engine)
    : memory(std::move(memory)), engine(std::move(engine)) {}
Program::Program(Program &&) noexcept = default;
Program &Program::operator=(Program &&other) noexcept {
  // The engine goes first: its sections are in the memory.
  engine = std::move(other.engine);
  memory = std::move(other.memory);
  return *this;
}
Program::~Program() = default;

/// The name of a function's C interface.
static std::string interfaceName(StringRef function) {
  return ("_mlir_ciface_" + function).str();
}

llvm::Error Program::materialize(StringRef function) {
  return engine->lookupPacked(interfaceName(function)).takeError();
}

llvm::Error Program::invoke(StringRef function,
                            MutableArrayRef<void *> arguments) {
  return engine->invokePacked(interfaceName(function), arguments);
}
