//===- Arguments.cpp - Checks of a launch's arguments ---------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

using namespace gdn::runtime;

namespace {
/// The symbolic extents that the arrays so far have fixed; -1 where none has.
struct Symbols {
  int64_t values[maxSymbols];
};
} // namespace

static long long number(int64_t value) { return value; }

static const char *dtypeName(int32_t dtype) {
  static const char *const names[] = {"bf16", "f16", "f32", "i32", "i64", "u8"};
  bool known = dtype >= GDN_DTYPE_BF16 && dtype <= GDN_DTYPE_U8;
  return known ? names[dtype - GDN_DTYPE_BF16] : "an unknown dtype";
}

static const char *kindName(int32_t kind) {
  static const char *const names[] = {"a tensor", "an i32", "an i64", "an f32"};
  bool known = kind >= GDN_ARG_TENSOR && kind <= GDN_ARG_F32;
  return known ? names[kind - GDN_ARG_TENSOR] : "an unknown kind";
}

int64_t gdn::runtime::getStride(const GdnTensor &tensor, int dim) {
  if (tensor.strides)
    return tensor.strides[dim];
  int64_t stride = 1;
  for (int i = tensor.rank - 1; i > dim; --i)
    stride *= tensor.shape[i];
  return stride;
}

uint32_t gdn::runtime::getAlignment(const GdnArgDesc &arg) {
  return arg.alignment ? arg.alignment : getElementBytes(arg.dtype);
}

int64_t gdn::runtime::getInteger(const GdnArg &arg) {
  return arg.kind == GDN_ARG_I32 ? arg.value.i32 : arg.value.i64;
}

bool gdn::runtime::isEmpty(const GdnTensor *tensor) {
  if (!tensor)
    return true;
  for (int i = 0; i < tensor->rank; ++i)
    if (tensor->shape[i] == 0)
      return true;
  return false;
}

/// "expected k of shape [B=1, T, 128], got [1, 64]".
static GdnRuntimeStatus failShape(const GdnKernelDesc &desc,
                                  const GdnArgDesc &want, const GdnTensor &got,
                                  const Symbols &symbols) {
  Message message;
  message.add("expected %s of shape [", want.name);
  for (int i = 0; i < want.rank; ++i) {
    const char *separator = i ? ", " : "";
    int64_t extent = want.shape[i];
    if (extent >= 0) {
      message.add("%s%lld", separator, number(extent));
      continue;
    }
    int64_t symbol = -1 - extent;
    message.add("%s%s", separator, desc.symbols[symbol]);
    if (symbols.values[symbol] >= 0)
      message.add("=%lld", number(symbols.values[symbol]));
  }
  message.add("], got [");
  for (int i = 0; i < got.rank && i <= maxRank; ++i)
    message.add("%s%lld", i ? ", " : "", number(got.shape[i]));
  return fail(GDN_ERROR_INVALID_ARGUMENT, message.add("]"));
}

/// Compares the extents and fixes the symbols that they name first. Where they
/// differ it fixes none, so that a message shows a symbol's value only where
/// another array fixed it.
static bool matchShape(const GdnArgDesc &want, const GdnTensor &got,
                       Symbols &symbols) {
  if (got.rank != want.rank)
    return false;
  int64_t *fixed[maxRank];
  int numFixed = 0;
  bool matches = true;
  for (int i = 0; i < want.rank && matches; ++i) {
    int64_t extent = want.shape[i];
    if (extent < 0) {
      int64_t &value = symbols.values[-1 - extent];
      if (value < 0) {
        value = got.shape[i];
        fixed[numFixed++] = &value;
      }
      extent = value;
    }
    matches = got.shape[i] >= 0 && got.shape[i] == extent;
  }
  while (!matches && numFixed)
    *fixed[--numFixed] = -1;
  return matches;
}

