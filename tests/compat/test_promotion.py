# SPDX-License-Identifier: Apache-2.0
"""Operators in files that import `cutlass` give what the CuTe DSL gives, in both engines and on the host: the table of
docs/differences.md, for each operator and each two types."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pytest

import numba_cute as cute
from numba_cute import promotion
from numba_cute.compat.importing import Mirror
from numba_cute.dtypes import (
    Boolean,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint32,
    Uint64,
)
from numba_cute.seam import CuteError
from numba_cute.sim.python.arithmetic import by_reference
from numba_cute.sim.python.arithmetic.number import CLASSES

from ..native import Native
from .texts import ran

ROWS = (Boolean, Int8, Uint8, Int32, Uint32, Int64, Uint64, Float32, Float64)
MEET = """
Boolean Int8    Uint8   Int32   Uint32  Int64   Uint64  Float32 Float64
Int8    Int8    Uint8   Int32   Uint32  Int64   Uint64  Float32 Float64
Uint8   Uint8   Uint8   Int32   Uint32  Int64   Uint64  Float32 Float64
Int32   Int32   Int32   Int32   Uint32  Int64   Uint64  Float32 Float64
Uint32  Uint32  Uint32  Uint32  Uint32  Int64   Uint64  Float32 Float64
Int64   Int64   Int64   Int64   Int64   Int64   Uint64  Float64 Float64
Uint64  Uint64  Uint64  Uint64  Uint64  Uint64  Uint64  Float64 Float64
Float32 Float32 Float32 Float32 Float32 Float64 Float64 Float32 Float64
Float64 Float64 Float64 Float64 Float64 Float64 Float64 Float64 Float64
"""
"""The types in which two numbers meet, row by row as ROWS, as the sources of docs/differences.md say it."""
TABLE = {
    (a, b): getattr(cute, name) for a, row in zip(ROWS, MEET.split("\n")[1:]) for b, name in zip(ROWS, row.split())
}
LITERALS = {2: Int32, 0.5: Float32, 2**40: Int64}


def result(op, meet):
    """The type that an operator gives in the type in which two numbers meet."""
    if op in promotion.COMPARED:
        return Boolean
    return Float32 if op == "truediv" and not meet.is_float else meet


def values(t):
    if t is Boolean:
        return (True, False)
    return (2.5, -7.25, 3.0) if t.is_float else (7, -3 if t.signed else (1 << t.width) - 3, 2)


@pytest.mark.parametrize("op", promotion.BINARY)
def test_types(op):
    """The table, by the rule and by the simulator's numbers; a number of Python's beside each."""
    for (a, b), meet in TABLE.items():
        case = promotion.binary(op, a, b)
        if meet.is_float and op in (*promotion.BITWISE, *promotion.SHIFTS):
            assert case is None
            continue
        assert case.result is result(op, meet), (op, a, b)
        given = by_reference.BINARY[op](CLASSES[a].make(values(a)[0]), CLASSES[b].make(values(b)[0]))
        assert given.dtype is case.result
    for a, (x, t) in itertools.product(ROWS, LITERALS.items()):
        meet = TABLE[a, t]
        if meet.is_float and op in (*promotion.BITWISE, *promotion.SHIFTS):
            with pytest.raises(CuteError):
                by_reference.BINARY[op](CLASSES[a].make(1), x)
            continue
        assert by_reference.BINARY[op](CLASSES[a].make(1), x).dtype is result(op, meet), (op, a, x)


def test_numbers_that_have_no_type_together():
    assert promotion.promoted(Float16, cute.BFloat16) is None and promotion.promoted(cute.BFloat16, Int16) is None
    assert promotion.promoted(Float16, Int16) is Float16 and promotion.promoted(Float16, Int32) is Float32
    assert promotion.promoted(cute.BFloat16, Boolean) is cute.BFloat16


OPERATORS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "and_": "&", "xor": "^",
             "lshift": "<<", "rshift": ">>", "lt": "<", "ge": ">=", "eq": "=="}  # fmt: skip
PAIRS = ((Int32, Int32), (Int32, Uint32), (Uint8, Int8), (Int64, Int32), (Int32, Uint64), (Int32, Float32),
         (Float32, Float32), (Int64, Float32), (Int32, 3), (Uint32, -1), (Float32, 3), (Int32, 0.5))  # fmt: skip
GIVEN = {Int32: -7, Uint32: 2**32 - 3, Uint8: 250, Int8: -3, Int64: -(2**40), Uint64: 2**63 + 5, Float32: -7.25}
OTHER = {**GIVEN, Int32: 3, Uint32: 5, Int8: 2, Float32: 2.5}


def cases():
    for op, (a, b) in itertools.product(OPERATORS, PAIRS):
        if promotion.binary(op, a, promotion.literal(b) if isinstance(b, (int, float)) else b) is not None:
            yield op, a, b


def kernel_of_all():
    """A kernel that stores each case, as an Int64 or a Float64, and the cases."""
    found = list(cases())
    names = sorted({str(t) for _, a, b in found for t in (a, b) if not isinstance(t, (int, float))})
    text = "def kernel(out, {}):\n".format(", ".join(f"x{n}, y{n}" for n in names))
    for i, (op, a, b) in enumerate(found):
        other = repr(b) if isinstance(b, (int, float)) else f"y{b}"
        text += f"    out[{i}] = Float64(x{a} {OPERATORS[op]} {other})\n"
    module = types.ModuleType("file_of_the_dsl")
    module.__dict__.update(cutlass=Mirror("cutlass", ["numba_cute"]), Float64=Float64)
    exec(text, module.__dict__)
    kinds = [getattr(cute, n) for n in names]
    return module.kernel, found, [t(v[t]) for t in kinds for v in (GIVEN, OTHER)]


def test_values_of_compiled_code_and_of_the_simulator_and_of_the_host():
    kernel, found, numbers = kernel_of_all()
    from numba import cuda

    compiled, simulated = np.zeros(len(found)), np.zeros(len(found))
    Native(kernel, (compiled, *numbers)).run(1, compiled, *numbers)
    cute.simulate(cuda.jit(kernel))[1, 1](simulated, *numbers)
    for (op, a, b), here, there in zip(found, compiled, simulated):
        x, y = GIVEN[a], b if isinstance(b, (int, float)) else OTHER[b]
        second = b(y) if isinstance(b, type(Int32)) else y
        host = float(promotion._scalars(op, a(x), second)) if op not in promotion.COMPARED else there
        expected = by_numpy(op, a, x, promotion.literal(b) if isinstance(b, (int, float)) else b, y)
        assert here == there == host == pytest.approx(expected, rel=1e-7, abs=0), (op, a, b)


def by_numpy(op, a, x, b, y):
    """The number by NumPy, in the type of the table."""
    meet = TABLE[a, b]
    p, q = (np.asarray(v).astype(meet.numpy)[()] for v in (np.asarray(x), np.asarray(y)))
    with np.errstate(all="ignore"):
        if op == "truediv":
            kind = result(op, meet).numpy
            return float(kind(p) / kind(q))
        if op == "mod":
            return float(np.fmod(p, q))
        if op in ("lshift", "rshift"):
            width = meet.width
            if not 0 <= int(q) < width:
                return float(-1 if op == "rshift" and p < 0 else 0)
        f = {"floordiv": np.floor_divide, "and_": np.bitwise_and, "xor": np.bitwise_xor, "lshift": np.left_shift,
             "rshift": np.right_shift, "lt": np.less, "ge": np.greater_equal, "eq": np.equal, "add": np.add,
             "sub": np.subtract, "mul": np.multiply}[op]  # fmt: skip
        return float(f(p, q))


FILE = """
import math
import torch
import cutlass
import cutlass.cute as cute
from cutlass import Boolean, Float32, Int32, Int64, Uint32
from cutlass.cute.runtime import from_dlpack

