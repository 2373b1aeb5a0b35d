//===- Parameters.cpp - The parameters of a launch ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

#include <algorithm>
#include <cstring>

using namespace gdn::runtime;

//===----------------------------------------------------------------------===//
// Writing parameters
//===----------------------------------------------------------------------===//

/// CUtensorMapDataType of a GDN_DTYPE_*.
static int getMapType(int32_t dtype) {
  switch (dtype) {
  case GDN_DTYPE_BF16:
    return mapBfloat16;
  case GDN_DTYPE_F16:
    return mapFloat16;
  case GDN_DTYPE_F32:
    return mapFloat32;
  case GDN_DTYPE_I32:
    return mapInt32;
  case GDN_DTYPE_I64:
    return mapInt64;
  default:
    return mapUint8;
  }
}

/// Encodes a tensor map into its parameter.
static GdnRuntimeStatus encodeMap(const Driver &driver,
                                  const GdnKernelDesc &desc,
                                  const GdnTensorMapDesc &map,
                                  const GdnArg *args, unsigned char *to) {
  const GdnTensor *tensor = args[map.arg].value.tensor;
  TensorMap encoded = {};
  if (!isEmpty(tensor)) {
    MapGeometry geometry;
    if (GdnRuntimeStatus status = getMapGeometry(desc, map, *tensor, geometry))
      return status;
    uint32_t box[maxMapRank], elementStrides[maxMapRank];
    for (int i = 0; i < map.rank; ++i) {
      box[i] = map.dims[i].box;
      elementStrides[i] = 1;
    }
    CUresult result = driver.cuTensorMapEncodeTiled(
        &encoded, getMapType(tensor->dtype), static_cast<uint32_t>(map.rank),
        tensor->data, geometry.extents, geometry.strides, box, elementStrides,
        /*interleave=*/0, map.swizzle, map.l2_promotion, /*oobFill=*/0);
    if (result != cudaSuccess)
      return failDriver(driver, result, "encoding the tensor map of %s",
                        desc.args[map.arg].name);
  }
  memcpy(to, &encoded, sizeof(encoded));
  return GDN_SUCCESS;
}

/// Puts another address into an encoded tensor map.
static GdnRuntimeStatus moveMap(const Driver &driver, const GdnKernelDesc &desc,
                                const GdnTensorMapDesc &map, const GdnArg *args,
                                unsigned char *to) {
  TensorMap moved;
  memcpy(&moved, to, sizeof(moved));
  if (!driver.cuTensorMapReplaceAddress ||
      driver.cuTensorMapReplaceAddress(
          &moved, args[map.arg].value.tensor->data) != cudaSuccess)
    return encodeMap(driver, desc, map, args, to);
  memcpy(to, &moved, sizeof(moved));
  return GDN_SUCCESS;
}

/// Writes an integer of 4 or 8 bytes. The host is little-endian, as the device.
static void writeInteger(unsigned char *to, int64_t value, uint32_t bytes) {
  memcpy(to, &value, bytes);
}

/// Writes one parameter other than a tensor map.
static void writeParam(const GdnParamDesc &param, const GdnArg *args,
                       void *workspace, unsigned char *to) {
  if (param.kind == GDN_PARAM_WORKSPACE) {
    memcpy(to, &workspace, sizeof(workspace));
    return;
  }
  const GdnArg &arg = args[param.index];
  if (param.kind == GDN_PARAM_SCALAR) {
    memcpy(to, &arg.value, arg.kind == GDN_ARG_I64 ? 8 : 4);
    return;
  }
  const GdnTensor *tensor = arg.value.tensor;
  if (param.kind == GDN_PARAM_POINTER) {
    void *data = tensor ? tensor->data : nullptr;
    memcpy(to, &data, sizeof(data));
    return;
  }
  int64_t value = 0;
  if (tensor)
    value = param.kind == GDN_PARAM_EXTENT ? tensor->shape[param.dim]
                                           : getStride(*tensor, param.dim);
  writeInteger(to, value, getElementBytes(param.dtype));
}

GdnRuntimeStatus gdn::runtime::writeParameters(const Driver &driver,
                                               const GdnKernel &kernel,
                                               const GdnArg *args,
                                               void *workspace,
                                               Parameters &parameters) {
  const GdnKernelDesc &desc = kernel.desc;
  for (int i = 0; i < desc.num_params; ++i) {
    const GdnParamDesc &param = desc.params[i];
    unsigned char *place = parameters.bytes + kernel.offsets[i];
    parameters.places[i] = place;
    if (param.kind != GDN_PARAM_TENSOR_MAP)
      writeParam(param, args, workspace, place);
    else if (GdnRuntimeStatus status = encodeMap(
                 driver, desc, desc.tensor_maps[param.index], args, place))
      return status;
  }
  return GDN_SUCCESS;
}