/// Checks that the bytes of an array can be counted, and its strides used.
static GdnRuntimeStatus checkSize(const GdnArgDesc &want,
                                  const GdnTensor &got) {
  int64_t reach = getElementBytes(want.dtype);
  bool overflows = false;
  for (int i = 0; i < got.rank; ++i)
    if (got.shape[i] > 1)
      overflows |= __builtin_mul_overflow(reach, got.shape[i], &reach);
  for (int i = 0; i < got.rank && got.strides; ++i) {
    int64_t span;
    overflows |= __builtin_mul_overflow(got.strides[i], int64_t(16), &span) ||
                 __builtin_mul_overflow(span, got.shape[i], &span);
  }
  if (overflows)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s to span less than 2^63 bytes, got more",
                want.name);
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkContiguity(const GdnArgDesc &want,
                                        const GdnTensor &got) {
  int first = got.rank;
  if (want.flags & GDN_ARG_FLAG_LAST_CONTIGUOUS)
    first = got.rank - 1;
  if (want.flags & GDN_ARG_FLAG_CONTIGUOUS)
    first = 0;
  int64_t expected = 1;
  for (int i = got.rank - 1; i >= first && i >= 0; --i) {
    // Nothing steps along an extent of 1, so its stride says nothing.
    if (got.shape[i] != 1 && getStride(got, i) != expected)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected %s to have stride %lld in dimension %d, got %lld",
                  want.name, number(expected), i, number(getStride(got, i)));
    expected *= got.shape[i];
  }
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkTensor(const GdnKernelDesc &desc,
                                    const GdnArgDesc &want,
                                    const GdnTensor &got, Symbols &symbols) {
  if (got.dtype != want.dtype)
    return fail(GDN_ERROR_INVALID_ARGUMENT, "expected %s of type %s, got %s",
                want.name, dtypeName(want.dtype), dtypeName(got.dtype));
  if (got.rank < 0 || (got.rank > 0 && !got.shape))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s to have a shape, got none", want.name);
  if (!matchShape(want, got, symbols))
    return failShape(desc, want, got, symbols);
  GDN_TRY(checkSize(want, got));
  if (isEmpty(&got))
    return GDN_SUCCESS;
  if (!got.data)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s to have data, got a null pointer", want.name);
  uint32_t alignment = getAlignment(want);
  if (reinterpret_cast<uintptr_t>(got.data) % alignment)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s to be aligned to %u bytes, got address %p",
                want.name, alignment, got.data);
  return checkContiguity(want, got);
}

static GdnRuntimeStatus checkArgument(const GdnKernelDesc &desc, int index,
                                      const GdnArg &arg, Symbols &symbols) {
  const GdnArgDesc &want = desc.args[index];
  if (arg.kind != want.kind)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected argument %d (%s) to be %s, got %s", index, want.name,
                kindName(want.kind), kindName(arg.kind));
  if (want.kind != GDN_ARG_TENSOR)
    return GDN_SUCCESS;
  if (arg.value.tensor)
    return checkTensor(desc, want, *arg.value.tensor, symbols);
  if (!(want.flags & GDN_ARG_FLAG_OPTIONAL))
    return fail(GDN_ERROR_INVALID_ARGUMENT, "expected %s, got none", want.name);
  return GDN_SUCCESS;
}

/// Extents and strides that the kernel takes in 32 bits must fit.
static GdnRuntimeStatus checkParamRange(const GdnKernelDesc &desc,
                                        const GdnParamDesc &param,
                                        const GdnArg *args) {
  bool isExtent = param.kind == GDN_PARAM_EXTENT;
  if ((!isExtent && param.kind != GDN_PARAM_STRIDE) ||
      param.dtype != GDN_DTYPE_I32 || !args[param.index].value.tensor)
    return GDN_SUCCESS;
  const GdnTensor &tensor = *args[param.index].value.tensor;
  int64_t value =
      isExtent ? tensor.shape[param.dim] : getStride(tensor, param.dim);
  if (value != static_cast<int32_t>(value))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s %d of %s to fit 32 bits, got %lld",
                isExtent ? "extent" : "stride", param.dim,
                desc.args[param.index].name, number(value));
  return GDN_SUCCESS;
}

