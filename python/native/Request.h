//===- Request.h - A call's arguments ---------------------------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_PYTHON_NATIVE_REQUEST_H
#define GDN_PYTHON_NATIVE_REQUEST_H

#include "gdn-c/Calls.h"

#include <array>
#include <cstdint>
#include <string>

/// The numbers of the manifest (gdn/kernels.json), whose tables the build
/// writes as macros: a file defines those that it wants and includes
/// Manifest.inc.
namespace gdn::manifest {
#define GDN_NUMBER(name, value) inline constexpr int64_t name = value;
#include "Manifest.inc"
} // namespace gdn::manifest

namespace gdn::native {

/// Largest number of dimensions of an array.
inline constexpr int kMaxRank = 4;

/// A view of an array; absent if `rank` is negative.
struct Array {
  /// GDN_DTYPE_*.
  int32_t dtype = 0;
  int rank = -1;
  std::array<int64_t, kMaxRank> sizes{}, strides{};
  /// Null if only the description counts.
  void *data = nullptr;

  bool isPresent() const { return rank >= 0; }
  /// Gives it the strides of a dense array.
  void makeDense();
  /// Whether both are one view of the same memory.
  bool isSameView(const Array &other) const;
};

/// Where all arrays of a call lie, as DLPack names it.
struct Device {
  enum Type : int32_t { CPU = 1, CUDA = 2 };
  int32_t type = CPU;
  int32_t index = 0;

  bool operator==(const Device &) const = default;
};

/// What functions call a gate's domain, and the least logarithm that it makes,
/// or null.
struct GateFact {
  const char *fact, *lowerBound;
};

inline constexpr GateFact allGateDomains[] = {
#define GDN_GATE_DOMAIN(key, name, fact, bound) {fact, bound},
#include "Manifest.inc"
};
/// What functions call beta's domains.
inline constexpr const char *allBetaDomains[] = {
#define GDN_BETA_DOMAIN(key, name, fact) fact,
#include "Manifest.inc"
};

/// The options of a call as the package packs them into an integer
/// (_library.py): from the lowest bit on, a field each. The manifest says what
/// they mean.
struct Options {
#define GDN_OPTION(field, width) uint64_t field : width = 0;
#include "Manifest.inc"

  const GateFact &gateForm() const { return allGateDomains[gateDomain]; }
};

/// Where the arrays of a call are, in the package's order. In a backward the
/// outputs are the gradients of these.
struct At {
  enum : int {
#define GDN_ARRAY(field, ...) field,
#include "Manifest.inc"
    /// Behind them the gradients of the first ones, to be written by a
    /// backward,
    /// each with the shape of its input. On a CPU those that nobody wants are
    /// absent.
    gradients,
    /// What a forward on a GPU saves, as gdn.chunk_gated_delta_rule returns it
    /// with a `state_interval` of the `saved_tokens` of what gates decay
    /// (kernels.json).
    writes = gradients + manifest::Gradients,
    states,
    end
  };
};

/// What a call computes: outputs, these and what its gradients need, or
/// gradients.
enum class Kind : uint8_t { Forward, Saving, Backward };

/// The arguments of a call.
struct Request : Options {
  Kind kind = Kind::Forward;
  /// By their places.
  std::array<Array, At::end> arrays;
  Device device;
  /// Factor of the read-out; 0 stands for K^(-1/2).
  double scale = 0;
  /// Most threads to use, at least 1.
  int threads = 1;
  /// Tokens of the longest sequence if the caller knows them on the host, or 0.
  int64_t maxSeqlen = 0;

  Array &operator[](int place) { return arrays[place]; }
  const Array &operator[](int place) const { return arrays[place]; }
  bool isOnCPU() const { return device.type == Device::CPU; }
  /// Whether it keeps the states after every so many tokens.
  bool keepsEvery() const { return arrays[At::stepIntervals].isPresent(); }
  /// What messages call the array at a place; a gradient, what they call its
  /// input.
  const char *nameOf(int place) const;
};

/// Why a call is refused, which is thrown: the Python exception and its
/// message.
struct Error {
  const char *kind;
  std::string message;
};

/// Throws "<name>: expected <rule>, got <got>".
[[noreturn]] void fail(const std::string &name, const std::string &rule,
                       const std::string &got, const char *kind = "ValueError");

/// Says where a call keeps states that has them in its pool, after tokens in
/// place of a final state: rows [N, steps] may be those of the pool.
void settleSteps(Request &request);

/// "cpu", "cuda:0".
std::string nameOf(Device device);

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// What the build has compiled for all devices.
const GdnCallTable &allFunctions();

/// Runs a call, on a GPU on `stream` with memory of `allocate`, or of the
/// library's own without one (gdnCallRun). The first call of a function on a
/// device loads it there; later ones do not synchronise, and allocate nothing
/// but a workspace, if there are arrays between the kernels or conversions.
///
/// A forward that saves writes `writes` and `states`, too; there may be memory
/// for more states than it has. Gradients of tokens in no sequence are zeros.
/// With `savesStates` they are made of what was saved, and v is not read.
void run(const Request &request, void *stream, GdnAllocate allocate,
         void *user);

/// What a described call would run as JSON, where nobody has allocated
/// gradients and what is saved.
std::string describe(Request request);

/// Compares boundaries and rows of a pool, which may be absent, with the rules
/// of a call (gdnCallCheckValues).
void checkValues(const Array &boundaries, const Array &rows, int64_t tokens,
                 int64_t first, int64_t count);

/// Whether a step of training is predicted to take less time if its forward
/// saves states. Of the request only extents, options and the device are read.
bool predictSaving(const Request &request, bool hasSegments);

} // namespace gdn::native

#endif // GDN_PYTHON_NATIVE_REQUEST_H
