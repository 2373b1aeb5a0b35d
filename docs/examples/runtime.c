//===- runtime.c - Launch a compiled kernel from C ------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   cc runtime.c -lgdn-runtime && ./a.out
//
// The first half is what the compiler writes for a kernel: the image and its
// tables. The second half, from main on, is what a program writes.
//
//===----------------------------------------------------------------------===//

#include "gdn-c/Runtime.h"

#include <stdio.h>

/// y[i] = a x[i], one thread an element.
static const char image[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry scale(.param .u64 px, .param .u64 py, .param .f32 pa,\n"
    "                      .param .s32 pn) {\n"
    "  .reg .pred %p; .reg .b32 %i, %t, %c, %n; .reg .b64 %x, %y;\n"
    "  .reg .f32 %v, %a;\n"
    "  ld.param.u64 %x, [px]; ld.param.u64 %y, [py];\n"
    "  ld.param.f32 %a, [pa]; ld.param.s32 %n, [pn];\n"
    "  mov.u32 %i, %ctaid.x; mov.u32 %c, %ntid.x; mov.u32 %t, %tid.x;\n"
    "  mad.lo.s32 %i, %i, %c, %t; setp.ge.s32 %p, %i, %n; @%p ret;\n"
    "  mad.wide.s32 %x, %i, 4, %x; mad.wide.s32 %y, %i, 4, %y;\n"
    "  ld.global.f32 %v, [%x]; mul.f32 %v, %v, %a; st.global.f32 [%y], %v;\n"
    "  ret;\n}\n";
static const char *const symbols[] = {"N"};
static const int64_t shapeN[] = {GDN_SYMBOL(0)};
static const GdnArgDesc args[] = {
    {"x", GDN_ARG_TENSOR, GDN_DTYPE_F32, 1, GDN_ARG_FLAG_CONTIGUOUS, shapeN, 0},
    {"y", GDN_ARG_TENSOR, GDN_DTYPE_F32, 1, GDN_ARG_FLAG_CONTIGUOUS, shapeN, 0},
    {"a", GDN_ARG_F32, 0, 0, 0, NULL, 0}};
static const GdnParamDesc params[] = {{GDN_PARAM_POINTER, 0, 0, 0},
                                      {GDN_PARAM_POINTER, 1, 0, 0},
                                      {GDN_PARAM_SCALAR, 2, 0, 0},
                                      {GDN_PARAM_EXTENT, 0, 0, GDN_DTYPE_I32}};

static GdnRuntimeStatus configureScale(const GdnArg *arguments, int32_t count,
                                       const GdnDeviceInfo *device,
                                       GdnLaunchConfig *config) {
  (void)count, (void)device;
  config->grid.x =
      (uint32_t)((arguments[0].value.tensor->shape[0] + 127) / 128);
  config->grid.y = config->grid.z = 1;
  config->workspace_bytes = 0;
  return GDN_SUCCESS;
}

static const GdnKernelDesc scale = {.struct_size = sizeof(GdnKernelDesc),
                                    .version = GDN_RUNTIME_VERSION,
                                    .symbol = "scale",
                                    .image = image,
                                    .image_bytes = sizeof(image),
                                    .compute_capability = 90,
                                    .threads = 128,
                                    .num_args = 3,
                                    .num_params = 4,
                                    .num_symbols = 1,
                                    .args = args,
                                    .params = params,
                                    .symbols = symbols,
                                    .configure = configureScale};

/// Says what went wrong and ends the program.
#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus status = (call);                                          \
    if (status != GDN_SUCCESS) {                                               \
      printf("%s: %s\n", gdnStatusGetString(status),                           \
             gdnGetLastErrorMessage());                                        \
      return 1;                                                                \
    }                                                                          \
  } while (0)

int main(void) {
  // Once: load the kernel and bring it to device 0.
  GdnKernel *kernel;
  CHECK(gdnKernelLoad(&scale, &kernel));
  CHECK(gdnKernelPrepare(kernel, 0));
  CHECK(gdnDeviceMakeCurrent(0));

  // Arrays: any device memory will do, also PyTorch's.
  float host[1000];
  const int64_t shape[] = {1000};
  GdnTensor x = {NULL, GDN_DTYPE_F32, 1, shape, NULL}, y = x;
  for (int i = 0; i < 1000; ++i)
    host[i] = (float)i;
  CHECK(gdnMemoryAllocate(0, sizeof(host), &x.data));
  CHECK(gdnMemoryAllocate(0, sizeof(host), &y.data));
  CHECK(gdnMemoryCopyToDevice(0, x.data, host, sizeof(host)));

  // Each call: the plan says how much workspace to bring (here none).
  const GdnArg arguments[] = {{GDN_ARG_TENSOR, {.tensor = &x}},
                              {GDN_ARG_TENSOR, {.tensor = &y}},
                              {GDN_ARG_F32, {.f32 = 2.5f}}};
  GdnLaunchConfig config = {.struct_size = sizeof(config)};
  CHECK(gdnKernelConfigure(kernel, 0, arguments, 3, &config));
  void *workspace = NULL;
  if (config.workspace_bytes)
    CHECK(gdnMemoryAllocate(0, config.workspace_bytes, &workspace));
  CHECK(gdnKernelLaunch(kernel, arguments, 3, workspace, config.workspace_bytes,
                        NULL, NULL));

  CHECK(gdnMemoryCopyFromDevice(0, host, y.data, sizeof(host)));
  printf("y[1] = %g, y[999] = %g\n", host[1], host[999]);
  CHECK(gdnMemoryFree(0, workspace));
  CHECK(gdnMemoryFree(0, x.data));
  CHECK(gdnMemoryFree(0, y.data));
  CHECK(gdnKernelUnload(kernel));
  return 0;
}
