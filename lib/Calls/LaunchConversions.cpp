//===- LaunchConversions.cpp - Kinds of conversions, launches -------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice.h"
#include "Conversions.h"
#include "Signature.h"
#include "gdn/GateForms.h"

#include <algorithm>
#include <cmath>

using namespace gdn::calls;
namespace cost = gdn::cost;

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

std::string gdn::calls::kindOf(std::string_view from, std::string_view to) {
  return std::string(from == to ? kCast
                                : std::string(from) + "_to_" + std::string(to));
}

std::optional<double> gdn::calls::neutralOf(std::string_view array,
                                            std::string_view domain) {
  if (array == "gate")
    return gdn_gates::gateFormOf(domain).neutral;
  if (array == "beta")
    return domain == "value" ? std::optional(1.0) : std::nullopt;
  for (std::string_view isZero : {"a_log", "dt_bias", "d_o"})
    if (array == isZero)
      return 0.0;
  if (array.ends_with("_state"))
    return 0.0;
  return std::nullopt;
}

double gdn::calls::factorOf(const Call &call, int64_t keyChannels) {
  constexpr double kTolerance = 1e-6;
  // A call that is launched has not been read.
  double scale = call.get().scale != 0
                     ? call.get().scale
                     : 1 / std::sqrt(static_cast<double>(
                               call.find("q")->shape[kMaxRank - 1]));
  double factor = scale * std::sqrt(static_cast<double>(keyChannels));
  return std::abs(factor - 1) <= kTolerance ? 1 : factor;
}

const GdnConversionDesc *gdn::calls::findConversion(const GdnCallTable &table,
                                                    std::string_view kind,
                                                    int32_t from, int32_t to) {
  const GdnConversionDesc *end = table.conversions + table.num_conversions;
  const GdnConversionDesc *found =
      std::find_if(table.conversions, end, [&](const GdnConversionDesc &one) {
        return kind == one.kind && from == one.from && to == one.to;
      });
  return found == end ? nullptr : found;
}

/// The type by which the table knows elements that are copied as bits.
static int32_t bitsOf(int32_t dtype) {
  constexpr int64_t kShort = 2;
  return sizeOf(dtype) == kShort ? GDN_DTYPE_BF16 : GDN_DTYPE_F32;
}

static const GdnConversionDesc *findConversion(const GdnCallTable &table,
                                               const Conversion &conversion) {
  int32_t to = conversion.target.tensor.dtype,
          from = conversion.kind == kFill ? 0 : conversion.source.tensor.dtype;
  if (conversion.isCopy())
    from = to = bitsOf(to);
  return findConversion(table, conversion.kind, from, to);
}

