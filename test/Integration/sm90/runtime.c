//===- runtime.c - The runtime on a Hopper GPU ----------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of a strided array come through a tensor map, straight and out of a
// CUDA graph that is replayed after the contents changed; prints what a launch
// costs the host. The graph functions are the driver's own: the runtime has
// none.
//
//===----------------------------------------------------------------------===//

#define _POSIX_C_SOURCE 199309L
#include "gdn-c/Runtime.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { tokens = 40, heads = 2, columns = 64, rows = 32, pitch = 192 };
enum { inputs = tokens * pitch, outputs = heads * 2 * rows * columns };

/// Block (x, y) copies rows 32 x to 32 x + 31 of head y into its part of out.
static const char image[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry copy_tiles(.param .align 64 .b8 map[128],\n"
    "                           .param .u64 out) {\n"
    "  .shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 full;\n"
    "  .reg .pred %p; .reg .b32 %x, %y, %t, %b, %s, %r, %z, %v<8>;\n"
    "  .reg .b64 %m, %o, %w;\n"
    "  mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %t, %tid.x;\n"
    "  mov.u32 %b, full; mov.u32 %s, tile; mov.u32 %z, 0;\n"
    "  setp.ne.u32 %p, %t, 0; @%p bra ready;\n"
    "  mbarrier.init.shared::cta.b64 [%b], 1;\n"
    "  fence.mbarrier_init.release.cluster;\n"
    "  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%b], 4096;\n"
    "  shl.b32 %r, %x, 5; mov.b64 %m, map; cvta.param.u64 %m, %m;\n"
    "  cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier"
    "::complete_tx::bytes [%s], [%m, {%z, %r, %y}], [%b];\n"
    "ready: bar.sync 0;\n"
    "again: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0;\n"
    "  @!%p bra again;\n"
    "  shl.b32 %r, %t, 5; add.u32 %s, %s, %r;\n"
    "  ld.shared.v4.b32 {%v0, %v1, %v2, %v3}, [%s];\n"
    "  ld.shared.v4.b32 {%v4, %v5, %v6, %v7}, [%s + 16];\n"
    "  mad.lo.u32 %x, %y, 2, %x; mad.lo.u32 %r, %x, 4096, %r;\n"
    "  ld.param.u64 %o, [out]; cvt.u64.u32 %w, %r; add.u64 %o, %o, %w;\n"
    "  st.global.v4.b32 [%o], {%v0, %v1, %v2, %v3};\n"
    "  st.global.v4.b32 [%o + 16], {%v4, %v5, %v6, %v7};\n"
    "  ret;\n}\n";

static const char *const symbols[] = {"T", "H"};
static const int64_t shapeX[] = {GDN_SYMBOL(0), GDN_SYMBOL(1), columns};
static const int64_t shapeOut[] = {GDN_SYMBOL(1), 2 * rows, columns};
static const GdnArgDesc args[] = {
    {"x", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 3, 0, shapeX, 0},
    {"out", GDN_ARG_TENSOR, GDN_DTYPE_BF16, 3, GDN_ARG_FLAG_CONTIGUOUS,
     shapeOut, 16}};
static const GdnTensorMapDim dims[] = {
    {2, columns, 0, 1}, {0, rows, 0, 1}, {1, 1, 0, 1}};
static const GdnTensorMapDesc map = {0, 3, GDN_SWIZZLE_NONE,
                                     GDN_L2_PROMOTION_256B, dims};
static const GdnParamDesc params[] = {{GDN_PARAM_TENSOR_MAP, 0, 0, 0},
                                      {GDN_PARAM_POINTER, 1, 0, 0}};
static const GdnKernelDesc copyTiles = {.struct_size = sizeof(GdnKernelDesc),
                                        .version = GDN_RUNTIME_VERSION,
                                        .symbol = "copy_tiles",
                                        .image = image,
                                        .image_bytes = sizeof(image),
                                        .compute_capability = 90,
                                        .threads = 128,
                                        .num_args = 2,
                                        .num_params = 2,
                                        .num_tensor_maps = 1,
                                        .num_symbols = 2,
                                        .args = args,
                                        .params = params,
                                        .tensor_maps = &map,
                                        .symbols = symbols};

#define CHECK(call)                                                            \
  do {                                                                         \
    GdnRuntimeStatus status = (call);                                          \
    if (status != GDN_SUCCESS) {                                               \
      printf("%s: %s\n", gdnStatusGetString(status),                           \
             gdnGetLastErrorMessage());                                        \
      return 1;                                                                \
    }                                                                          \
  } while (0)

/// Calls a function of the driver by its name.
#define DRIVER(name, types, ...)                                               \
  do {                                                                         \
    int(*function) types;                                                      \
    *(void **)&function = dlsym(driver, #name);                                \
    int result = function ? function(__VA_ARGS__) : -1;                        \
    if (result != 0) {                                                         \
      printf(#name " failed: %d\n", result);                                   \
      return 1;                                                                \
    }                                                                          \
  } while (0)

/// Element (t, h, c) of the array with a seed.
static uint16_t value(int seed, int t, int h, int c) {
  return (uint16_t)(seed + 131 * t + 7 * h + c);
}

/// Fills the fused rows; what no view covers is a value that must not appear.
static void fill(uint16_t *x, int seed) {
  memset(x, 0xff, inputs * sizeof(*x));
  for (int t = 0; t < tokens; ++t)
    for (int h = 0; h < heads; ++h)
      for (int c = 0; c < columns; ++c)
        x[t * pitch + h * columns + c] = value(seed, t, h, c);
}

/// Elements of the output that are wrong; rows beyond the array are 0.
static int countWrong(const uint16_t *out, int seed) {
  int wrong = 0;
  for (int h = 0; h < heads; ++h)
    for (int t = 0; t < 2 * rows; ++t)
      for (int c = 0; c < columns; ++c, ++out)
        wrong += *out != (t < tokens ? value(seed, t, h, c) : 0);
  return wrong;
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

int main(void) {
  static uint16_t hostX[inputs], hostOut[outputs];
  const int64_t extentsX[] = {tokens, heads, columns};
  const int64_t stridesX[] = {pitch, columns, 1};
  const int64_t extentsOut[] = {heads, 2 * rows, columns};
  GdnTensor x = {NULL, GDN_DTYPE_BF16, 3, extentsX, stridesX};
  GdnTensor out = {NULL, GDN_DTYPE_BF16, 3, extentsOut, NULL};
  const GdnArg arguments[] = {{GDN_ARG_TENSOR, {.tensor = &x}},
                              {GDN_ARG_TENSOR, {.tensor = &out}}};
  const GdnGrid grid = {2, heads, 1};
  GdnKernel *kernel;
  double start = now();
  CHECK(gdnKernelLoad(&copyTiles, &kernel));
  CHECK(gdnKernelPrepare(kernel, 0));
  printf("driver and kernel ready after %.1f ms\n", (now() - start) * 1e-3);
  CHECK(gdnDeviceMakeCurrent(0));
  CHECK(gdnMemoryAllocate(0, sizeof(hostX), &x.data));
  CHECK(gdnMemoryAllocate(0, sizeof(hostOut), &out.data));

  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *stream, *graph, *executable;
  DRIVER(cuStreamCreate, (void **, unsigned), &stream, 1);
  fill(hostX, 1);
  CHECK(gdnMemoryCopyToDevice(0, x.data, hostX, sizeof(hostX)));
  CHECK(gdnKernelLaunch(kernel, arguments, 2, NULL, 0, &grid, stream));
  CHECK(gdnDeviceSynchronize(0));
  CHECK(gdnMemoryCopyFromDevice(0, hostOut, out.data, sizeof(hostOut)));
  printf("launch: %d wrong\n", countWrong(hostOut, 1));

  // The strictest mode: any call of the launch that could synchronise or
  // allocate would break the capture.
  DRIVER(cuStreamBeginCapture_v2, (void *, int), stream, 0);
  CHECK(gdnKernelLaunch(kernel, arguments, 2, NULL, 0, &grid, stream));
  DRIVER(cuStreamEndCapture, (void *, void **), stream, &graph);
  DRIVER(cuGraphInstantiateWithFlags, (void **, void *, unsigned long long),
         &executable, graph, 0);
  fill(hostX, 2);
  CHECK(gdnMemoryCopyToDevice(0, x.data, hostX, sizeof(hostX)));
  DRIVER(cuGraphLaunch, (void *, void *), executable, stream);
  CHECK(gdnDeviceSynchronize(0));
  CHECK(gdnMemoryCopyFromDevice(0, hostOut, out.data, sizeof(hostOut)));
  printf("graph: %d wrong\n", countWrong(hostOut, 2));

  enum { launches = 500 };
  start = now();
  for (int i = 0; i < launches; ++i)
    CHECK(gdnKernelLaunch(kernel, arguments, 2, NULL, 0, &grid, stream));
  printf("host: %.2f us a launch\n", (now() - start) / launches);
  CHECK(gdnDeviceSynchronize(0));
  CHECK(gdnMemoryFree(0, x.data));
  CHECK(gdnMemoryFree(0, out.data));
  CHECK(gdnKernelUnload(kernel));
  return 0;
}
