# SPDX-License-Identifier: Apache-2.0
"""The example's GEMM: right on ragged shapes, as fast as its assembly says, and explained when it is broken."""

import inspect
import linecache
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute
from benchmarks import machine_code
from benchmarks.code import grown
from numba_cute.kernels.gemm import dense, plan

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402
from . import raw_gemm  # noqa: E402

DTYPES = [cute.BFloat16, cute.Float16]
SLOW = pytest.mark.slow
Plan = hopper_gemm.Plan


def kernel_arguments(a, b, c, dtype, most_clusters=1, cut=hopper_gemm.USUAL, inouts=()):
    """The example's arguments with the arrays placed where the kernel runs; all made at the first one's call. inouts:
    the memory by which a split K is added up."""
    made = {}

    def all_of(place):
        if not made:
            scratch, arrays = [place(x) for x in inouts], [place(x) for x in (a, b, c)]
            made["args"] = hopper_gemm.arguments(*arrays, dtype, most_clusters, cut, None, scratch)[0]
        return made["args"]

    count = len(inspect.signature(hopper_gemm.gemm.py_func).parameters)
    return [lambda place, i=i: all_of(place)[i] for i in range(count)]


def grid_of(a, b, c, dtype, most_clusters=1):
    return hopper_gemm.arguments(a, b, c, dtype, most_clusters)[1]


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        pytest.param((8, 8, 8), cute.BFloat16, marks=SLOW),
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
    "cut, majors, shape",
    [
        pytest.param(Plan(256, 1), "kkn", (104, 264, 144), marks=SLOW),
        pytest.param(Plan(192), "kkn", (104, 264, 144), marks=SLOW),
        pytest.param(Plan(128), "kkm", (264, 104, 144), marks=SLOW),
        pytest.param(Plan(256, stages=2, slots=1), "kkn", (104, 264, 144), marks=SLOW),
        pytest.param(Plan(128, 1, turned=True), "kkn", (104, 264, 144), marks=SLOW),
        pytest.param(Plan(64, 1, 2), "kkn", (40, 72, 144), marks=SLOW),
        pytest.param(Plan(64, 1, 4, turned=True), "kkn", (72, 40, 264), marks=SLOW),
        pytest.param(Plan(64, 1, splits=2), "kkn", (40, 72, 208), marks=SLOW),
        pytest.param(Plan(64, 1, 2, splits=2, turned=True), "kkm", (40, 72, 264), marks=SLOW),
        pytest.param(Plan(128, 2, 2, splits=2), "kkn", (136, 136, 464), marks=SLOW),
    ],
    ids=str,
)
def test_problems_can_be_cut_in_other_ways(run, cut, majors, shape):
    a, b, c = gemm_host.problem(*shape, cute.BFloat16, majors=majors)
    sums, counts = plan.scratch_of(c, cut, 3)
    inouts = [np.full(sums, np.nan, np.float32), np.zeros(counts, np.int32)] if cut.splits > 1 else []
    grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 3, cut, None, inouts)[1]
    args = kernel_arguments(a, b, c, cute.BFloat16, 3, cut, inouts=inouts)
    run(
        hopper_gemm.kernel_of(cut), grid, hopper_gemm.THREADS, args, outputs=[c], inouts=inouts,
        check=lambda: gemm_host.check(a, b, c),
    )  # fmt: skip
    assert not inouts or not inouts[1].any()  # ready for the next launch


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
    "shape, cut",
    [
        ((8192, 8192, 8192), hopper_gemm.USUAL),
        ((2048, 2048, 2048), hopper_gemm.USUAL),
        ((3072, 3072, 3072), Plan(192)),
        ((512, 4096, 4096), Plan(128)),
        ((128, 8192, 8192), Plan(128, 1, 2)),
        ((64, 4096, 4096), Plan(64, 1, 2, turned=True)),
    ],
    ids=str,
)
def test_few_tiles_are_narrow_or_split(shape, cut):
    m, n, k = shape
    c = np.empty((m, n), np.float16)
    assert hopper_gemm.plan(c, k, cute.BFloat16, 132) == cut
    assert hopper_gemm.plan(c.T, k, cute.BFloat16, 132) == cut  # seen from the other side
    found = hopper_gemm.plan(c, k, cute.BFloat16, 132, parts=4)
    assert found.parts * found.splits == 4