bool gdn::calls::isReachable(const GdnCallTable &table, const Call &call,
                             const GdnEntryDesc &entry) {
  GdnCallPlan plan = {};
  plan.entry = &entry;
  plan.variant = &entry.variants[0];
  const GdnFunctionDesc &function = *plan.variant->function;
  if (!std::isfinite(factorOf(call, keyChannelsOf(function))) ||
      findPlaces(call, plan))
    return false;
  placeConversions(call, plan);
  Arguments arguments(call, plan);
  Conversions conversions;
  conversions.plan(arguments, call, plan);
  for (int32_t i = 0; i < function.num_args; ++i)
    if (function.args[i].kind == GDN_ARG_TENSOR && !arguments.get(i) &&
        !(function.args[i].flags & GDN_ARG_FLAG_OPTIONAL))
      return false;
  const auto &all = conversions.get();
  return std::all_of(all.begin(), all.end(), [&](const Conversion &one) {
    return one.isCopy() || ::findConversion(table, one);
  });
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Bytes from an array's first row to the end of its last, of a dense one.
static double bytesOf(const View &rows) {
  double bytes = sizeOf(rows.tensor.dtype);
  for (int64_t size : rows.shape)
    bytes *= static_cast<double>(size);
  return bytes;
}

double Conversion::getBytes() const {
  // What a copy writes has gaps between rows.
  if (isCopy())
    return 2.0 * sizeOf(target.tensor.dtype) * target.shape[0] *
           target.strides[0];
  return bytesOf(target) + (kind == kFill ? 0 : bytesOf(source));
}

double Conversions::predictSeconds(const Conversion &conversion,
                                   const cost::Chip &chip) {
  return cost::predictCopy(conversion.getBytes(), chip);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void Conversions::prepare(const GdnCallTable &table, int32_t device) const {
  for (const Conversion &conversion : conversions) {
    const GdnConversionDesc *found = ::findConversion(table, conversion);
    if (!found)
      refuse(GDN_ERROR_NOT_SERVED, "expected a function that does a " +
                                       conversion.kind +
                                       " of an array, got a table without");
    require(gdnFunctionPrepare(found->function, device));
  }
}

namespace {
/// The arguments of a conversion's function, by their names.
class ConversionArguments {
public:
  ConversionArguments(const GdnConversionDesc &desc,
                      const Conversion &conversion);
  const GdnArg *data() const { return args; }

private:
  void set(int32_t place, const GdnTensor &array, int32_t dtype) {
    args[place].kind = GDN_ARG_TENSOR;
    tensors[place] = array;
    tensors[place].dtype = dtype;
    args[place].value.tensor = &tensors[place];
  }

  static constexpr int kMost = 5;
  GdnTensor tensors[kMost];
  GdnArg args[kMost] = {};
  /// An array without elements stands for an absent parameter.
  int64_t noElements = 0;
};
} // namespace

ConversionArguments::ConversionArguments(const GdnConversionDesc &desc,
                                         const Conversion &conversion) {
  const GdnFunctionDesc &function = *desc.function;
  for (int32_t i = 0; i < std::min(function.num_args, kMost); ++i) {
    std::string_view name = function.args[i].name;
    int32_t dtype = function.args[i].dtype;
    if (name == "input") {
      set(i, conversion.source.tensor, dtype);
    } else if (name == "factor") {
      args[i].kind = GDN_ARG_F32;
      args[i].value.f32 = static_cast<float>(conversion.factor * desc.factor);
    } else if (name == "a_log" || name == "dt_bias") {
      const View &given = name == "a_log" ? conversion.aLog : conversion.dtBias;
      set(i, given.tensor, dtype);
      if (!given.tensor.rank)
        tensors[i] = {nullptr, dtype, 1, &noElements, nullptr};
    } else {
      set(i, conversion.target.tensor, dtype);
    }
  }
}

static GdnRuntimeStatus launchOne(const GdnConversionDesc &desc,
                                  const Conversion &conversion, int32_t device,
                                  void *stream) {
  // Functions of transpositions take [B, H, C, T].
  Conversion turned;
  const Conversion *used = &conversion;
  if (conversion.kind == kTranspose) {
    turned = conversion;
    auto turn = [](Strides &sizes) {
      sizes = {sizes[0], sizes[2], sizes[3], sizes[1]};
    };
    turn(turned.source.shape);
    turn(turned.source.strides);
    used = &turned;
  }
  ConversionArguments arguments(desc, *used);
  return gdnFunctionLaunchOn(desc.function, device, arguments.data(),
                             desc.function->num_args, nullptr, 0, stream);
}

void Conversions::launch(const GdnCallTable &table, const Call &call,
                         bool isBehind, void *stream) const {
  for (const Conversion &conversion : conversions) {
    if (conversion.isBehind != isBehind)
      continue;
    const GdnConversionDesc *found = ::findConversion(table, conversion);
    GdnRuntimeStatus status =
        found ? launchOne(*found, conversion, call.get().device, stream)
              : GDN_ERROR_NOT_SERVED;
    // The kernel does not know whose array it reads.
    if (status)
      refuse(status,
             listNames(call, conversion, "") + ": expected a " +
                 (conversion.isCopy() ? "copy" : "conversion") +
                 " on the GPU that succeeds, got: " + gdnGetLastErrorMessage());
  }
}
