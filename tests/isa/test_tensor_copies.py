# SPDX-License-Identifier: Apache-2.0
"""tcgen05.ld, .st, .cp and .shift in every form: what lands where, as the PTX ISA's figures have it."""

from __future__ import annotations

import numpy as np
import pytest

from numba_cute import isa
from numba_cute.isa.facts.tensor_copies import spread
from numba_cute.isa.rows.tcgen05_mma import SWIZZLE_128B_BASE32B, Tcgen05Descriptor
from numba_cute.seam import CuteError

from .fake import Machine, TensorMemory
from .ptxas import assemble, find_ptxas

ROWS = (isa.tcgen05_ld, isa.tcgen05_st, isa.tcgen05_cp, isa.tcgen05_shift)
FIGURES = {  # the lane and column of register r of thread t
    "32x32b": lambda t, r: (t, r),
    "16x64b": lambda t, r: (t // 4 + 8 * (t % 2), 2 * r + t // 2 % 2),
    "16x128b": lambda t, r: (t // 4 + 8 * (r % 2), 4 * (r // 2) + t % 4),
    "16x256b": lambda t, r: (t // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (t % 4) + r % 2),
    "16x32bx2": lambda t, r: (t % 16, r),
}
REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
MOVES = [(shape, 1 << i) for shape, n in REGISTERS.items() for i in range(8) if n << i <= 128]


@pytest.fixture
def m(rng):
    """A machine of two CTAs, this the first, with random words in tensor memory; the seventh warp issues."""
    m = Machine(lanes=32, ctas=2)
    m.tmem = TensorMemory(rng.integers(0, 1 << 32, (2, 128, 512), dtype=np.uint32))
    m.sreg = {"warpid": np.full(32, 6)}.get
    return m


def cells(shape, num, packed, split, lane, column):
    """For each thread and register its lane, and its column or, if packed, its two columns."""
    for t in range(32):
        for r in range(REGISTERS[shape] * num):
            row, at = FIGURES[shape](t, r)
            first = column + (split if shape == "16x32bx2" and t >= 16 else 0)
            columns = (first + 2 * at, first + 2 * at + 1) if packed else (first + at,)
            yield t, r, lane + row, columns


def statics(shape, num, word, packed, split):
    found = {"shape": shape, "num": num, word: packed}
    return found | ({"split": split} if shape == "16x32bx2" else {})


def room(shape, num, packed):
    """The columns of the block, or of a half of it."""
    bits = {"32x32b": 32, "16x64b": 64, "16x128b": 128, "16x256b": 256, "16x32bx2": 32}[shape]
    return bits // 32 * num << packed


@pytest.mark.parametrize("packed", [False, True], ids=["", "pack"])
@pytest.mark.parametrize("shape, num", MOVES)
def test_loads_hold_what_the_figures_say(m, shape, num, packed):
    wide = room(shape, num, packed)
    for lane in (64,) if shape == "32x32b" else (64, 80):
        for split in (wide, 0, 3) if shape == "16x32bx2" else (None,):
            column = 512 - wide - (split or 0)
            got = m.issue(
                isa.tcgen05_ld, np.full(32, lane << 16 | column), **statics(shape, num, "pack", packed, split)
            )
            want = np.zeros((32, REGISTERS[shape] * num), np.uint32)
            for t, r, row, columns in cells(shape, num, packed, split, lane, column):
                words = [int(m.tmem.data[0, row, c]) for c in columns]
                want[t, r] = words[0] & 0xFFFF | (words[1] & 0xFFFF) << 16 if packed else words[0]
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("packed", [False, True], ids=["", "unpack"])
@pytest.mark.parametrize("shape, num", MOVES)
def test_stores_put_registers_where_the_figures_say(m, rng, shape, num, packed):
    wide = room(shape, num, packed)
    lane, split = 64, wide + 5 if shape == "16x32bx2" and 2 * wide + 5 <= 512 else wide
    words = rng.integers(0, 1 << 32, (32, REGISTERS[shape] * num), dtype=np.uint32)
    want = m.tmem.data.copy()
    for t, r, row, columns in cells(shape, num, packed, split, lane, 0):
        word = int(words[t, r])
        want[0, row, list(columns)] = [word & 0xFFFF, word >> 16] if packed else [word]
    m.issue(isa.tcgen05_st, np.full(32, lane << 16), words, **statics(shape, num, "unpack", packed, split))
    np.testing.assert_array_equal(m.tmem.data, want)


def test_the_halves_of_16x32bx2_lie_side_by_side_unless_the_caller_says_otherwise(m):
    address = np.full(32, 64 << 16)
    beside = m.issue(isa.tcgen05_ld, address, shape="16x32bx2", num=4, pack=True)
    named = m.issue(isa.tcgen05_ld, address, shape="16x32bx2", num=4, pack=True, split=8)
    np.testing.assert_array_equal(beside, named)
    case = isa.tcgen05_ld.case({"shape": "16x32bx2", "num": 4, "split": 77})
    assert case is isa.tcgen05_ld.case({"split": 77, "num": 4, "shape": "16x32bx2", "pack": False})
    assert isa.tcgen05_ld.assembly(case).text.endswith("[$4], 77;")


@pytest.mark.parametrize(
    "lane, shape, says",
    [
        (0, "32x32b", "lane 0, but this warp reaches lanes 64 to 95, and 32x32b begins in lane 64"),
        (80, "32x32b", "begins in lane 64"),
        (72, "16x64b", "begins in lane 64 or 80"),
        (96, "16x256b", "begins in lane 64 or 80"),
    ],
)
def test_a_warp_that_leaves_its_lanes_is_refused(m, lane, shape, says):
    with pytest.raises(CuteError) as e:
        m.issue(isa.tcgen05_ld, np.full(32, lane << 16), shape=shape, num=1)
    assert says in str(e.value)


def test_halves_of_a_store_that_overlap_are_refused(m):
    with pytest.raises(CuteError, match="split is 3, but each half of 16x32bx2.x2 has 4 columns"):
        m.issue(isa.tcgen05_st, np.full(32, 64 << 16), np.zeros((32, 2)), shape="16x32bx2", num=2, unpack=True, split=3)


@pytest.mark.parametrize(
    "row, named, says",
    [
        (isa.tcgen05_ld, {"shape": "16x128b", "num": 128}, r"num of \[1, 2, 4, 8, 16, 32, 64\]"),
        (isa.tcgen05_st, {"shape": "16x256b", "num": 64}, r"num of \[1, 2, 4, 8, 16, 32\]"),
        (isa.tcgen05_ld, {"shape": "32x32b", "num": 3}, r"num of \[1, 2, 4, 8, 16, 32, 64, 128\]"),
        (isa.tcgen05_ld, {"shape": "16x32bx2", "num": 1, "split": 512}, "split of 0 to 511"),
        (isa.tcgen05_ld, {"shape": "16x64b", "num": 1, "split": 2}, r"shape of \['16x32bx2'\]"),
        (isa.tcgen05_cp, {"shape": "64x128b", "multicast": None}, "multicast of .'warpx2::01_23', 'warpx2::02_13'"),
        (isa.tcgen05_cp, {"shape": "32x128b", "multicast": "warpx2::02_13"}, r"multicast of \['warpx4'\]"),
        (isa.tcgen05_cp, {"shape": "128x256b", "multicast": "warpx4"}, r"multicast of \[None\]"),
    ],
    ids=lambda x: getattr(x, "name", None),
)
def test_forms_that_the_hardware_lacks_are_refused_with_those_that_it_has(row, named, says):
    with pytest.raises(CuteError, match=f"no form with .*; where the others stay as they are, .*{says}"):
        row.case(named)


# ---------------------------------------------------------------- copies from shared memory

COPIES = [(case["shape"], case["multicast"]) for case in isa.tcgen05_cp.cases[::6]]
LANES = {  # where row i of the source lands
    ("128x256b", None): lambda i: [i],
    ("4x256b", None): lambda i: [32 * i],
    ("128x128b", None): lambda i: [i],
    ("64x128b", "warpx2::02_13"): lambda i: [i, i + 64],
    ("64x128b", "warpx2::01_23"): lambda i: [i, i + 32] if i < 32 else [i + 32, i + 64],
    ("32x128b", "warpx4"): lambda i: [i, i + 32, i + 64, i + 96],
}


def place(memory, at, rows, swizzle):
    """Lay K-major rows out as a user would: 8 rows make an atom, whose rows are as wide as the swizzle. Written from
    the PTX ISA's figures, one byte at a time. Gives the descriptor."""
    count, width = rows.shape
    wide = max(swizzle, 16)
    across = -(-width // wide) * 8 * wide  # the atoms of 8 rows
    for r in range(count):
        for b in range(width):
            byte = at + r // 8 * across + b // wide * 8 * wide + r % 8 * wide + b % wide
            if swizzle:
                byte ^= (byte >> 7 & swizzle // 16 - 1) << 4
            memory[byte] = rows[r, b]
    return Tcgen05Descriptor(start=at, leading=8 * wide, stride=across, swizzle=swizzle).encode()


def expanded(row, source):
    """Sixteen elements below a byte in bytes of their own, one at a time."""
    width, first = {"b6x16_p32": (6, 0), "b4x16_p64": (4, 2)}[source]
    out = []
    for chunk in row.reshape(-1, 16):
        word = int.from_bytes(chunk.tobytes(), "little")
        out += [(word >> width * i & (1 << width) - 1) << first for i in range(16)]
    return np.array(out, np.uint8)


@pytest.mark.parametrize("source", [None, "b6x16_p32", "b4x16_p64"])
@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("shape, multicast", COPIES)
def test_copies_land_in_the_lanes_of_their_shape(m, rng, shape, multicast, cta_group, swizzle, source):
    m.lanes = 1
    count, bits = map(int, shape[:-1].split("x"))
    want, column = m.tmem.data.copy(), 24
    lane = 31 if shape == "4x256b" else 0
    for cta in range(2):
        rows = rng.integers(0, 256, (count, bits // 8)).astype(np.uint8)
        word = place(m.shared[cta], 2048, rows, swizzle)
        for i in range(count) if cta < cta_group else ():
            line = rows[i] if source is None else expanded(rows[i], source)
            for at in LANES[shape, multicast](i):
                want[cta, lane + at, column : column + bits // 32] = line.view(np.uint32)
    m.issue(
        isa.tcgen05_cp, lane << 16 | column, word, shape=shape, multicast=multicast, source=source, cta_group=cta_group
    )
    np.testing.assert_array_equal(m.tmem.data, want)
    (reads, parts, sources), = m.tmem.issued  # fmt: skip
    assert len(reads) == cta_group and all(n == 16 and a.size == count * bits // 128 for a, n in reads)
    written = {(c, x) for c, first, n, _ in parts for x in range(first, first + n)}
    assert written == {
        (c, lane + at) for c in range(cta_group) for i in range(count) for at in LANES[shape, multicast](i)
    }
    assert not sources and {n for *_, n in parts} == {bits // 32}


@pytest.mark.parametrize(
    "shape, lane, says",
    [
        ("128x256b", 32, "begins in lane 0"),
        ("32x128b", 1, "begins in lane 0"),
        ("4x256b", 32, "begins in lanes 0 to 31"),
    ],
)
def test_copies_begin_in_the_first_lanes(m, shape, lane, says):
    with pytest.raises(CuteError, match=f"in lane {lane}: a copy of shape {shape} {says}"):
        m.issue(isa.tcgen05_cp, lane << 16, Tcgen05Descriptor().encode(), shape=shape, cta_group=1)


def test_a_copy_takes_no_swizzle_of_mn_major_operands(m):
    word = Tcgen05Descriptor(swizzle=SWIZZLE_128B_BASE32B).encode()
    with pytest.raises(CuteError, match="atoms of 32, which is for MN-major operands"):
        m.issue(isa.tcgen05_cp, 0, word, shape="128x256b", cta_group=1)


def test_elements_below_a_byte_get_a_byte_each():
    chunk = np.frombuffer(bytes([0x21, 0x43, 0x65, 0x87, 0xA9, 0xCB, 0xED, 0x0F]) + bytes(8 * [0xEE]), np.uint8)
    assert spread(chunk[None], "b4x16_p64").tolist() == [[4 * (i % 16) for i in range(1, 17)]]
    six = sum((63 - i) << 6 * i for i in range(16)).to_bytes(12, "little") + bytes(4 * [0xEE])
    assert spread(np.frombuffer(six, np.uint8)[None], "b6x16_p32").tolist() == [[63 - i for i in range(16)]]


# ---------------------------------------------------------------- shifts


@pytest.mark.parametrize("cta_group", [1, 2])
@pytest.mark.parametrize("lane", [0, 32, 64, 96])
def test_a_shift_moves_each_lane_but_the_last_by_one(m, lane, cta_group):
    want, column = m.tmem.data.copy(), 40
    for cta in range(cta_group):
        for i in range(31):
            want[cta, lane + i, column : column + 8] = m.tmem.data[cta, lane + i + 1, column : column + 8]
    m.issue(isa.tcgen05_shift, lane << 16 | column, cta_group=cta_group)
    np.testing.assert_array_equal(m.tmem.data, want)
    (reads, parts, sources), = m.tmem.issued  # fmt: skip
    assert not reads and parts == [(c, lane, 31, 8) for c in range(cta_group)]
    assert sources == [(c, lane + 1, 31, column, 8) for c in range(cta_group)]


@pytest.mark.parametrize("lane", [1, 16, 128])
def test_a_shift_begins_in_the_first_lane_of_a_warp(m, lane):
    with pytest.raises(CuteError, match=f"in lane {lane}: it must be 0, 32, 64 or 96"):
        m.issue(isa.tcgen05_shift, lane << 16, cta_group=1)


# ---------------------------------------------------------------- the assembler


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas: the nvidia-cuda-nvcc wheel, or on the PATH")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_every_form_assembles_for_both_targets_of_the_family(row, arch, tmp_path):
    assert all(row.lacking(arch, case) is None for case in row.cases)
    assert assemble(arch, row, list(row.forms()), tmp_path) == ""


@pytest.mark.skipif(find_ptxas() is None, reason="needs ptxas: the nvidia-cuda-nvcc wheel, or on the PATH")
def test_a_shift_needs_one_target_of_the_family(tmp_path):
    assert isa.tcgen05_shift.lacking("sm_100f", isa.tcgen05_shift.cases[0]) is not None
    assert assemble("sm_100f", isa.tcgen05_shift, list(isa.tcgen05_shift.forms()), tmp_path) != ""
