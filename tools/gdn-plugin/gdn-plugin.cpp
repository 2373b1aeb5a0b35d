//===- gdn-plugin.cpp - The dialects and passes as a plugin of mlir-opt ---===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/InitAll.h"
#include "gdn/Version.h"

#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

/// What `--load-dialect-plugin` asks for.
extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gdn", GDN_VERSION_STRING,
          [](mlir::DialectRegistry *registry) {
            // A tool that has these dialects already, as gdn-opt: its own copy
            // of them is another one to MLIR.
            if (!registry->getDialectAllocator("gdn"))
              mlir::gdn::registerDialects(*registry);
          }};
}

/// What `--load-pass-plugin` asks for.
extern "C" LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "gdn", GDN_VERSION_STRING,
          [] { mlir::gdn::registerPasses(); }};
}
