//===- Checks.cpp - Order and state of accesses to shared memory ----------===//
//
// Part of the gdn project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two accesses of which one writes must be ordered by barriers, whatever order
// they happen to run in: the clock of the later one has seen the earlier one
// (ptxemu/clocks.py).
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

using namespace gdn::emulator;

static const char *nameOfState(uint32_t state) {
  // Of a word, the worst of its bytes.
  if (state & 0x04040404)
    return "an mbarrier";
  return state & 0x02020202 ? "shared memory that a copy in flight writes"
                            : "shared memory that nothing has written";
}

std::string gdn::emulator::nameOf(const Shared &s, int thread) {
  if (thread == s.threads - 1)
    return "a copy";
  return "warp " + std::to_string(thread % s.warps) + " of CTA " +
         std::to_string(thread / s.warps) + " of the cluster";
}

/// Who wrote a word last, for the end of a message.
static std::string history(const Shared &s, int64_t word) {
  return s.writtenLine[word] ? " (line " + std::to_string(s.writtenLine[word]) +
                                   " wrote it last)"
                             : "";
}

static bool failState(Warp &w, const char *what, int64_t at, uint32_t state,
                      int line) {
  w.fail(line, "%s %s, at byte %lld%s", what, nameOfState(state),
         static_cast<long long>(at), history(*w.shared, at / 4).c_str());
  return false;
}

static bool behindWrites(Warp &w, const Shared &s, const char *what,
                         const int32_t *clock, int64_t word, int line) {
  if (s.written[word] <= clock[s.writer[word]])
    return true;
  w.fail(line,
         "race: %s byte %lld of shared memory, which line %d wrote (%s); no "
         "barrier orders them",
         what, static_cast<long long>(word * 4), s.writtenLine[word],
         nameOf(s, s.writer[word]).c_str());
  return false;
}

/// Whether a write to a word is behind all reads and writes of others.
static bool behindAll(Warp &w, const Shared &s, const int32_t *clock,
                      int64_t word, int line) {
  if (!behindWrites(w, s, "write to", clock, word, line))
    return false;
  const int32_t *read = s.read + word * s.threads;
  int32_t late = 0;
  for (int t = 0; t < s.threads; ++t)
    late |= read[t] > clock[t];
  if (late) {
    int who = 0;
    while (read[who] <= clock[who])
      ++who;
    w.fail(line,
           "race: write to byte %lld of shared memory, which %s reads (line "
           "%d); no barrier orders them",
           static_cast<long long>(word * 4), nameOf(s, who).c_str(),
           s.readLine[word]);
    return false;
  }
  if (!s.reading[word])
    return true;
  w.fail(line,
         "write to byte %lld of shared memory, which a product or copy in "
         "flight reads (line %d)",
         static_cast<long long>(word * 4), s.readLine[word]);
  return false;
}

/// The bytes of a word that an access of `bytes` at `at` touches, as bits of
/// its state.
static uint32_t touched(int64_t at, int bytes) {
  return bytes >= 4 ? ~0u : ((1u << 8 * bytes) - 1) << 8 * (at & 3);
}

bool gdn::emulator::readShared(Warp &w, int64_t at, int bytes, int line) {
  Shared &s = *w.shared;
  const uint64_t bit = uint64_t(1) << w.thread % 64;
  const uint32_t touch = touched(at, bytes);
  const int64_t end = (at + bytes + 3) / 4;
  for (int64_t word = at / 4; word < end; ++word) {
    uint32_t state = s.stateOf(word) & touch;
    if (state != (wordWritten & touch))
      return failState(w, "read of", bytes < 4 ? at : word * 4, state, line);
    if (!behindWrites(w, s, "read of", w.clock, word, line))
      return false;
    s.read[word * s.threads + w.thread] = w.clock[w.thread];
    s.readLine[word] = line;
    s.loaded[word] |= bit;
    s.dirty[word / pageWords] = 1;
  }
  return true;
}

bool gdn::emulator::writeShared(Warp &w, int64_t at, int bytes, int line) {
  Shared &s = *w.shared;
  const uint32_t touch = touched(at, bytes);
  const int64_t end = (at + bytes + 3) / 4;
  for (int64_t word = at / 4; word < end; ++word) {
    uint32_t state = s.stateOf(word);
    if (state & touch & 0x06060606)
      return failState(w, "write to", bytes < 4 ? at : word * 4, state & touch,
                       line);
    if (!behindAll(w, s, w.clock, word, line))
      return false;
    s.unfenced[word] = w.thread + 1;
    s.writer[word] = w.thread;
    s.written[word] = w.clock[w.thread];
    s.writtenLine[word] = line;
    s.dirty[word / pageWords] = 1;
    s.setState(word, (state & ~touch) | (wordWritten & touch));
  }
  return true;
}

