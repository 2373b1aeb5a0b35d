//===- Codegen.cpp - LLVM dialect to PTX ----------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/PTX.h"

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Dialect/Warp/IR/Formats.h"
#include "gdn/Dialect/Warp/IR/Warp.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::gdn;

// The one target that this file needs; InitializeAllTargets would want every
// target that LLVM was built with.
extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

void ptx::registerTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(const ptx::Options &options) {
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
  llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError(error);
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, options.chip, options.features, llvm::TargetOptions(),
      std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
  if (!machine)
    return llvm::createStringError("expected a target machine for " +
                                   triple.str() + ", got none");
  return std::move(machine);
}

/// Instructions of ours stand for all threads of a warp: LLVM may not move them
/// into a branch. The op for inline assembly cannot say so.
static void markConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *call = llvm::dyn_cast<llvm::CallBase>(&instruction))
        if (call->isInlineAsm()) {
          call->setConvergent();
          call->setDoesNotThrow();
        }
}

/// Whether an op is the host's: a function that launches kernels, or a table of
/// such.
static bool isOfHost(Operation &op) { return isa<func::FuncOp, EntryOp>(op); }

/// A copy of a module with some of its ops: what is not wanted is not copied
/// first, which would take the square of the number of kernels.
static OwningOpRef<ModuleOp>
copyIf(ModuleOp module, llvm::function_ref<bool(Operation &)> isWanted) {
  OwningOpRef<ModuleOp> copy(cast<ModuleOp>(module->cloneWithoutRegions()));
  OpBuilder builder =
      OpBuilder::atBlockEnd(&copy->getBodyRegion().emplaceBlock());
  for (Operation &op : *module.getBody())
    if (isWanted(op))
      builder.clone(op);
  return copy;
}

/// A copy of a module without what is the host's; null, after a diagnostic, if
/// it holds something else than kernels.
static OwningOpRef<ModuleOp> copyKernels(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (!isOfHost(op) && !isa_and_present<LLVM::LLVMDialect>(op.getDialect()))
      return emitError(op.getLoc(), "expected a kernel in the llvm and nvvm "
                                    "dialects, got '")
                 << op.getName() << "'",
             nullptr;
  return copyIf(module, [](Operation &op) { return !isOfHost(op); });
}

/// LLVM aborts at a symbol with characters that PTX cannot have.
static LogicalResult checkNames(ModuleOp kernels) {
  for (auto symbol : kernels.getOps<SymbolOpInterface>())
    // A declaration of an intrinsic has points.
    if (!symbol.isDeclaration() && !warp::format::isName(symbol.getName()))
      return symbol.emitOpError("expected a name that PTX can have (")
             << warp::format::kNames << "), got '" << symbol.getName() << "'";
  return success();
}

/// PTX of one chip has no kernel for another.
static llvm::Error checkTargets(ModuleOp kernels, StringRef chip) {
  for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
    auto target =
        kernel->getAttrOfType<warp::TargetAttr>(warp::TargetAttr::kName);
    if (target && target.getChip() != chip)
      return llvm::createStringError("expected kernels for " + chip + ", got " +
                                     kernel.getSymName() + " for " +
                                     target.getChip());
  }
  return llvm::Error::success();
}

/// The kernels of a module that can become PTX.
static llvm::Expected<OwningOpRef<ModuleOp>>
takeKernels(ModuleOp module, const ptx::Options &options) {
  DialectRegistry registry;
  ptx::registerTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  OwningOpRef<ModuleOp> kernels = copyKernels(module);
  if (!kernels)
    return llvm::createStringError(
        "expected kernels in the llvm and nvvm dialects, got other ops; "
        "gdn-to-nvvm lowers them");
  if (failed(checkNames(*kernels)))
    return llvm::createStringError("expected kernels with names of PTX");
  if (llvm::Error error = checkTargets(*kernels, options.chip))
    return std::move(error);
  return std::move(kernels);
}

