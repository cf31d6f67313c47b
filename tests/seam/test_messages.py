# SPDX-License-Identifier: Apache-2.0
"""What users meet first says the argument, its value, the rule, and what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numba import cuda

import numba_cute as cute
from numba_cute import config
from numba_cute.isa.form import targets
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack
from numba_cute.seam.marks.decorators import HOW_STATIC
from numba_cute.utils import SmemAllocator

TILE = cute.make_ordered_layout((64, 64), order=(1, 0))


def tma() -> tuple[Any, Any]:
    a = from_dlpack(np.zeros((64, 64), np.float16))
    return cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), a, TILE, (64, 64))


def both(body: Any, args: Any, block: int = 32, **named: Any) -> list[str]:
    """What the simulator and the compiler say of a kernel."""
    kernel = cuda.jit(body)
    with pytest.raises(cute.CuteError) as simulated:
        cute.simulate(kernel, **named)[1, block](*args)
    with pytest.raises(cute.CuteError) as compiled:
        cute.compile(kernel, *args, **named)
    return [str(simulated.value), str(compiled.value)]


def test_tma_into_generic_memory_says_what_it_is_and_what_to_allocate():
    def kernel(atom, src, x):
        gmem = cute.make_tensor(x, TILE)
        part, whole = cpasync.tma_partition(
            atom, 0, cute.make_layout(1), cute.group_modes(gmem, 0, 2), cute.group_modes(src, 0, 2)
        )
        cute.copy(atom, whole, part, tma_bar_ptr=cute.arch.alloc_smem(cute.Int64, 1))

    for said in both(kernel, (*tma(), np.zeros(4096, np.float16))):
        assert "must lie in shared memory; its pointer is generic, and may point anywhere" in said
        assert "SmemAllocator.allocate_tensor" in said


def test_a_partition_of_ungrouped_modes_is_refused_with_group_modes():
    def kernel(atom, src):
        smem = SmemAllocator().allocate_tensor(cute.Float16, TILE, byte_alignment=128)
        cpasync.tma_partition(atom, 0, cute.make_layout(1), smem, src)

    for said in both(kernel, tma()):
        assert "mode 0 of smem_tensor (64,64):(64,1) has 64 elements, but a box of the atom has 4096" in said
        assert "cute.group_modes(smem_tile, 0, n)" in said


def test_a_copy_of_what_is_not_partitioned_names_the_partition():
    def kernel(atom, src):
        smem = SmemAllocator()
        tile = smem.allocate_tensor(cute.Float16, TILE, byte_alignment=128)
        cute.copy(atom, src, tile, tma_bar_ptr=smem.allocate_array(cute.Int64))

    for said in both(kernel, tma()):
        assert "copy: src has 64 values" in said and "but the atom copies 4096" in said
        assert "cpasync.tma_partition(atom, 0, cute.make_layout(1), cute.group_modes(smem_tile, 0, n)" in said


def test_a_copy_of_threads_names_its_partition():
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=128),
        cute.make_layout(8), cute.make_layout(4),
    )  # fmt: skip

    def kernel(x):
        t = cute.make_tensor(x, cute.make_layout(6))
        cute.copy(copy, t, cute.make_rmem_tensor(6, cute.Float32))

    for said in both(kernel, (np.zeros(32, np.float32),)):
        assert "tiled_copy.get_slice(thread).partition_S(src) and partition_D(dst)" in said


@pytest.mark.parametrize("announced", [True, False])
def test_a_copy_by_one_lane_is_said_first(announced):
    @cuda.jit
    def kernel(atom, src):
        smem = SmemAllocator()
        tile = smem.allocate_tensor(cute.Float16, TILE, byte_alignment=128)
        bar = smem.allocate_array(cute.Int64)
        grouped = cute.group_modes(tile, 0, 2), cute.group_modes(src, 0, 2)
        part, whole = cpasync.tma_partition(atom, 0, cute.make_layout(1), grouped[0], grouped[1])
        if cuda.threadIdx.x == 0:
            cute.arch.mbarrier_init(bar, 1)
            cute.arch.mbarrier_init_fence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            if announced:
                cute.arch.mbarrier_arrive_and_expect_tx(bar, 64 * 64 * 2)
            cute.copy(atom, whole, part, tma_bar_ptr=bar)
        cute.arch.mbarrier_wait(bar, 0)

    with pytest.raises(cute.CuteError) as e:
        cute.simulate(kernel)[1, 64](*tma())
    first, *fixes = re.findall(r"fix: (.*)", str(e.value))
    assert first.startswith("let all lanes of the warp call copy") and "`if warp_idx == 0:`" in first and not fixes
    assert "announce the 0 bytes" not in str(e.value)


def test_shapes_that_do_not_meet_are_said():
    def kernel(x):
        a, b = cute.make_rmem_tensor((32,), cute.Float32), cute.make_rmem_tensor(((2, 2, 8),), cute.Float32)
        a.fill(0)
        b.fill(0)
        x[0] = (a.load() + b.load())[0]

    for said in both(kernel, (np.zeros(4, np.float32),)):
        assert "the shapes are 32 and ((2, 2, 8),)" in said


def test_interleaved_modes_are_not_said_to_overlap():
    for make in (lambda x: cute.complement(x, 24), lambda x: cute.blocked_product(x, cute.make_layout((2, 2)))):
        with pytest.raises(cute.CuteError) as e:
            make(cute.make_layout((2, 3), stride=(3, 2)))  # 0 2 4 3 5 7: no offset twice
        assert "twice" not in str(e.value)
        assert "the mode of stride 3 begins within the reach of that of stride 2" in str(e.value)


# ---------------------------------------------------------------- targets


@pytest.mark.parametrize("target", ["sm_90a", "sm_100f", "sm_100a|sm_110a", "sm_120a", "sm_107f", "sm_130f"])
def test_what_a_target_lacks_names_known_targets(target):
    said = targets.lacks("wgmma", target, "sm_80")
    named = re.findall(r"sm_\w+", said.split("sm_80: ")[1])[:-1]
    having = targets.supporting(target)
    assert having == [a for a, t in targets.TARGETS.items() if not t.renamed and targets.supports(a, target)]
    assert set(named) == {a.replace("f", "a") for a in having}
    assert named or "no target that kernels are compiled for has it" in said


def test_both_engines_name_the_targets():
    def kernel(x):
        x[0] = cute.arch.warp_redux_sync(cute.Float32(x[0]), "fmax")

    for said in both(kernel, (np.zeros(4, np.float32),), arch="sm_90a"):
        assert "needs sm_100f, and the target is sm_90a: use sm_100a, sm_103a or sm_107a as arch=" in said


@pytest.mark.parametrize(("arch", "near"), [("sm100f", "sm_100a"), ("sm_90f", "sm_90a"), (90, "sm_90a"), ("x", None)])
def test_unknown_targets_suggest_one(arch, near):
    with pytest.raises(cute.CuteError, match="not a known target; use one of sm_80") as e:
        cute.compile(lambda x: None, np.zeros(4), arch=arch)
    assert ("did you mean" in str(e.value)) == (near is not None) and (near is None or f"{near!r}?" in str(e.value))


# ---------------------------------------------------------------- tools and libraries


def _script(path: Any, text: str, mode: int = 0o755) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("#!/bin/sh\nexit 0\n", 0o755, "is no ptxas: it made no cubin"),
        ("#!/bin/sh\nexit 1\n", 0o755, "is no ptxas: it made no cubin"),
        ("#!/bin/sh\nsleep 60\n", 0o755, "did not end within 0.2 seconds: is it ptxas?"),
        ("not a program", 0o644, "cannot be run as ptxas"),
        ("not a program\0", 0o755, "cannot be run as ptxas"),
        (
            "#!/bin/sh\necho 'Unsupported .version 9.2; current version is 8.0' >&2; exit 255\n",
            0o755,
            "too old",
        ),
        (
            "#!/bin/sh\necho \"Value 'sm_100a' is not defined for option 'gpu-name'\"; exit 1\n",
            0o755,
            "too old",
        ),
    ],
)
def test_a_file_that_is_no_ptxas_is_said_to_be_none(tmp_path, text, mode, words):
    from numba_cute.compiler.host import ptxas

    path = _script(tmp_path / "ptxas", text, mode)
    seconds = 0.2 if "sleep" in text else 60.0
    with config.override(ptxas=path, tool_seconds=seconds), pytest.raises(cute.CuteError) as e:
        ptxas.assemble(".version 9.0\n", "sm_90a")
    assert words in str(e.value) and path in str(e.value)
    assert "numba-cute[cu13]" in str(e.value) or "NUMBA_CUTE_TOOL_SECONDS" in str(e.value)


def test_the_time_limit_is_a_number(monkeypatch):
    monkeypatch.setenv("NUMBA_CUTE_TOOL_SECONDS", "2.5")
    assert config.current().tool_seconds == 2.5
    monkeypatch.setenv("NUMBA_CUTE_TOOL_SECONDS", "soon")
    with pytest.raises(cute.CuteError, match="NUMBA_CUTE_TOOL_SECONDS=soon: give a number of seconds"):
        config.current()


_WITHOUT = """
import cuda.pathfinder as found
import cuda.pathfinder._dynamic_libs.load_nvidia_dynamic_lib as home
def absent(name):
    if name == {library!r}:
        raise found.DynamicLibNotFoundError('Failure finding "lib' + name + '.so"')
    return real(name)
