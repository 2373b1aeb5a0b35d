//===- Images.cpp - The kernels of a module as images ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/Images.h"

using namespace mlir::gdn;
using namespace mlir::gdn::tools;

llvm::Expected<Images> tools::makeImages(ModuleOp module,
                                         const ptx::Options &options) {
  auto codes = ptx::emitKernels(module, options);
  if (!codes)
    return codes.takeError();
  Images images;
  for (ptx::KernelCode &code : *codes) {
    images.ptx += code.ptx;
    images.hashes += code.hash;
    auto known = llvm::find_if(images.images, [&](const host::Image &image) {
      return image.kernels.front().second == code.symbol;
    });
    if (known != images.images.end()) {
      known->kernels.push_back({code.kernel, code.symbol});
      continue;
    }
    if (!options.generates) {
      images.images.push_back({code.ptx, {{code.kernel, code.symbol}}});
      continue;
    }
    llvm::Expected<ptx::Assembled> assembled = ptx::assemble(code.ptx, options);
    if (!assembled)
      return assembled.takeError();
    images.images.push_back(
        {std::move(assembled->cubin), {{code.kernel, code.symbol}}});
    llvm::append_range(images.usage, assembled->kernels);
  }
  return std::move(images);
}
