// What does not fit the chip is an error that says by how much.
// RUN: gdn-opt %s --split-input-file --verify-diagnostics --gdn-warp-verify-explicit-form

// Everything in place: nothing to say.
gdn_warp.kernel @good() threads(384) shared(232448) {
  gdn_warp.role "a" warps(0, 3) registers(40) {
  }
  gdn_warp.role "b" warps(3, 1) registers(40) {
  }
  gdn_warp.role "c" warps(4, 8) registers(232) {
  }
}

// -----

// A CTA can have 227 KiB.
// expected-error @below {{expected at most 232448 bytes of shared memory in 1 CTAs, got 232449 each, 1 too many}}
gdn_warp.kernel @shared() threads(128) shared(232449) {
}

// -----

// Two CTAs share them.
// expected-error @below {{expected at most 232448 bytes of shared memory in 2 CTAs, got 131072 each, 29696 too many}}
gdn_warp.kernel @two() threads(128) shared(131072) min_ctas(2) {
}

// -----

// A view ends inside what the kernel asks for.
// expected-note @below {{the kernel's shared memory}}
gdn_warp.kernel @view() threads(128) shared(8192) {
  %c1024 = arith.constant 1024 : index
  // expected-error @below {{expected the end at or below byte 8192 of shared memory, got 9216}}
  %v = gdn_warp.view %c1024 : !gdn_warp.view<64x64xbf16, swizzle = 128>
}

// -----

// A warp has one role.
gdn_warp.kernel @overlap() threads(128) shared(0) {
  // expected-note @below {{the other role}}
  gdn_warp.role "a" warps(0, 2) {
  }
  // expected-error @below {{expected roles that share no warp, got warp 1 in two}}
  gdn_warp.role "b" warps(1, 2) {
  }
}

// -----

// setmaxnreg is one instruction for a warpgroup.
gdn_warp.kernel @registers() threads(128) shared(0) {
  // expected-note @below {{the other role}}
  gdn_warp.role "a" warps(0, 2) registers(40) {
  }
  // expected-error @below {{expected the register number of the other role of its warpgroup, got 48}}
  gdn_warp.role "b" warps(2, 2) registers(48) {
  }
}

// -----

// Roles that ask for more than there is would wait for ever.
// expected-error @below {{expected roles with at most 64512 registers together (168 of 384 threads at launch), got 66560}}
gdn_warp.kernel @sum() threads(384) shared(0) {
  gdn_warp.role "a" warps(0, 4) registers(40) {
  }
  gdn_warp.role "b" warps(4, 8) registers(240) {
  }
}

// -----

// The first warp of the warpgroup has no role.
gdn_warp.kernel @later() threads(128) shared(0) {
  // expected-note @below {{the other role}}
  gdn_warp.role "a" warps(1, 1) registers(40) {
  }
  // expected-error @below {{expected the register number of the other role of its warpgroup, got 48}}
  gdn_warp.role "b" warps(2, 1) registers(48) {
  }
}

// -----

// Sums that do not fit 64 bits.
// expected-error @below {{expected min_ctas of 1 to 16, as many threads as a multiprocessor has, got 144115188075855872}}
gdn_warp.kernel @ctas() threads(128) shared(0) min_ctas(144115188075855872) {
}

// -----

// expected-error @below {{expected at most 232448 bytes of shared memory in 4 CTAs, got 4611686018427387904 each}}
gdn_warp.kernel @all() threads(128) shared(4611686018427387904) min_ctas(4) {
}

// -----

gdn_warp.kernel @before() threads(128) shared(16) {
  %a = arith.constant -8 : index
  // expected-error @below {{expected an offset of at least 0, got -8}}
  %x = gdn_warp.barrier %a
}

// -----

gdn_warp.kernel @between() threads(128) shared(16) {
  %b = arith.constant 4 : index
  // expected-error @below {{expected an offset that is a multiple of 8, got 4}}
  %y = gdn_warp.barrier %b
}

// -----

gdn_warp.kernel @count() threads(128) shared(16) {
  %b = arith.constant 8 : index
  %y = gdn_warp.barrier %b
  // expected-error @below {{expected 1 to 1048575 arrivals a phase, got 4294967297}}
  gdn_warp.barrier_init %y, 4294967297
}
