//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The format: "\x93NUMPY", two version bytes, the header's length (2 bytes in
// version 1, 4 in versions 2 and 3, little endian), the header, the elements.
// The header is the text of a Python dict with exactly three keys. A file comes
// from anywhere, so every field is checked before it is believed.
//
//===----------------------------------------------------------------------===//

#include "gdn/Tools/HostArray.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cstring>
#include <limits>

using namespace mlir;
using namespace mlir::gdn;
using namespace mlir::gdn::tools;
using llvm::StringRef;

static constexpr StringRef magic("\x93NUMPY", 6);

namespace {
/// The three entries of a header.
struct Header {
  std::string type;
  bool fortranOrder = false;
  llvm::SmallVector<int64_t> shape;
};

/// Reads the header's dict. Every method returns false where the text is not
/// what the format says.
class HeaderParser {
public:
  explicit HeaderParser(StringRef text) : rest(text) {}

  bool parse(Header &header) {
    bool seenType = false, seenOrder = false, seenShape = false;
    if (!consume("{"))
      return false;
    while (!consume("}")) {
      std::string key;
      if (!parseString(key) || !consume(":"))
        return false;
      if (key == "descr" && !seenType)
        seenType = parseString(header.type);
      else if (key == "fortran_order" && !seenOrder)
        seenOrder = parseBool(header.fortranOrder);
      else if (key == "shape" && !seenShape)
        seenShape = parseShape(header.shape);
      else
        return false;
      if (!consume(",") && !rest.ltrim().starts_with("}"))
        return false;
    }
    return seenType && seenOrder && seenShape && rest.trim().empty();
  }

private:
  bool consume(StringRef token) {
    rest = rest.ltrim();
    return rest.consume_front(token);
  }

  bool parseString(std::string &text) {
    rest = rest.ltrim();
    if (rest.empty() || (rest[0] != '\'' && rest[0] != '"'))
      return false;
    size_t end = rest.find(rest[0], 1);
    if (end == StringRef::npos)
      return false;
    text = rest.slice(1, end).str();
    rest = rest.drop_front(end + 1);
    return true;
  }

  bool parseBool(bool &value) {
    value = consume("True");
    return value || consume("False");
  }

  bool parseShape(llvm::SmallVector<int64_t> &shape) {
    if (!consume("("))
      return false;
    while (!consume(")")) {
      rest = rest.ltrim();
      uint64_t size;
      if (rest.consumeInteger(10, size) ||
          size > uint64_t(std::numeric_limits<int64_t>::max()))
        return false;
      shape.push_back(size);
      if (!consume(",") && !rest.ltrim().starts_with(")"))
        return false;
    }
    return true;
  }

  StringRef rest;
};

/// How elements of one type are read.
struct Reader {
  StringRef type;
  int64_t size;
  bool isInteger;
  double (*read)(const char *);
};
} // namespace

template <typename T> static double readAs(const char *bytes) {
  return static_cast<double>(
      llvm::support::endian::read<T, llvm::endianness::little>(bytes));
}

template <Element element> static double readHalf(const char *bytes) {
  HostArray one(element, {1});
  std::memcpy(one.data(), bytes, 2);
  return one[0];
}

static const Reader *findReader(StringRef type) {
  static const Reader readers[] = {
      {"f2", 2, false, readHalf<Element::F16>},
      {"V2", 2, false, readHalf<Element::BF16>},
      {"f4", 4, false, readAs<float>},
      {"f8", 8, false, readAs<double>},
      {"b1", 1, true, readAs<uint8_t>},
      {"i1", 1, true, readAs<int8_t>},
      {"i2", 2, true, readAs<int16_t>},
      {"i4", 4, true, readAs<int32_t>},
      {"i8", 8, true, readAs<int64_t>},
      {"u1", 1, true, readAs<uint8_t>},
      {"u2", 2, true, readAs<uint16_t>},
      {"u4", 4, true, readAs<uint32_t>},
      {"u8", 8, true, readAs<uint64_t>},
  };
  // '|' stands where the byte order does not matter.
  if (!type.consume_front("<") && !type.consume_front("|"))
    return nullptr;
  for (const Reader &reader : readers)
    if (reader.type == type)
      return &reader;
  return nullptr;
}

template <typename... Args>
static llvm::Error fail(StringRef path, const char *format, Args... args) {
  return llvm::createStringError(
      path.str() + ": " + llvm::formatv(format, args...).str(),
      std::make_error_code(std::errc::invalid_argument));
}

