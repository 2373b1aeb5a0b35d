//===- GPUOutputs.cpp - What gdn-compile writes for a GPU -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Files.h"
#include "Flags.h"
#include "gdn/Tools/Images.h"
#include "gdn/Tools/Progress.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::gdn::tools;
namespace host = mlir::gdn::host;
namespace ptx = mlir::gdn::ptx;

static llvm::Expected<std::string> makePTX(const Flags &flags,
                                           ModuleOp module) {
  llvm::Expected<std::string> text = std::string();
  if (flags.ptx.empty()) {
    text = ptx::emitPTX(module);
  } else {
    auto file = llvm::MemoryBuffer::getFile(flags.ptx, /*IsText=*/true);
    if (!file)
      return llvm::createStringError(
          llvm::formatv("{0}: expected a readable file, got '{1}'",
                        flags.ptx.getValue(), file.getError().message()));
    text = (*file)->getBuffer().str();
  }
  if (!text)
    return text;
  if (llvm::Error error = dump(flags, 5, "kernels.ptx", *text))
    return std::move(error);
  if (llvm::Error error = writeFingerprint(flags, *text))
    return std::move(error);
  return text;
}

static ptx::Options readPTXOptions(const Flags &flags) {
  ptx::Options options;
  options.allowSpills = flags.allowSpills || flags.compile.get().lanesArrive;
  options.sharesKernels = flags.shareKernels;
  options.generates = !flags.noCode;
  return options;
}

static void warnOfSpills(const Flags &flags,
                         llvm::ArrayRef<ptx::KernelUsage> usage) {
  if (std::string spills = ptx::describeSpills(usage);
      flags.allowSpills && !spills.empty())
    llvm::WithColor::warning(llvm::errs(), toolName)
        << "expected no stack and no spills, got" << spills << '\n';
}

static llvm::Expected<std::string> makeCubin(const Flags &flags,
                                             ModuleOp module) {
  llvm::Expected<std::string> text = makePTX(flags, module);
  if (!text)
    return text;
  ptx::Options options = readPTXOptions(flags);
  Progress progress(toolName, "ptxas");
  llvm::Expected<ptx::Assembled> assembled = ptx::assemble(*text, options);
  if (!assembled)
    return assembled.takeError();
  warnOfSpills(flags, assembled->kernels);
  if (llvm::Error error = dump(flags, 6, "kernels.cubin", assembled->cubin))
    return std::move(error);
  return std::move(assembled->cubin);
}

/// Writes what a function made.
static llvm::Error writeMade(llvm::Expected<std::string> made,
                             llvm::raw_ostream &stream) {
  if (!made)
    return made.takeError();
  stream << *made;
  return llvm::Error::success();
}

static llvm::Error writePTX(const Flags &flags, ModuleOp module,
                            llvm::StringRef, llvm::raw_pwrite_stream &stream) {
  return writeMade(makePTX(flags, module), stream);
}

static llvm::Error writeCubin(const Flags &flags, ModuleOp module,
                              llvm::StringRef,
                              llvm::raw_pwrite_stream &stream) {
  return writeMade(makeCubin(flags, module), stream);
}

/// The code of an object: an image for each kernel, or one of all if the user
/// brings the PTX or wants to see it.
static llvm::Expected<std::vector<host::Image>>
makeObjectImages(const Flags &flags, ModuleOp module) {
  if (flags.ptx.empty() && flags.dumpDir.empty()) {
    Progress progress(toolName, "ptxas");
    llvm::Expected<Images> made = makeImages(module, readPTXOptions(flags));
    if (!made)
      return made.takeError();
    warnOfSpills(flags, made->usage);
    if (llvm::Error error = writeFingerprint(flags, made->ptx, made->hashes))
      return std::move(error);
    return std::move(made->images);
  }
  llvm::Expected<std::string> cubin = makeCubin(flags, module);
  if (!cubin)
    return cubin.takeError();
  host::Image image = {std::move(*cubin), {}};
  for (auto kernel : module.getOps<LLVM::LLVMFuncOp>())
    image.kernels.push_back(
        {kernel.getSymName().str(), kernel.getSymName().str()});
  return std::vector<host::Image>{std::move(image)};
}

/// The object, and its header beside it.
static llvm::Error writeHostObject(const Flags &flags, ModuleOp module,
                                   llvm::StringRef path,
                                   llvm::raw_pwrite_stream &stream) {
  std::string header;
  llvm::raw_string_ostream text(header);
  // Before ptxas: what it refuses, it refuses at once.
  if (llvm::Error error =
          host::emitHeader(module, llvm::sys::path::stem(path), text))
    return error;
  auto images = makeObjectImages(flags, module);
  if (!images)
    return images.takeError();
  if (llvm::Error error = host::emitObject(module, *images, stream))
    return error;
  // There is no place beside these.
  if (path == "-" || path == "/dev/null")
    return llvm::Error::success();
  llvm::SmallString<128> headerPath(path);
  llvm::sys::path::replace_extension(headerPath, "h");
  return writeFile(headerPath, header);
}

static const Output gpuOutputs[] = {{"stages", Level::Stages, nullptr, ""},
                                    {"tile", Level::Tile, nullptr, ""},
                                    {"warp", Level::Warp, nullptr, ""},
                                    {"nvvm", Level::NVVM, nullptr, ""},
                                    {"ptx", Level::NVVM, writePTX, ""},
                                    {"cubin", Level::NVVM, writeCubin, "cubin"},
                                    {"obj", Level::NVVM, writeHostObject, "o"}};

llvm::ArrayRef<Output> mlir::gdn::tools::getGPUOutputs() { return gpuOutputs; }
