//===- Conversions.h - Arrays that a function does not take -----*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A function may want an array of the call in other strides, another type, with
// more channels or in another domain, or one that the call does not have. What
// differs between the call's array and the function's argument says what is to
// be done: nothing else is kept of it.
//
//===----------------------------------------------------------------------===//

#ifndef GDN_LIB_CALLS_CONVERSIONS_H
#define GDN_LIB_CALLS_CONVERSIONS_H

#include "Arguments.h"

#include <array>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace gdn::calls {

/// The kinds of conversions that have no domain of gates or beta in their name.
inline constexpr std::string_view kCopy = "copy", kTranspose = "transpose",
                                  kCast = "cast", kFill = "fill";

/// One launch in front of a call's function, or behind it.
struct Conversion {
  /// As the table names it.
  std::string kind;
  /// What is read and what is written, as [B, T, H, C]. Nothing is read by a
  /// fill.
  View source, target;
  /// What elements are multiplied by, or the number of a fill.
  double factor = 1;
  /// The parameters of a raw gate.
  View aLog, dtBias;
  /// The arrays, as functions call them; copies of several may be one.
  std::vector<const char *> names;
  /// Whether it brings an output to the call's array.
  bool isBehind = false;

  bool isCopy() const { return kind == kCopy || kind == kTranspose; }
  /// Bytes that are read and written.
  double getBytes() const;
};

/// The kind of the conversion of an array from a call's domain to a function's:
/// "linear_to_log"; a cast if they are one.
std::string kindOf(std::string_view from, std::string_view to);

/// What an absent array holds, in the domain of the function; nothing if
/// nothing does.
std::optional<double> neutralOf(std::string_view array,
                                std::string_view domain);

/// The conversion of a table; null if it has none.
const GdnConversionDesc *findConversion(const GdnCallTable &table,
                                        std::string_view kind, int32_t from,
                                        int32_t to);

/// What the outputs of a function with so many key channels are multiplied by
/// to have the call's scale.
double factorOf(const Call &call, int64_t keyChannels);

/// Finds the arguments of a plan's function that are converted.
void placeConversions(const Call &call, GdnCallPlan &plan);

/// Whether a table has what brings a call to the functions of an entry. Copies
/// are not looked at.
bool isReachable(const GdnCallTable &table, const Call &call,
                 const GdnEntryDesc &entry);

/// The conversions of a call. Most calls have none.
class Conversions {
public:
  /// Plans what `plan` says is converted, and gives these arguments the types,
  /// extents and strides of what is converted. Their addresses are of no memory
  /// until `place`.
  void plan(Arguments &arguments, const Call &call, const GdnCallPlan &plan);

  /// Whether a call has none, and no memory of its own.
  bool isEmpty() const { return conversions.empty() && memories.empty(); }
  const std::list<Conversion> &get() const { return conversions; }
  /// Of the workspace.
  uint64_t getBytes() const { return bytes; }

  /// Says where the workspace is.
  void place(void *workspace);
  /// Loads the functions of the conversions.
  void prepare(const GdnCallTable &table, int32_t device) const;
  /// Launches those in front of the function on `stream`, or those behind it.
  void launch(const GdnCallTable &table, const Call &call, bool isBehind,
              void *stream) const;
  /// What the cost model predicts for a conversion.
  static double predictSeconds(const Conversion &conversion,
                               const cost::Chip &chip);

private:
  struct Memory {
    uint64_t offset, bytes;
  };
  /// A view into memory of the workspace.
  struct Use {
    View *view;
    size_t memory;
    uint64_t offset;
  };

  /// An argument that a copy makes: where it begins in rows of channels.
  struct Part {
    View *argument;
    size_t number;
    Conversion *copy;
    uint64_t offset;
  };

  void planInput(Arguments &arguments, const Call &call,
                 const GdnCallPlan &plan, size_t number, int32_t place);
  void planOutput(Arguments &arguments, const Call &call,
                  const GdnCallPlan &plan, size_t number, int32_t place);
  void copy(View &view, size_t number);
  bool append(const View &source, size_t number, Part &part);
  void layOutCopies();
  void fill(Arguments &arguments, const Call &call, const GdnCallPlan &plan,
            size_t number, int32_t place);
  Conversion &add(std::string kind, size_t number);
  /// Lays `rows`, which is [B, T, H, C], out in new memory, and returns that.
  size_t layOut(View &rows);
  void addParameters(const Call &call, Conversion &conversion);
  size_t allocate(uint64_t size);

  std::list<Conversion> conversions;
  std::vector<Part> parts;
  std::vector<Memory> memories;
  std::vector<Use> uses;
  uint64_t bytes = 0;
};

/// The names of a conversion's arrays, each between quotes.
std::string listNames(const Call &call, const Conversion &conversion,
                      const char *quote);

/// What was chosen for a call, and what is predicted of it, as JSON.
std::string describeChoice(const Call &call, const Choice &chosen,
                           const Conversions &conversions,
                           uint64_t workspaceBytes);

/// Copies and the other conversions of a call as JSON: what they do, bytes and
/// seconds.
std::string copiesToJson(const Conversions &conversions, const Call &call,
                         const cost::Chip &chip);
std::string conversionsToJson(const Conversions &conversions, const Call &call,
                              const GdnCallPlan &plan, const cost::Chip &chip);

} // namespace gdn::calls

#endif // GDN_LIB_CALLS_CONVERSIONS_H
