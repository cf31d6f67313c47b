# SPDX-License-Identifier: Apache-2.0
"""Every operation of the IR is executed, or listed with why it is not (tests/ir/executed).

CALLS: operations with a text that a kernel here is made of: of static operands, whose type says the result, which the
function must give in the simulator and while it is compiled, or of the numbers %n, %m, %f, %g and %x, whose result must
be the function's own (but for %q, which is not compared). TESTS: operations of kernels of other tests, which
by_way_of_ir.py runs by way of the IR, and assembles for their targets. LOWERED: the same, by way of `lower-to-nvgpu`.
NEVER: those without an execution, each with the reason; one that is new needs a line.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.runtime import from_dlpack

pytest.importorskip("xdsl")

from numba_cute import ir  # noqa: E402
from numba_cute.compiler.inspection.inference import description_of_argument, is_whole, value_of  # noqa: E402
from numba_cute.ir.library import definitions, operations  # noqa: E402
from numba_cute.ir.library.types import description_of, type_of  # noqa: E402
from numba_cute.seam import traced  # noqa: E402

from .executed import CALLS, LOWERED, NEVER, TESTS  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ALL = {d.name: d for d in definitions.all_definitions()}
TARGET = "sm_100a"
NUMBERS = {
    "n": np.int32(8), "m": np.int32(-3), "f": np.float32(0.5), "g": np.float32(1.5), "x": np.float64(0.25),
}  # fmt: skip
PARAMETERS = {"n": "i32", "m": "i32", "f": "f32", "g": "f32", "x": "f64"}
MOST = 512
WANT: list[object] = []
"""What operations on static operands give, by the number that a kernel hands to `same`."""


@traced
def same(got, number):
    """Refuse what is not what the operation's type says."""
    assert got == WANT[number], f"{got} is not {WANT[number]}"


@traced
def keep(out, at, function, got, *args):
    """Store what an operation gives, and what its function gives."""
    for i, (a, b) in enumerate(zip(numbers(got), numbers(function(*args)), strict=True)):
        out[2 * (at + i)], out[2 * (at + i) + 1] = cute.Float64(a), cute.Float64(b)


@traced
def twice(x):
    """What `transform_leaf` applies."""
    return 2 * x


@traced
def is_three(x, place):
    """What `find_if` asks of each leaf and its place."""
    return x == 3


@traced
def wrapped(x):
    """What `filter_tuple` joins."""
    return (x,)


@traced
def collected(*items):
    """What `transform_apply` makes of all."""
    return items


def numbers(value):
    """The numbers of a tuple, a vector, or one number."""
    if isinstance(value, cute.TensorSSA):
        return [value[i] for i in range(cute.size(value.shape))]
    return [x for v in value for x in numbers(v)] if isinstance(value, tuple) else [value]


def room(name):
    """What of the library a name is of: "nvgpu.warp", "arch", "" of what it shows itself."""
    parts = name.split(".")[1:-1]
    return ".".join(parts[: 2 if parts[:1] == ["nvgpu"] else 1])


ROOMS = sorted({room(name) for name in CALLS})


def renamed(text, prefix):
    """A call's lines with names of their own."""
    return re.sub(r"%(?!(?:out|[nmfgx])\b)(\w+)", rf"%{prefix}\1", text)


def source_of(names, text=CALLS):
    """The text of a kernel of some operations."""
    out = type_of(description_of_argument(from_dlpack(np.zeros(MOST))))
    parameters = ", ".join([f"%out: {out}", *(f"%{n}: {t}" for n, t in PARAMETERS.items())])
    lines = [line for i, name in enumerate(names) for line in renamed(text[name], f"v{i}_").splitlines()]
    body = "\n".join(f"    {line}" for line in lines)
    return (
        f'builtin.module attributes {{numba_cute.target = "{TARGET}"}} {{\n  func.func @k({parameters}) attributes '
        f"{{numba_cute.kernel}} {{\n{body}\n    func.return\n  }}\n}}\n"
    )