/// 2^30 steps of this many elements are a multiple of 2^64 bytes.
static constexpr int64_t wrapElements = int64_t(1) << 34;

/// True if the map ends rows along `dim` anywhere (GDN_STEP_BACK).
static bool takesBack(const GdnTensorMapDesc &map, int32_t dim) {
  for (int i = 0; i < map.rank; ++i)
    if (map.dims[i].dim == dim && map.dims[i].step == GDN_STEP_BACK)
      return true;
  return false;
}

GdnRuntimeStatus gdn::runtime::getMapGeometry(const GdnKernelDesc &desc,
                                              const GdnTensorMapDesc &map,
                                              const GdnTensor &tensor,
                                              MapGeometry &geometry) {
  const char *name = desc.args[map.arg].name;
  uint32_t bytes = getElementBytes(tensor.dtype);
  if (reinterpret_cast<uintptr_t>(tensor.data) % mapAlignment)
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %s to be aligned to %u bytes, got address %p", name,
                mapAlignment, tensor.data);
  for (int i = 0; i < map.rank; ++i) {
    const GdnTensorMapDim &dim = map.dims[i];
    int64_t available = tensor.shape[dim.dim];
    int64_t extent = dim.extent
                         ? dim.extent
                         : available / dim.step + (available % dim.step != 0);
    if (dim.extent && !takesBack(map, dim.dim) &&
        dim.extent > available / dim.step)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected extent %d of %s to hold %lld steps of %lld, got "
                  "%lld",
                  dim.dim, name, number(dim.extent), number(dim.step),
                  number(available));
    if (extent > int64_t(1) << 32)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected extent %d of %s of at most 2^32, got %lld", dim.dim,
                  name, number(extent));
    geometry.extents[i] = static_cast<uint64_t>(extent);
    bool isStill = tensor.shape[dim.dim] == 1;
    int64_t stride = getStride(tensor, dim.dim);
    if (i == 0 && !isStill && stride != 1)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected %s to have stride 1 in dimension %d, got %lld",
                  name, dim.dim, number(stride));
    if (i == 0)
      continue;
    // Nothing steps along an extent of 1; any stride that the driver takes
    // will do for it.
    if (isStill)
      stride = 16 / bytes;
    int64_t elements = 0, step = 0;
    if (__builtin_mul_overflow(stride, dim.step, &elements) ||
        __builtin_add_overflow(elements,
                               dim.step == GDN_STEP_BACK ? wrapElements : 0,
                               &elements) ||
        __builtin_mul_overflow(elements, bytes, &step) || step < 0 ||
        step % 16 || step >= int64_t(1) << 40)
      return fail(GDN_ERROR_INVALID_ARGUMENT,
                  "expected strides of %s in multiples of 16 bytes below 2^40, "
                  "got %lld elements in dimension %d",
                  name, number(stride), dim.dim);
    geometry.strides[i - 1] = static_cast<uint64_t>(step);
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkArguments(const GdnKernelDesc &desc,
                                              const GdnArg *args,
                                              int32_t numArgs) {
  if (numArgs != desc.num_args || (numArgs > 0 && !args))
    return fail(GDN_ERROR_INVALID_ARGUMENT,
                "expected %d arguments of '%s', got %d", desc.num_args,
                desc.symbol, args ? numArgs : 0);
  Symbols symbols;
  for (int i = 0; i < desc.num_symbols; ++i)
    symbols.values[i] = -1;
  for (int i = 0; i < numArgs; ++i)
    GDN_TRY(checkArgument(desc, i, args[i], symbols));
  for (int i = 0; i < desc.num_params; ++i)
    GDN_TRY(checkParamRange(desc, desc.params[i], args));
  for (int i = 0; i < desc.num_tensor_maps; ++i) {
    const GdnTensorMapDesc &map = desc.tensor_maps[i];
    const GdnTensor *tensor = args[map.arg].value.tensor;
    MapGeometry geometry;
    if (isEmpty(tensor))
      continue;
    GDN_TRY(getMapGeometry(desc, map, *tensor, geometry));
  }
  return GDN_SUCCESS;
}
