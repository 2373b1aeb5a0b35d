//===- Codegen.cpp - LLVM dialect to LLVM IR and object files -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AMX.h"

#include "gdn/Target/CPU.h"

#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/OpenMP/OpenMPToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"

using namespace mlir;
using namespace mlir::gdn;

void cpu::registerTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerOpenMPDialectTranslation(registry);
}

/// The host's features in LLVM's notation.
static std::string getHostFeatures() {
  llvm::SubtargetFeatures features;
  for (const auto &[name, enabled] : llvm::sys::getHostCPUFeatures())
    features.AddFeature(name, enabled);
  return features.getString();
}

static llvm::CodeGenOptLevel getCodegenLevel(unsigned optLevel) {
  return llvm::CodeGenOpt::getLevel(static_cast<int>(optLevel))
      .value_or(llvm::CodeGenOptLevel::Aggressive);
}

/// Whether the code is for this machine.
static bool isForHost(const cpu::TargetOptions &options) {
  return options.cpu.empty() || options.cpu == "native";
}

/// LLVM's name of the CPU that is asked for.
static StringRef getCPUName(const cpu::TargetOptions &options) {
  return isForHost(options) ? llvm::sys::getHostCPUName()
                            : StringRef(options.cpu);
}

/// LLVM only warns about an unknown feature too.
static llvm::Error checkFeatureNames(const llvm::MCSubtargetInfo &subtarget,
                                     StringRef features) {
  for (StringRef feature : llvm::split(features, ',')) {
    StringRef name = feature;
    bool hasSign = name.consume_front("+") || name.consume_front("-");
    auto isIt = [&](const llvm::SubtargetFeatureKV &known) {
      return name == known.Key;
    };
    if (feature.empty() ||
        (hasSign && llvm::any_of(subtarget.getAllProcessorFeatures(), isIt)))
      continue;
    return llvm::createStringError("expected features that LLVM knows for " +
                                   subtarget.getTargetTriple().str() +
                                   ", each with + or - before it, got '" +
                                   feature + "'");
  }
  return llvm::Error::success();
}

/// LLVM ends the process where the subtarget has no 64-bit code, and computes
/// floating point in x87 registers, with other roundings, where it has no SSE2.
static llvm::Error checkSubtarget(const llvm::Target &target,
                                  const llvm::Triple &triple, StringRef cpu,
                                  StringRef features, StringRef given) {
  if (!triple.isX86())
    return llvm::Error::success();
  std::unique_ptr<llvm::MCSubtargetInfo> plain(
      target.createMCSubtargetInfo(triple, cpu, ""));
  if (!plain->checkFeatures("+64bit"))
    return llvm::createStringError("expected a cpu with 64-bit code, got '" +
                                   cpu + "'");
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget(
      target.createMCSubtargetInfo(triple, cpu, features));
  for (StringRef needed : {"+64bit", "+64bit-mode", "-32bit-mode",
                           "-16bit-mode", "-x32", "+sse2", "-soft-float"})
    if (!subtarget->checkFeatures(needed.str()))
      return llvm::createStringError("expected features that keep " + needed +
                                     ", got '" + given + "'");
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
cpu::createTargetMachine(const TargetOptions &options) {
  // LLVM's registry is process-wide and not made for several threads at once.
  static const bool failed = llvm::InitializeNativeTarget() ||
                             llvm::InitializeNativeTargetAsmPrinter();
  if (failed)
    return llvm::createStringError(
        "expected LLVM to generate code for this machine, got no such target");

  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return llvm::createStringError(error);

  std::string cpu(getCPUName(options));
  // LLVM only warns about an unknown name and falls back to the baseline.
  std::unique_ptr<llvm::MCSubtargetInfo> baseline(
      target->createMCSubtargetInfo(triple, "", ""));
  if (!baseline || !baseline->isCPUStringValid(cpu))
    return llvm::createStringError("expected a cpu that LLVM knows for " +
                                   triple.str() + ", got '" + cpu + "'");
  if (llvm::Error error = checkFeatureNames(*baseline, options.features))
    return std::move(error);
  std::string features = isForHost(options) ? getHostFeatures() : "";
  if (!options.features.empty())
    features += (features.empty() ? "" : ",") + options.features;
  if (llvm::Error error =
          checkSubtarget(*target, triple, cpu, features, options.features))
    return std::move(error);

  llvm::TargetOptions machineOptions;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, machineOptions, llvm::Reloc::PIC_, std::nullopt,
      getCodegenLevel(options.optLevel)));
  if (!machine)
    return llvm::createStringError("expected a target machine for " +
                                   triple.str() + ", got none");
  return std::move(machine);
}

/// Whether the machine has all of `features`; false where there is no such
/// machine.
static bool checkFeatures(const cpu::TargetOptions &options,
                          const std::string &features) {
  auto machine = cpu::createTargetMachine(options);
  if (!machine) {
    llvm::consumeError(machine.takeError());
    return false;
  }
  return (*machine)->getMCSubtargetInfo()->checkFeatures(features);
}

int64_t cpu::getVectorBits(const TargetOptions &options) {
  if (checkFeatures(options, "+avx512f"))
    return 512;
  return checkFeatures(options, "+avx2,+fma") ? 256 : 128;
}

bool cpu::hasBF16Dot(const TargetOptions &options) {
  if (!hasBF16Rounding(options))
    return false;
  // Intel's CPUs issue vdpbf16ps at half the rate of fused multiply-adds, so
  // that packing the pairs is a loss there (docs/experiments/cpu.md), but for
  // AMX.
  return getCPUName(options).starts_with("znver") ||
         StringRef(options.features).contains("+avx512bf16") || hasAMX(options);
}