@pytest.mark.parametrize("run", [pytest.param("gpu", marks=pytest.mark.gpu)], indirect=True)
@pytest.mark.parametrize("dtype", DTYPES, ids=repr)
def test_gemm_is_right_over_many_rounds_of_tiles(run, dtype):
    a, b, c = hopper_gemm.problem(1000, 1048, 1016, dtype)
    run(
        hopper_gemm.gemm, grid_of(a, b, c, dtype, 2), hopper_gemm.THREADS, kernel_arguments(a, b, c, dtype, 2),
        outputs=[c], check=lambda: hopper_gemm.check(a, b, c),
    )  # fmt: skip


def seconds_of_a_loop():
    """How long this machine takes for a loop in Python that takes a quick one a quarter of a second."""
    start, x, kept = time.process_time(), 0, {}
    for i in range(3_000_000):
        x = (x * 3 + i) & 0xFFFF
        kept[x & 255] = x
    return time.process_time() - start


def test_gemm_of_256_512_128_takes_less_than_ten_seconds_of_a_quick_machine_in_the_simulator():
    before = seconds_of_a_loop()
    a, b, c = hopper_gemm.problem(256, 512, 128, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 1)
    start = time.process_time()  # the machine may be shared
    cute.simulate(hopper_gemm.gemm)[grid, hopper_gemm.THREADS](*args)
    took = time.process_time() - start
    assert took < 40 * (before + seconds_of_a_loop()) / 2
    assert hopper_gemm.check(a, b, c) < 3e-3


# ---------------------------------------------------------------- the abstractions cost nothing


def mainloop(sass):
    """The instructions of the innermost loop that multiplies."""
    return machine_code.main_loop(machine_code.read(sass))


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
    assert code.notes == () and not grown("example hopper_gemm", code)


def test_mainloop_is_no_longer_than_with_raw_instructions(example):
    args, code = example
    out = np.zeros((2, 2, 128, 256), np.float32)
    raw = compiled(raw_gemm.raw_gemm, (args[0], args[2], args[4], out, np.int32(1), np.int32(2), np.int32(128)))
    ours, theirs = mainloop(code.sass), mainloop(raw.sass)
    assert sum(x.kind == "tensor" for x in ours) == sum(x.kind == "tensor" for x in theirs)
    assert len(ours) <= 1.12 * len(theirs), f"{len(ours)} instructions, and {len(theirs)} of the raw kernel"


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
    source = textwrap.dedent(inspect.getsource(dense.gemm.py_func))
    for old, new in changes:
        assert old in source, f"the example no longer has {old!r}"
        source = source.replace(old, new)
    file = tmp_path / "broken_gemm.py"
    file.write_text(source)
    linecache.checkcache(str(file))
    scope = dict(vars(dense))
    exec(compile(source, str(file), "exec"), scope)
    return scope["gemm"]


def simulate(kernel, k=64 * 5, **options):  # more than there are stages
    a, b, c = hopper_gemm.problem(256, 256, k, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 1)
    cute.simulate(kernel, **options)[grid, hopper_gemm.THREADS](*args)
    return a, b, c


def test_unbroken_twin_is_silent(tmp_path):
    hopper_gemm.check(*simulate(broken(tmp_path)))


@pytest.mark.slow  # tests/sim/test_gemm.py has one like it
def test_missing_release_is_reported_with_barrier_stage_phase_and_line(tmp_path):
    kernel = broken(tmp_path, ("previous.release()", "pass"))
    with pytest.raises(Exception) as e:
        simulate(kernel)
    text = str(e.value)
    for part in ("mainloop.empty[0]", "phase", "warp 0", "broken_gemm.py"):
        assert part in text, f"{part!r} is missing in:\n{text}"


@pytest.mark.parametrize(("wrong", "says"), [("+ 1024", "50176"), ("- 1024", "48128")])
def test_wrong_tx_count_is_reported_with_the_bytes(tmp_path, wrong, says):
    kernel = broken(tmp_path, ("tx_count=(TILE_M + tile_n) * ROW", f"tx_count=(TILE_M + tile_n) * ROW {wrong}"))
    with pytest.raises(Exception) as e:
        simulate(kernel)
    text = str(e.value)
    assert f"pipeline 'mainloop': tx_count is {says} bytes" in text and "broken_gemm.py" in text, text


@pytest.mark.slow  # likewise
def test_missing_proxy_fence_is_named(tmp_path):
    no_fence = "cute.copy(own.copy, own.held, own.shared[None, None, None, piece % slots])"
    kernel = broken(tmp_path, ("own.put(piece % slots)", no_fence))
    with pytest.raises(Exception) as e:
        simulate(kernel, k=64)
    assert "fence.proxy.async" in str(e.value) or "fence_proxy" in str(e.value), str(e.value)