@cache
def checked(where):
    """The kernel of a room's operations, whose results it checks; and how many are compared afterwards."""
    names = [name for name in CALLS if room(name) == where]
    module = ir.parse(source_of(names))
    body = [op for op in module if op.parent_op() is not None][1:]  # one operation a line
    ends = accumulate(len(CALLS[name].splitlines()) for name in names)
    text, at = dict(CALLS), 0
    for own, end in zip(names, ends, strict=True):
        op = body[end - 1]
        assert isinstance(op, operations.ApiOp) and op.name == own
        given = None if op.result is None else description_of(op.result.type)
        last = CALLS[op.name].splitlines()[-1]
        name, assigned, _ = last.partition(" = ")
        compared = assigned and name != "%q"
        if compared and given is not None and is_whole(given):
            WANT.append(value_of(given))
            text[op.name] += f'\nnumba_cute.call @"{__name__}:same" {name}, {len(WANT) - 1}'
        elif compared:
            args = last.partition(f"{op.name} ")[2].partition(" : ")[0]
            symbol = operations.symbol_of(ALL[op.name].function)
            text[op.name] += f'\nnumba_cute.call @"{__name__}:keep" %out, {at}, @"{symbol}", {name}, {args}'
            at += 4
    return ir.to_kernel(ir.parse(source_of(names, text), names=[sys.modules[__name__]])), at


def test_every_operation_is_executed_or_listed():
    assert sorted([*CALLS, *TESTS, *LOWERED, *NEVER]) == sorted(ALL)
    assert all(NEVER.values()), "why"
    said = {tuple(test.partition("[")[0].split("::")) for test in (*TESTS.values(), *LOWERED.values())}
    assert [f"{file}::{name}" for file, name in said if f"def {name}(" not in (ROOT / file).read_text()] == []


def test_most_operations_are_executed():
    for nvgpu in (False, True):
        names = [name for name in ALL if name.startswith("numba_cute.nvgpu.") is nvgpu]
        never = [name for name in names if not NEVER.get(name, "inherited").startswith("inherited")]
        assert len(never) < 0.15 * len(names), "what is inherited is executed as its base's"


@pytest.mark.parametrize("where", ROOMS)
def test_operations_give_what_their_types_and_functions_say(where):
    kernel, compared = checked(where)
    out = np.zeros(MOST)
    cute.simulate(kernel, arch=TARGET)[1, 1](from_dlpack(out), *NUMBERS.values())
    np.testing.assert_array_equal(out[: 2 * compared : 2], out[1 : 2 * compared : 2])


@pytest.mark.slow
@pytest.mark.parametrize("where", ROOMS)
def test_operations_are_compiled(where):
    kernel, _ = checked(where)
    cute.compile(kernel, (from_dlpack(np.zeros(MOST)), *NUMBERS.values()), arch=TARGET)


BY_FILE: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
for _passes, _tests in (("", TESTS), ("lower-to-nvgpu", LOWERED)):
    for _name, _test in _tests.items():
        BY_FILE[_test.partition("::")[0], _passes][_name] = _test


@pytest.mark.slow
@pytest.mark.parametrize(("file", "passes"), sorted(BY_FILE))
def test_kernels_of_other_tests_execute_operations(file, passes, tmp_path):
    tests = BY_FILE[file, passes]
    executed = tmp_path / "executed.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.ir.by_way_of_ir",
        "-q",
        "-n",
        "0",
        "-m",
        "",
        *sorted(set(tests.values())),
    ]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "CUTE_IR_EXECUTED": str(executed), "CUTE_IR_PASSES": passes, "CUTE_IR_ASSEMBLE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    said = json.loads(executed.read_text())
    assert set(tests) - set(said["executed"]) == set()
    assert set(tests) - set(said["assembled"]) == set()
