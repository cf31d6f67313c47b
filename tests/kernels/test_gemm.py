# SPDX-License-Identifier: Apache-2.0
"""The example's GEMM: right on ragged shapes, as fast as its assembly says, and explained when it is broken."""

import inspect
import linecache
import re
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402
from . import raw_gemm  # noqa: E402

DTYPES = [cute.BFloat16, cute.Float16]
SLOW = pytest.mark.slow


def kernel_arguments(a, b, c, dtype, most_clusters=1, *how):
    """The example's arguments with the arrays placed where the kernel runs; all made at the first one's call."""
    made = {}

    def all_of(place):
        if not made:
            made["args"] = hopper_gemm.arguments(place(a), place(b), place(c), dtype, most_clusters, *how)[0]
        return made["args"]

    count = len(inspect.signature(hopper_gemm.gemm.py_func).parameters)
    return [lambda place, i=i: all_of(place)[i] for i in range(count)]


def grid_of(a, b, c, dtype, most_clusters=1):
    return hopper_gemm.arguments(a, b, c, dtype, most_clusters)[1]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((8, 8, 8), cute.BFloat16),
        pytest.param((8, 8, 8), cute.Float16, marks=SLOW),
        ((200, 264, 136), cute.BFloat16),
        pytest.param((130, 520, 72), cute.Float16, marks=SLOW),
    ],
    ids=lambda x: "x".join(map(str, x)) if isinstance(x, tuple) else repr(x),
)
def test_gemm_is_right_on_ragged_shapes(run, shape, dtype):
    a, b, c = hopper_gemm.problem(*shape, dtype)
    run(
        hopper_gemm.gemm, grid_of(a, b, c, dtype), hopper_gemm.THREADS, kernel_arguments(a, b, c, dtype),
        outputs=[c], check=lambda: hopper_gemm.check(a, b, c),
    )  # fmt: skip


@pytest.mark.parametrize(
    "cut, majors",
    [
        pytest.param(hopper_gemm.Plan(256, 1, 1), "kkn", marks=SLOW),
        (hopper_gemm.Plan(128, 2, 1), "kkn"),
        pytest.param(hopper_gemm.Plan(128, 1, 2), "kkm", marks=SLOW),
    ],
)
def test_problems_can_be_cut_in_other_ways(run, cut, majors):
    m, n = (104, 136) if majors[2] == "n" else (136, 104)  # the kernel's M is the one along which C is not contiguous
    a, b, c = gemm_host.problem(m, n, 80, cute.BFloat16, majors=majors)
    out = c if cut.parts == 1 else np.zeros_like(c, np.float32)
    how = cute.BFloat16, 3, cut
    grid = hopper_gemm.arguments(a, b, out, *how)[1]

    def check():
        rounded = np.empty_like(c)
        rounded[...] = out
        gemm_host.check(a, b, rounded)

    args = kernel_arguments(a, b, out, *how)
    run(hopper_gemm.kernel_of(cut), grid, hopper_gemm.THREADS, args, inouts=[out], check=check)


@pytest.mark.parametrize(
    ("dtype", "majors"),
    [
        (cute.BFloat16, "mnm"),
        (cute.Float8E4M3FN, "kkn"),
        pytest.param(cute.Float16, "mkn", marks=SLOW),
        pytest.param(cute.BFloat16, "knm", marks=SLOW),
        pytest.param(cute.Float8E5M2, "kkm", marks=SLOW),
        pytest.param(cute.TFloat32, "kkn", marks=SLOW),
        pytest.param(cute.TFloat32, "kkm", marks=SLOW),
        pytest.param(cute.Int8, "kkn", marks=SLOW),
    ],
    ids=str,
)
def test_gemm_takes_every_type_and_major(run, dtype, majors):
    a, b, c = gemm_host.problem(48, 80, 144, dtype, majors=majors)
    run(
        hopper_gemm.gemm, grid_of(a, b, c, dtype), hopper_gemm.THREADS, kernel_arguments(a, b, c, dtype),
        outputs=[c], check=lambda: gemm_host.check(a, b, c),
    )  # fmt: skip


