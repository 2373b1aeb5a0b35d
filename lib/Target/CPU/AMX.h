//===- AMX.h - Leave to use the tile registers ------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Linux saves the tile registers, 8 KiB a thread, only for processes that ask
// for them (Documentation/arch/x86/xstate.rst). Whoever uses them without
// having asked is killed.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TARGET_CPU_AMX_H
#define GDN_LIB_TARGET_CPU_AMX_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::gdn::cpu {

/// Asks for the tile registers on behalf of this process. Returns whether it
/// may use them.
bool requestAMX();

/// Lets a module that uses the tile registers ask for them when it is loaded.
void addAMXRequest(llvm::Module &module);

} // namespace mlir::gdn::cpu

#endif // GDN_LIB_TARGET_CPU_AMX_H