GdnRuntimeStatus gdn::runtime::rewriteParameters(const Driver &driver,
                                                 const GdnKernel &kernel,
                                                 const GdnArg *args,
                                                 void *workspace,
                                                 Known &known) {
  const GdnKernelDesc &desc = kernel.desc;
  for (int i = 0; i < desc.num_params; ++i) {
    const GdnParamDesc &param = desc.params[i];
    auto *place = static_cast<unsigned char *>(known.parameters.places[i]);
    if (param.kind == GDN_PARAM_EXTENT || param.kind == GDN_PARAM_STRIDE)
      continue;
    if (param.kind != GDN_PARAM_TENSOR_MAP) {
      writeParam(param, args, workspace, place);
      continue;
    }
    const GdnTensorMapDesc &map = desc.tensor_maps[param.index];
    if (!known.hasElements[map.arg])
      continue;
    const void *data = args[map.arg].value.tensor->data;
    if (known.addresses[i] == data)
      continue;
    if (GdnRuntimeStatus status = moveMap(driver, desc, map, args, place)) {
      known.keyLength = 0;
      return status;
    }
    known.addresses[i] = data;
  }
  return GDN_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Arguments alike
//===----------------------------------------------------------------------===//

/// What the key begins an array with.
static int64_t describe(const GdnTensor *tensor) {
  return !tensor ? 0 : tensor->strides ? 2 : 1;
}

bool Known::fits(const GdnKernelDesc &desc, const GdnArg *args,
                 int32_t numArgs) const {
  if (!keyLength || numArgs != desc.num_args || (numArgs > 0 && !args))
    return false;
  const int64_t *next = key;
  for (int i = 0; i < numArgs; ++i) {
    if (args[i].kind != desc.args[i].kind)
      return false;
    if (args[i].kind != GDN_ARG_TENSOR)
      continue;
    const GdnTensor *tensor = args[i].value.tensor;
    if (*next++ != describe(tensor))
      return false;
    if (!tensor)
      continue;
    if (tensor->dtype != desc.args[i].dtype ||
        tensor->rank != desc.args[i].rank || (tensor->rank && !tensor->shape))
      return false;
    int64_t difference = 0;
    for (int d = 0; d < tensor->rank; ++d)
      difference |= *next++ ^ tensor->shape[d];
    for (int d = 0; d < tensor->rank && tensor->strides; ++d)
      difference |= *next++ ^ tensor->strides[d];
    auto address = reinterpret_cast<uintptr_t>(tensor->data);
    if (difference ||
        (hasElements[i] && (!address || address & addressMasks[i])))
      return false;
  }
  return true;
}

bool Known::note(const GdnKernelDesc &desc, const GdnArg *args) {
  keyLength = 0;
  int length = 0;
  for (int i = 0; i < desc.num_args; ++i) {
    if (args[i].kind != GDN_ARG_TENSOR)
      continue;
    const GdnTensor *tensor = args[i].value.tensor;
    if (length + 1 + 2 * maxRank > maxKey)
      return false;
    key[length++] = describe(tensor);
    hasElements[i] = !isEmpty(tensor);
    if (!tensor)
      continue;
    for (int d = 0; d < tensor->rank; ++d)
      key[length++] = tensor->shape[d];
    for (int d = 0; d < tensor->rank && tensor->strides; ++d)
      key[length++] = tensor->strides[d];
    addressMasks[i] = getAlignment(desc.args[i]) - 1;
  }
  for (int i = 0; i < desc.num_tensor_maps; ++i)
    addressMasks[desc.tensor_maps[i].arg] |= mapAlignment - 1;
  for (int i = 0; i < desc.num_params; ++i) {
    if (desc.params[i].kind != GDN_PARAM_TENSOR_MAP)
      continue;
    int arg = desc.tensor_maps[desc.params[i].index].arg;
    addresses[i] = hasElements[arg] ? args[arg].value.tensor->data : nullptr;
  }
  // Functions without arrays have nothing to remember.
  keyLength = length;
  return length > 0;
}

Known *KnownLaunches::find(const GdnKernelDesc &desc, const GdnArg *args,
                           int32_t numArgs) {
  if (list)
    for (Known &known : list->list)
      if (known.fits(desc, args, numArgs))
        return &known;
  return nullptr;
}

Known *KnownLaunches::add(const GdnKernelDesc &desc, const GdnArg *args) {
  if (!list)
    return nullptr;
  Known &known = list->list[list->oldest];
  list->oldest = (list->oldest + 1) % KnownList::size;
  return known.note(desc, args) ? &known : nullptr;
}
