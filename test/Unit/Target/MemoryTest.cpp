//===- MemoryTest.cpp - Memory of programs and of their arrays ------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SectionMemory.h"

#include "gdn/Target/CPU.h"

#include "llvm/Support/Memory.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <memory>

using namespace mlir::gdn::cpu;
using llvm::sys::Memory;
using llvm::sys::MemoryBlock;
using Purpose = llvm::SectionMemoryManager::AllocationPurpose;

static MemoryBlock allocate(SectionMemory &memory, size_t bytes,
                            std::error_code &error) {
  return memory.allocateMappedMemory(Purpose::RWData, bytes, nullptr,
                                     Memory::MF_READ | Memory::MF_WRITE, error);
}

TEST(SectionMemory, KeepsSectionsWithinReachOfEachOther) {
  SectionMemory memory;
  std::error_code error;
  MemoryBlock first = allocate(memory, 100, error);
  ASSERT_FALSE(error);
  MemoryBlock second = allocate(memory, 1 << 20, error);
  ASSERT_FALSE(error);
  auto *begin = static_cast<char *>(first.base());
  auto *end = static_cast<char *>(second.base()) + second.allocatedSize();
  EXPECT_GE(static_cast<char *>(second.base()), begin + first.allocatedSize());
  EXPECT_LT(end - begin, int64_t(1) << 31);
  std::memset(begin, 1, first.allocatedSize());
  std::memset(second.base(), 2, second.allocatedSize());
  EXPECT_EQ(begin[99], 1);
}

TEST(SectionMemory, SaysWhenThereIsNoMore) {
  SectionMemory memory;
  std::error_code error;
  EXPECT_FALSE(allocate(memory, size_t(1) << 40, error).base());
  EXPECT_EQ(error, std::errc::not_enough_memory);
}

TEST(Array, EndsTheProcessIfThereIsNone) {
  EXPECT_EXIT(allocateArray(size_t(1) << 60), ::testing::ExitedWithCode(1),
              "error: expected memory for an array of 1152921504606846976 "
              "bytes, got none");
  // A negative number of bytes, which large pages round up to 0.
  EXPECT_EXIT(allocateArray(size_t(0) - 1), ::testing::ExitedWithCode(1),
              "error: expected memory for an array of 18446744073709551615 "
              "bytes, got none");
}

TEST(Array, BeginsWithALargePageIfItIsLarge) {
  for (size_t bytes : {size_t(1), size_t(2) << 20, (size_t(5) << 20) + 3}) {
    std::unique_ptr<char, decltype(&std::free)> array(
        static_cast<char *>(allocateArray(bytes)), &std::free);
    ASSERT_TRUE(array);
    array.get()[bytes - 1] = 1;
    if (bytes >= size_t(2) << 20)
      EXPECT_EQ(reinterpret_cast<uintptr_t>(array.get()) % (2 << 20), 0u);
  }
}
