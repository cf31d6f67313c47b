# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma in its forms, on the least machine: sparse, weight stationary, block-scaled, with every qualifier; and
what they refuse. Where operands lie is written here once more, element by element, from the PTX ISA."""

from __future__ import annotations

import numpy as np
import pytest

from numba_cute import dtypes, isa
from numba_cute.isa.facts.tensor_descriptors import (
    ABSOLUTE,
    Tcgen05Descriptor,
    Tcgen05Instruction,
    Tcgen05ScaledInstruction,
    ZeroColumnMask,
)
from numba_cute.seam import CuteError

from .fake import Machine, TensorMemory
from .test_tensor_copies import place

TYPES = {  # name: (type, code)
    "f16": (dtypes.Float16, 0), "bf16": (dtypes.BFloat16, 1), "tf32": (dtypes.TFloat32, 2),
    "e4m3": (dtypes.Float8E4M3FN, 0), "e5m2": (dtypes.Float8E5M2, 1), "e2m3": (dtypes.Float6E2M3FN, 3),
    "e3m2": (dtypes.Float6E3M2FN, 4), "e2m1": (dtypes.Float4E2M1FN, 5), "u8": (dtypes.Uint8, 0), "s8": (dtypes.Int8, 1),
}  # fmt: skip
K_OF = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
D, A, META, SFA, SFB = 0, 256, 300, 320, 400
A_AT, B_AT = 2048, 60 * 1024


@pytest.fixture
def m(rng):
    m = Machine(ctas=2)
    m.tmem = TensorMemory(rng.integers(0, 1 << 32, (2, 128, 512), dtype=np.uint32))
    m.tmem.data[:, :, :256] = rng.integers(-8, 8, (2, 128, 256)).astype(np.float32).view(np.uint32)
    return m


# ---------------------------------------------------------------- bytes


def codes(values, dtype):
    return values.astype(np.float32 if dtype is dtypes.TFloat32 else dtype.numpy).view(np.uint8)


def shared_bytes(values, dtype, packed):
    """Rows of elements as bytes of shared memory."""
    held = codes(values, dtype).reshape(len(values), -1)
    if dtype.width >= 8:
        return held
    if packed:
        return held[:, ::2] | held[:, 1::2] << 4
    out = np.zeros(held.shape, np.uint8)
    for r in range(len(held)):
        for c in range(0, held.shape[1], 16):
            word = sum(int(x) << dtype.width * i for i, x in enumerate(held[r, c : c + 16]))
            out[r, c : c + 16] = np.frombuffer(word.to_bytes(16, "little"), np.uint8)
    return out


def tensor_bytes(values, dtype, packed):
    """Rows of elements as bytes of tensor memory."""
    held = codes(values, dtype).reshape(len(values), -1)
    if dtype.width == 4:
        return held[:, ::2] | held[:, 1::2] << 4 if packed else held << 2
    return held


# ---------------------------------------------------------------- where D lies


def home(ctas, m, n, sparse=False, ws=False):
    """(row, column) of D to (CTA, lane, column)."""
    if ws:
        share = n * m // 128
        return lambda r, c: (0, r + m * (c // share), c % share)
    if (ctas, m) == (2, 128) and not sparse:
        return lambda r, c: (r // 64, r % 64 + 64 * (c // (n // 2)), c % (n // 2))
    mine = m // ctas
    if mine == 64:
        return lambda r, c: (r // 64, 32 * (r % 64 // 16) + r % 16, c)
    return lambda r, c: (r // 128, r % 128, c)


def lanes_of(ctas, m, n, **how):
    """All (CTA, lane, row) that D has."""
    where = home(ctas, m, n, **how)
    return sorted({(*where(r, c)[:2], r) for r in range(m) for c in range(n)})


def random_values(rng, dtype, *shape):
    return rng.integers(0 if dtype is dtypes.Uint8 else -2, 3, shape).astype(float)


# ---------------------------------------------------------------- sparse A


PAIRS = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def sparse_rows(rng, dtype, packed, rows, k):
    """(dense (rows, k), stored (rows, k / 2), metadata (rows, chunks of 4 bits))"""
    unit = 2 if packed else 1
    if dtype is dtypes.TFloat32:
        chunk, options = 2, [((0,), 0b0100), ((1,), 0b1110)]
    else:
        chunk, options = 4 * unit, [((unit * i, unit * j), i | j << 2) for i, j in PAIRS]
    dense, stored, words = np.zeros((rows, k)), [], []
    for r in range(rows):
        line, said = [], []
        for c in range(0, k, chunk):
            at, code = options[rng.integers(len(options))]
            said.append(code)
            for first in at:
                for i in range(unit):
                    value = float(rng.integers(1, 3))
                    dense[r, c + first + i] = value
                    line.append(value)
        stored.append(line)
        words.append(said)
    return dense, np.array(stored), np.array(words)


def put_metadata(m, lanes, words, dtype, selector):
    """Metadata (rows, chunks) where the lanes of D have them."""
    wide = dtype.width >= 16
    for cta, lane, _ in lanes:
        m.tmem.data[cta, lane, META : META + 4] = 0x44444444
    for cta, lane, row in lanes:
        for i, code in enumerate(words[row]):
            if wide:
                within = lane % 16
                holder, column = lane - within + within % 8 + 8 * (i // 4), META + selector
                bit = 16 * (within // 8) + 4 * (i % 4)
            else:
                holder, column, bit = lane, META + i // 8, 4 * (i % 8)
            old = int(m.tmem.data[cta, holder, column])
            m.tmem.data[cta, holder, column] = old & ~(15 << bit) | int(code) << bit


# ---------------------------------------------------------------- one multiply


def put_operands(m, rng, ctas, shape, types, *, packed=False, sparse=False, source="smem", ws=False, selector=0,
                 more_columns=0):  # fmt: skip
    """Random operands in their places: (a, b, A's operand, B's descriptor). more_columns: of B, after its n."""
    rows, n, k = shape
    (ta, _), (tb, _) = (TYPES[t] for t in types)
    lanes = lanes_of(ctas, rows, n, sparse=sparse, ws=ws)
    if sparse:
        a, stored, words = sparse_rows(rng, ta, packed, rows, k)
        put_metadata(m, lanes, words, dtypes.Float4E2M1FN if packed else ta, selector)
    else:
        a = stored = random_values(rng, ta, rows, k)
    b = random_values(rng, tb, n + more_columns, k)
    for c in range(ctas):
        mine = b[c * n // ctas : (c + 1) * n // ctas + more_columns]
        b_word = place(m.shared[c], B_AT, shared_bytes(mine, tb, packed), 0)
        share = stored[c * rows // ctas : (c + 1) * rows // ctas]
        a_word = place(m.shared[c], A_AT, shared_bytes(share, ta, packed), 128 if k * ta.width < 4096 else 0)
    if source == "tmem":
        held = tensor_bytes(stored, ta, packed).view(np.uint32)
        for cta, lane, row in lanes:
            m.tmem.data[cta, lane, A : A + held.shape[1]] = held[row]
        a_word = A
    return a, b, a_word, b_word


def expect(m, want, where):
    """D is `want`, and nothing else changed, where its elements lie."""
    rows, columns = want.shape
    for r in range(rows):
        for c in range(columns):
            cta, lane, at = where(r, c)
            got = m.tmem.data[cta, lane, D + at : D + at + 1]
            assert got.view(np.float32)[0] == want[r, c], (r, c, cta, lane, at)


def d_of(m, rows, n, where):
    return np.array([[m.tmem.data[where(r, c)[0], where(r, c)[1], D + where(r, c)[2]] for c in range(n)]
                     for r in range(rows)], np.uint32).view(np.float32).astype(float)  # fmt: skip


def word_of(kind, shape, types, **fields):
    rows, n, _ = shape
    a, b = (TYPES[t][1] for t in types)
    if kind in ("mxf4", "mxf4nvf4"):
        a = b = 1
    make = Tcgen05ScaledInstruction if kind.startswith("mx") else Tcgen05Instruction
    return make(a=a, b=b, m=rows, n=n, **fields).encode()


KINDS = [("f16", ("f16", "f16")), ("f16", ("bf16", "f16")), ("tf32", ("tf32", "tf32")), ("f8f6f4", ("e4m3", "e5m2")),
         ("f8f6f4", ("e2m1", "e3m2")), ("f8f6f4", ("e2m3", "e4m3"))]  # fmt: skip


@pytest.mark.parametrize("source", ["smem", "tmem"])
@pytest.mark.parametrize(("ctas", "rows", "n"), [(1, 64, 24), (1, 128, 8), (2, 128, 32), (2, 256, 16)])
@pytest.mark.parametrize(("kind", "types"), KINDS, ids=str)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_products_dense_and_sparse(m, rng, kind, types, ctas, rows, n, source, sparse):
    shape = rows, n, K_OF[kind] * (1 + sparse)
    selector = 1 if sparse and kind in ("f16", "tf32") else 0
    a, b, a_at, b_at = put_operands(m, rng, ctas, shape, types, sparse=sparse, source=source, selector=selector)
    where = home(ctas, rows, n, sparse=sparse)
    want = d_of(m, rows, n, where) + a @ b.T
    row = isa.tcgen05_mma_ss if source == "smem" else isa.tcgen05_mma_ts
    word = word_of(kind, shape, types, sparse=int(sparse), selector=selector)
    more = {"meta": META} if sparse else {}
    m.issue(row, D, a_at, b_at, word, 1, kind=kind, cta_group=ctas, sparse=sparse, **more)
    expect(m, want, where)


@pytest.mark.parametrize("source", ["smem", "tmem"])
@pytest.mark.parametrize(("rows", "n"), [(32, 64), (64, 128), (128, 64)])
@pytest.mark.parametrize(("kind", "types"), KINDS[::2], ids=str)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_weight_stationary_products(m, rng, kind, types, rows, n, source, sparse):
    shape = rows, n, K_OF[kind] * (1 + sparse)
    a, b, a_at, b_at = put_operands(m, rng, 1, shape, types, sparse=sparse, source=source, ws=True)
    where = home(1, rows, n, ws=True)
    row = isa.tcgen05_mma_ws_ss if source == "smem" else isa.tcgen05_mma_ws_ts
    more = {"meta": META} if sparse else {}
    word = word_of(kind, shape, types, sparse=int(sparse))
    m.issue(row, D, a_at, b_at, word, 0, kind=kind, cta_group=1, sparse=sparse, collector="b2::fill", **more)
    expect(m, a @ b.T, where)


def test_integers_are_sparse_too(m, rng):
    shape = 128, 16, 64
    a, b, a_at, b_at = put_operands(m, rng, 1, shape, ("s8", "u8"), sparse=True)
    word = word_of("i8", shape, ("s8", "u8"), sparse=1, d=2)
    m.issue(isa.tcgen05_mma_ss, D, a_at, b_at, word, 0, kind="i8", cta_group=1, sparse=True, meta=META)
    np.testing.assert_array_equal(m.tmem.data[0, :, :16].view(np.int32), a @ b.T)


# ---------------------------------------------------------------- qualifiers


def test_lanes_are_left_out_for_each_cta_of_a_pair(m, rng):
    shape, types = (256, 16, 16), ("f16", "f16")
    a, b, a_at, b_at = put_operands(m, rng, 2, shape, types)
    where, mask = home(2, 256, 16), rng.integers(0, 1 << 32, 8, dtype=np.uint32)
    old, want = d_of(m, 256, 16, where), a @ b.T
    keep = np.array([mask[(128 * (r // 128) + r % 128) // 32] >> r % 32 & 1 for r in range(256)], bool)
    m.issue(isa.tcgen05_mma_ss, D, a_at, b_at, word_of("f16", shape, types), 0, disable=mask, kind="f16", cta_group=2)
    expect(m, np.where(keep[:, None], old, want), where)


@pytest.mark.parametrize("by", [0, 1, 15])
def test_the_accumulator_is_scaled_down(m, rng, by):
    shape, types = (128, 8, 8), ("tf32", "tf32")
    a, b, a_at, b_at = put_operands(m, rng, 1, shape, types)
    where = home(1, 128, 8)
    want = d_of(m, 128, 8, where) * 2.0**-by + a @ b.T
    m.issue(isa.tcgen05_mma_ss, D, a_at, b_at, word_of("tf32", shape, types), 1, kind="tf32", cta_group=1, scale_d=by)
    expect(m, want.astype(np.float32).astype(float), where)


@pytest.mark.parametrize("ctas", [1, 2])
def test_rows_of_a_are_shifted(m, rng, ctas):
    rows, types = 128 * ctas, ("bf16", "bf16")
    shape = rows, 16, 16
    a, b, a_at, b_at = put_operands(m, rng, ctas, shape, types, source="tmem")
    m.issue(isa.tcgen05_mma_ts, D, a_at, b_at, word_of("f16", shape, types), 0, kind="f16", cta_group=ctas, ashift=True)
    moved = np.concatenate([np.concatenate([x[1:], x[-1:]]) for x in np.split(a, ctas)])
    expect(m, moved @ b.T, home(ctas, rows, 16))


@pytest.mark.parametrize(
    ("rows", "mask", "zero"),
    [  # the examples of the PTX ISA, lowest column last
        (128, ZeroColumnMask(zeros=4, used=3), ["0"]),
        (128, ZeroColumnMask(enable=1, zeros=2, used=3), ["11100001110000"]),
        (64, ZeroColumnMask(enable=1, zeros=2, used=3, zero_first0=1), ["11100001110000111", "000011100001110000"]),
        (32, ZeroColumnMask(0, 1, 2, 1, 1, 1, 0, 0, enable=1, zeros=2, used=3, shift=2),
         ["00001110000111", "0000111000011", "111000011100", "1110000111000"]),
    ],
    ids=repr,
)  # fmt: skip
def test_columns_of_b_count_as_zero(m, rng, rows, mask, zero):
    n, types = 64, ("f16", "f16")
    shape, shares = (rows, n, 16), 128 // rows
    a, b, a_at, b_at = put_operands(m, rng, 1, shape, types, ws=True, more_columns=8)
    said = []
    for text in zero:
        bits = [c == "1" for c in reversed(text)]
        period = 7 if mask.enable else 1
        said += [bits[i] if i < len(bits) else said_at(bits, i, period) for i in range(n // shares)]
    columns = np.where(np.array(said)[:, None], 0, b[mask.shift : mask.shift + n])
    word = word_of("f16", shape, types, max_shift=8)
    m.issue(isa.tcgen05_mma_ws_ss, D, a_at, b_at, word, 0, kind="f16", cta_group=1, zeros=mask.encode())
    expect(m, a @ columns.T, home(1, rows, n, ws=True))


def said_at(bits, i, period):
    """A mask goes on with its period."""
    while i >= len(bits):
        i -= period
    return bits[i]


# ---------------------------------------------------------------- scale factors


def put_factors(m, rng, ctas, shape, block, sf, ids):
    """Random factors in their places: those of A and of B, (rows, k)."""
    rows, n, k = shape
    found = []
    for operand, count, first, base in (("a", rows, ids[0], SFA), ("b", n, ids[1], SFB)):
        raw = (
            rng.integers(120, 134, (count, k // block)) if sf == "ue8m0" else rng.integers(40, 72, (count, k // block))
        )
        values = raw.astype(np.uint8).view(TYPES["e4m3"][0].numpy).astype(float)
        found.append(np.repeat(2.0 ** (raw - 127.0) if sf == "ue8m0" else values, block, 1))
        paired = operand == "b" and (ctas, rows) == (2, 128)
        step = (8 if n > 128 else 4) // (1 + paired) if operand == "b" else 4
        for cta in range(ctas):
            mine = raw[cta * rows // ctas : (cta + 1) * rows // ctas] if operand == "a" else raw
            halves = np.split(mine, 2) if paired else [mine, mine]
            for quarter in range(4):
                for r, line in enumerate(halves[quarter // 2]):
                    for j, x in enumerate(line):
                        word, byte = divmod(first + j, 4)
                        column = base + r // 32 + word * step
                        held = m.tmem.data[cta, 32 * quarter + r % 32, column : column + 1].view(np.uint8)
                        held[byte] = x
    return found


SCALED = [("mxf8f6f4", ("e4m3", "e5m2"), "ue8m0", 32, "block32", (3, 1)), ("mxf8f6f4", ("e2m1", "e3m2"), "ue8m0", 32,
          "scale_vec::1X", (0, 2)), ("mxf4", ("e2m1", "e2m1"), "ue8m0", 32, None, (2, 0)),
          ("mxf4nvf4", ("e2m1", "e2m1"), "ue4m3", 16, "block16", (0, 0)),
          ("mxf4nvf4", ("e2m1", "e2m1"), "ue8m0", 32, "block32", (0, 2))]  # fmt: skip
WIDE = [("mxf4", "ue8m0", 32, "block32", ids) for ids in ((0, 1), (2, 3), (1, 0))] + [
    ("mxf4nvf4", "ue4m3", 16, "block16", ids) for ids in ((0, 2), (2, 0))
]


def scaled_product(m, rng, kind, types, sf, block, vec, ids, ctas, rows, n, k, source, sparse=False, **fields):
    shape, packed = (rows, n, k), kind != "mxf8f6f4"
    a, b, a_at, b_at = put_operands(m, rng, ctas, shape, types, packed=packed, sparse=sparse, source=source)
    fa, fb = put_factors(m, rng, ctas, shape, block * (1 + sparse), sf, ids)
    word = word_of(kind, shape, types, id_a=ids[0], id_b=ids[1], e8m0=int(sf == "ue8m0"), sparse=int(sparse), **fields)
    row = isa.tcgen05_mma_scaled_ss if source == "smem" else isa.tcgen05_mma_scaled_ts
    more = {"meta": META} if sparse else {}
    m.issue(row, D, a_at, b_at, word, SFA | ids[0] << 30, SFB, 0, kind=kind, cta_group=ctas, vec=vec, sparse=sparse,
            **more)  # fmt: skip
    expect(m, ((a * fa) @ (b * fb).T).astype(np.float32).astype(float), home(ctas, rows, n, sparse=sparse))


@pytest.mark.parametrize("source", ["smem", "tmem"])
@pytest.mark.parametrize(("ctas", "rows", "n"), [(1, 128, 136), (2, 256, 32), (2, 128, 160), (2, 128, 16)])
@pytest.mark.parametrize(("kind", "types", "sf", "block", "vec", "ids"), SCALED, ids=str)
def test_products_with_factors(m, rng, kind, types, sf, block, vec, ids, ctas, rows, n, source):
    scaled_product(m, rng, kind, types, sf, block, vec, ids, ctas, rows, n, K_OF[kind], source)


@pytest.mark.parametrize(("ctas", "rows"), [(1, 128), (2, 256)])
@pytest.mark.parametrize(("kind", "types", "sf", "block", "vec", "ids"), SCALED, ids=str)
def test_sparse_products_with_factors(m, rng, kind, types, sf, block, vec, ids, ctas, rows):
    """A factor goes with twice as many columns, of which half are stored of A."""
    k = 2 * K_OF[kind]
    scaled_product(m, rng, kind, types, sf, block, vec, ids, ctas, rows, 32, k, "smem", sparse=True)


@pytest.mark.parametrize(("ctas", "rows", "n"), [(1, 128, 32), (1, 128, 136), (2, 256, 160)])
@pytest.mark.parametrize(("kind", "sf", "block", "vec", "ids"), WIDE, ids=str)
def test_factors_of_a_k_of_96_go_beyond_a_word(m, rng, kind, sf, block, vec, ids, ctas, rows, n):
    scaled_product(m, rng, kind, ("e2m1", "e2m1"), sf, block, vec, ids, ctas, rows, n, 96, "smem", k96=1)


def test_a_k_of_48_bytes_goes_on_at_another_address(m, rng):
    """Where it leaves a row of 128 bytes, whose swizzle is of its own."""
    shape, types = (128, 16, 96), ("e2m1", "e2m1")
    a, b, _, b_at = put_operands(m, rng, 1, shape, types, packed=True)
    fa, fb = put_factors(m, rng, 1, shape, 32, "ue8m0", (0, 0))
    held = shared_bytes(a, TYPES["e2m1"][0], True)
    first, then = 4096, 4096 + 128 * 128
    for r in range(128):
        for byte in range(48):
            at = first + 96 + byte if byte < 32 else then + byte - 32
            at += r % 8 * 128 + r // 8 * 1024
            m.shared[0][at ^ (at >> 7 & 7) << 4] = held[r, byte]
    d = Tcgen05Descriptor(start=first + 96, leading=then, stride=1024, swizzle=128, mode=ABSOLUTE)
    word = word_of("mxf4", shape, types, k96=1)
    m.issue(isa.tcgen05_mma_scaled_ss, D, d.encode(), b_at, word, SFA, SFB, 0, kind="mxf4", cta_group=1)
    expect(m, ((a * fa) @ (b * fb).T).astype(np.float32).astype(float), home(1, 128, 16))
    crossing = Tcgen05Descriptor(start=first + 96, leading=16, stride=1024, swizzle=128).encode()
    with pytest.raises(CuteError, match="48 bytes of K from byte 96 of a row of 128 leave it"):
        m.issue(isa.tcgen05_mma_scaled_ss, D, crossing, b_at, word, SFA, SFB, 0, kind="mxf4", cta_group=1)


# ---------------------------------------------------------------- what is refused


def test_factors_that_are_not_in_all_lanes_are_refused(m, rng):
    shape, types = (128, 16, 32), ("e4m3", "e4m3")
    _, _, a_at, b_at = put_operands(m, rng, 1, shape, types)
    put_factors(m, rng, 1, shape, 32, "ue8m0", (0, 0))
    m.tmem.data[0, 70, SFB] ^= 1
    with pytest.raises(CuteError, match="scale factors of b in lanes 64 on are not those in lanes 0 on"):
        m.issue(isa.tcgen05_mma_scaled_ss, D, a_at, b_at, word_of("mxf8f6f4", shape, types), SFA, SFB, 0,
                kind="mxf8f6f4", cta_group=1)  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "scale_a", "says"),
    [
        ({"id_a": 1}, SFA, "id_a 1 of the instruction descriptor must be one of (0, 2)"),
        ({}, SFA | 1 << 16, "must be in lane 0"),
        ({"id_a": 2}, SFA | 1 << 30, "must be in lane 0 (its two upper bits, if set, say the byte that id_a 2"),
        ({"major_b": 1}, SFA, "trans_b 1 of its instruction descriptor must be 0"),
        ({"e8m0": 0}, SFA, "sf ue4m3 of its instruction descriptor must be ue8m0"),
    ],
)
def test_wrong_words_of_scaled_products_are_refused(m, rng, fields, scale_a, says):
    shape, types = (128, 16, 64), ("e2m1", "e2m1")
    _, _, a_at, b_at = put_operands(m, rng, 1, shape, types, packed=True)
    put_factors(m, rng, 1, shape, 32, "ue8m0", (0, 0))
    word = word_of("mxf4", shape, types, **fields)
    with pytest.raises(CuteError) as e:
        m.issue(isa.tcgen05_mma_scaled_ss, D, a_at, b_at, word, scale_a, SFB, 0, kind="mxf4", cta_group=1)
    assert says in str(e.value)


@pytest.mark.parametrize(
    ("meta", "fields", "code", "says"),
    [
        (META + 1, {}, None, "column 301: it must be even"),
        (META | 16 << 16, {}, None, "is in lane 16, d in lane 0"),
        (META, {}, 0b0101, "metadata 0b0101 of the row in lane 0"),
    ],
)
def test_wrong_metadata_is_refused(m, rng, meta, fields, code, says):
    shape, types = (128, 16, 32), ("f16", "f16")
    _, _, a_at, b_at = put_operands(m, rng, 1, shape, types, sparse=True)
    if code is not None:
        m.tmem.data[0, 0, META] = m.tmem.data[0, 0, META] & ~np.uint32(15) | np.uint32(code)
    with pytest.raises(CuteError, match=says):
        m.issue(isa.tcgen05_mma_ss, D, a_at, b_at, word_of("f16", shape, types, sparse=1, **fields), 0, meta=meta,
                kind="f16", cta_group=1, sparse=True)  # fmt: skip


@pytest.mark.parametrize(
    ("row", "statics", "says"),
    [
        (isa.tcgen05_mma_ss, {"kind": "mxf8f6f4"}, "no form with"),
        (isa.tcgen05_mma_ss, {"kind": "i8", "scale_d": 1}, "scale_d"),
        (isa.tcgen05_mma_ss, {"kind": "f8f6f4", "scale_d": 1}, "scale_d"),
        (isa.tcgen05_mma_ss, {"kind": "f16", "scale_d": 16}, "scale_d"),
        (isa.tcgen05_mma_ss, {"kind": "f16", "ashift": True}, "ashift"),
        (isa.tcgen05_mma_ts, {"kind": "f16", "ashift": True, "collector": "fill"}, "collector"),
        (isa.tcgen05_mma_ts, {"kind": "f16", "ashift": True, "collector": "use"}, "collector"),
        (isa.tcgen05_mma_ts, {"kind": "f16", "ashift": True, "m": 64}, "ashift"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf8f6f4", "vec": "block16"}, "vec"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf4", "vec": "scale_vec::4X"}, "vec"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf4nvf4", "vec": None}, "vec"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf4nvf4", "vec": "block32", "sf": "ue4m3"}, "sf"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf4", "k": 96, "vec": "scale_vec::2X"}, "vec"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf8f6f4", "k": 96}, "k of"),
        (isa.tcgen05_mma_scaled_ss, {"kind": "mxf4", "cta_group": 2, "sparse": True, "m": 128}, "m of"),
        (isa.tcgen05_mma_ws_ss, {"kind": "f16", "cta_group": 2}, "cta_group"),
        (isa.tcgen05_mma_ws_ss, {"kind": "f16", "sparse": True, "n": 256}, "n of"),
        (isa.tcgen05_mma_ws_ss, {"kind": "f16", "collector": "b4::use"}, "collector"),
        (isa.tcgen05_mma_ws_ss, {"kind": "mxf4"}, "kind"),
    ],
)  # fmt: skip
def test_forbidden_qualifiers_are_refused_with_the_rule(row, statics, says):
    with pytest.raises(CuteError, match=says) as e:
        row.case({"cta_group": 1} | statics)
    assert "the PTX ISA has" in str(e.value)


def test_descriptors_say_their_fields():
    word = Tcgen05ScaledInstruction(id_a=2, n=24, m=256)
    said = str(word).splitlines()
    assert said[0] == f"Tcgen05ScaledInstruction {word.encode():#010x}" and len(said) == 14
    assert "  bits 17 to 22  n        24" in said and "  bits 29 to 30  id_a     2" in said
    assert "  bit 2          sparse   0" in said
    assert repr(ZeroColumnMask(shift=3)).endswith("shift=3)")
