//===- Call.cpp - A call as this library reads it -------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <new>

using namespace gdn::calls;

namespace {
/// A refusal, which is thrown; the message has been set.
struct Refused {
  GdnRuntimeStatus status;
};
} // namespace

void gdn::calls::require(GdnRuntimeStatus status) {
  if (status != GDN_SUCCESS)
    throw Refused{status};
}

GdnRuntimeStatus gdn::calls::runGuarded(void (*body)(void *), void *data) {
  try {
    body(data);
    return GDN_SUCCESS;
  } catch (const Refused &refused) {
    return refused.status;
  } catch (const std::bad_alloc &) {
    return gdnSetLastErrorMessage(
        GDN_ERROR_OUT_OF_MEMORY,
        "expected memory for a call's workspace, got none");
  }
}

void gdn::calls::refuse(GdnRuntimeStatus status, const std::string &message) {
  throw Refused{gdnSetLastErrorMessage(status, message.c_str())};
}

void Call::refuse(std::string_view name, const std::string &rule,
                  const std::string &got, GdnRuntimeStatus status) const {
  calls::refuse(status, say(name) + ": expected " + rule + ", got " + got);
}

std::string gdn::calls::typeName(int32_t dtype) {
  switch (dtype) {
  case GDN_DTYPE_BF16:
    return "bfloat16";
  case GDN_DTYPE_F16:
    return "float16";
  case GDN_DTYPE_F32:
    return "float32";
  case GDN_DTYPE_I32:
    return "int32";
  case GDN_DTYPE_I64:
    return "int64";
  case GDN_DTYPE_U8:
    return "bool";
  case 0:
    return "None";
  default:
    break;
  }
  // DLPack's kinds of types.
  constexpr const char *kinds[] = {"int",    "uint",    "float", "opaque",
                                   "bfloat", "complex", "bool"};
  size_t code = -dtype >> 8;
  if (dtype > 0 || code >= std::size(kinds))
    return "a type without a name here";
  std::string kind = kinds[code];
  if (kind == "opaque")
    return "an opaque type";
  return kind == "bool" ? kind : kind + std::to_string(-dtype & 0xff);
}

std::string_view gdn::calls::findFact(const GdnFact *facts, int32_t count,
                                      std::string_view name,
                                      std::string_view none) {
  const GdnFact *end = facts + count;
  const GdnFact *found = std::find_if(facts, end, [&](const GdnFact &fact) {
    return isCalled(fact.name, name);
  });
  return found == end ? none : found->value;
}

int32_t Call::indexOf(std::string_view name) const {
  for (int32_t i = 0; i < given.num_arrays; ++i)
    if (isCalled(given.arrays[i].name, name))
      return i;
  return -1;
}

int32_t Call::typeOf(std::string_view name) const {
  const GdnTensor *tensor = find(name);
  return tensor ? tensor->dtype : 0;
}

std::string Call::say(std::string_view name) const {
  return std::string(findFact(given.words, given.num_words, name, name));
}

std::string Call::sayFact(std::string_view name, std::string_view value) const {
  std::string fact = std::string(name) + "=" + std::string(value);
  return std::string(findFact(given.words, given.num_words, fact, value));
}

bool Call::isByToken() const { return op == kTokenOp; }

bool Call::hasUsualScale() const {
  constexpr double kTolerance = 1e-6;
  double factor = given.scale * std::sqrt(static_cast<double>(keyChannels));
  return given.scale == 0 || std::abs(factor - 1) <= kTolerance;
}

int64_t Call::savedTokens() const {
  std::string_view text = fact("state_interval");
  int64_t tokens = 0;
  std::from_chars(text.data(), text.data() + text.size(), tokens);
  return tokens;
}

void Call::read() {
  if (given.struct_size != sizeof(GdnCall))
    calls::refuse(GDN_ERROR_VERSION,
                  "expected a call of " + std::to_string(sizeof(GdnCall)) +
                      " bytes, got " + std::to_string(given.struct_size));
  auto extentOf = [&](const char *name, int32_t dim) {
    const GdnTensor *tensor = find(name);
    return tensor && dim < tensor->rank ? tensor->shape[dim] : 0;
  };
  batches = extentOf("q", 0);
  tokens = extentOf("q", 1);
  keyHeads = extentOf("q", 2);
  keyChannels = extentOf("q", 3);
  heads = extentOf("v", 2);
  valueChannels = extentOf("v", 3);
  sequences = isPacked() ? extentOf("cu_seqlens", 0) - 1 : batches;
}

bool Call::asksForSegments() const {
  return isFixed() ? given.split_value > 0
                   : given.split == GDN_SPLIT_SEGMENTS && given.split_value > 1;
}

gdn::cost::SplitRequest Call::splitRequest() const {
  using Kind = cost::SplitRequest::Kind;
  constexpr Kind kinds[] = {Kind::Model, Kind::Never, Kind::Segments,
                            Kind::Length};
  cost::SplitRequest request;
  request.kind =
      kinds[std::clamp<int32_t>(given.split, 0, std::size(kinds) - 1)];
  if (isFixed() && !asksForSegments())
    request.kind = Kind::Never;
  request.value = given.split_value;
  request.decays = !given.is_undecayed;
  return request;
}
