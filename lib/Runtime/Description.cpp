//===- Description.cpp - Checks of kernel descriptions --------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"

#include "Error.h"

#include <algorithm>
#include <cstring>

using namespace gdn::runtime;

uint32_t gdn::runtime::getElementBytes(int32_t dtype) {
  return GDN_DTYPE_BYTES(dtype);
}

/// Reports a contradiction in a description: "kernel '<symbol>': <rule>".
[[gnu::format(printf, 2, 3)]] static GdnRuntimeStatus
failKernel(const GdnKernelDesc &desc, const char *rule, ...) {
  Message message;
  message.add("kernel '%s': ", desc.symbol);
  va_list values;
  va_start(values, rule);
  message.addList(rule, values);
  va_end(values);
  return fail(GDN_ERROR_INVALID_KERNEL, message);
}

/// True for a count within its bound whose list is there.
static bool isList(int32_t count, int32_t bound, const void *list) {
  return count >= 0 && count <= bound && (count == 0 || list);
}

static GdnRuntimeStatus checkLists(const GdnKernelDesc &desc) {
  if (!isList(desc.num_args, maxArgs, desc.args))
    return failKernel(desc, "expected 0 to %d arguments, got %d", maxArgs,
                      desc.num_args);
  if (!isList(desc.num_params, maxParams, desc.params))
    return failKernel(desc, "expected 0 to %d parameters, got %d", maxParams,
                      desc.num_params);
  if (!isList(desc.num_tensor_maps, maxTensorMaps, desc.tensor_maps))
    return failKernel(desc, "expected 0 to %d tensor maps, got %d",
                      maxTensorMaps, desc.num_tensor_maps);
  if (!isList(desc.num_symbols, maxSymbols, desc.symbols))
    return failKernel(desc, "expected 0 to %d symbols, got %d", maxSymbols,
                      desc.num_symbols);
  for (int i = 0; i < desc.num_symbols; ++i)
    if (!desc.symbols[i])
      return failKernel(desc, "expected a name of symbol %d, got null", i);
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkImage(const GdnKernelDesc &desc) {
  const auto *bytes = static_cast<const unsigned char *>(desc.image);
  bool isElf =
      bytes && desc.image_bytes >= 4 && memcmp(bytes, "\177ELF", 4) == 0;
  // The driver finds the end of a text by its 0 byte.
  bool isText =
      bytes && desc.image_bytes >= 2 && bytes[desc.image_bytes - 1] == 0;
  if (!isElf && !isText)
    return failKernel(desc, "expected a cubin, or PTX that ends in a 0 byte, "
                            "as image, got neither");
  if (desc.threads < 1 || desc.threads > 1024)
    return failKernel(desc, "expected 1 to 1024 threads, got %u", desc.threads);
  // Larger clusters are not portable.
  if (desc.cluster_size > 8)
    return failKernel(desc, "expected a cluster of at most 8 blocks, got %u",
                      desc.cluster_size);
  // No multiprocessor runs more.
  if (desc.resident_blocks > 32)
    return failKernel(desc, "expected at most 32 resident blocks, got %u",
                      desc.resident_blocks);
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkArg(const GdnKernelDesc &desc, int index) {
  const GdnArgDesc &arg = desc.args[index];
  if (!arg.name)
    return failKernel(desc, "expected a name of argument %d, got null", index);
  if (arg.kind < GDN_ARG_TENSOR || arg.kind > GDN_ARG_F32)
    return failKernel(desc, "expected a kind of argument '%s', got %d",
                      arg.name, arg.kind);
  if (arg.kind != GDN_ARG_TENSOR)
    return GDN_SUCCESS;
  if (getElementBytes(arg.dtype) == 0)
    return failKernel(desc, "expected a dtype of '%s', got %d", arg.name,
                      arg.dtype);
  if (!isList(arg.rank, maxRank, arg.shape))
    return failKernel(desc, "expected a shape of rank 0 to %d of '%s', got %d",
                      maxRank, arg.name, arg.rank);
  for (int i = 0; i < arg.rank; ++i)
    if (arg.shape[i] < GDN_SYMBOL(desc.num_symbols - 1))
      return failKernel(desc, "expected one of %d symbols in '%s', got %lld",
                        desc.num_symbols, arg.name,
                        static_cast<long long>(-1 - arg.shape[i]));
  if (arg.alignment & (arg.alignment - 1))
    return failKernel(desc,
                      "expected a power of two as alignment of '%s', "
                      "got %u",
                      arg.name, arg.alignment);
  return GDN_SUCCESS;
}

/// True for the index of an array argument.
static bool isArray(const GdnKernelDesc &desc, int32_t index) {
  return index >= 0 && index < desc.num_args &&
         desc.args[index].kind == GDN_ARG_TENSOR;
}

static GdnRuntimeStatus checkParam(const GdnKernelDesc &desc, int index) {
  const GdnParamDesc &param = desc.params[index];
  bool valid = false;
  switch (param.kind) {
  case GDN_PARAM_POINTER:
    valid = isArray(desc, param.index);
    break;
  case GDN_PARAM_EXTENT:
  case GDN_PARAM_STRIDE:
    valid = isArray(desc, param.index) && param.dim >= 0 &&
            param.dim < desc.args[param.index].rank &&
            (param.dtype == GDN_DTYPE_I32 || param.dtype == GDN_DTYPE_I64);
    break;
  case GDN_PARAM_SCALAR:
    valid = param.index >= 0 && param.index < desc.num_args &&
            !isArray(desc, param.index);
    break;
  case GDN_PARAM_TENSOR_MAP:
    valid = param.index >= 0 && param.index < desc.num_tensor_maps;
    break;
  case GDN_PARAM_WORKSPACE:
    valid = true;
    break;
  }
  if (!valid)
    return failKernel(desc,
                      "expected parameter %d to name an argument, got "
                      "kind %d, index %d, dim %d, dtype %d",
                      index, param.kind, param.index, param.dim, param.dtype);
  return GDN_SUCCESS;
}

static GdnRuntimeStatus checkMap(const GdnKernelDesc &desc, int index) {
  const GdnTensorMapDesc &map = desc.tensor_maps[index];
  if (!isArray(desc, map.arg) || map.rank < 1 || map.rank > maxMapRank ||
      !map.dims || map.swizzle < GDN_SWIZZLE_NONE ||
      map.swizzle > GDN_SWIZZLE_128B || map.l2_promotion < 0 ||
      map.l2_promotion > GDN_L2_PROMOTION_256B)
    return failKernel(desc,
                      "expected tensor map %d over an array in 1 to %d "
                      "dimensions, got argument %d, rank %d, swizzle %d, "
                      "L2 promotion %d",
                      index, maxMapRank, map.arg, map.rank, map.swizzle,
                      map.l2_promotion);
  const GdnArgDesc &arg = desc.args[map.arg];
  for (int i = 0; i < map.rank; ++i) {
    const GdnTensorMapDim &dim = map.dims[i];
    if (dim.dim < 0 || dim.dim >= arg.rank || dim.box < 1 || dim.box > 256 ||
        dim.extent < 0 || dim.step > INT32_MAX ||
        (dim.step < 1 && (dim.step != GDN_STEP_BACK || dim.extent == 0)))
      return failKernel(desc,
                        "expected dimension %d of the tensor map of '%s' "
                        "with a box of 1 to 256 and a step of at least "
                        "1, got dim %d, box %u, extent %lld, step %lld",
                        i, arg.name, dim.dim, dim.box,
                        static_cast<long long>(dim.extent),
                        static_cast<long long>(dim.step));
  }
  if (map.dims[0].dim != arg.rank - 1 || map.dims[0].step != 1)
    return failKernel(desc,
                      "expected the last dimension of '%s' as the "
                      "innermost one of its tensor map, got %d",
                      arg.name, map.dims[0].dim);
  uint32_t boxBytes = map.dims[0].box * getElementBytes(arg.dtype);
  uint32_t span = map.swizzle ? 16u << map.swizzle : UINT32_MAX;
  if (boxBytes % 16 != 0 || boxBytes > span)
    return failKernel(desc,
                      "expected box rows of '%s' in multiples of 16 "
                      "bytes up to its swizzle's span, got %u bytes",
                      arg.name, boxBytes);
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkArgDescs(const GdnKernelDesc &desc) {
  GDN_TRY(checkLists(desc));
  for (int i = 0; i < desc.num_args; ++i)
    GDN_TRY(checkArg(desc, i));
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::checkDescription(const GdnKernelDesc &desc) {
  if (!desc.symbol)
    return fail(GDN_ERROR_INVALID_KERNEL, "expected a symbol, got null");
  GDN_TRY(checkImage(desc));
  GDN_TRY(checkArgDescs(desc));
  for (int i = 0; i < desc.num_tensor_maps; ++i)
    GDN_TRY(checkMap(desc, i));
  for (int i = 0; i < desc.num_params; ++i)
    GDN_TRY(checkParam(desc, i));
  return GDN_SUCCESS;
}

uint32_t gdn::runtime::getParamBytes(const GdnKernelDesc &desc,
                                     const GdnParamDesc &param) {
  switch (param.kind) {
  case GDN_PARAM_TENSOR_MAP:
    return sizeof(TensorMap);
  case GDN_PARAM_EXTENT:
  case GDN_PARAM_STRIDE:
    return getElementBytes(param.dtype);
  case GDN_PARAM_SCALAR:
    return desc.args[param.index].kind == GDN_ARG_I64 ? 8 : 4;
  default:
    return sizeof(void *);
  }
}

GdnRuntimeStatus gdn::runtime::layoutParams(const GdnKernelDesc &desc,
                                            uint16_t *offsets) {
  uint32_t end = 0;
  for (int i = 0; i < desc.num_params; ++i) {
    const GdnParamDesc &param = desc.params[i];
    uint32_t bytes = getParamBytes(desc, param);
    uint32_t alignment = std::min(bytes, 64u);
    uint32_t offset = (end + alignment - 1) & ~(alignment - 1);
    end = offset + bytes;
    if (end > maxParamBytes)
      return failKernel(desc,
                        "expected at most %d bytes of parameters, got "
                        "%u up to parameter %d",
                        maxParamBytes, end, i);
    offsets[i] = static_cast<uint16_t>(offset);
  }
  return GDN_SUCCESS;
}
