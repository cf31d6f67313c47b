# SPDX-License-Identifier: Apache-2.0
"""tcgen05.mma as an operation: legal forms, fragments, and products in the simulator and through the assembler."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import seam, utils
from numba_cute.isa.facts import tensor_memory
from numba_cute.nvgpu import tcgen05, warpgroup
from numba_cute.nvgpu.tcgen05 import CtaGroup, Field, OperandMajorMode, OperandSource
from numba_cute.runtime import from_dlpack
from numba_cute.seam import CuteError
from numba_cute.tensor.pointer import AddressSpace, Pointer
from numba_cute.tensor.tensor import Tensor

from . import umma_kernels as kernels

F16, BF16, F32, TF32, S8, U8 = cute.Float16, cute.BFloat16, cute.Float32, cute.TFloat32, cute.Int8, cute.Uint8
E4M3, E5M2, E2M1, E3M2 = cute.Float8E4M3FN, cute.Float8E5M2, cute.Float4E2M1FN, cute.Float6E3M2FN
K, MN, ONE, TWO = OperandMajorMode.K, OperandMajorMode.MN, CtaGroup.ONE, CtaGroup.TWO
SMEM, TMEM = OperandSource.SMEM, OperandSource.TMEM
SLOW = pytest.mark.slow


def operation(cls, types, shape, ctas=1, source=SMEM, majors=(K, K)):
    return cls(*types, shape, CtaGroup(ctas), source, *majors)


def values(rng, shape, dtype):
    """Small integers, whose products are exact in every type."""
    low = 0 if dtype is U8 else -2
    return rng.integers(low, 3, shape).astype(np.float64)


def stored(x, dtype):
    """Elements as memory holds them: of less than a byte in Uint8, 16 in the first bytes of each 16."""
    if dtype.width >= 8:
        return x.astype(np.float32 if dtype is TF32 else dtype.numpy)
    codes = np.unpackbits(x.astype(dtype.numpy).view(np.uint8)[..., None], axis=-1, bitorder="little")
    packed = np.packbits(codes[..., : dtype.width].reshape(*x.shape[:-1], -1, 16 * dtype.width), -1, bitorder="little")
    padded = np.zeros((*packed.shape[:-1], 16), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.reshape(x.shape)


def results(op, words, tile):
    """The product (M, N) that words of tensor memory (CTAs, 128, columns) hold."""
    mma, ctas = cute.make_tiled_mma(op), op.cta_group.value
    shape = mma.partition_shape_C(tile[:2])
    lay, width = mma.make_fragment_C(shape).layout, op.accumulator.width
    at = np.array([lay(i) for i in range(cute.size(lay))]) * width // 32
    found = words[:, at >> 16, at & 0xFFFF]
    if width == 16:
        found = found.astype(np.uint16)
    found = found.view(op.accumulator.numpy).astype(np.float64)
    m, n, _ = op.shape_mnk
    blocks = found.reshape(ctas, shape[2], shape[1], n, m // ctas)
    return blocks.transpose(2, 0, 4, 1, 3).reshape(tile[:2])


def words_of_a(op, a):
    """A (M, K) as the words of tensor memory (CTAs, 128, K * width / 32) that a multiply reads."""
    m, ctas = op.shape_mnk[0], op.cta_group.value
    mine = stored(a, op.a_type).reshape(ctas, m // ctas, a.shape[1])
    lanes = np.zeros((ctas, 128, a.shape[1]), mine.dtype)
    if m // ctas == 128:
        lanes[:] = mine
    elif ctas == 1:
        for i in range(4):
            lanes[:, 32 * i : 32 * i + 16] = mine[:, 16 * i : 16 * i + 16]
    else:
        lanes[:, :64], lanes[:, 64:] = mine, mine
    return np.ascontiguousarray(lanes).view(np.uint32)


def check_product(run, rng, op, tile, swizzles=("SW128", "SW128"), arch="sm_100a", **options):
    m, n, k = tile
    ctas = op.cta_group.value
    a, b = values(rng, (m, k), op.a_type), values(rng, (n, k), op.b_type)
    one = op.shape_mnk
    negate = options.get("negate", (False, False))
    want = a @ b.T * (-1) ** sum(negate) * (2 if options.get("twice") else 1)
    if op.a_src is TMEM:
        a_in = words_of_a(op, a)
    else:
        a_in = kernels.parts(stored(a, op.a_type), one[0], one[2], ctas)
    b_in = kernels.parts(stored(b, op.b_type), one[1], one[2], ctas)
    kernel = kernels.multiply(op, tile, swizzles, **options)
    out = np.zeros((ctas, 128, kernels.result_words(op, tile)), np.uint32)

    def check():
        assert np.array_equal(results(op, out, tile), want)

    args = [lambda place: from_dlpack(place(a_in)), lambda place: from_dlpack(place(b_in)), out]
    run(kernel, (ctas, 1), 128, args, outputs=[out], check=check, arch=arch)


FORMS = [
    (tcgen05.MmaF16BF16Op, (F16, F32)), (tcgen05.MmaF16BF16Op, (BF16, F32)), (tcgen05.MmaF16BF16Op, (F16, F16)),
    (tcgen05.MmaTF32Op, ()), (tcgen05.MmaFP8Op, (E4M3, F32)), (tcgen05.MmaFP8Op, (E5M2, F16)),
    (tcgen05.MmaF8F6F4Op, (E4M3, E5M2, F32)), (tcgen05.MmaI8Op, (S8,)), (tcgen05.MmaI8Op, (U8,)),
]  # fmt: skip


def some(*first):
    """All forms, of which these are run by default."""
    return [pytest.param(*form, marks=() if i in first else SLOW) for i, form in enumerate(FORMS)]


def name_of(value):
    return getattr(value, "__name__", None) or str(value)


@pytest.mark.parametrize(("cls", "types"), some(0, 6, 7), ids=name_of)
@pytest.mark.parametrize("ctas", [1, pytest.param(2, marks=SLOW)])
def test_each_type_multiplies_what_numpy_does(run, rng, cls, types, ctas):
    op = operation(cls, types, (128 * ctas, 32), ctas)
    check_product(run, rng, op, (128 * ctas, 32, 2 * 128 // kernels.held(op.a_type).width * 8))


@pytest.mark.parametrize(
    ("cls", "types"), [FORMS[0], *(pytest.param(*FORMS[i], marks=SLOW) for i in (3, 4))], ids=name_of
)  # fmt: skip
@pytest.mark.parametrize("majors", [(MN, MN), *(pytest.param(m, marks=SLOW) for m in ((MN, K), (K, MN)))], ids=name_of)
def test_either_operand_may_be_mn_major(run, rng, cls, types, majors):
    op = operation(cls, types, (128, 128), 1, SMEM, majors)
    wide = "SW128_32B" if cls is tcgen05.MmaTF32Op else "SW128"
    swizzles = tuple(wide if m is MN else "SW128" for m in majors)
    check_product(run, rng, op, (128, 128, 1024 // kernels.held(op.a_type).width), swizzles)


@pytest.mark.parametrize("swizzle", ["INTER", pytest.param("SW32", marks=SLOW), pytest.param("SW64", marks=SLOW)])
def test_any_swizzle_is_read(run, rng, swizzle):
    op = operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64), 1, SMEM, (K, MN))
    check_product(run, rng, op, (128, 64, 64), (swizzle, swizzle))


@pytest.mark.parametrize(("shape", "ctas", "tile"), [((64, 24), 1, (64, 24)), ((128, 48), 2, (128, 48)),
                                                    ((64, 32), 1, (128, 64)), ((128, 16), 1, (256, 32))])  # fmt: skip
def test_accumulators_of_each_data_path(run, rng, shape, ctas, tile):
    op = operation(tcgen05.MmaF16BF16Op, (BF16, F32), shape, ctas)
    check_product(run, rng, op, (*tile, 64))


@pytest.mark.parametrize(("cls", "types"), [FORMS[1], *(pytest.param(*FORMS[i], marks=SLOW) for i in (3, 5, 7))],
                         ids=name_of)  # fmt: skip
@pytest.mark.parametrize(("m", "ctas"), [(128, 1), (64, 1), (256, 2), (128, 2)])
def test_a_lies_in_tensor_memory(run, rng, cls, types, m, ctas):
    op = operation(cls, types, (m, 32), ctas, TMEM)
    check_product(run, rng, op, (m, 32, 1024 // op.a_type.width))


@pytest.mark.parametrize("types", [(E2M1, E4M3, F32), (E5M2, E3M2, F16)], ids=str)
def test_elements_below_a_byte_lie_packed_in_chunks(run, rng, types):
    check_product(run, rng, operation(tcgen05.MmaF8F6F4Op, types, (128, 16)), (128, 16, 128))


@pytest.mark.parametrize("negate", [(True, False), (True, True)])
def test_operands_are_negated_and_products_added(run, rng, negate):
    op = operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 16))
    check_product(run, rng, op, (128, 16, 64), negate=negate, twice=True)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: operation(tcgen05.MmaF16BF16Op, (F32, F32), (128, 64)), "ab_dtype"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (BF16, F16), (128, 64)), "acc_dtype"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 8), 2), "n a multiple of 16"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (64, 12)), "n a multiple of 8"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (64, 64), 2), "have m 128 or 256"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (256, 64)), "have m 64 or 128"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64, 32)), "instruction_shape"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64), 1, OperandSource.RMEM), "a_src"),
        (lambda: operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64), 1, TMEM, (MN, K)), "a_major_mode"),
        (lambda: operation(tcgen05.MmaFP8Op, (E4M3, F32), (256, 16), 2, SMEM, (K, MN)), "b_major_mode"),
        (lambda: operation(tcgen05.MmaI8Op, (S8,), (64, 24), 1, SMEM, (K, MN)), "b_major_mode"),
        (lambda: operation(tcgen05.MmaI8Op, (S8,), (64, 40)), "n 8, 16, 24, or a multiple of 16"),
        (lambda: operation(tcgen05.MmaFP8Op, (E2M1, F32), (128, 64)), "ab_dtype"),
    ],
)
def test_what_the_hardware_lacks_is_refused_with_the_rule(make, rule):
    with pytest.raises(CuteError, match=rule):
        make()


def in_shared(dtype, lay, swizzle=None, alignment=1024):
    return Tensor(Pointer(dtype, AddressSpace.smem, 0, 0, alignment, swizzle), lay)


def test_fragments_of_what_it_cannot_read_are_refused():
    op = operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64))
    mma = cute.make_tiled_mma(op)
    shape = mma.partition_shape_A((128, 64))
    lay = kernels.smem_layout(shape, F16, "K", "SW128")
    with pytest.raises(CuteError, match="elements are BFloat16"):
        mma.make_fragment_A(in_shared(BF16, lay.outer, lay.inner))
    with pytest.raises(CuteError, match="tcgen05.make_smem_layout_atom"):
        mma.make_fragment_A(in_shared(F16, lay.outer))
    with pytest.raises(CuteError, match="aligned to 32 bytes for its 128-byte swizzle; .*=128 or more"):
        mma.make_fragment_A(in_shared(F16, lay.outer, lay.inner, 16))
    with pytest.raises(CuteError, match="S<2,5,2>"):
        mma.make_fragment_A(in_shared(F16, lay.outer, cute.make_swizzle(3, 5, 3)))
    with pytest.raises(CuteError, match="shape"):
        mma.make_fragment_C(((128, 32), 1, 1))
    with pytest.raises(CuteError, match="shared memory"):
        mma.make_fragment_B(shape)


def test_accumulators_are_tensors_in_tensor_memory():
    op = operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64))
    acc = cute.make_tiled_mma(op).make_fragment_C(((128, 64), 1, 2, 2))
    assert acc.memspace is AddressSpace.tmem and acc.element_type == F32
    assert tensor_memory.column_count(acc.layout, 32) == 256
    part = acc[None, 0, 1, 1]
    assert int(part.iterator.address) == 192
    with pytest.raises(CuteError, match="tcgen05.ld"):
        part.iterator.load()


def test_fields_that_an_operation_lacks_are_refused():
    mma = cute.make_tiled_mma(operation(tcgen05.MmaI8Op, (S8,), (128, 64)))
    assert mma.get(Field.ACCUMULATE) is False
    with pytest.raises(CuteError, match="NEGATE_A"):
        mma.set(Field.NEGATE_A, True)
    assert warpgroup.OperandSource is OperandSource


def test_a_fragment_of_shared_memory_prints_what_its_descriptors_say(capsys):
    op = operation(tcgen05.MmaF16BF16Op, (F16, F32), (128, 64))
    mma = cute.make_tiled_mma(op)
    lay = kernels.smem_layout(mma.partition_shape_A((128, 128)), F16, "K", "SW128")
    tensor = Tensor(Pointer(F16, AddressSpace.smem, 2048, 0, 1024, lay.inner), lay.outer)
    fragment = mma.make_fragment_A(tensor)
    first = "descriptor<Float16, start 2048, leading 16, stride 1024, swizzle 128>"
    assert repr(fragment) == f"Tensor({first}, {fragment.layout})"
    assert repr(fragment[0, 0, 5]) == first.replace("2048", str(2048 + 16384 + 32))
    cute.print_tensor(fragment)
    assert capsys.readouterr().out.count("descriptor<Float16, start ") == 1 + 8

    @cuda.jit
    def kernel():
        s = utils.SmemAllocator().allocate_tensor(F16, lay.outer, 1024, lay.inner)
        show(s)

    @seam.traced
    def show(s):
        cute.print_tensor(mma.make_fragment_A(s))

    cute.simulate(kernel, arch="sm_100a")[1, 1]()
    assert capsys.readouterr().out.count("leading 16, stride 1024, swizzle 128>") >= 8
    assert "vprintf" in cute.compile(kernel, (), arch="sm_100a").ptx
