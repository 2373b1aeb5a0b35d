//===- Compiler.cpp - The compiler as a C library -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Compiler.h"

#include "gdn/InitAll.h"
#include "gdn/Pipelines/Pipelines.h"
#include "gdn/Target/CPU.h"
#include "gdn/Version.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstring>

using namespace mlir;
using namespace mlir::gdn;

namespace {
/// The way down to a level.
using PipelineBuilder = void (*)(OpPassManager &, const LoweringOptions &);

/// Where a call's errors go.
class ErrorSink {
public:
  ErrorSink(GdnBytesCallback callback, void *userData)
      : callback(callback), userData(userData) {}

  GdnCompileStatus fail(StringRef message) {
    called = true;
    if (!callback)
      return GDN_COMPILE_FAILURE;
    // Messages quote what the caller gave, which may be no UTF-8.
    std::string text = llvm::json::isUTF8(message)
                           ? message.str()
                           : llvm::json::fixUTF8(message);
    callback(text.data(), text.size(), userData);
    return GDN_COMPILE_FAILURE;
  }

  /// For a failed compilation, whose reason was sent as a diagnostic.
  GdnCompileStatus failAfterDiagnostics() {
    return called ? GDN_COMPILE_FAILURE
                  : fail("error: expected a reason for the failure, got none");
  }

  /// Sends an error with its place and notes; other diagnostics are dropped.
  void take(Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    print(diagnostic, "error", stream);
    for (Diagnostic &note : diagnostic.getNotes()) {
      stream << '\n';
      print(note, "note", stream);
    }
    fail(text);
  }

private:
  static void print(Diagnostic &diagnostic, StringRef kind,
                    llvm::raw_ostream &stream) {
    if (auto place = diagnostic.getLocation()->findInstanceOf<FileLineColLoc>())
      stream << place.getFilename().getValue() << ':' << place.getLine() << ':'
             << place.getColumn() << ": ";
    stream << kind << ": " << diagnostic;
  }

  GdnBytesCallback callback;
  void *userData;
  bool called = false;
};

/// One call's own compiler: nothing is shared between threads.
class Compilation {
public:
  Compilation(const GdnCompileOptions *given, ErrorSink &errors)
      : errors(errors),
        context(makeRegistry(), MLIRContext::Threading::DISABLED),
        handler(&context,
                [&](Diagnostic &diagnostic) { errors.take(diagnostic); }) {
    // A whole module in an error helps nobody; the place is enough.
    context.printOpOnDiagnostic(false);
    gdnCompileOptionsInit(&options, sizeof(options));
    if (given)
      std::memcpy(&options, given,
                  std::min(given->struct_size, sizeof(options)));
  }

  /// Parses `text` and takes it down; null after a diagnostic.
  OwningOpRef<ModuleOp> lower(StringRef text, const char *name,
                              PipelineBuilder buildPipeline) {
    if (options.opt_level > 3) {
      errors.fail("error: expected opt_level to be 0 to 3, got " +
                  std::to_string(options.opt_level));
      return nullptr;
    }
    // The parser wants a zero byte behind the text; the copy has one.
    auto module = parseSourceString<ModuleOp>(
        text.str(), ParserConfig(&context), name ? name : "<text>");
    if (!module)
      return nullptr;
    LoweringOptions lowering;
    if (options.plan)
      lowering.plan = options.plan;
    if (options.operand_type)
      lowering.operandType = options.operand_type;
    lowering.chunkSize = options.chunk_size;
    lowering.vTiles = options.v_tiles;
    lowering.twoProductChain = options.two_product_chain != 0;
    lowering.parallel = options.parallel != 0;
    lowering.vectorBits = cpu::getVectorBits(getTarget());
    lowering.bf16Dot = cpu::hasBF16Dot(getTarget());
    lowering.amx = cpu::hasAMX(getTarget());
    lowering.bf16Rounding = cpu::hasBF16Rounding(getTarget());
    if (std::string wrong = findWrongOption(lowering); !wrong.empty()) {
      errors.fail("error: " + wrong);
      return nullptr;
    }
    PassManager manager(&context);
    buildPipeline(manager, lowering);
    if (failed(manager.run(*module)))
      return nullptr;
    return module;
  }

