#!/usr/bin/env python3
"""What instructions of PTX do once they are translated: each beside what the PTX ISA says of it.

usage: test_translate.py COMPILER INCLUDE... GRID
COMPILER: words; INCLUDE: folders, of which CUDA's headers are the last; GRID: the library that runs threads."""

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
import unittest

import translate

COMPILER, FOLDERS, GRID = sys.argv[1].split(), sys.argv[2:-1], sys.argv[-1]

NAN = 0x7FC00000
# Of f32, that arithmetic makes.
ANY_NAN = 0x7FFFFFFF
HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"


def f32(value):
    return struct.unpack("<I", struct.pack("<f", value))[0]


def f64(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def kernel(name, registers, body, more=""):
    """Text of a kernel whose parameter is the address of its result; each thread has %out, an address of eight bytes of its own, and %lane."""
    return f"""
{more}
.visible .entry {name}(
	.param .align 8 .b8 {name}_param_0[8]
)
{{
	{registers}
	.reg .b64 %out, %by;
	.reg .b32 %lane;
	ld.param.u64 %out, [{name}_param_0];
	mov.u32 %lane, %tid.x;
	mul.wide.u32 %by, %lane, 8;
	add.s64 %out, %out, %by;
{body}
	ret;
}}
"""


# Of each: the instruction, types of its operands (the result's first), operands, result. Bits, as unsigned numbers.
VALUES = [
    ("add.s32", "b32 b32 b32", (0xFFFFFFFF, 2), 1),
    ("add.s16", "b16 b16 b16", (0xFFFF, 2), 1),
    ("sub.s64", "b64 b64 b64", (0, 1), 2**64 - 1),
    ("mul.lo.s16", "b16 b16 b16", (0xFFFF, 0xFFFF), 1),
    ("mul.lo.s32", "b32 b32 b32", (0x10001, 0x10001), 0x20001),
    ("mul.wide.s32", "b64 b32 b32", (0xFFFFFFFE, 3), 2**64 - 6),
    ("mul.wide.u32", "b64 b32 b32", (0xFFFFFFFE, 3), 0x2FFFFFFFA),
    ("mul.wide.u16", "b32 b16 b16", (0xFFFF, 0xFFFF), 0xFFFE0001),
    ("mul.hi.u64", "b64 b64 b64", (2**63, 6), 3),
    ("mad.lo.s32", "b32 b32 b32 b32", (0xFFFFFFFF, 5, 7), 2),
    ("div.s32", "b32 b32 b32", (0xFFFFFFF9, 2), 0xFFFFFFFD),
    ("div.s32", "b32 b32 b32", (0x80000000, 0xFFFFFFFF), 0x80000000),
    ("rem.s32", "b32 b32 b32", (0xFFFFFFF9, 2), 0xFFFFFFFF),
    ("rem.s64", "b64 b64 b64", (2**63, 2**64 - 1), 0),
    ("rem.u32", "b32 b32 b32", (0xFFFFFFF9, 10), 9),
    ("min.s16", "b16 b16 b16", (0xFFFF, 1), 0xFFFF),
    ("min.u32", "b32 b32 b32", (0xFFFFFFFF, 1), 1),
    ("max.s64", "b64 b64 b64", (2**64 - 1, 1), 1),
    ("neg.s16", "b16 b16", (1,), 0xFFFF),
    ("abs.s32", "b32 b32", (0x80000000,), 0x80000000),
    ("abs.s64", "b64 b64", (2**64 - 5,), 5),
    ("not.b16", "b16 b16", (1,), 0xFFFE),
    ("xor.b64", "b64 b64 b64", (6, 3), 5),
    ("clz.b32", "b32 b32", (0,), 32),
    ("clz.b32", "b32 b32", (0x8000,), 16),
    ("shl.b32", "b32 b32 b32", (1, 31), 0x80000000),
    ("shl.b32", "b32 b32 b32", (1, 32), 0),
    ("shr.u64", "b64 b64 b32", (2**63, 63), 1),
    ("shr.u64", "b64 b64 b32", (2**63, 64), 0),
    ("shr.s32", "b32 b32 b32", (0x80000000, 40), 0xFFFFFFFF),
    ("shr.s16", "b16 b16 b32", (0x8000, 3), 0xF000),
    ("shr.u16", "b16 b16 b32", (0x8000, 3), 0x1000),
    ("shf.l.wrap.b32", "b32 b32 b32 b32", (0x80000000, 1, 33), 3),
    ("shf.r.clamp.b32", "b32 b32 b32 b32", (0x80000000, 1, 33), 1),
    ("shf.r.clamp.b32", "b32 b32 b32 b32", (0x80000000, 1, 1), 0xC0000000),
    ("bfi.b32", "b32 b32 b32 b32 b32", (0xFF, 0x12345678, 4, 8), 0x12345FF8),
    ("bfi.b32", "b32 b32 b32 b32 b32", (0xFF, 0, 28, 8), 0xF0000000),
    ("bfi.b32", "b32 b32 b32 b32 b32", (0xFF, 7, 32, 8), 7),
    ("bfi.b64", "b64 b64 b64 b32 b32", (1, 0, 40, 1), 2**40),
    ("prmt.b32", "b32 b32 b32 b32", (0x33221100, 0x77665544, 0x5240), 0x55224400),
    ("prmt.b32", "b32 b32 b32 b32", (0x80FF7F00, 0, 0xBA98), 0xFFFF0000),
    ("cvt.s16.s8", "b16 b16", (0x12FF,), 0xFFFF),
    ("cvt.s32.s8", "b32 b16", (0x0080,), 0xFFFFFF80),
    ("cvt.u32.u16", "b32 b16", (0xFFFF,), 0xFFFF),
    ("cvt.s64.s32", "b64 b32", (0xFFFFFFFF,), 2**64 - 1),
    ("cvt.u64.u32", "b64 b32", (0xFFFFFFFF,), 0xFFFFFFFF),
    ("cvt.u16.u32", "b16 b32", (0x12345678,), 0x5678),
    ("cvt.rn.f32.s64", "f32 b64", (2**24 + 1,), f32(2**24)),
    ("cvt.rn.f32.s64", "f32 b64", (2**24 + 3,), f32(2**24 + 4)),
    ("cvt.rn.f32.u32", "f32 b32", (0xFFFFFFFF,), f32(2**32)),
    ("cvt.rn.f64.s16", "f64 b16", (0xFFFF,), f64(-1)),
    ("cvt.rn.f32.f64", "f32 f64", (f64(1 + 2**-24),), f32(1)),
    ("cvt.rn.f32.f64", "f32 f64", (f64(1 + 3 * 2**-24),), f32(1 + 2**-22)),
    ("cvt.f64.f32", "f64 f32", (f32(0.1),), f64(struct.unpack("<f", struct.pack("<f", 0.1))[0])),
    ("cvt.rni.f32.f32", "f32 f32", (f32(2.5),), f32(2)),
    ("cvt.rni.f64.f64", "f64 f64", (f64(-3.5),), f64(-4)),
    ("cvt.rzi.f32.f32", "f32 f32", (f32(-2.5),), f32(-2)),
    ("cvt.rmi.f32.f32", "f32 f32", (f32(-2.5),), f32(-3)),
    ("cvt.rpi.f64.f64", "f64 f64", (f64(-2.5),), f64(-2)),
    ("cvt.rmi.f32.f32", "f32 f32", (f32(-0.0),), f32(-0.0)),
    ("cvt.rzi.s32.f32", "b32 f32", (f32(-1.5),), 0xFFFFFFFF),
    ("cvt.rzi.s32.f32", "b32 f32", (f32(3e9),), 0x7FFFFFFF),
    ("cvt.rzi.s32.f32", "b32 f32", (f32(-3e9),), 0x80000000),
    ("cvt.rzi.s32.f32", "b32 f32", (NAN,), 0),
    ("cvt.rzi.s64.f64", "b64 f64", (f64(1e30),), 2**63 - 1),
    ("cvt.rzi.s64.f64", "b64 f64", (f64(-(2.0**63)),), 2**63),
    ("add.rn.f32", "f32 f32 f32", (f32(2**24), f32(1)), f32(2**24)),
    ("add.rn.f32", "f32 f32 f32", (f32(float("inf")), f32(float("-inf"))), ANY_NAN),
    ("add.rn.f32", "f32 f32 f32", (0xFFC12345, f32(1)), ANY_NAN),
    ("mul.rn.f32", "f32 f32 f32", (1, f32(0.5)), 0),
    ("mul.rn.f32", "f32 f32 f32", (3, f32(0.5)), 2),
    ("sub.rn.f64", "f64 f64 f64", (f64(1), f64(2.0**-54)), f64(1)),
    ("div.rn.f32", "f32 f32 f32", (f32(1), f32(3)), f32(1 / 3)),
    ("rcp.rn.f64", "f64 f64", (f64(3),), f64(1 / 3)),
    ("sqrt.rn.f32", "f32 f32", (f32(2),), f32(2**0.5)),
    ("sqrt.rn.f32", "f32 f32", (f32(-1),), ANY_NAN),
    ("fma.rn.f32", "f32 f32 f32 f32", (f32(1 + 2**-23), f32(1 + 2**-23), f32(-1 - 2**-22)), f32(2.0**-46)),
    ("fma.rn.f64", "f64 f64 f64 f64", (f64(1 + 2**-52), f64(1 + 2**-52), f64(-1 - 2**-51)), f64(2.0**-104)),
    ("fma.rz.f32", "f32 f32 f32 f32", (f32(1 + 2**-23), f32(1 + 2**-23), f32(2.0**-24)), f32(1 + 2**-22)),
    ("fma.rz.f32", "f32 f32 f32 f32", (f32(1), f32(1), f32(-(2.0**-60))), f32(1 - 2**-24)),
    ("neg.f32", "f32 f32", (f32(0),), f32(-0.0)),
    ("neg.f32", "f32 f32", (0xFFC00001,), ANY_NAN),
    ("abs.f64", "f64 f64", (f64(-0.0),), 0),
    ("min.f32", "f32 f32 f32", (NAN, f32(1)), f32(1)),
    ("min.f32", "f32 f32 f32", (0, 0x80000000), 0x80000000),
    ("max.f32", "f32 f32 f32", (0x80000000, 0), 0),
    ("max.f64", "f64 f64 f64", (f64(-1), f64(float("nan"))), f64(-1)),
    ("max.f32", "f32 f32 f32", (NAN, NAN), ANY_NAN),
    ("copysign.f32", "f32 f32 f32", (f32(-1), f32(2)), f32(-2)),
    ("copysign.f64", "f64 f64 f64", (f64(1), f64(-2)), f64(2)),
    ("mov.b32", "b32 f32", (0xFFA00001,), 0xFFA00001),
    ("mov.f32", "f32 f32", (0x7FA00001,), 0x7FA00001),
]

# Tests of two floats: the results for (1, 1), (1, 2), (2, 1), (NaN, 1).
COMPARISONS = {
    "eq": "1000", "ne": "0110", "lt": "0100", "le": "1100", "gt": "0010", "ge": "1010", "equ": "1001", "neu": "0111", "ltu": "0101",
    "leu": "1101", "gtu": "0011", "geu": "1011", "num": "1110", "nan": "0001",
}
# Of two integers of 16 bits: for (1, 1), (1, 0xffff), (0xffff, 1).
ORDERS = {("eq", "s16"): "100", ("ne", "s16"): "011", ("lt", "s16"): "001", ("lt", "u16"): "010", ("le", "u16"): "110", ("gt", "s16"): "010", ("ge", "u16"): "101"}

# Kernels of their own: registers, body, what stands before the kernel, and what each thread's eight bytes hold then.
BODIES = {
    "carry": (".reg .b32 %r<4>; .reg .b64 %d;",
              "add.cc.s64 %d, -1, 1; addc.cc.s64 %d, 0, 0; add.s64 %d, %d, 40; st.global.u64 [%out], %d;", "", lambda lane: 41),
    "borrow": (".reg .b32 %r<4>;", "sub.cc.u32 %r0, 1, 2; subc.cc.u32 %r1, 0, 0; subc.u32 %r2, 9, 1; st.global.v2.u32 [%out], {%r1, %r2};", "",
               lambda lane: 7 << 32 | 0xFFFFFFFF),
    "packs": (".reg .b32 %r<2>; .reg .b16 %h<2>; .reg .b64 %d;",
              "mov.b64 %d, {7, 9}; mov.b64 {%r0, %r1}, %d; mov.b32 {%h0, %h1}, %r1; mov.b32 %r0, {%h1, %h0}; mov.b64 %d, {%r1, %r0}; st.global.u64 [%out], %d;",
              "", lambda lane: 9 << 48 | 9),
    "guards": (".reg .pred %p<3>; .reg .b64 %d;",
               "mov.u64 %d, 0; setp.lt.u32 %p0, %lane, 5; not.pred %p1, %p0; @%p0 add.s64 %d, %d, 1; @!%p0 add.s64 %d, %d, 2; and.pred %p2, %p0, %p1;"
               "@%p2 add.s64 %d, %d, 100; xor.pred %p2, %p0, %p1; @%p2 add.s64 %d, %d, 1000; st.global.u64 [%out], %d;", "",
               lambda lane: 1001 if lane < 5 else 1002),
    "loop": (".reg .pred %p; .reg .b32 %i; .reg .b64 %d;",
             "mov.u64 %d, 0; mov.u32 %i, 0;\n$L__BB9_1:\nsetp.ge.u32 %p, %i, %lane; @%p bra $L__BB9_2; add.s64 %d, %d, 3; add.s32 %i, %i, 1; bra.uni $L__BB9_1;\n$L__BB9_2:\n"
             "st.global.u64 [%out], %d;", "", lambda lane: 3 * lane),
    "table": (".reg .b64 %d; .reg .b64 %at;", "mov.u64 %at, lookup; mul.wide.u32 %d, %lane, 0; add.s64 %at, %at, %d; ld.global.u16 %d, [%at+2]; st.global.u64 [%out], %d;",
              ".global .align 8 .b8 lookup[4] = {1, 2, 3, 4};", lambda lane: 0x0403),
    "one_value": (".reg .b64 %d;", "ld.global.u32 %d, [lanes]; st.global.u64 [%out], %d;", ".global .align 4 .u32 lanes = 16;", lambda lane: 16),
    "signs": (".reg .b16 %h; .reg .b32 %r; .reg .b64 %d;", "st.global.u64 [%out], 128; ld.global.s8 %h, [%out]; cvt.s32.s16 %r, %h; cvt.s64.s32 %d, %r; st.global.u64 [%out], %d;", "",
              lambda lane: 2**64 - 128),
    "local": (".local .align 8 .b8 __local_depot0[16]; .reg .b64 %SP, %SPL, %d;",
              "mov.u64 %SPL, __local_depot0; cvta.local.u64 %SP, %SPL; cvt.u64.u32 %d, %lane; st.local.u64 [%SPL+8], %d; ld.local.u64 %d, [%SPL+8]; st.global.u64 [%out], %d;", "",
              lambda lane: lane),
    "neighbour": (".shared .align 8 .b8 mine[256]; .reg .b32 %r<3>; .reg .b64 %d;",
                  "mov.u32 %r0, mine; shl.b32 %r1, %lane, 3; add.s32 %r1, %r0, %r1; cvt.u64.u32 %d, %lane; st.shared.u64 [%r1], %d; bar.sync 0; xor.b32 %r2, %lane, 1;"
                  "shl.b32 %r2, %r2, 3; add.s32 %r2, %r0, %r2; ld.shared.u64 %d, [%r2]; st.global.u64 [%out], %d;", "", lambda lane: lane ^ 1),
    "of_launch": (".reg .b32 %r<3>; .reg .b64 %d;",
                  "mov.u32 %r0, asked; shl.b32 %r1, %lane, 3; add.s32 %r1, %r0, %r1; cvt.u64.u32 %d, %lane; st.shared.u64 [%r1], %d; bar.sync 0; ld.shared.u64 %d, [asked+24];"
                  "st.global.u64 [%out], %d;", ".extern .shared .align 16 .b8 asked[];", lambda lane: 3),
    "down": (".reg .pred %p; .reg .b32 %r<3>; .reg .b64 %d;",
             "shfl.sync.down.b32 %r0|%p, %lane, 3, 31, -1; selp.u32 %r1, 1, 0, %p; st.global.v2.u32 [%out], {%r0, %r1};", "",
             lambda lane: (lane + 3 | 1 << 32) if lane < 29 else lane),
    "up": (".reg .b32 %r; .reg .b64 %d;", "shfl.sync.up.b32 %r, %lane, 2, 0, -1; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "", lambda lane: lane - 2 if lane >= 2 else lane),
    "up_in_eights": (".reg .b32 %r; .reg .b64 %d;", "shfl.sync.up.b32 %r, %lane, 2, 6144, -1; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "",
                     lambda lane: lane - 2 if lane % 8 >= 2 else lane),
    "other_half": (".reg .b32 %r; .reg .b64 %d;", "shfl.sync.bfly.b32 %r, %lane, 16, 31, -1; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "", lambda lane: lane ^ 16),
    "seventh": (".reg .b32 %r; .reg .b64 %d;", "shfl.sync.idx.b32 %r, %lane, 7, 31, -1; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "", lambda lane: 7),
    "alike": (".reg .b32 %r; .reg .b64 %d;", "and.b32 %r, %lane, 1; cvt.u64.u32 %d, %r; match.any.sync.b64 %r, %d, -1; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "",
              lambda lane: 0xAAAAAAAA if lane % 2 else 0x55555555),
    "unwritten": (".shared .align 4 .b8 few[8]; .reg .b32 %r; .reg .b64 %d;",
                  "ld.shared.u32 %r, [few+4]; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "", lambda lane: 0xDBDBDBDB),
    "in_turns": (".shared .align 4 .b8 one[4]; .reg .b32 %r; .reg .pred %p; .reg .b64 %d;",
                 "setp.eq.u32 %p, %lane, 0; @%p st.shared.u32 [one], 7; bar.warp.sync -1; ld.shared.u32 %r, [one]; bar.warp.sync -1; @%p st.shared.u32 [one], 9; bar.sync 0;"
                 "ld.shared.u32 %r, [one]; cvt.u64.u32 %d, %r; st.global.u64 [%out], %d;", "", lambda lane: 9),
    "counted": (".shared .align 8 .b8 total[8]; .reg .pred %p; .reg .b32 %r; .reg .b64 %d;",
                "mov.u32 %r, total; setp.ne.u32 %p, %lane, 0; @%p bra $L__BB5_1; st.shared.u64 [%r], 0;\n$L__BB5_1:\nbar.sync 0; atom.shared.add.u64 %d, [%r], 2; bar.sync 0;"
                "ld.shared.u64 %d, [%r]; st.global.u64 [%out], %d;", "", lambda lane: 64),
    "exchanged": (".reg .b32 %r; .reg .b64 %d;",
                  "st.global.u64 [%out], 5; atom.global.sys.cas.b32 %r, [%out], 5, 6; atom.global.sys.cas.b32 %r, [%out], 5, 7; atom.global.sys.exch.b32 %r, [%out], 8; cvt.u64.u32 %d, %r;"
                  "st.global.u64 [%out], %d;", "", lambda lane: 6),
}

# What ends the process, with these words.
DEADLY = {
    "misaligned": (".reg .b64 %at;", "add.s64 %at, %out, 8; ld.global.v2.u64 {%at, %at}, [%at];", "misaligned address"),
    "misaligned_scalar": (".reg .b32 %r;", "ld.global.u32 %r, [%out+2];", "misaligned address"),
    "shared_beyond": (".shared .align 4 .b8 few[8]; .reg .b32 %r;", "ld.shared.u32 %r, [few+8];", "beyond its shared memory"),
    "written_twice": (".shared .align 4 .b8 few[8];", "st.shared.u32 [few], %lane;", "race: written by two threads"),
    "read_of_a_neighbour": (".shared .align 4 .b8 mine[128]; .reg .b32 %a, %r;",
                            "mov.u32 %a, mine; shl.b32 %r, %lane, 2; add.s32 %a, %a, %r; st.shared.u32 [%a], 0; bar.sync 0; st.shared.u32 [%a], %lane; xor.b32 %a, %a, 4; ld.shared.u32 %r, [%a];",
                            "race: "),
    "read_and_written": (".shared .align 4 .b8 one[4]; .reg .b32 %r; .reg .pred %p;",
                         "setp.eq.u32 %p, %lane, 0; @%p st.shared.u32 [one], 7; bar.sync 0; ld.shared.u32 %r, [one]; setp.eq.u32 %p, %lane, 5; @%p st.shared.u32 [one], 8;",
                         "race: written while another thread reads"),
    "counted_and_read": (".shared .align 8 .b8 total[8]; .reg .b64 %d; .reg .pred %p;",
                         "setp.eq.u32 %p, %lane, 0; @%p st.shared.u64 [total], 0; bar.sync 0; atom.shared.add.u64 %d, [total], 1; ld.shared.u64 %d, [total];", "race: "),
    "shared_too_much": (".shared .align 4 .b8 many[49136];", "st.shared.u32 [many], 0;", "more shared memory than a block has"),
    "device_written_twice": (".reg .b64 %d;", "ld.param.u64 %d, [device_written_twice_param_0]; st.global.u32 [%d], %lane;", "race: written by two threads"),
    "device_of_another_block": (".reg .b64 %d; .reg .b32 %r;",
                                "ld.param.u64 %d, [device_of_another_block_param_0]; mov.u32 %r, %ctaid.x; mul.wide.u32 %by, %r, 8; add.s64 %out, %out, %by; st.global.u32 [%out], %r;",
                                "thread 0, 0, 0 of block 1, 0, 0: race: written by two threads"),
    "mask": (".reg .b32 %r;", "shfl.sync.down.b32 %r, %lane, 1, 31, 1;", "a mask without all lanes"),
}


def constant(kind, bits):
    return f"0f{bits:08X}" if kind == "f32" else f"0d{bits:016X}" if kind == "f64" else str(bits)


def value_kernel(name, instruction, kinds, operands):
    """One that computes a value of constants, in registers."""
    kinds = kinds.split()
    registers = "".join(f".reg .{kind} %o{i}; " for i, kind in enumerate(kinds))
    body = "".join(f"mov.{kind} %o{i + 1}, {constant(kind, bits)};\n" for i, (kind, bits) in enumerate(zip(kinds[1:], operands)))
    names = ", ".join(f"%o{i}" for i in range(len(kinds)))
    return kernel(name, registers, body + f"{instruction} {names};\nst.global.{kinds[0]} [%out], %o0;")


def test_kernel(name, test, kind, pairs):
    """One that has a bit for each pair of operands."""
    registers = f".reg .pred %p; .reg .{kind if kind[0] == 'f' else 'b16'} %x, %y; .reg .b32 %r, %s;"
    moved = kind if kind[0] == "f" else "u16"
    body = "mov.u32 %s, 0;\n"
    for i, (x, y) in enumerate(pairs):
        body += f"mov.{moved} %x, {constant(kind, x)}; mov.{moved} %y, {constant(kind, y)}; setp.{test}.{kind} %p, %x, %y; selp.b32 %r, {1 << i}, 0, %p; or.b32 %s, %s, %r;\n"
    return kernel(name, registers, body + "st.global.u32 [%out], %s;")


class Translation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        floats = [(f32(1), f32(1)), (f32(1), f32(2)), (f32(2), f32(1)), (NAN, f32(1))]
        doubles = [(f64(1), f64(1)), (f64(1), f64(2)), (f64(2), f64(1)), (f64(float("nan")), f64(1))]
        texts = {f"value_{i}": value_kernel(f"value_{i}", *case[:3]) for i, case in enumerate(VALUES)}
        for test in COMPARISONS:
            texts[f"{test}_f32"] = test_kernel(f"{test}_f32", test, "f32", floats)
            texts[f"{test}_f64"] = test_kernel(f"{test}_f64", test, "f64", doubles)
        for test, kind in ORDERS:
            texts[f"{test}_{kind}"] = test_kernel(f"{test}_{kind}", test, kind, [(1, 1), (1, 0xFFFF), (0xFFFF, 1)])
        for name, (registers, body, more, _) in BODIES.items():
            texts[name] = kernel(name, registers, body, more)
        for name, (registers, body, _) in DEADLY.items():
            texts[name] = kernel(name, registers, body)
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        source = translate.translate(HEAD + "".join(texts.values()))
        source += 'extern "C" {' + "".join(f"extern const unsigned {name}_bytes; const unsigned {name}_bytes = 8;" for name in texts) + "}"
        cls.library = build(cls.folder.name, source)
        cls.grid = ctypes.CDLL(GRID)
        cls.found = ctypes.CDLL(cls.library)

    def run_kernel(self, name, threads):
        """Eight bytes of each thread."""
        out = (ctypes.c_uint64 * threads)()
        parameters = (ctypes.c_uint64 * 1)(ctypes.addressof(out))
        three = ctypes.c_uint * 3
        self.grid.eddy_grid_run(getattr(self.found, name), parameters, three(1, 1, 1), three(threads, 1, 1), 256)
        return list(out)

    def test_values(self):
        for i, (instruction, kinds, operands, expected) in enumerate(VALUES):
            with self.subTest(instruction=instruction, operands=operands):
                self.assertEqual(self.run_kernel(f"value_{i}", 1)[0], expected)

    def test_comparisons(self):
        for test, results in [(f"{t}_{k}", r) for t, r in COMPARISONS.items() for k in ("f32", "f64")] + [(f"{t}_{k}", r) for (t, k), r in ORDERS.items()]:
            with self.subTest(test=test):
                self.assertEqual(f"{self.run_kernel(test, 1)[0]:0{len(results)}b}"[::-1], results)

    def test_bodies(self):
        for name, (_, _, _, expected) in BODIES.items():
            with self.subTest(name=name):
                self.assertEqual(self.run_kernel(name, 32), [expected(lane) for lane in range(32)])

    def test_what_a_device_would_end_ends_the_process(self):
        for name, (_, _, words) in DEADLY.items():
            with self.subTest(name=name):
                script = (f"import ctypes; grid = ctypes.CDLL('{GRID}'); found = ctypes.CDLL('{self.library}'); out = (ctypes.c_uint64 * 66)(); at = ctypes.addressof(out) + 15 & ~15;"
                          f"grid.eddy_grid_run(found.{name}, (ctypes.c_uint64 * 1)(at), (ctypes.c_uint * 3)(2, 1, 1), (ctypes.c_uint * 3)(32, 1, 1), 32)")
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, -6, done.stderr)
                self.assertIn(words, done.stderr)

    def test_what_is_not_known_is_named(self):
        for body, words in {"tanh.approx.f32 %f, %f;": "tanh.approx.f32", "add.rn.f32 %f, %g, %f;": "operand %g", "vote.sync.any.pred %p, %p, -1;": "vote.sync.any.pred",
                            "bar.sync 1;": "bar.sync", "add.rz.f32 %f, %f, %f;": "add.rz.f32"}.items():
            with self.subTest(body=body), self.assertRaisesRegex(translate.Unknown, words):
                translate.translate(HEAD + kernel("one", ".reg .f32 %f; .reg .pred %p;", body))
        with self.assertRaisesRegex(translate.Unknown, "declares more than 49152 bytes"):
            translate.translate(HEAD + kernel("one", ".shared .align 4 .b8 many[49156];", ""))

    def test_other_parameters_than_the_hosts_end_the_process(self):
        source = translate.translate(HEAD + kernel("one", "", "")) + 'extern "C" const unsigned one_bytes = 16;'
        library = build(self.folder.name, source, "other.so")
        done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL('{library}')"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, -6)
        self.assertIn("parameters have another size: 0x10", done.stderr)


def build(folder, source, name="translated.so"):
    """The path of a library."""
    path, text = os.path.join(folder, name), os.path.join(folder, "translated.cpp")
    with open(text, "w", encoding="utf-8") as file:
        file.write(source)
    subprocess.run([*COMPILER, "-std=c++17", "-O1", "-march=native", "-ffp-contract=off", "-fPIC", "-w", "-shared", *[f"-I{f}" for f in FOLDERS[:-1]], "-isystem", FOLDERS[-1], "-o", path, text, GRID,
                    f"-Wl,-rpath,{os.path.dirname(GRID)}"], check=True)
    return path


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
