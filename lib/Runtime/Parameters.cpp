//===- Parameters.cpp - The parameters of a launch ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Error.h"
#include "Kernel.h"

#include <cstring>

using namespace gdn::runtime;

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
    GDN_TRY(getMapGeometry(desc, map, *tensor, geometry));
    uint32_t box[maxMapRank], elementStrides[maxMapRank];
    for (int i = 0; i < map.rank; ++i) {
      box[i] = map.dims[i].box;
      elementStrides[i] = 1;
    }
    CUresult result = driver.cuTensorMapEncodeTiled(
        &encoded, getMapType(tensor->dtype), static_cast<uint32_t>(map.rank),
        tensor->data, geometry.extents, geometry.strides, box, elementStrides,
        /*interleave=*/0, map.swizzle, map.l2_promotion, /*oobFill=*/0);
    GDN_TRY(checkDriver(driver, result, "encoding the tensor map of %s",
                        desc.args[map.arg].name));
  }
  memcpy(to, &encoded, sizeof(encoded));
  return GDN_SUCCESS;
}

bool gdn::runtime::moveMap(const Driver &driver, void *address,
                           unsigned char *to) {
  TensorMap moved;
  memcpy(&moved, to, sizeof(moved));
  if (!driver.cuTensorMapReplaceAddress ||
      driver.cuTensorMapReplaceAddress(&moved, address) != cudaSuccess)
    return false;
  memcpy(to, &moved, sizeof(moved));
  return true;
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
                                               const Parameters &parameters) {
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
