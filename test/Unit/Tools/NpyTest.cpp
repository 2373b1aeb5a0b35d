//===- NpyTest.cpp - Good and corrupt .npy files --------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/HostArray.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir::gdn::tools;

namespace {
/// A file that is gone when the test is.
class Npy : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("gdn", "npy", path));
    remover.setFile(path);
  }

  void write(const std::string &content) {
    std::error_code failure;
    llvm::raw_fd_ostream os(path, failure);
    os << content;
  }

  /// Reads the file; the message if it is refused, and "" otherwise.
  std::string refusal() {
    llvm::Expected<NpyArray> array = readNpy(path);
    return array ? std::string() : llvm::toString(array.takeError());
  }

  static std::string makeFile(const std::string &header,
                              const std::string &elements) {
    std::string text("\x93NUMPY\x01\x00", 8);
    text += static_cast<char>(header.size() & 0xff);
    text += static_cast<char>(header.size() >> 8);
    return text + header + elements;
  }

  llvm::SmallString<128> path;
  llvm::FileRemover remover;
};
} // namespace

static const char goodHeader[] =
    "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }\n";

TEST_F(Npy, ReadsWhatItWrote) {
  HostArray array(Element::BF16, {2, 3}, {1, -2, 0.5, 1e30, 3, 4});
  ASSERT_FALSE(bool(writeNpy(path, array)));
  llvm::Expected<NpyArray> read = readNpy(path);
  ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->type, "<f4");
  EXPECT_FALSE(read->isInteger);
  EXPECT_EQ(llvm::ArrayRef(read->shape), array.getShape());
  EXPECT_EQ(read->values, array.toDoubles());
}

TEST_F(Npy, WritesElementsAtAMultipleOf64) {
  ASSERT_FALSE(bool(writeNpy(path, HostArray(Element::F32, {1}))));
  uint64_t size = 0;
  ASSERT_FALSE(llvm::sys::fs::file_size(path, size));
  EXPECT_EQ((size - 4) % 64, 0u);
}

TEST_F(Npy, ReadsIntegersAndScalars) {
  write(makeFile(goodHeader, std::string("\x01\0\xff\xff\x03\0\0\x80", 8)));
  llvm::Expected<NpyArray> array = readNpy(path);
  ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
  EXPECT_TRUE(array->isInteger);
  EXPECT_EQ(array->values, (std::vector<double>{1, -1, 3, -32768}));

  write(makeFile("{\"shape\": (), 'fortran_order':False,'descr':'|u1'}", "\7"));
  array = readNpy(path);
  ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
  EXPECT_EQ(array->values, std::vector<double>{7});
}

TEST_F(Npy, RefusesEveryTruncation) {
  std::string file = makeFile(goodHeader, std::string(8, '\1'));
  for (size_t size = 0; size < file.size(); ++size) {
    write(file.substr(0, size));
    EXPECT_NE(refusal(), "") << size;
  }
  write(file + "x");
  EXPECT_NE(refusal().find("expected the elements of shape 2x2, got 9 bytes"),
            std::string::npos);
}

TEST_F(Npy, RefusesWrongHeaders) {
  const char *headers[] = {
      "",
      "{}",
      "{'descr': '<i2', 'fortran_order': False}",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), 'x': 1}",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2)} rest",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2, -2)}",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (2 2)}",
      "{'descr': '<i2', 'fortran_order': 0, 'shape': (2, 2)}",
      "{'descr': '<i2, 'fortran_order': False, 'shape': (2, 2)}",
      "{'descr': '<i2', 'descr': '<i2', 'fortran_order': False, 'shape': (4,)}",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (99999999999999999999,"
      ")}",
      "{'descr': '<i2', 'fortran_order': False, 'shape': (4294967296, "
      "4294967296)}",
      "{'descr': '>i2', 'fortran_order': False, 'shape': (2, 2)}",
      "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}",
      "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2)}"};
  for (const char *header : headers) {
    write(makeFile(header, std::string(8, '\1')));
    EXPECT_NE(refusal().find("expected"), std::string::npos) << header;
  }
}

TEST_F(Npy, RefusesUnknownVersions) {
  std::string file = makeFile(goodHeader, std::string(8, '\1'));
  file[6] = 4;
  write(file);
  EXPECT_NE(refusal().find("expected .npy version 1, 2 or 3, got 4"),
            std::string::npos);
}
