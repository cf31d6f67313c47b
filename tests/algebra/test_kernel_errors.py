# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a layout in a kernel: one exception with the layouts, the mode, and the kernel's own line.

The messages of the algebra itself are in tests/layout/test_errors.py; here they come out of kernels, where extents
may be known only at run time.
"""

from __future__ import annotations

import linecache
import re

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute.seam.marks.decorators import HOW_STATIC

AT_RUN_TIME = "is known only at run time"
# (the kernel's statement, what the exception says, whether the simulator says the same: it knows all numbers)
ERRORS = [
    # a composition that does not divide
    (
        "cute.composition(cute.make_layout((6, 4), stride=(1, 7)), cute.make_layout(4, stride=4))",
        "composition: (6,4):(1,7) o 4:4 is not a layout: 4 steps of 4 do not divide its mode 0, 6:1: choose extents "
        "and strides that divide the modes they cross",
        True,
    ),
    (
        "cute.composition(cute.make_layout((n, (6, 4)), stride=(1, (9, 7))), (2, cute.make_layout(4, stride=4)))",
        "composition: (6,4):(9,7) o 4:4 is not a layout: 4 steps of 4 do not divide its mode 0, 6:9: choose extents "
        "and strides that divide the modes they cross",
        True,
    ),
    # a coordinate out of the shape
    (
        "cute.make_tensor(x, cute.make_layout((4, 8)))[4, 0]",
        "coordinate (4,0) is out of (4,8):(1,4): mode [0] takes 0 to 3, and 4 is given",
        True,
    ),
    (
        "cute.make_tensor(x, cute.make_layout((n, (4, 8))))[0, (3, -1)]",
        "coordinate (0,(3,-1)) is out of (?,(4,8)):(1,(?,?{div=4})): mode [1, 1] takes 0 to 7, and -1 is given",
        False,
    ),
    (
        "cute.make_tensor(x, cute.make_layout((4, 8)))[32]",
        "coordinate 32 is out of (4,8):(1,4): it takes 0 to 31, and 32 is given",
        True,
    ),
    (
        "cute.make_tensor(x, cute.make_layout((4, 8)))[None, 8]",
        "coordinate (_,8) is out of (4,8):(1,4): mode [1] takes 0 to 7, and 8 is given",
        True,
    ),
    # ranks that do not match
    (
        "cute.make_layout((4, n), stride=(1, 4))((1, 2, n))",
        "coordinate (1,2,?) has 3 modes, the shape (4,?) has 2: give one index for each mode, or one integer for all",
        False,
    ),
    (
        "cute.make_layout((4, (n, 2)), stride=(1, 4))",
        "stride=(1,4) does not match shape=(4,(?,2)): give one stride for each extent, nested in the same way",
        False,
    ),
    (
        "cute.zipped_divide(cute.make_layout((4, n)), (2, 2, 2))",
        "logical_divide: the tiler (2,2,2) has 3 modes, the layout (4,?):(1,4) only 2",
        False,
    ),
    (
        "cute.make_tensor(x, cute.make_layout((4, 8)))[1, 2, 3]",
        "coordinate (1, 2, 3): 3 modes, but (4,8):(1,4) has 2; give one for each, None for all",
        True,
    ),
    (
        "cute.size(cute.make_layout((4, n)), 2)",
        "mode=[2]: (4,?) has no mode 2 there, only 0 to 1",
        False,
    ),
    # a dynamic leaf where a static one is needed
    (
        "cute.make_ordered_layout((4, 8), (n, 0))",
        f"order {AT_RUN_TIME}, and must be static here: {HOW_STATIC}",
        False,
    ),
    (
        "cute.group_modes(cute.make_layout((4, 8, 2)), n, 2)",
        f"begin {AT_RUN_TIME}, and must be static here: {HOW_STATIC}",
        False,
    ),
    (
        "cute.composition(cute.make_layout((n, 4), stride=(4, 1)), 8)",
        f"composition: (?,4):(4,1) o 8:1 is not a layout: mode 0 of the left side, ?:4, is crossed, and its extent "
        f"{AT_RUN_TIME}: make it static, promise what divides it (cute.assume), or tile each mode by itself",
        False,
    ),
    (
        "cute.composition(cute.make_layout((8, 4), stride=(1, 10)), cute.make_layout(n))",
        f"composition: (8,4):(1,10) o ?:1 is not a layout: mode 0 of the left side, 8:1, is crossed, and whether 8 "
        f"divides how many steps there are {AT_RUN_TIME}: make it static, promise what divides it (cute.assume), or "
        "tile each mode by itself",
        False,
    ),
    (
        "cute.complement(cute.make_layout((4, 4), stride=(1, n)), 64)",
        f"complement: a stride of (4,4):(1,?) {AT_RUN_TIME}: {HOW_STATIC}",
        False,
    ),
    (
        "cute.left_inverse(cute.make_layout((4, 4), stride=(1, n)))",
        f"left_inverse: a stride of (4,4):(1,?) {AT_RUN_TIME}: {HOW_STATIC}",
        False,
    ),
    (
        "cute.make_swizzle(n, 4, 3)",
        f"b {AT_RUN_TIME}, and must be static here: {HOW_STATIC}",
        False,
    ),
]


def kernel_of(statement, tmp_path):
    """The kernel as if it stood in a file: its line can be shown."""
    file = tmp_path / "user.py"
    file.write_text(f"def kernel(x, n):\n    x[0] = 1\n    {statement}\n")
    space = {"cute": cute}
    exec(compile(file.read_text(), str(file), "exec"), space)
    linecache.checkcache()
    return cuda.jit(space["kernel"]), file


@pytest.mark.parametrize(("statement", "message", "simulated"), ERRORS, ids=[e[0][:60] for e in ERRORS])
def test_error_of_a_kernel_shows_the_layouts_the_rule_and_the_line(statement, message, simulated, tmp_path):
    kernel, file = kernel_of(statement, tmp_path)
    with pytest.raises(cute.CuteError) as e:
        cute.compile(kernel, "void(float32[::1], int32)")
    came = "\n  n is an argument" if HOW_STATIC in message else ""
    said = f"{message}\n  in kernel kernel, {file}:3\n    {statement}"
    assert str(e.value).startswith(said)
    assert re.fullmatch(r"(\n +\^+.*)?" + re.escape(came), str(e.value).removeprefix(said))


SAME_IN_THE_SIMULATOR = [(s, m) for s, m, simulated in ERRORS if simulated]


@pytest.mark.parametrize(
    ("statement", "message"), SAME_IN_THE_SIMULATOR, ids=[s[:60] for s, _ in SAME_IN_THE_SIMULATOR]
)
def test_the_simulator_says_the_same(statement, message, tmp_path):
    kernel, _ = kernel_of(statement, tmp_path)
    with pytest.raises(cute.CuteError) as e:
        cute.simulate(kernel)[1, 1](np.zeros(64, np.float32), 4)
    assert str(e.value).splitlines()[0] == message
