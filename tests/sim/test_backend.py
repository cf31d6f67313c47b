# SPDX-License-Identifier: Apache-2.0
"""What traced code asks of the simulator: numbers wrap and round as on the GPU."""

import numpy as np
import pytest

from numba_cute import dtypes, seam
from numba_cute.seam import Regs
from numba_cute.sim import simulate


def inside(check):
    """Run `check(backend)` in a kernel of one thread."""
    simulate(lambda: check(seam.current()))[1, 1, 0, 1024]()


@pytest.mark.parametrize(
    ("dtype", "value", "want"),
    [
        (dtypes.Int8, 200, -56),
        (dtypes.Uint8, -1, 255),
        (dtypes.Int32, 1 << 31, -(1 << 31)),
        (dtypes.Uint64, -1, (1 << 64) - 1),
        (dtypes.Int32, -2.9, -2),
        (dtypes.Int32, float("nan"), 0),
        (dtypes.Int8, 1e9, 127),
        (dtypes.Int8, np.int32(200), -56),
        (dtypes.Float32, 0.1, float(np.float32(0.1))),
        (dtypes.Float64, 0.1, 0.1),
        (dtypes.Float16, 2049, 2048.0),
        (dtypes.BFloat16, 1 + 2**-9, 1.0),
        (dtypes.Float8E4M3FN, 1e6, 448.0),
        (dtypes.Boolean, 3, True),
    ],
    ids=str,
)
def test_casts_wrap_round_and_saturate(dtype, value, want):
    def check(b):
        assert dtype(value) == want

    inside(check)


def test_vectors_convert_to_nearest_even_and_to_integers_towards_zero():
    def check(b):
        regs = Regs(b.registers(dtypes.Float32, 4), dtypes.Float32, 0, 4)
        for i, x in enumerate((0.5, 1.5, 2.5, -3.7)):
            b.write(Regs(regs.file, regs.dtype, i, 1), x)
        assert b.convert(b.vector(regs), dtypes.Float32, dtypes.Int8, 4).tolist() == [0, 1, 2, -3]
        half = Regs(b.registers(dtypes.BFloat16, 4), dtypes.BFloat16, 0, 4)
        b.unvector(b.convert(b.vector(regs), dtypes.Float32, dtypes.BFloat16, 4), half)
        assert b.read(Regs(half.file, half.dtype, 3, 1)) == -3.703125

    inside(check)


def test_copies_between_memory_and_registers_move_bytes():
    def check(b):
        src = Regs(b.registers(dtypes.Int16, 8), dtypes.Int16, 0, 8)
        for i in range(8):
            b.write(Regs(src.file, src.dtype, i, 1), i - 4)
        b.copy_from_regs(src, "smem", b.smem_base(), 16)
        dst = Regs(b.registers(dtypes.Int16, 10), dtypes.Int16, 2, 8)
        b.copy_to_regs("generic", b.smem_base(), dst, 16)
        assert b.vector(dst).tolist() == list(range(-4, 4))
        assert b.load(dtypes.Int16, "smem", b.smem_base() + 2, 3, 2) == (-3, -2, -1)
        b.fill(dst, 7)
        assert b.vector(Regs(dst.file, dst.dtype, 2, 8)).tolist() == [7] * 8

    inside(check)


def test_control_flow_and_printing(capsys):
    def check(b):
        seen = []
        b.loop(2, 5, seen.append)
        b.when(False, lambda: seen.append("no"))
        b.when(b.compare("<=", 3, 3), lambda: seen.append("yes"))
        assert seen == [2, 3, 4, "yes"] and b.select(False, 1, 2) == 2
        b.printf("%d %llu %5.2f\n", (1, 2, 0.5))

    inside(check)
    assert capsys.readouterr().out == "1 2  0.50\n"
