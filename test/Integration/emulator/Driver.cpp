//===- Driver.cpp - A CUDA driver that emulates launches ------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The fake driver of the runtime's tests, with memory and launches: memory is a
// file that the emulator (emulate.py) maps too, and each launch is a message to
// it. GDN_EMULATOR=<socket>,<file> names both by their descriptors.
//
//===----------------------------------------------------------------------===//

#include "FakeDriver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace gdn::runtime;

namespace {
/// What a message is about; ptxemu/server.py has the same numbers.
enum class Message : uint32_t { Arena = 1, Allocate, Free, Image, Launch };

/// A kernel of an image.
struct Kernel {
  std::string name;
  std::vector<FakeParam> params;
};

struct Image {
  std::map<std::string, Kernel> kernels;
};

constexpr size_t arenaBytes = size_t(1) << 30, alignment = 256, gap = 4096;
constexpr CUresult invalidValue = 1, outOfMemory = 2, invalidImage = 200,
                   notFound = 500, launchFailed = 719;

/// The connection to the emulator and the memory that it shares.
struct Connection {
  std::mutex mutex;
  int socket = -1;
  char *arena = nullptr;
  size_t used = gap;
};
} // namespace

static Connection &connection() {
  static Connection instance;
  return instance;
}

static bool sendAll(int file, const void *data, size_t bytes) {
  const char *next = static_cast<const char *>(data);
  while (bytes) {
    ssize_t written = write(file, next, bytes);
    if (written <= 0)
      return false;
    next += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

static bool receiveAll(int file, void *data, size_t bytes) {
  char *next = static_cast<char *>(data);
  while (bytes) {
    ssize_t got = read(file, next, bytes);
    if (got <= 0)
      return false;
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

/// Sends a message and waits for the answer; false if the emulator has failed.
static bool ask(Message kind, const std::string &text, std::string &answer) {
  Connection &c = connection();
  uint64_t header[2] = {static_cast<uint64_t>(kind), text.size()};
  if (!sendAll(c.socket, header, sizeof(header)) ||
      !sendAll(c.socket, text.data(), text.size()) ||
      !receiveAll(c.socket, header, sizeof(header)))
    return false;
  answer.resize(header[1]);
  return receiveAll(c.socket, answer.data(), answer.size()) && header[0] == 0;
}

template <typename... Values> static std::string pack(Values... values) {
  std::string text;
  auto add = [&](uint64_t value) {
    text.append(reinterpret_cast<char *>(&value), sizeof(value));
  };
  (add(static_cast<uint64_t>(values)), ...);
  return text;
}

/// Connects on the first call.
static bool connect() {
  Connection &c = connection();
  if (c.arena)
    return true;
  const char *names = getenv("GDN_EMULATOR");
  int file = -1;
  if (!names || sscanf(names, "%d,%d", &c.socket, &file) != 2)
    return false;
  void *place =
      mmap(nullptr, arenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (place == MAP_FAILED)
    return false;
  c.arena = static_cast<char *>(place);
  std::string answer;
  return ask(Message::Arena,
             pack(reinterpret_cast<uintptr_t>(place), arenaBytes), answer);
}

static CUresult allocate(CUdeviceptr *pointer, size_t bytes) {
  Connection &c = connection();
  std::lock_guard<std::mutex> lock(c.mutex);
  if (!connect())
    return launchFailed;
  size_t begin = (c.used + gap + alignment - 1) / alignment * alignment;
  if (begin + bytes + gap > arenaBytes)
    return outOfMemory;
  c.used = begin + bytes;
  *pointer = reinterpret_cast<uintptr_t>(c.arena) + begin;
  std::string answer;
  return ask(Message::Allocate, pack(begin, bytes), answer) ? 0 : launchFailed;
}

static CUresult release(CUdeviceptr pointer) {
  Connection &c = connection();
  std::lock_guard<std::mutex> lock(c.mutex);
  std::string answer;
  uint64_t place = pointer - reinterpret_cast<uintptr_t>(c.arena);
  return ask(Message::Free, pack(place), answer) ? 0 : invalidValue;
}

static CUresult copyToDevice(CUdeviceptr to, const void *from, size_t bytes) {
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return 0;
}

static CUresult copyToHost(void *to, CUdeviceptr from, size_t bytes) {
  memcpy(to, reinterpret_cast<const void *>(from), bytes);
  return 0;
}

static CUresult getPointerAttribute(void *value, int, CUdeviceptr pointer) {
  uint64_t place = pointer - reinterpret_cast<uintptr_t>(connection().arena);
  if (!connection().arena || place >= arenaBytes)
    return invalidValue;
  *static_cast<int *>(value) = 0;
  return 0;
}

/// Reads the image: PTX text, or what the emulator's ptxas wrote, which has an
/// ELF header in front of the text.
static CUresult loadImage(CUlibrary *library, const void *data, int *, void **,
                          unsigned, int *, void **, unsigned) {
  Connection &c = connection();
  std::lock_guard<std::mutex> lock(c.mutex);
  constexpr size_t headerBytes = 64;
  const char *text = static_cast<const char *>(data);
  if (memcmp(text, "\177ELF", 4) == 0)
    text += headerBytes;
  std::string answer;
  if (!connect() || !ask(Message::Image, text, answer))
    return invalidImage;
  // For each kernel its name, the number of its parameters, and these.
  auto *image = new Image;
  char name[1024];
  const char *next = answer.c_str();
  int length = 0;
  size_t count = 0;
  while (sscanf(next, "%1023s %zu%n", name, &count, &length) == 2) {
    next += length;
    Kernel kernel{name, {}};
    for (; count; --count) {
      FakeParam param;
      sscanf(next, "%zu %zu%n", &param.offset, &param.bytes, &length);
      next += length;
      kernel.params.push_back(param);
    }
    image->kernels[name] = kernel;
  }
  *library = reinterpret_cast<CUlibrary>(image);
  return 0;
}

static CUresult unloadImage(CUlibrary library) {
  delete reinterpret_cast<Image *>(library);
  return 0;
}

static CUresult getKernel(CUkernel *kernel, CUlibrary library,
                          const char *name) {
  auto &kernels = reinterpret_cast<Image *>(library)->kernels;
  auto found = kernels.find(name);
  if (found == kernels.end())
    return notFound;
  *kernel = reinterpret_cast<CUkernel>(&found->second);
  return 0;
}

static CUresult getParamInfo(CUkernel kernel, size_t index, size_t *offset,
                             size_t *bytes) {
  const auto &params = reinterpret_cast<Kernel *>(kernel)->params;
  if (index >= params.size())
    return invalidValue;
  *offset = params[index].offset;
  *bytes = params[index].bytes;
  return 0;
}

/// Writes a map as ptxemu/copies.py reads it.
static CUresult encodeMap(TensorMap *map, int type, uint32_t rank,
                          void *address, const uint64_t *extents,
                          const uint64_t *strides, const uint32_t *box,
                          const uint32_t *steps, int interleave, int swizzle,
                          int, int) {
  struct {
    char magic[4];
    uint8_t type, rank, swizzle, interleave;
    void *address;
    uint64_t extents[5], strides[4];
    uint16_t box[5];
    uint8_t steps[5];
  } text = {{'g', 'd', 'n', 'T'},
            static_cast<uint8_t>(type),
            static_cast<uint8_t>(rank),
            static_cast<uint8_t>(swizzle),
            static_cast<uint8_t>(interleave),
            address,
            {},
            {},
            {},
            {}};
  static_assert(sizeof(text) <= sizeof(TensorMap));
  for (uint32_t i = 0; i < rank; ++i) {
    text.extents[i] = extents[i];
    text.box[i] = static_cast<uint16_t>(box[i]);
    text.steps[i] = static_cast<uint8_t>(steps[i]);
    if (i + 1 < rank)
      text.strides[i] = strides[i];
  }
  memset(map, 0, sizeof(*map));
  memcpy(map, &text, sizeof(text));
  return 0;
}

static CUresult replaceAddress(TensorMap *map, void *address) {
  map->opaque[1] = reinterpret_cast<uintptr_t>(address);
  return 0;
}

static CUresult launch(const LaunchConfig *config, CUfunction function,
                       void **parameters, void **extra) {
  Connection &c = connection();
  std::lock_guard<std::mutex> lock(c.mutex);
  if (extra || !connect())
    return invalidValue;
  const Kernel &kernel = *reinterpret_cast<Kernel *>(function);
  uint32_t cluster[3] = {1, 1, 1};
  for (uint32_t i = 0; i < config->numAttributes; ++i)
    if (config->attributes[i].id == LaunchAttribute::clusterDimension)
      memcpy(cluster, config->attributes[i].cluster, sizeof(cluster));
  std::string text =
      pack(config->grid[0], config->grid[1], config->grid[2], config->block[0],
           config->block[1], config->block[2], cluster[0], cluster[1],
           cluster[2], config->sharedBytes, kernel.name.size());
  text += kernel.name;
  size_t begin = text.size();
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const FakeParam &param = kernel.params[i];
    text.resize(begin + param.offset + param.bytes);
    memcpy(text.data() + begin + param.offset, parameters[i], param.bytes);
  }
  std::string answer;
  return ask(Message::Launch, text, answer) ? 0 : launchFailed;
}

template <typename Function>
static void replace(const char *name, Function *function) {
  fakeReplace(name, reinterpret_cast<void *>(function));
}

/// Runs when the library is loaded, before the runtime asks for a function.
[[gnu::constructor]] static void replaceFunctions() {
  replace("cuMemAlloc", allocate);
  replace("cuMemFree", release);
  replace("cuMemcpyHtoD", copyToDevice);
  replace("cuMemcpyDtoH", copyToHost);
  replace("cuPointerGetAttribute", getPointerAttribute);
  replace("cuLibraryLoadData", loadImage);
  replace("cuLibraryUnload", unloadImage);
  replace("cuLibraryGetKernel", getKernel);
  replace("cuKernelGetParamInfo", getParamInfo);
  replace("cuTensorMapEncodeTiled", encodeMap);
  replace("cuTensorMapReplaceAddress", replaceAddress);
  replace("cuLaunchKernelEx", launch);
}
