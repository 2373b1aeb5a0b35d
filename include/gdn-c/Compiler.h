/*===- Compiler.h - The compiler as a C library -------------------*- C -*-===*\
|*                                                                            *|
|* Part of the gdn project, under the Apache License v2.0 with LLVM           *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* MLIR text in, a level's text or an object file out. The whole interface of *|
|* libgdn-compiler: no other symbol of it is visible. Functions may be called *|
|* from several threads at once; none of them aborts, prints or keeps state.  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef GDN_C_COMPILER_H
#define GDN_C_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define GDN_COMPILER_EXPORT __attribute__((visibility("default")))

/** Number of this interface; it changes where a caller would have to. */
#define GDN_COMPILER_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/** Takes `length` bytes that live only during the call. Text is UTF-8 and
 *  does not end in a zero byte. `userData` is what the caller handed in. */
typedef void (*GdnBytesCallback)(const char *bytes, size_t length,
                                 void *userData);

/** Outcome of a call. */
typedef enum GdnCompileStatus {
  GDN_COMPILE_SUCCESS = 0,
  /** The error callback was called at least once and says why. */
  GDN_COMPILE_FAILURE = 1
} GdnCompileStatus;

/** A level of IR to stop at. In C++ of type int, so that any number from a C
 *  caller is a value of it. */
typedef enum GdnLevel
#ifdef __cplusplus
    : int
#endif
{
  /** Stage ops on tensors: one stage op is one kernel. */
  GDN_LEVEL_STAGES = 0,
  /** Programs over a grid, on static tiles. */
  GDN_LEVEL_TILE = 1,
  /** The LLVM dialect, for a CPU. */
  GDN_LEVEL_LLVM = 2
} GdnLevel;

/** How to compile. Call gdnCompileOptionsInit before setting a field. A null
 *  string is the default. */
typedef struct GdnCompileOptions {
  /** Size of this struct as the caller knows it; set by the initialisation. */
  size_t struct_size;
  /** Kernels of a forward: "fused" (default) or "separate". */
  const char *plan;
  /** Tokens a chunk where the op does not say: 16, 32 or 64. */
  int64_t chunk_size;
  /** Type that product operands are rounded to: "bf16", "f16", "f32", or
   *  "auto" (default), the type of v. */
  const char *operand_type;
  /** Parts that the value channels of a head are split into. */
  int64_t v_tiles;
  /** LLVM's name of the CPU; default is the host with its features, AMX_BF16
   *  among them where the system allows it to this process. */
  const char *cpu;
  /** LLVM's feature string, added to the features of `cpu`. */
  const char *features;
  /** Optimisation level of LLVM, 0 to 3. */
  uint32_t opt_level;
  /** Not 0: fold the solve into keys and scores, closer to exact where keys
   *  are alike. */
  uint32_t two_product_chain;
  /** Not 0 (default): run the items of a grid on all cores by OpenMP. With 0
   *  the code needs no libomp. */
  uint32_t parallel;
} GdnCompileOptions;

/** Version of gdn, as "major.minor.patch". */
GDN_COMPILER_EXPORT const char *gdnCompilerGetVersion(void);

/** Fills in the defaults; does nothing with a null pointer. `structSize` is
 *  sizeof(GdnCompileOptions), by which a caller built against an older header
 *  stays valid. */
GDN_COMPILER_EXPORT void gdnCompileOptionsInit(GdnCompileOptions *options,
                                               size_t structSize);

/** Compiles a module of `length` bytes down to `level` and hands its text to
 *  `output` in one call. `options`, `name` and `error` may be null; a null
 *  `text` with a length, or a null `output`, is an error. Errors go to `error`,
 *  one call each, as `<name>:<line>:<column>: error: <message>` where they have
 * a place in the text; `name` is what the text is called there. */
GDN_COMPILER_EXPORT GdnCompileStatus gdnCompileToText(
    const char *text, size_t length, const char *name, GdnLevel level,
    const GdnCompileOptions *options, GdnBytesCallback output,
    GdnBytesCallback error, void *userData);

/** Compiles a module to a relocatable object file for a CPU, handed to
 *  `output` in one call; otherwise as gdnCompileToText. */
GDN_COMPILER_EXPORT GdnCompileStatus
gdnCompileToObject(const char *text, size_t length, const char *name,
                   const GdnCompileOptions *options, GdnBytesCallback output,
                   GdnBytesCallback error, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* GDN_C_COMPILER_H */