/// Optimised PTX.
static llvm::Expected<std::string> generate(ModuleOp kernels,
                                            const ptx::Options &options) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code =
      translateModuleToLLVMIR(kernels, context);
  if (!code)
    return llvm::createStringError(
        "expected a module of the llvm and nvvm dialects, got one that does "
        "not translate to LLVM IR");
  auto machine = createMachine(options);
  if (!machine)
    return machine.takeError();
  code->setTargetTriple((*machine)->getTargetTriple());
  code->setDataLayout((*machine)->createDataLayout());
  markConvergent(*code);
  // Below -O3 copies stand between products, and ptxas serialises them.
  auto optimize = makeOptimizingTransformer(/*optLevel=*/3, /*sizeLevel=*/0,
                                            machine->get());
  if (llvm::Error error = optimize(code.get()))
    return std::move(error);
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile))
    return llvm::createStringError("expected a target that writes assembly");
  passes.run(*code);
  return std::string(text);
}

llvm::Expected<std::string> ptx::emitPTX(ModuleOp module,
                                         const Options &options) {
  llvm::Expected<OwningOpRef<ModuleOp>> kernels = takeKernels(module, options);
  if (!kernels)
    return kernels.takeError();
  return generate(**kernels, options);
}

//===----------------------------------------------------------------------===//
// Kernels by themselves
//===----------------------------------------------------------------------===//

/// Gives the only kernel of a PTX text another name.
static void rename(std::string &text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
}

/// Kernels of a stage that are equal but for their names have one name, and so
/// one text.
static void nameByContents(ptx::KernelCode &code, StringRef stage) {
  constexpr size_t kHashBytes = 8;
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(code.ptx));
  std::string symbol = ("gdn_" + stage + "_" +
                        llvm::toHex(llvm::ArrayRef(hash).take_front(kHashBytes),
                                    /*LowerCase=*/true))
                           .str();
  rename(code.ptx, code.symbol, symbol);
  code.symbol = symbol;
}

/// A hash of a module's text, in which names are, but no locations.
static std::string hashText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  // The short forms of ops take longer.
  module->print(stream,
                OpPrintingFlags().printGenericOpForm().assumeVerified());
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(text)),
                     /*LowerCase=*/true);
}

/// Whether an op of a module of kernels is one that a launch names.
static bool isLaunched(Operation &op) {
  return isa<LLVM::LLVMFuncOp>(op) &&
         op.hasAttr(warp::WarpDialect::getLaunchAttrName());
}

llvm::Expected<std::vector<ptx::KernelCode>>
ptx::emitKernels(ModuleOp module, const Options &options) {
  llvm::Expected<OwningOpRef<ModuleOp>> kernels = takeKernels(module, options);
  if (!kernels)
    return kernels.takeError();
  std::vector<KernelCode> codes;
  for (auto kernel : (*kernels)->getOps<LLVM::LLVMFuncOp>()) {
    if (!isLaunched(*kernel))
      continue;
    OwningOpRef<ModuleOp> one = copyIf(**kernels, [&](Operation &op) {
      return &op == kernel || !isLaunched(op);
    });
    KernelCode code = {kernel.getSymName().str(), {}, {}, {}};
    // A kernel of a user's own program has no stage, and keeps its name.
    auto stage = options.sharesKernels
                     ? kernel->getAttrOfType<StringAttr>(
                           warp::WarpDialect::getStageAttrName())
                     : StringAttr();
    // No other name has this one within it.
    constexpr StringLiteral kAnyName = "gdn_kernel_of_any_name";
    auto own = SymbolTable(*one).lookup<LLVM::LLVMFuncOp>(code.kernel);
    own.setSymName(kAnyName);
    code.hash = hashText(*one);
    code.symbol = stage ? kAnyName.str() : code.kernel;
    own.setSymName(code.symbol);
    if (options.generates) {
      llvm::Expected<std::string> text = generate(*one, options);
      if (!text)
        return text.takeError();
      code.ptx = std::move(*text);
    } else {
      code.ptx = "// " + code.symbol + " " + code.hash + "\n";
    }
    if (stage)
      nameByContents(code, stage.getValue());
    codes.push_back(std::move(code));
  }
  return std::move(codes);
}