@pytest.mark.parametrize(
    "dtype, k, cut",
    [
        (cute.BFloat16, 208, hopper_gemm.Plan(128, 1, 2)),
        pytest.param(cute.BFloat16, 464, hopper_gemm.Plan(parts=3), marks=SLOW),
        pytest.param(cute.Int8, 464, hopper_gemm.Plan(parts=3), marks=SLOW),
    ],
    ids=["in two", "in three", "Int8 in three"],
)
def test_parts_of_a_split_k_add_up(run, dtype, k, cut):
    a, b, c = gemm_host.problem(40, 72, k, dtype)
    sums = np.zeros(c.shape, hopper_gemm.sums_of(dtype).numpy)

    def check():
        rounded = np.empty_like(c)
        rounded[...] = sums
        gemm_host.check(a, b, rounded)

    grid = hopper_gemm.arguments(a, b, sums, dtype, 1, cut)[1]
    args = kernel_arguments(a, b, sums, dtype, 1, cut)
    run(hopper_gemm.kernel_of(cut), grid, hopper_gemm.THREADS, args, inouts=[sums], check=check)


def test_sums_are_rounded_once_and_zero_again(run):
    rng = np.random.default_rng(0)
    sums = rng.standard_normal((37, 24), dtype=np.float32)
    c, want = np.zeros(sums.shape, cute.BFloat16.numpy), sums.astype(cute.BFloat16.numpy)
    made = {}

    def tensors(place):
        if not made:
            made["args"] = hopper_gemm.finish_arguments(place(sums), place(c), cute.BFloat16)
        return made["args"]

    def check():
        assert not sums.any()
        np.testing.assert_array_equal(c.view(np.int16), want.view(np.int16))

    args = [lambda place, i=i: tensors(place)[i] for i in range(2)]
    run(hopper_gemm.finish, (2, 2), (32, 2), args, inouts=[sums], outputs=[c], check=check)


@pytest.mark.parametrize(
    "shape, cut",
    [
        ((8192, 8192, 8192), hopper_gemm.USUAL),
        ((2048, 2048, 2048), hopper_gemm.USUAL),
        ((1024, 1024, 1024), hopper_gemm.Plan(128, 2, 1)),
        ((512, 4096, 4096), hopper_gemm.Plan(128, 2, 1)),
        ((256, 512, 16384), hopper_gemm.Plan(128, 2, 16)),
        ((16, 16, 64), hopper_gemm.Plan(128, 1, 1)),
    ],
    ids=str,
)
def test_few_tiles_are_narrow_or_split(shape, cut):
    m, n, k = shape
    c = np.empty((m, n), np.float16)
    assert hopper_gemm.plan(c, k, cute.BFloat16, 132) == cut
    assert hopper_gemm.plan(c.T, k, cute.BFloat16, 132) == cut  # seen from the other side
    assert hopper_gemm.plan(c, k, cute.BFloat16, 132, parts=3).parts == 3