bool gdn::emulator::beginAsyncRead(Warp &w, const int32_t *words, size_t count,
                                   int line, bool unwritten) {
  Shared &s = *w.shared;
  for (const int32_t *next = words; next != words + count; ++next) {
    int64_t word = *next;
    uint32_t state = s.stateOf(word);
    if (state != wordWritten && (state || !unwritten))
      return failState(w, "asynchronous read of", word * 4, state, line);
    if (!behindWrites(w, s, "read of", w.clock, word, line))
      return false;
    if (s.unfenced[word]) {
      w.fail(line,
             "asynchronous read of byte %lld of shared memory, which line %d "
             "wrote (%s) without a fence.proxy.async behind it",
             static_cast<long long>(word * 4), s.writtenLine[word],
             nameOf(s, s.unfenced[word] - 1).c_str());
      return false;
    }
    ++s.reading[word];
    s.readLine[word] = line;
  }
  return true;
}

void gdn::emulator::endAsyncRead(Warp &w, const int32_t *words, size_t count) {
  Shared &s = *w.shared;
  for (const int32_t *next = words; next != words + count; ++next) {
    --s.reading[*next];
    s.read[int64_t(*next) * s.threads + w.thread] = w.clock[w.thread];
  }
}

bool gdn::emulator::beginCopy(Warp &w, Shared &s, const int32_t *words,
                              size_t count, int line, const int32_t *clock,
                              int thread, bool ordinary) {
  for (const int32_t *next = words; next != words + count; ++next) {
    int64_t word = *next;
    uint32_t state = s.stateOf(word);
    if (state & 0x06060606) {
      w.fail(line, "a copy to byte %lld of shared memory, where %s",
             static_cast<long long>(word * 4),
             state & 0x04040404 ? "an mbarrier is"
                                : "another copy is in flight");
      return false;
    }
    if (!behindAll(w, s, w.clock, word, line))
      return false;
    if (!ordinary && s.loaded[word]) {
      // An arrival does not order loads of the ordinary proxy before a copy.
      w.fail(line,
             "a copy to byte %lld of shared memory, which line %d reads (%s) "
             "without a fence.proxy.async behind it",
             static_cast<long long>(word * 4), s.readLine[word],
             nameOf(s, 63 - __builtin_clzll(s.loaded[word])).c_str());
      return false;
    }
  }
  for (const int32_t *next = words; next != words + count; ++next) {
    s.writer[*next] = thread;
    s.written[*next] = clock[thread];
    s.writtenLine[*next] = line;
    s.unfenced[*next] = 0;
    s.setState(*next, wordWritten * Arriving);
  }
  return true;
}

/// Calls a function with each word that may be unfenced or loaded, and keeps
/// the pages that still have one.
template <typename Function>
static void forDirty(Shared &s, Function function) {
  const int64_t words = int64_t(s.size / 4);
  for (int64_t begin = 0; begin < words; begin += pageWords) {
    if (!s.dirty[begin / pageWords])
      continue;
    uint64_t left = 0;
    for (int64_t word = begin; word < words && word < begin + pageWords; ++word)
      if (s.unfenced[word] || s.loaded[word]) {
        function(word);
        left |= s.unfenced[word] || s.loaded[word];
      }
    s.dirty[begin / pageWords] = left != 0;
  }
}

void gdn::emulator::fence(Warp &w) {
  Shared &s = *w.shared;
  forDirty(s, [&](int64_t word) {
    if (s.unfenced[word] && s.written[word] <= w.clock[s.writer[word]])
      s.unfenced[word] = 0;
    if (!s.loaded[word])
      return;
    const int32_t *read = s.read + word * s.threads;
    for (int t = 0; t < s.threads; ++t)
      if (read[t] <= w.clock[t])
        s.loaded[word] &= ~(uint64_t(1) << t % 64);
  });
}

void gdn::emulator::productsTook(Warp &w) {
  Shared &s = *w.shared;
  const uint64_t others = ~(uint64_t(1) << w.thread % 64);
  forDirty(s, [&](int64_t word) { s.loaded[word] &= others; });
}
