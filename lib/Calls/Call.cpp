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

using namespace gdn::calls;

GdnRuntimeStatus gdn::calls::fail(GdnRuntimeStatus status,
                                  const std::string &message) {
  return gdnSetLastErrorMessage(status, message.c_str());
}

const char *gdn::calls::typeName(int32_t dtype) {
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
  case 0:
    return "None";
  default:
    return "another type";
  }
}

int64_t gdn::calls::sizeOf(int32_t dtype) {
  switch (dtype) {
  case GDN_DTYPE_BF16:
  case GDN_DTYPE_F16:
    return 2;
  case GDN_DTYPE_F32:
  case GDN_DTYPE_I32:
    return 4;
  case GDN_DTYPE_I64:
    return 8;
  default:
    return 0;
  }
}

std::string_view gdn::calls::findFact(const GdnFact *facts, int32_t count,
                                      std::string_view name,
                                      std::string_view none) {
  const GdnFact *end = facts + count;
  const GdnFact *found = std::find_if(
      facts, end, [&](const GdnFact &fact) { return fact.name == name; });
  return found == end ? none : found->value;
}

const GdnTensor *Call::find(std::string_view name) const {
  for (int32_t i = 0; i < given.num_arrays; ++i)
    if (given.arrays[i].name == name)
      return given.arrays[i].tensor;
  return nullptr;
}

int32_t Call::typeOf(std::string_view name) const {
  const GdnTensor *tensor = find(name);
  return tensor ? tensor->dtype : 0;
}

std::string Call::say(std::string_view name) const {
  return std::string(findFact(given.words, given.num_words, name, name));
}

bool Call::isByToken() const { return fact("op") == kTokenOp; }

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

GdnRuntimeStatus Call::read() {
  constexpr int32_t kRank = 4;
  if (given.struct_size != sizeof(GdnCall))
    return fail(GDN_ERROR_VERSION,
                "expected a call of " + std::to_string(sizeof(GdnCall)) +
                    " bytes, got " + std::to_string(given.struct_size));
  for (const char *name : {"q", "k", "v"}) {
    const GdnTensor *tensor = find(name);
    if (!tensor || tensor->rank != kRank)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected " + say(name) + " of 4 dimensions, got " +
                      (tensor ? std::to_string(tensor->rank) : "none"));
  }
  const int64_t *q = find("q")->shape, *v = find("v")->shape;
  batches = q[0];
  tokens = q[1];
  keyHeads = q[2];
  keyChannels = q[3];
  heads = v[2];
  valueChannels = v[3];
  sequences = batches;
  if (const GdnTensor *boundaries = find("cu_seqlens"))
    sequences = boundaries->shape[0] - 1;
  return GDN_SUCCESS;
}

gdn::cost::SplitRequest Call::splitRequest() const {
  using Kind = cost::SplitRequest::Kind;
  constexpr Kind kinds[] = {Kind::Model, Kind::Never, Kind::Segments,
                            Kind::Length};
  cost::SplitRequest request;
  request.kind =
      kinds[std::clamp<int32_t>(given.split, 0, std::size(kinds) - 1)];
  request.value = given.split_value;
  request.decays = !given.is_undecayed;
  return request;
}
