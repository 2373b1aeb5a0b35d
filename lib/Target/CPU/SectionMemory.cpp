//===- SectionMemory.cpp - Where the sections of a program lie ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SectionMemory.h"

#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Process.h"

using namespace mlir::gdn::cpu;
using llvm::sys::Memory;
using llvm::sys::MemoryBlock;

/// Addresses, not memory: pages come as they are written. A program of one
/// layer has less than 1 MiB.
static constexpr size_t kReservedBytes = size_t(256) << 20;

MemoryBlock SectionMemory::allocateMappedMemory(
    llvm::SectionMemoryManager::AllocationPurpose, size_t bytes,
    const MemoryBlock *, unsigned flags, std::error_code &error) {
  if (!reservation.base())
    reservation = llvm::sys::OwningMemoryBlock(Memory::allocateMappedMemory(
        kReservedBytes, nullptr, Memory::MF_READ | Memory::MF_WRITE, error));
  if (!reservation.base())
    return {};
  size_t size = llvm::alignTo(bytes, llvm::sys::Process::getPageSizeEstimate());
  if (size > kReservedBytes - used) {
    error = std::make_error_code(std::errc::not_enough_memory);
    return {};
  }
  MemoryBlock block(static_cast<char *>(reservation.base()) + used, size);
  used += size;
  error = Memory::protectMappedMemory(block, flags);
  return block;
}

std::error_code SectionMemory::protectMappedMemory(const MemoryBlock &block,
                                                   unsigned flags) {
  return Memory::protectMappedMemory(block, flags);
}

std::error_code SectionMemory::releaseMappedMemory(MemoryBlock &) {
  return {}; // All goes with the reservation.
}
