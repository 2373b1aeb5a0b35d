//===- Sizes.h - Sizes of the inputs of ops ---------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_TOOLS_SIZES_H
#define GDN_LIB_TOOLS_SIZES_H

#include "gdn/Dialect/GDN/IR/GDN.h"
#include "gdn/Tools/Error.h"
#include "gdn/Tools/HostArray.h"
#include "mlir/IR/Operation.h"
#include <map>
#include <optional>
#include <string>

namespace mlir::gdn::tools {

/// The sizes of all ops by name, and who said so.
class Sizes {
public:
  llvm::Error set(Operation *op, llvm::StringRef name, int64_t size,
                  const std::string &source) {
    if (name == "N+1") {
      if (size < 1)
        return fail("expected cu_seqlens of at least one entry, got {0} from "
                    "{1}",
                    size, source);
      return set(op, "N", size - 1, source);
    }
    auto [entry, isNew] = known.try_emplace({op, name.str()}, size, source);
    if (isNew || entry->second.first == size)
      return llvm::Error::success();
    return fail("expected {0} = {1} as {2} has it, got {3} from {4}", name,
                entry->second.first, entry->second.second, size, source);
  }

  std::optional<int64_t> get(Operation *op, llvm::StringRef name) const {
    if (name == "N+1") {
      std::optional<int64_t> n = get(op, "N");
      return n ? std::optional<int64_t>(*n + 1) : n;
    }
    auto entry = known.find({op, name.str()});
    if (entry == known.end())
      return std::nullopt;
    return entry->second.first;
  }

private:
  std::map<std::pair<Operation *, std::string>, std::pair<int64_t, std::string>>
      known;
};

/// The rules between dimensions that dynamic types leave to the run. `op` may
/// be null.
llvm::Error checkSizes(DeltaRuleOpInterface op, const Sizes &sizes);

/// Checks boundaries of `tokens` tokens, which argument `index` is.
llvm::Error checkBoundaries(unsigned index, const HostArray &cu,
                            int64_t tokens);

} // namespace mlir::gdn::tools

#endif // GDN_LIB_TOOLS_SIZES_H
