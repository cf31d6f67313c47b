# SPDX-License-Identifier: Apache-2.0
"""Block-scaled tcgen05.mma as an operation: legal forms, and products in the simulator and through the assembler."""

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.nvgpu import tcgen05
from numba_cute.nvgpu.tcgen05 import CtaGroup, OperandMajorMode, OperandSource
from numba_cute.seam import CuteError

from . import scaled_kernels as kernels
from .test_umma import results

E4M3, E5M2, E2M1, E3M2, E2M3 = (
    cute.Float8E4M3FN, cute.Float8E5M2, cute.Float4E2M1FN, cute.Float6E3M2FN, cute.Float6E2M3FN
)  # fmt: skip
E8M0, F32 = cute.Float8E8M0FNU, cute.Float32
K, MN = OperandMajorMode.K, OperandMajorMode.MN
SMEM, TMEM = OperandSource.SMEM, OperandSource.TMEM
SLOW = pytest.mark.slow
MX8, MX864, MX4, NV4 = tcgen05.MmaMXF8Op, tcgen05.MmaMXF8F6F4Op, tcgen05.MmaMXF4Op, tcgen05.MmaMXF4NVF4Op
X4, XNV4 = tcgen05.SM103MmaMXF4Op, tcgen05.SM103MmaMXF4NVF4Op


def operation(cls, types, shape, ctas=1, source=SMEM, majors=(K, K)):
    last = majors if cls in (MX8, MX864) else ()
    return cls(*types, shape, CtaGroup(ctas), source, *last)


def in_bytes(op, x, dtype):
    """Elements (rows, K) as bytes of shared memory (rows, bytes)."""
    codes = x.astype(np.float32 if dtype is cute.TFloat32 else dtype.numpy).view(np.uint8)
    if op.packed:
        return codes[:, ::2] | codes[:, 1::2] << 4
    if dtype.width >= 8:
        return codes
    bits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., : dtype.width]
    dense = np.packbits(bits.reshape(len(x), -1, 16 * dtype.width), -1, bitorder="little")
    padded = np.full((*dense.shape[:-1], 16), 0xA5, np.uint8)
    padded[..., : dense.shape[-1]] = dense
    return padded.reshape(x.shape)


