//===- DescribeConversions.cpp - Conversions as JSON ----------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Conversions.h"

#include "Signature.h"

#include <cmath>
#include <cstdio>

using namespace gdn::calls;
namespace cost = gdn::cost;

std::string gdn::calls::listNames(const Call &call,
                                  const Conversion &conversion,
                                  const char *quote) {
  std::string names;
  for (const char *name : conversion.names)
    names += (names.empty() ? "" : ", ") + (quote + call.say(name)) + quote;
  return names;
}

static std::string formatSeconds(double bytes, double seconds) {
  char text[96];
  std::snprintf(text, sizeof(text), "\"bytes\": %.0f, \"seconds\": %.9g}",
                bytes, seconds);
  return text;
}

std::string gdn::calls::copiesToJson(const Conversions &conversions,
                                     const Call &call, const cost::Chip &chip) {
  std::string text;
  for (const Conversion &copy : conversions.get()) {
    if (!copy.isCopy())
      continue;
    text +=
        (text.empty() ? "{\"inputs\": [" : ", {\"inputs\": [") +
        listNames(call, copy, "\"") +
        "], \"transposed\": " + (copy.kind == kTranspose ? "true" : "false") +
        ", " +
        formatSeconds(copy.getBytes(), Conversions::predictSeconds(copy, chip));
  }
  return "[" + text + "]";
}

//===----------------------------------------------------------------------===//
// What conversions do, in words
//===----------------------------------------------------------------------===//

/// What a caller calls a domain, without quotes: "raw".
static std::string sayDomain(const Call &call, std::string_view fact,
                             std::string_view value) {
  std::string said = call.sayFact(fact, value);
  bool isQuoted = said.size() > 1 && said.front() == '\'';
  return isQuoted ? said.substr(1, said.size() - 2) : said;
}

/// " with zeros from K = 60, V = 60 to K = 128, V = 128".
static std::string sayZeros(const Call &call, const GdnFunctionDesc &function) {
  int64_t K = keyChannelsOf(function), V = valueChannelsOf(function);
  if (K == call.keyChannels && V == call.valueChannels)
    return {};
  char text[160];
  std::snprintf(text, sizeof(text),
                " with zeros from K = %lld, V = %lld to K = %lld, V = %lld",
                static_cast<long long>(call.keyChannels),
                static_cast<long long>(call.valueChannels),
                static_cast<long long>(K), static_cast<long long>(V));
  return text;
}

static std::string sayOutput(const Conversion &conversion) {
  if (conversion.factor == 1)
    return "outputs back";
  char text[96];
  bool isTight = conversion.source.tensor.dtype == GDN_DTYPE_F16 &&
                 std::abs(conversion.factor) < 1;
  std::snprintf(text, sizeof(text), "o times %.4g after the kernel%s",
                conversion.factor,
                isTight ? "; float16 must hold o with K^(-1/2)" : "");
  return text;
}

/// Inputs of the same row of words have one together.
static std::string sayInput(const Call &call, const GdnCallPlan &plan,
                            const Conversion &conversion) {
  std::string_view array = conversion.names.front();
  std::string name = call.say(array);
  const std::string to = typeName(conversion.target.tensor.dtype);
  if (conversion.kind == kFill)
    return name + (conversion.factor == 0 ? " of zeros" : " of ones");
  std::string zeros = sayZeros(call, *plan.variant->function);
  if (array == "initial_state")
    return name + zeros + " in " + to;
  if (array == "q" || array == "k" || array == "v") {
    std::string names =
        call.say("q") + ", " + call.say("k") + ", " + call.say("v");
    const std::string from = typeName(conversion.source.tensor.dtype);
    return names + (from == to ? "" : " from " + from + " to " + to) + zeros;
  }
  if (conversion.kind == kCast)
    return name + " to " + to;
  std::string fact = std::string(array) + "_domain";
  auto say = [&](std::string_view value) {
    return sayDomain(call, fact, value);
  };
  std::string_view own =
      findFact(plan.entry->facts, plan.entry->num_facts, fact);
  return name + " from " + say(call.fact(fact)) + " to " + say(own) +
         (array == "gate" ? " gates" : "");
}

std::string gdn::calls::conversionsToJson(const Conversions &conversions,
                                          const Call &call,
                                          const GdnCallPlan &plan,
                                          const cost::Chip &chip) {
  struct Row {
    std::string what;
    double bytes, seconds;
    int launches;
  };
  std::vector<Row> rows;
  for (const Conversion &one : conversions.get()) {
    if (one.isCopy())
      continue;
    std::string what =
        one.isBehind ? sayOutput(one) : sayInput(call, plan, one);
    if (rows.empty() || rows.back().what != what)
      rows.push_back({what, 0, 0, 0});
    rows.back().bytes += one.getBytes();
    rows.back().seconds += Conversions::predictSeconds(one, chip);
    ++rows.back().launches;
  }
  std::string text;
  for (const Row &row : rows)
    text += (text.empty() ? "{\"what\": \"" : ", {\"what\": \"") + row.what +
            "\", \"launches\": " + std::to_string(row.launches) + ", " +
            formatSeconds(row.bytes, row.seconds);
  return "[" + text + "]";
}