  cpu::TargetOptions getTarget() const {
    cpu::TargetOptions target;
    if (options.cpu)
      target.cpu = options.cpu;
    if (options.features)
      target.features = options.features;
    target.optLevel = options.opt_level;
    return target;
  }

private:
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    registerAllExtensions(registry);
    return registry;
  }

  ErrorSink &errors;
  GdnCompileOptions options;
  MLIRContext context;
  ScopedDiagnosticHandler handler;
};
} // namespace

/// The way down to a level, null for a value that is none: C takes any number.
static PipelineBuilder getPipeline(GdnLevel level) {
  switch (level) {
  case GDN_LEVEL_STAGES:
    return buildGDNToStagesPipeline;
  case GDN_LEVEL_TILE:
    return buildGDNToTilePipeline;
  case GDN_LEVEL_LLVM:
    return buildGDNToLLVMPipeline;
  }
  return nullptr;
}

const char *gdnCompilerGetVersion(void) { return GDN_VERSION_STRING; }

void gdnCompileOptionsInit(GdnCompileOptions *options, size_t structSize) {
  if (!options)
    return;
  GdnCompileOptions defaults = {};
  defaults.struct_size = std::min(structSize, sizeof(defaults));
  const LoweringOptions lowering;
  defaults.chunk_size = lowering.chunkSize;
  defaults.v_tiles = lowering.vTiles;
  defaults.opt_level = cpu::TargetOptions().optLevel;
  defaults.two_product_chain = lowering.twoProductChain;
  defaults.parallel = lowering.parallel;
  // A caller with a newer header has fields that are not known here.
  std::memset(options, 0, structSize);
  std::memcpy(options, &defaults, defaults.struct_size);
}

/// What a caller got wrong before the compiler looks at the text; empty if
/// nothing.
static std::string findMisuse(const char *text, size_t length,
                              GdnBytesCallback output) {
  if (!text && length > 0)
    return "error: expected text, got a null pointer and a length of " +
           std::to_string(length);
  if (!output)
    return "error: expected an output callback, got a null pointer";
  return "";
}

GdnCompileStatus gdnCompileToText(const char *text, size_t length,
                                  const char *name, GdnLevel level,
                                  const GdnCompileOptions *options,
                                  GdnBytesCallback output,
                                  GdnBytesCallback error, void *userData) {
  ErrorSink errors(error, userData);
  if (std::string misuse = findMisuse(text, length, output); !misuse.empty())
    return errors.fail(misuse);
  PipelineBuilder pipeline = getPipeline(level);
  if (!pipeline)
    return errors.fail("error: expected a level of GdnLevel, got " +
                       std::to_string(static_cast<int>(level)));
  Compilation compilation(options, errors);
  OwningOpRef<ModuleOp> module =
      compilation.lower(StringRef(text, length), name, pipeline);
  if (!module)
    return errors.failAfterDiagnostics();
  std::string result;
  llvm::raw_string_ostream stream(result);
  module->print(stream);
  output(result.data(), result.size(), userData);
  return GDN_COMPILE_SUCCESS;
}

GdnCompileStatus gdnCompileToObject(const char *text, size_t length,
                                    const char *name,
                                    const GdnCompileOptions *options,
                                    GdnBytesCallback output,
                                    GdnBytesCallback error, void *userData) {
  ErrorSink errors(error, userData);
  if (std::string misuse = findMisuse(text, length, output); !misuse.empty())
    return errors.fail(misuse);
  Compilation compilation(options, errors);
  OwningOpRef<ModuleOp> module =
      compilation.lower(StringRef(text, length), name, buildGDNToLLVMPipeline);
  if (!module)
    return errors.failAfterDiagnostics();
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  if (llvm::Error failure =
          cpu::emitObject(*module, stream, compilation.getTarget()))
    return errors.fail("error: " + llvm::toString(std::move(failure)));
  output(object.data(), object.size(), userData);
  return GDN_COMPILE_SUCCESS;
}