def words_in_tmem(op, x):
    """A (M, K) as words of tensor memory (CTAs, 128, columns)."""
    codes = x.astype(np.float32 if op.a_type is cute.TFloat32 else op.a_type.numpy).view(np.uint8)
    if op.packed:
        codes = codes[:, ::2] | codes[:, 1::2] << 4
    elif op.a_type.width == 4:
        codes = codes << 2
    ctas, m = op.cta_group.value, op.shape_mnk[0]
    mine = codes.reshape(ctas, m // ctas, -1)
    if m // ctas == 64 and (ctas == 1 or op.sparsity == 2):
        lanes = np.zeros((ctas, 4, 32, mine.shape[2]), np.uint8)
        lanes[:, :, :16] = mine.reshape(ctas, 4, 16, -1)
        lanes = lanes.reshape(ctas, 128, -1)
    else:
        lanes = np.concatenate([mine, mine], 1) if m // ctas == 64 else mine
    return np.ascontiguousarray(lanes).view(np.uint32)


def factors(rng, op, shape):
    """Random factors, as numbers and as bytes."""
    if op.factor_type is E8M0:
        codes = rng.integers(124, 131, shape).astype(np.uint8)
        return 2.0 ** (codes.astype(float) - 127), codes
    values = rng.choice([0.25, 0.5, 1, 1.5, 2, 3], shape)
    codes = values.astype(op.factor_type.numpy).view(np.uint8)
    return values, codes


def check_product(
    run, rng, op, tile, swizzles=("SW128", "SW128"), arch="sm_100a", multiply=kernels.multiply, **options
):
    m, n, k = tile
    ctas, vec = op.cta_group.value, op.sf_vec_size
    a, b = (rng.integers(-2, 3, (rows, k)).astype(np.float64) for rows in (m, n))
    (fa, ca), (fb, cb) = (factors(rng, op, (rows, k // vec)) for rows in (m, n))
    want = (a * np.repeat(fa, vec, 1)) @ (b * np.repeat(fb, vec, 1)).T * (-1 if options.get("NEGATE_A") else 1)
    one = op.shape_mnk
    if op.a_src is TMEM:
        a_in = words_in_tmem(op, a)
    else:
        a_in = kernels.parts_in_bytes(op, in_bytes(op, a, op.a_type), one[0], one[2], op.a_type)
    b_in = kernels.parts_in_bytes(op, in_bytes(op, b, op.b_type), one[1], one[2], op.b_type)
    of_both = np.concatenate([kernels.factor_words(op, tile, c, x) for c, x in ((ca, "A"), (cb, "B"))], -1)
    out = np.zeros((ctas, 128, kernels.result_words(op, tile)), np.uint32)

    def check():
        assert np.array_equal(results(op, out, tile), want)

    kernel = multiply(op, tile, swizzles, **options)
    run(kernel, (ctas, 1), 128, [a_in, b_in, of_both, out], outputs=[out], check=check, arch=arch)


def name_of(value):
    return getattr(value, "__name__", None) or str(value)


FORMS = [(MX8, (E4M3,)), (MX8, (E5M2,)), (MX864, (E2M1, E3M2)), (MX4, ()), (NV4, (E4M3,)), (NV4, (E8M0,))]


@pytest.mark.parametrize(
    ("cls", "types"), [pytest.param(*f, marks=() if i in (0, 2, 4) else SLOW) for i, f in enumerate(FORMS)], ids=name_of
)  # fmt: skip
@pytest.mark.parametrize("lists", [False, pytest.param(True, marks=SLOW)], ids=["set", "lists"])
def test_each_type_multiplies_what_numpy_does(run, rng, cls, types, lists):
    op = operation(cls, types, (128, 32))
    check_product(run, rng, op, (128, 32, 4 * op.shape_mnk[2]), lists=lists)


@pytest.mark.parametrize(("cls", "types"), [FORMS[4], pytest.param(*FORMS[0], marks=SLOW)], ids=name_of)
@pytest.mark.parametrize(
    ("m", "n", "ctas"), [(256, 64, 2), *(pytest.param(*s, marks=SLOW) for s in (
        (128, 64, 2), (128, 192, 1), (128, 256, 1), (128, 8, 1), (256, 256, 2), (128, 256, 2), (128, 128, 2),
        (128, 16, 2)))]
)  # fmt: skip
def test_factors_lie_in_lanes_for_each_part_of_the_unit(run, rng, cls, types, m, n, ctas):
    op = operation(cls, types, (m, n), ctas)
    check_product(run, rng, op, (m, n, 4 * op.shape_mnk[2]))


@pytest.mark.parametrize(
    ("cls", "types"), [(MX8, (E4M3,)), (MX864, (E2M1, E5M2)), (NV4, (E4M3,)),
                       *(pytest.param(*f, marks=SLOW)
                         for f in ((MX864, (E2M3, E2M1)), (MX864, (E3M2, E4M3)), (MX4, ())))],
    ids=name_of,
)  # fmt: skip
@pytest.mark.parametrize(("m", "ctas"), [(128, 1), pytest.param(256, 2, marks=SLOW), pytest.param(128, 2, marks=SLOW)])
def test_a_lies_in_tensor_memory(run, rng, cls, types, m, ctas):
    op = operation(cls, types, (m, 32), ctas, TMEM)
    check_product(run, rng, op, (m, 32, 4 * op.shape_mnk[2]))


@pytest.mark.parametrize("majors", [(MN, MN), pytest.param((MN, K), marks=SLOW), pytest.param((K, MN), marks=SLOW)],
                         ids=name_of)  # fmt: skip
def test_either_operand_may_be_mn_major(run, rng, majors):
    check_product(run, rng, operation(MX8, (E4M3,), (128, 128), 1, SMEM, majors), (128, 128, 128))


@pytest.mark.parametrize("swizzle", ["INTER", pytest.param("SW32", marks=SLOW), pytest.param("SW64", marks=SLOW)])
def test_any_swizzle_is_read(run, rng, swizzle):
    check_product(run, rng, operation(MX4, (), (128, 64)), (128, 64, 256), (swizzle, swizzle))


def test_an_operand_is_negated_and_factors_come_with_it(run, rng):
    check_product(
        run,
        rng,
        operation(MX8, (E5M2,), (128, 16)),
        (128, 16, 128),
        NEGATE_A=True,
        lists=True,
        COLLECTOR=tcgen05.CollectorOp.FILL,
    )


@pytest.mark.parametrize(("cls", "types"), [(XNV4, (E4M3,)), pytest.param(X4, (), marks=SLOW)], ids=name_of)
@pytest.mark.parametrize(("m", "n", "ctas"), [(128, 32, 1), pytest.param(256, 144, 2, marks=SLOW)])
def test_a_k_of_96(run, rng, cls, types, m, n, ctas):
    op = operation(cls, types, (m, n), ctas)
    check_product(run, rng, op, (m, n, 384), ("INTER", "INTER"), arch="sm_103a")


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: operation(MX8, (E2M1,), (128, 64)), "ab_dtype Float4E2M1FN must be Float8E4M3FN or Float8E5M2"),
        (lambda: operation(MX8, (E4M3,), (64, 64)), "must be \\(128, n, 32\\)"),
        (lambda: operation(MX8, (E4M3,), (64, 64), 2), "have m 128 or 256"),
        (lambda: operation(MX8, (E4M3,), (128, 24), 2), "n a multiple of 16"),
        (lambda: operation(MX8, (E4M3,), (128, 24), 1, SMEM, (K, MN)), "b_major_mode"),
        (lambda: operation(MX8, (E4M3,), (128, 64), 1, TMEM, (MN, K)), "a_major_mode"),
        (lambda: operation(MX864, (E4M3, F32), (128, 64)), "b_dtype"),
        (lambda: operation(MX4, (), (128, 64, 32)), "instruction_shape"),
        (lambda: operation(NV4, (E5M2,), (128, 64)), "sf_dtype Float8E5M2 must be Float8E4M3FN or Float8E8M0FNU"),
        (lambda: operation(X4, (), (128, 64, 64)), "instruction_shape"),
    ],
)
def test_what_the_hardware_lacks_is_refused_with_the_rule(make, rule):
    with pytest.raises(CuteError, match=rule):
        make()
