//===- HostArray.h - Arrays on the host and their files ---------*- C++ -*-===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_TOOLS_HOSTARRAY_H
#define GDN_TOOLS_HOSTARRAY_H

#include "gdn/Target/CPU.h"

#include "mlir/IR/Types.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace mlir::gdn::tools {

/// Element types of the arrays that a compiled function takes and returns.
enum class Element { F32, BF16, F16, I8, I32, I64 };

/// The element type as it is written in MLIR text.
llvm::StringRef name(Element element);
/// Bytes of one element.
int64_t byteSize(Element element);
/// The element type of an MLIR type, or nothing if no array may have it.
std::optional<Element> elementOf(Type type);
/// `value` rounded to the nearest value of the type, ties to even; a float that
/// is too large becomes infinite.
double roundTo(Element element, double value);

/// "2x?x128": a shape for messages.
std::string describe(llvm::ArrayRef<int64_t> shape);

/// `cpu::allocateArray` for containers.
template <typename T> struct ArrayAllocator {
  using value_type = T;

  ArrayAllocator() = default;
  template <typename U> ArrayAllocator(const ArrayAllocator<U> &) {}

  T *allocate(size_t count) {
    void *memory = cpu::allocateArray(count * sizeof(T));
    if (!memory)
      llvm::report_bad_alloc_error("expected memory for an array, got none");
    return static_cast<T *>(memory);
  }
  void deallocate(T *memory, size_t) { std::free(memory); }
  bool operator==(const ArrayAllocator &) const { return true; }
};

/// A row-major array in the very bytes that a compiled function reads.
class HostArray {
public:
  HostArray() = default;
  /// An array of zeros. The number of bytes must fit (see `countElements`).
  HostArray(Element element, llvm::ArrayRef<int64_t> shape);
  /// `values` in row-major order, each rounded to `element`.
  HostArray(Element element, llvm::ArrayRef<int64_t> shape,
            llvm::ArrayRef<double> values);

  Element getElement() const { return element; }
  llvm::ArrayRef<int64_t> getShape() const { return shape; }
  int64_t size() const { return count; }
  char *data() { return bytes.data(); }
  const char *data() const { return bytes.data(); }

  double operator[](int64_t index) const;
  void set(int64_t index, double value);
  std::vector<double> toDoubles() const;
  /// Same type, shape and bits (so a NaN equals itself).
  bool operator==(const HostArray &other) const;

private:
  Element element = Element::F32;
  llvm::SmallVector<int64_t> shape;
  int64_t count = 0;
  std::vector<char, ArrayAllocator<char>> bytes;
};

/// Number of elements of a shape, or nothing if it is negative somewhere or if
/// its elements cannot be in memory.
std::optional<int64_t> countElements(llvm::ArrayRef<int64_t> shape);

/// The content of a .npy file: numbers of whatever type, before rounding.
struct NpyArray {
  /// NumPy's description of the element type, such as "<f4".
  std::string type;
  bool isInteger = false;
  llvm::SmallVector<int64_t> shape;
  std::vector<double> values;
};

/// Reads a little-endian, C order .npy file of integers, f16, bf16 (as
/// ml_dtypes stores it: V2), f32 or f64.
llvm::Expected<NpyArray> readNpy(llvm::StringRef path);
/// Writes `array` as f32 (integers as i64).
llvm::Error writeNpy(llvm::StringRef path, const HostArray &array);

} // namespace mlir::gdn::tools

#endif // GDN_TOOLS_HOSTARRAY_H
