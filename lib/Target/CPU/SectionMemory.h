//===- SectionMemory.h - Where the sections of a program lie ----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TARGET_CPU_SECTIONMEMORY_H
#define GDN_LIB_TARGET_CPU_SECTIONMEMORY_H

#include "llvm/ExecutionEngine/SectionMemoryManager.h"

namespace mlir::gdn::cpu {

/// All sections of a program in one reservation. The code reaches its constants
/// and its table of functions by offsets of 32 bits, and the linker does not
/// check them. Left to itself the system may put two sections on either side of
/// something of more than 2 GiB, such as a large input.
class SectionMemory : public llvm::SectionMemoryManager::MemoryMapper {
public:
  llvm::sys::MemoryBlock
  allocateMappedMemory(llvm::SectionMemoryManager::AllocationPurpose purpose,
                       size_t bytes, const llvm::sys::MemoryBlock *near,
                       unsigned flags, std::error_code &error) override;
  std::error_code protectMappedMemory(const llvm::sys::MemoryBlock &block,
                                      unsigned flags) override;
  std::error_code releaseMappedMemory(llvm::sys::MemoryBlock &block) override;

private:
  llvm::sys::OwningMemoryBlock reservation;
  size_t used = 0;
};

} // namespace mlir::gdn::cpu

#endif // GDN_LIB_TARGET_CPU_SECTIONMEMORY_H