TENTH = 0.1

@cute.kernel
def kernel(whole: cute.Tensor, real: cute.Tensor, n: Int32, rounds, given, static: cutlass.Constexpr):
    steps, total, flag = 0, 0.0, Boolean(n > 0)
    for i in range(rounds):
        steps += n
        total = total + TENTH
    whole[0] = Int64(steps)
    whole[1] = Int64(-n % 3)
    whole[2] = Int64(max(n, 5)) + Int64(min(n, -5)) + Int64(abs(-n))
    whole[3] = Int64(flag + flag) + Int64(flag + 1) + Int64(~flag)
    whole[4] = Int64(-Uint32(n)) + Int64(given * 2 > 0.5)
    real[0] = total
    real[1] = n / 3
    real[2] = given * math.log2(math.e) * static
    real[3] = Float32(n) / rounds if flag else 0.0
    real[4] = Float32(2.0) ** 3 + max(total, 0.0)

@cute.jit
def launch(whole: cute.Tensor, real: cute.Tensor):
    assert str(Int32(2**31 - 1) + Int32(1)) == "Int32(-2147483648)" and str(Int32(7) / 2) == "Float32(3.5)"
    kernel(whole, real, Int32(2**30 + 7), 7, 0.3, 0.25).launch(grid=[1, 1, 1], block=[1, 1, 1])

whole, real = torch.zeros(5, dtype=torch.int64).cuda(), torch.zeros(5).cuda()
launch(from_dlpack(whole), from_dlpack(real))
n, f = 2**30 + 7, torch.float32
assert whole.tolist() == [(7 * n + 2**31) % 2**32 - 2**31, -(n % 3), n - 5 + n, 1 + 2, 2**32 - n + 1], whole
tenths = torch.zeros((), dtype=f)
for _ in range(7):
    tenths += torch.tensor(0.1, dtype=f)
assert real[0] == tenths and real[1] == torch.tensor(n, dtype=f) / 3, real
assert real[3] == torch.tensor(n, dtype=f) / 7 and real[4] == 8 + tenths
print("right")
"""


def test_a_file_has_loops_literals_and_arguments_by_the_rule(tmp_path, capsys):
    pytest.importorskip("torch")
    ran(tmp_path, FILE)
    assert "right" in capsys.readouterr().out


def test_other_kernels_keep_numbas_rule():
    from numba import cuda

    @cuda.jit
    def kernel(out, n):
        out[0] = n + n
        out[1] = (0 - n) % 3

    out, n = np.zeros(2, np.int64), np.int32(2**30 + 7)
    for run in (cute.simulate(kernel)[1, 1], lambda *given: Native(kernel.py_func, given).run(1, *given)):
        run(out, n)
        assert out.tolist() == [2**31 + 14, -int(n) % 3]
