//===- Workspace.cpp - Memory between the kernels of a call ---------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workspace.h"

#include "gdn-c/Runtime.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

using namespace gdn::hopper;
using gdn::cpu::Error;

namespace {
/// The memory of a device's stream, as far as it was ever asked for.
struct Piece {
  std::mutex inUse;
  void *data = nullptr;
  uint64_t bytes = 0;
};

/// Pieces that the calling thread has.
thread_local int numHeld = 0;

/// A piece that one call has.
class OwnWorkspace : public Workspace {
public:
  explicit OwnWorkspace(Piece &piece) : lock(piece.inUse) { ++numHeld; }
  ~OwnWorkspace() override { --numHeld; }

private:
  std::unique_lock<std::mutex> lock;
};
} // namespace

/// A call may ask again while it has a piece, for copies of its inputs: it gets
/// the stream's next one.
static Piece &pieceOf(int32_t device, void *stream) {
  static std::mutex guard;
  // Pieces keep their place. They are never given back: when a process ends,
  // the driver may be gone before this.
  static auto &pieces = *new std::map<std::tuple<int32_t, void *, int>, Piece>;
  std::lock_guard<std::mutex> lock(guard);
  return pieces[{device, stream, numHeld}];
}

Error gdn::hopper::allocateOwn(int32_t device, void *stream, uint64_t bytes,
                               std::unique_ptr<Workspace> &workspace) {
  Piece &piece = pieceOf(device, stream);
  auto own = std::make_unique<OwnWorkspace>(piece);
  if (piece.bytes < bytes) {
    // Twice as much as before, so that all pieces of a stream together stay
    // below twice the last one.
    uint64_t wanted = std::max(bytes, 2 * piece.bytes);
    void *memory = nullptr;
    if (gdnMemoryAllocate(device, wanted, &memory) != GDN_SUCCESS)
      return {"MemoryError", "gdn: expected " + std::to_string(wanted) +
                                 " bytes of workspace on " +
                                 cpu::nameOf({cpu::Device::CUDA, device}) +
                                 ", got: " + gdnGetLastErrorMessage()};
    piece.data = memory;
    piece.bytes = wanted;
  }
  own->data = piece.data;
  workspace = std::move(own);
  return {};
}
