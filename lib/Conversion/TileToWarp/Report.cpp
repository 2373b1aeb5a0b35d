//===- Report.cpp - What the passes decided, for who asks -----------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Debug.h"

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::warp;
using remark::metric;

remark::detail::InFlightRemark gdn::analyse(SymbolOpInterface op,
                                            StringRef pass, StringRef part) {
  return remark::analysis(
      op.getLoc(),
      remark::RemarkOpts::name(part).category(pass).function(op.getName()));
}

//===----------------------------------------------------------------------===//
// gdn-warp-partition
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kPartitionPass = "gdn-warp-partition";

static std::string join(const Partition &partition,
                        const SetVector<unsigned> &roles) {
  auto names = llvm::map_range(roles, [&](unsigned role) -> StringRef {
    return partition.getRole(role).getName();
  });
  return llvm::join(names, " ");
}

/// Each op with its role, each value that crosses with its way.
[[maybe_unused]] static void dump(const Partition &partition, raw_ostream &os) {
  os << "@" << tile::ProgramOp(partition.program).getSymName() << "\n";
  for (auto &[op, role] : partition.roles)
    os << "  role " << partition.getRole(role).getName() << ": "
       << op->getName() << " at " << op->getLoc() << "\n";
  for (auto &[value, takers] : partition.crossing) {
    os << "  crosses to " << join(partition, takers) << ": " << value << "\n";
    for (const Field &field : partition.fields.lookup(value))
      os << "    in field " << field.index << " of channel "
         << partition.channels[field.channel].name << ", for "
         << join(partition, field.takers) << "\n";
  }
}

void gdn::reportPartition(const Partition &partition) {
  DEBUG_WITH_TYPE(kPartitionPass.data(), dump(partition, llvm::dbgs()));
  tile::ProgramOp program = partition.program;
  analyse(program, kPartitionPass, "Kernel")
      << metric("ValuesThatCross", partition.crossing.size())
      << metric("Channels", partition.channels.size());
  for (unsigned role = 0; role < partition.countRoles(); ++role) {
    int64_t ops = llvm::count_if(
        partition.roles, [&](auto &entry) { return entry.second == role; });
    analyse(program, kPartitionPass, "Role")
        << metric("Role", partition.getRole(role).getName())
        << metric("Ops", ops);
  }
  for (auto [number, channel] : llvm::enumerate(partition.channels)) {
    SetVector<unsigned> fillers, takers;
    fillers.insert_range(partition.getFillers(number));
    for (unsigned role = 0; role < partition.countRoles(); ++role)
      if (partition.takes(role, number))
        takers.insert(role);
    analyse(program, kPartitionPass, "Channel")
        << metric("Channel", channel.name)
        << metric("Fields", channel.fields.size())
        << metric("FilledBy", join(partition, fillers))
        << metric("TakenBy", join(partition, takers));
  }
}

//===----------------------------------------------------------------------===//
// gdn-warp-infer-layouts
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kLayoutsPass = "gdn-warp-infer-layouts";

/// Each channel with its views, each tile with its encoding.
[[maybe_unused]] static void dump(KernelOp kernel, raw_ostream &os) {
  os << "@" << kernel.getSymName() << "\n";
  for (auto channel : kernel.getBody().getOps<ChannelOp>())
    os << "  channel " << channel.getName() << ": " << channel.getType()
       << "\n";
  for (auto role : kernel.getBody().getOps<RoleOp>())
    role.walk([&](Operation *op) {
      for (Type type : op->getResultTypes())
        if (isa<RankedTensorType>(type))
          os << "  role " << role.getName() << ": " << op->getName()
             << " makes " << type << "\n";
    });
}

LayoutCounts gdn::reportLayouts(KernelOp kernel) {
  DEBUG_WITH_TYPE(kLayoutsPass.data(), dump(kernel, llvm::dbgs()));
  LayoutCounts sums;
  for (auto role : kernel.getBody().getOps<RoleOp>()) {
    LayoutCounts own;
    role.walk([&](Operation *op) {
      for (Type type : op->getResultTypes()) {
        own.fragments += isEncoded<FragmentAttr>(type);
        own.vectors += isEncoded<LanesAttr>(type) ||
                       isEncoded<RowsAttr>(type) ||
                       isEncoded<ColumnsAttr>(type);
      }
    });
    analyse(kernel, kLayoutsPass, "Role")
        << metric("Role", role.getName()) << metric("Fragments", own.fragments)
        << metric("Vectors", own.vectors);
    sums.fragments += own.fragments;
    sums.vectors += own.vectors;
  }
  return sums;
}