/// Splits the file into header text and elements.
static llvm::Error splitFile(StringRef path, StringRef content,
                             StringRef &header, StringRef &elements) {
  if (!content.consume_front(magic))
    return fail(path, "expected a .npy file, got other content");
  if (content.size() < 2)
    return fail(path, "expected a .npy header, got a truncated file");
  unsigned version = static_cast<unsigned char>(content[0]);
  if (version < 1 || version > 3)
    return fail(path, "expected .npy version 1, 2 or 3, got {0}", version);
  content = content.drop_front(2);
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (content.size() < lengthBytes)
    return fail(path, "expected a .npy header, got a truncated file");
  uint64_t length = version == 1
                        ? llvm::support::endian::read16le(content.data())
                        : llvm::support::endian::read32le(content.data());
  content = content.drop_front(lengthBytes);
  if (content.size() < length)
    return fail(path, "expected a .npy header of {0} bytes, got {1}", length,
                content.size());
  header = content.take_front(length);
  elements = content.drop_front(length);
  return llvm::Error::success();
}

/// Reads `file` until `content` has `count` bytes or the file ends.
static llvm::Error readSome(llvm::sys::fs::file_t file, size_t count,
                            llvm::SmallVectorImpl<char> &content) {
  while (content.size() < count) {
    char bytes[64];
    size_t want = std::min(count - content.size(), sizeof(bytes));
    llvm::Expected<size_t> got =
        llvm::sys::fs::readNativeFile(file, llvm::MutableArrayRef(bytes, want));
    if (!got)
      return got.takeError();
    if (*got == 0)
      break;
    content.append(bytes, bytes + *got);
  }
  return llvm::Error::success();
}

/// Reads a whole file if it begins as one of NumPy's: another, such as a
/// device, may have no end.
static llvm::Error readFile(StringRef path,
                            llvm::SmallVectorImpl<char> &content) {
  llvm::Expected<llvm::sys::fs::file_t> file =
      llvm::sys::fs::openNativeFileForRead(path);
  llvm::Error error =
      file ? readSome(*file, magic.size(), content) : file.takeError();
  if (!error && file && StringRef(content.data(), content.size()) == magic)
    error = llvm::sys::fs::readNativeFileToEOF(*file, content);
  if (file)
    llvm::sys::fs::closeFile(*file);
  if (error)
    return fail(path, "expected a readable file, got '{0}'",
                llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Expected<NpyArray> tools::readNpy(StringRef path) {
  llvm::SmallString<0> content;
  if (llvm::Error error = readFile(path, content))
    return std::move(error);
  StringRef text, elements;
  if (llvm::Error error = splitFile(path, content, text, elements))
    return std::move(error);
  Header header;
  if (!HeaderParser(text).parse(header))
    return fail(path, "expected a .npy header with descr, fortran_order and "
                      "shape, got a corrupt one");
  const Reader *reader = findReader(header.type);
  if (!reader)
    return fail(path,
                "expected little-endian integers or floats of 16, 32 or 64 "
                "bits, got type '{0}'",
                header.type);
  std::optional<int64_t> count = countElements(header.shape);
  // NumPy stores an array of one row in both orders alike, so only the flag of
  // a true matrix matters; transposing silently would hide a mistake.
  if (header.fortranOrder && header.shape.size() > 1)
    return fail(path, "expected C order, got Fortran order (save "
                      "numpy.ascontiguousarray of it)");
  if (!count || elements.size() != uint64_t(*count) * reader->size)
    return fail(path, "expected the elements of shape {0}, got {1} bytes",
                describe(header.shape), elements.size());
  NpyArray array{header.type, reader->isInteger, header.shape, {}};
  array.values.reserve(*count);
  for (int64_t i = 0; i < *count; ++i)
    array.values.push_back(reader->read(elements.data() + i * reader->size));
  return array;
}

llvm::Error tools::writeNpy(StringRef path, const HostArray &array) {
  std::error_code failure;
  llvm::raw_fd_ostream os(path, failure);
  if (failure)
    return fail(path, "expected a writable file, got '{0}'", failure.message());
  Element element = array.getElement();
  bool isInteger = element == Element::I8 || element == Element::I32 ||
                   element == Element::I64;
  std::string header = "{'descr': '" + std::string(isInteger ? "<i8" : "<f4") +
                       "', 'fortran_order': False, 'shape': (";
  for (int64_t size : array.getShape())
    header += std::to_string(size) + ",";
  header += "), }";
  // The elements start at a multiple of 64 bytes, as the format asks.
  size_t prefix = magic.size() + 4;
  header.resize(llvm::alignTo(prefix + header.size() + 1, 64) - prefix - 1,
                ' ');
  header += '\n';
  os << magic << '\x01' << '\0';
  char length[2];
  llvm::support::endian::write16le(length, header.size());
  os.write(length, sizeof(length));
  os << header;
  for (int64_t i = 0; i < array.size(); ++i) {
    char bytes[8];
    if (isInteger)
      llvm::support::endian::write64le(bytes, static_cast<int64_t>(array[i]));
    else
      llvm::support::endian::write32le(
          bytes, llvm::bit_cast<uint32_t>(static_cast<float>(array[i])));
    os.write(bytes, isInteger ? 8 : 4);
  }
  os.close();
  if (!os.has_error())
    return llvm::Error::success();
  failure = os.error();
  os.clear_error();
  return fail(path, "expected a writable file, got '{0}'", failure.message());
}