real = found.load_nvidia_dynamic_lib
found.load_nvidia_dynamic_lib = home.load_nvidia_dynamic_lib = absent
import numpy as np, numba_cute as cute
from numba import cuda
@cuda.jit
def kernel(x):
    x[0] = cute.size(cute.make_layout(4))
try:
    cute.compile(kernel, np.zeros(4, np.float32))
except cute.CuteError as e:
    print(e)
"""


@pytest.mark.parametrize("library", ["nvrtc", "nvvm"])
def test_a_missing_library_names_the_extra(library):
    run = [sys.executable, "-c", _WITHOUT.format(library=library)]
    said = subprocess.run(run, capture_output=True, text=True, timeout=120).stdout
    assert f"lib{library} was not found" in said and "numba-cute[cu13]" in said


# ---------------------------------------------------------------- static values


def _dynamic(body: Any) -> Any:
    return pytest.param(body, id=body.__name__)


def registers(n, x):
    cute.make_rmem_tensor((n, 4), cute.Float32)


def shared(n, x):
    SmemAllocator().allocate_array(cute.Float32, n)


def static_shared(n, x):
    cute.arch.alloc_smem(cute.Float32, n)


def constant(n, x):
    cute.const_expr(n)


def ordered(n, x):
    cute.make_ordered_layout((4, 4), (n, 1))


def full(n, x):
    cute.full((n,), 0, cute.Float32)


def waits(n, x):
    cute.arch.cp_async_wait_group(n)


def stages(n, x):
    cute.pipeline.PipelineState(n, 0, 0, 0)
    cute.pipeline.make_pipeline_state(cute.pipeline.PipelineUserType.Producer, n)


def lookup(n, x):
    cute.arch.lop3(1, 2, 3, n)


def divisor(n, x):
    cute.assume(n, divby=n)


def groups(n, x):
    cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cute.Float32), (n, 1, 1))


@pytest.mark.parametrize(
    "body",
    [_dynamic(b) for b in (registers, static_shared, constant, ordered, full, waits, stages, lookup, divisor, groups)],
)
def test_what_must_be_static_says_how_to_make_it_so(body):
    with pytest.raises(cute.CuteError) as e:
        cute.compile(cuda.jit(body), np.int32(4), np.zeros(4, np.float32))
    assert HOW_STATIC in str(e.value), e.value


def test_a_static_value_out_of_range_is_not_told_to_be_static():
    with pytest.raises(cute.CuteError) as e:
        cute.compile(cuda.jit(lambda x: cute.arch.cp_async_wait_group(64)), np.zeros(4))
    assert "must be a static number in [0, 63]" in str(e.value) and "run time" not in str(e.value)


def from_an_argument(n, x):
    rows = n * 2
    shape = (rows, 4)
    cute.make_rmem_tensor(shape, cute.Float32)


def from_a_thread(n, x):
    thread, _, _ = cute.arch.thread_idx()
    columns = 4
    cute.make_rmem_tensor((thread, columns), cute.Float32)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            from_an_argument,
            ["shape is set", "`shape = (rows, 4)`", "rows is set", "`rows = n * 2`", "n is an argument"],
        ),
        (from_a_thread, ["thread is set", "`thread, _, _ = cute.arch.thread_idx()`"]),
    ],
)
def test_the_compiler_tells_where_a_value_became_run_time(body, told):
    with pytest.raises(cute.CuteError) as e:
        cute.compile(cuda.jit(body), np.int32(4), np.zeros(4, np.float32))
    told_of = str(e.value).partition("\n  in kernel ")[2]
    assert all(words in told_of for words in told) and "columns" not in told_of.split("\n", 2)[2]


def test_a_type_of_tuples_deeper_than_python_goes_is_refused():
    tiler = 8
    for _ in range(3000):
        tiler = (tiler,)
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    made = cute.TiledCopy(atom, cute.make_layout((4, 8), stride=(1, 4)), tiler)
    with pytest.raises(cute.CuteError, match="TiledCopy: it holds a tuple of more levels than Python goes down"):
        made.type  # noqa: B018