@pytest.mark.parametrize("run", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_gemm_is_right_over_many_rounds_of_tiles(run, dtype):
    a, b, c = hopper_gemm.problem(1000, 1048, 1016, dtype)
    run(
        hopper_gemm.gemm, grid_of(a, b, c, dtype, 2), hopper_gemm.THREADS, kernel_arguments(a, b, c, dtype, 2),
        outputs=[c], check=lambda: hopper_gemm.check(a, b, c),
    )  # fmt: skip


def test_gemm_of_256_512_128_takes_less_than_ten_seconds_in_the_simulator():
    a, b, c = hopper_gemm.problem(256, 512, 128, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 1)
    start = time.process_time()  # the machine may be shared
    cute.simulate(hopper_gemm.gemm)[grid, hopper_gemm.THREADS](*args)
    assert time.process_time() - start < 10
    assert hopper_gemm.check(a, b, c) < 3e-3


# ---------------------------------------------------------------- the abstractions cost nothing


def mainloop(sass):
    """The instructions of the innermost loop that multiplies."""
    labels, instructions = {}, []
    for line in sass.splitlines():
        if label := re.match(r"\s*(\.L_\w+):", line):
            labels[label[1]] = len(instructions)
        elif instruction := re.match(r"\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;", line):
            instructions.append(instruction[1])
    loops = []
    for end, text in enumerate(instructions):
        target = re.search(r"BRA.*\((\.L_\w+)\)", text)
        if target and labels.get(target[1], end + 1) <= end:
            body = instructions[labels[target[1]] : end + 1]
            if any("HGMMA" in x for x in body):
                loops.append(body)
    return min(loops, key=len)


def compiled(kernel, args):
    return cute.compile(kernel, tuple(args), arch="sm_90a")


@pytest.fixture(scope="module")
def example():
    arrays = hopper_gemm.problem(256, 512, 128, cute.BFloat16)
    args, _ = hopper_gemm.arguments(*arrays, cute.BFloat16, 1)
    return args, compiled(hopper_gemm.gemm, args)


def test_gemm_compiles_to_registers_alone(example):
    _, code = example
    r = code.resources
    assert (r.registers, r.spill_stores, r.spill_loads, r.local, r.stack) == (168, 0, 0, 0, 0)
    assert code.notes == ()


def test_mainloop_is_no_longer_than_with_raw_instructions(example):
    args, code = example
    out = np.zeros((2, 2, 128, 256), np.float32)
    raw = compiled(raw_gemm.raw_gemm, (args[0], args[2], args[4], out, np.int32(1), np.int32(2), np.int32(128)))
    ours, theirs = mainloop(code.sass), mainloop(raw.sass)
    assert sum("HGMMA" in x for x in ours) == sum("HGMMA" in x for x in theirs)
    assert len(ours) <= 1.02 * len(theirs), f"{len(ours)} instructions, and {len(theirs)} of the raw kernel"


def test_raw_kernel_is_right(run):
    dtype = cute.BFloat16
    a, b, c = hopper_gemm.problem(256, 256, 128, dtype)
    out = np.zeros((2, 1, 128, 256), np.float32)

    def check():
        # out[m, n, i, t]: accumulator i of thread t, the C fragment of m64n256 twice, one for each warpgroup
        got = np.empty((256, 256))
        t, i = np.arange(256), np.arange(128)[:, None]
        row = t // 128 * 64 + t % 128 // 32 * 16 + t % 32 // 4 + i // 2 % 2 * 8
        column = i // 4 * 8 + t % 4 * 2 + i % 2
        for m in range(2):
            got[128 * m + row, column + 0 * row] = out[m, 0]
        want = a.astype(np.float64) @ b.astype(np.float64).T
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())

    parts = kernel_arguments(a, b, c, dtype)
    run(
        raw_gemm.raw_gemm, (2, 1, 1), 384,
        [dtype, parts[2], parts[4], out, np.int32(1), np.int32(1), np.int32(128)],
        outputs=[out], check=check,
    )  # fmt: skip


# ---------------------------------------------------------------- broken twins


def broken(tmp_path, *changes):
    """The example's kernel with its source changed: (old, new) pairs, each of which must occur."""
    source = textwrap.dedent(inspect.getsource(hopper_gemm.gemm.py_func))
    for old, new in changes:
        assert old in source, f"the example no longer has {old!r}"
        source = source.replace(old, new)
    file = tmp_path / "broken_gemm.py"
    file.write_text(source)
    linecache.checkcache(str(file))
    scope = dict(vars(hopper_gemm))
    exec(compile(source, str(file), "exec"), scope)
    return scope["gemm"]


def simulate(kernel, k=64 * 5, **options):  # more than there are stages
    a, b, c = hopper_gemm.problem(256, 256, k, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 1)
    cute.simulate(kernel, **options)[grid, hopper_gemm.THREADS](*args)
    return a, b, c


def test_unbroken_twin_is_silent(tmp_path):
    hopper_gemm.check(*simulate(broken(tmp_path)))


def test_missing_release_is_reported_with_barrier_stage_phase_and_line(tmp_path):
    kernel = broken(tmp_path, ("previous.release()", "pass"))
    with pytest.raises(Exception) as e:
        simulate(kernel)
    text = str(e.value)
    for part in ("mainloop.empty[0]", "phase", "warp 0", "broken_gemm.py"):
        assert part in text, f"{part!r} is missing in:\n{text}"


@pytest.mark.parametrize(("wrong", "says"), [("+ 1024", "1024"), ("- 1024", "1024")])
def test_wrong_tx_count_is_reported_with_the_bytes(tmp_path, wrong, says):
    kernel = broken(tmp_path, ("tx_count=(TILE_M + tile_n) * ROW", f"tx_count=(TILE_M + tile_n) * ROW {wrong}"))
    with pytest.raises(Exception) as e:
        simulate(kernel)
    text = str(e.value)
    assert says in text and "mainloop.full" in text, text


def test_missing_proxy_fence_is_named(tmp_path):
    kernel = broken(tmp_path, ('arch.fence_proxy("async.shared", space="cta")', "pass"))
    with pytest.raises(Exception) as e:
        simulate(kernel, k=64)
    assert "fence.proxy.async" in str(e.value) or "fence_proxy" in str(e.value), str(e.value)
