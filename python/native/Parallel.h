//===- Parallel.h - Items on several threads --------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_PARALLEL_H
#define GDN_PYTHON_NATIVE_PARALLEL_H

#include <cstdint>
#include <functional>

namespace gdn::cpu {

/// Runs `work(take)` on up to `threads` threads, this one among them. Each call
/// of `take` gives the next item, or `count` when none is left. Threads live as
/// long as the call: nothing is left behind that a fork, or another library's
/// threads, could trip over. If no further thread can be had, those that exist
/// do the work.
void forEachItem(
    int64_t count, int threads,
    const std::function<void(const std::function<int64_t()> &)> &work);

} // namespace gdn::cpu

#endif // GDN_PYTHON_NATIVE_PARALLEL_H