bool cpu::hasAMX(const TargetOptions &options) {
  if (!checkFeatures(options, "+amx-tile,+amx-bf16,+avx512bf16"))
    return false;
  return isForHost(options) ? requestAMX()
                            : StringRef(options.features).contains("+amx-bf16");
}

bool cpu::hasBF16Rounding(const TargetOptions &options) {
  return checkFeatures(options, "+avx512bf16");
}

/// LLVM's level of this number.
static llvm::OptimizationLevel getOptimizationLevel(unsigned optLevel) {
  switch (optLevel) {
  case 0:
    return llvm::OptimizationLevel::O0;
  case 1:
    return llvm::OptimizationLevel::O1;
  case 2:
    return llvm::OptimizationLevel::O2;
  default:
    return llvm::OptimizationLevel::O3;
  }
}

/// A phi of bf16 as one of its bits.
static void carryBits(llvm::PHINode *phi) {
  llvm::IRBuilder<> b(phi);
  llvm::Type *bits = phi->getType()->getWithNewType(b.getInt16Ty());
  llvm::PHINode *carried = b.CreatePHI(bits, phi->getNumIncomingValues());
  // Edges from one block, as of a switch, bring one value.
  llvm::DenseMap<llvm::BasicBlock *, llvm::Value *> casts;
  for (auto [value, block] : llvm::zip(phi->incoming_values(), phi->blocks())) {
    llvm::Value *&cast = casts[block];
    if (!cast)
      cast =
          llvm::IRBuilder<>(block->getTerminator()).CreateBitCast(value, bits);
    carried->addIncoming(cast, block);
  }
  b.SetInsertPoint(phi->getParent()->getFirstInsertionPt());
  phi->replaceAllUsesWith(b.CreateBitCast(carried, phi->getType()));
  phi->eraseFromParent();
}

/// LLVM merges stores behind a branch into one of a phi, and takes a phi of
/// bf16 through f32, number by number, by functions that not every libgcc has.
static void carryBF16AsBits(llvm::Module &module) {
  SmallVector<llvm::PHINode *> phis;
  for (llvm::Function &function : module)
    for (llvm::Instruction &instruction : llvm::instructions(function))
      if (auto *phi = dyn_cast<llvm::PHINode>(&instruction))
        if (phi->getType()->getScalarType()->isBFloatTy())
          phis.push_back(phi);
  for (llvm::PHINode *phi : phis)
    carryBits(phi);
}

void cpu::optimize(llvm::Module &module, llvm::TargetMachine &machine,
                   unsigned optLevel) {
  // gdn-tile-vectorize has written as much straight-line code as the registers
  // hold. Unrolled further, the programs take twice as long to compile and run
  // slower.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  builder.buildPerModuleDefaultPipeline(getOptimizationLevel(optLevel))
      .run(module, modules);
  carryBF16AsBits(module);
  addAMXRequest(module);
}

namespace {
/// Collects LLVM's errors, which would otherwise be printed and end the
/// process.
struct ErrorCollector : llvm::DiagnosticHandler {
  explicit ErrorCollector(std::string &errors) : errors(errors) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream stream(errors);
    stream << (errors.empty() ? "" : "\n");
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    return true;
  }

  std::string &errors;
};
} // namespace

/// Translates and optimises for a given machine.
static llvm::Expected<std::unique_ptr<llvm::Module>>
translate(ModuleOp module, llvm::LLVMContext &context,
          llvm::TargetMachine &machine, unsigned optLevel) {
  DialectRegistry registry;
  cpu::registerTranslations(registry);
  module.getContext()->appendDialectRegistry(registry);
  std::unique_ptr<llvm::Module> result =
      translateModuleToLLVMIR(module, context);
  if (!result)
    return llvm::createStringError(
        "expected a module of the llvm and omp dialects, got one that does not "
        "translate to LLVM IR");
  ExecutionEngine::setupTargetTripleAndDataLayout(result.get(), &machine);
  cpu::optimize(*result, machine, optLevel);
  return std::move(result);
}

llvm::Expected<std::unique_ptr<llvm::Module>>
cpu::translateToLLVM(ModuleOp module, llvm::LLVMContext &context,
                     const TargetOptions &options) {
  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  return translate(module, context, **machine, options.optLevel);
}

llvm::Error cpu::emitLLVM(ModuleOp module, llvm::raw_ostream &stream,
                          const TargetOptions &options) {
  llvm::LLVMContext context;
  auto result = translateToLLVM(module, context, options);
  if (!result)
    return result.takeError();
  (*result)->print(stream, nullptr);
  return llvm::Error::success();
}

llvm::Error cpu::emitObject(ModuleOp module, llvm::raw_pwrite_stream &stream,
                            const TargetOptions &options) {
  auto machine = createTargetMachine(options);
  if (!machine)
    return machine.takeError();
  llvm::LLVMContext context;
  std::string errors;
  context.setDiagnosticHandler(std::make_unique<ErrorCollector>(errors));
  auto result = translate(module, context, **machine, options.optLevel);
  if (!result)
    return result.takeError();
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError(
        "expected a target that writes object files, got " +
        (*machine)->getTargetTriple().str());
  passes.run(**result);
  if (!errors.empty())
    return llvm::createStringError(
        "expected code that LLVM can generate for the cpu and features, got: " +
        errors);
  return llvm::Error::success();
}
