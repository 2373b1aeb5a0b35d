/*===- compiler.c - A C program that compiles with libgdn-compiler --------===*\
|*                                                                            *|
|* Part of the gdn project, under the Apache License v2.0 with LLVM           *|
|* Exceptions. See LICENSE for license information.                           *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "gdn-c/Compiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kThreads = 4 };

/* A whole file; *length is its size. Exits where it cannot be read. */
static char *readFile(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  size_t capacity = 1 << 20;
  if (!file || !(text = malloc(capacity))) {
    fprintf(stderr, "expected a readable file, got %s\n", path);
    exit(2);
  }
  *length = fread(text, 1, capacity, file);
  fclose(file);
  return text;
}

static void printBytes(const char *bytes, size_t length, void *userData) {
  (void)userData;
  fwrite(bytes, 1, length, stdout);
}

static void printError(const char *bytes, size_t length, void *userData) {
  (void)userData;
  printf("[error callback] %.*s\n", (int)length, bytes);
}

/* Adds up the sizes of all outputs. */
static void countBytes(const char *bytes, size_t length, void *userData) {
  (void)bytes;
  *(size_t *)userData += length;
}

/* Hands the text of a level to printBytes; null options are the defaults. */
static int compileText(const char *path, GdnLevel level,
                       const GdnCompileOptions *options) {
  size_t length;
  char *text = readFile(path, &length);
  GdnCompileStatus status = gdnCompileToText(
      text, length, "layer.mlir", level, options, printBytes, printError, NULL);
  free(text);
  return status;
}

/* Compiles to an object with a CPU by name ("" is the host), features on top
   and a level of optimisation, and checks that there is code in it. */
static int compileObject(const char *path, const char *cpu,
                         const char *features, const char *level) {
  size_t length, size = 0;
  char *text = readFile(path, &length);
  GdnCompileOptions options;
  GdnCompileStatus status;
  gdnCompileOptionsInit(&options, sizeof(options));
  options.cpu = cpu;
  options.features = features;
  if (level)
    options.opt_level = (uint32_t)atoi(level);
  status = gdnCompileToObject(text, length, NULL, &options, countBytes,
                              printError, &size);
  if (status == GDN_COMPILE_SUCCESS)
    printf("object: %s\n", size > 1000 ? "some code" : "too small");
  free(text);
  return status;
}

static int compileWithChunk(const char *path, int64_t chunkSize) {
  GdnCompileOptions options;
  gdnCompileOptionsInit(&options, sizeof(options));
  options.chunk_size = chunkSize;
  options.plan = "separate";
  return compileText(path, GDN_LEVEL_STAGES, &options);
}

static int compileTwoProductChain(const char *path) {
  GdnCompileOptions options;
  gdnCompileOptionsInit(&options, sizeof(options));
  options.two_product_chain = 1;
  return compileText(path, GDN_LEVEL_TILE, &options);
}

static int compileSequential(const char *path) {
  GdnCompileOptions options;
  gdnCompileOptionsInit(&options, sizeof(options));
  options.parallel = 0;
  return compileText(path, GDN_LEVEL_LLVM, &options);
}

/* A caller's mistakes end in a status, and none in a crash. */
static int compileMisused(void) {
  const char *module = "module {}", *notUTF8 = "\xff\xfe";
  GdnCompileOptions options;
  int failures = 0;
  gdnCompileOptionsInit(NULL, sizeof(options));
  failures += gdnCompileToText(module, strlen(module), "x", GDN_LEVEL_TILE,
                               NULL, NULL, printError, NULL);
  failures += gdnCompileToObject(module, strlen(module), "x", NULL, NULL,
                                 printError, NULL);
  failures += gdnCompileToText(NULL, 5, "x", GDN_LEVEL_TILE, NULL, printBytes,
                               printError, NULL);
  failures += gdnCompileToText(notUTF8, 2, notUTF8, GDN_LEVEL_TILE, NULL,
                               printBytes, printError, NULL);
  failures += gdnCompileToText("?", 1, "x", GDN_LEVEL_TILE, NULL, printBytes,
                               NULL, NULL);
  failures += gdnCompileToText(NULL, 0, NULL, GDN_LEVEL_TILE, NULL, printBytes,
                               printError, NULL);
  printf("%d failures\n", failures);
  return 0;
}

struct Job {
  const char *text;
  size_t length, size;
  GdnCompileStatus status;
};

static void *runJob(void *argument) {
  struct Job *job = argument;
  job->status = gdnCompileToObject(job->text, job->length, NULL, NULL,
                                   countBytes, NULL, &job->size);
  return NULL;
}

/* The same module in several threads gives the same object in each. */
static int compileInThreads(const char *path) {
  struct Job jobs[kThreads] = {{0}};
  pthread_t threads[kThreads];
  size_t length;
  int i, failures = 0;
  char *text = readFile(path, &length);
  for (i = 0; i < kThreads; ++i) {
    jobs[i].text = text;
    jobs[i].length = length;
    pthread_create(&threads[i], NULL, runJob, &jobs[i]);
  }
  for (i = 0; i < kThreads; ++i)
    pthread_join(threads[i], NULL);
  for (i = 0; i < kThreads; ++i)
    failures += jobs[i].status != GDN_COMPILE_SUCCESS || jobs[i].size == 0 ||
                jobs[i].size != jobs[0].size;
  printf("%d threads, %d failures\n", kThreads, failures);
  free(text);
  return failures;
}

int main(int argc, char **argv) {
  const char *command = argc > 1 ? argv[1] : "", *path = argv[2];
  if (!strcmp(command, "version"))
    return printf("version %s\n", gdnCompilerGetVersion()) < 0;
  if (argc < 3)
    return 2;
  if (!strcmp(command, "stages"))
    return compileText(path, GDN_LEVEL_STAGES, NULL);
  if (!strcmp(command, "tile"))
    return compileText(path, GDN_LEVEL_TILE, NULL);
  if (!strcmp(command, "llvm"))
    return compileText(path, GDN_LEVEL_LLVM, NULL);
  if (!strcmp(command, "no-such-level"))
    return compileText(path, (GdnLevel)99, NULL);
  if (!strcmp(command, "object"))
    return compileObject(path, argc > 3 ? argv[3] : NULL, NULL, NULL);
  if (!strcmp(command, "features"))
    return compileObject(path, NULL, argc > 3 ? argv[3] : NULL, NULL);
  if (!strcmp(command, "opt-level"))
    return compileObject(path, NULL, NULL, argc > 3 ? argv[3] : NULL);
  if (!strcmp(command, "misuse"))
    return compileMisused();
  if (!strcmp(command, "chunk"))
    return compileWithChunk(path, argc > 3 ? atoi(argv[3]) : 32);
  if (!strcmp(command, "two-product-chain"))
    return compileTwoProductChain(path);
  if (!strcmp(command, "sequential"))
    return compileSequential(path);
  if (!strcmp(command, "threads"))
    return compileInThreads(path);
  return 2;
}
