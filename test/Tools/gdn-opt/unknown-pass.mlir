// A pass that does not exist is an error with a clear message, not a crash.
// RUN: not gdn-opt %s --pass-pipeline="builtin.module(no-such-pass)" 2>&1 | FileCheck %s
// CHECK: 'no-such-pass' does not refer to a registered pass or pass pipeline

module {}
