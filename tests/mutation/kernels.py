# SPDX-License-Identifier: Apache-2.0
"""The project's right kernels, by source, and how each is run on a small problem."""

import sys
from functools import partial
from pathlib import Path

import numpy as np

import numba_cute as cute
from numba_cute.kernels.gemm import dense, output, plan

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import elementwise  # noqa: E402
import reduce  # noqa: E402
import transpose  # noqa: E402

import ampere_gemm  # noqa: E402
import bandwidth  # noqa: E402
import gemm_host  # noqa: E402
import hopper_mixed_gemm  # noqa: E402
from ..bugs import clusters, matrix_unit, memory, pipelines  # noqa: E402
from ..kernels.gemm import test_indexed  # noqa: E402
from ..pipeline import test_pipelines  # noqa: E402
from ..sim import gemm_kernel  # noqa: E402
from . import blackwell, shipped, shipped_later  # noqa: E402
from .source import Kernel, small  # noqa: E402

HOPPER = small(dense, within=(output,))
MIXED = small(hopper_mixed_gemm, ("TILE_K, STAGES = 64, 4", "TILE_N, TILE_K, STAGES = 128, 64, 2"), within=(output,))
AMPERE = small(ampere_gemm, ("TILE_M, TILE_N, ROW_BYTES = 128, 256, 128", "TILE_M, TILE_N, ROW_BYTES = 32, 32, 128"),
               ("WARPS_M, WARPS_N = 2, 4", "WARPS_M, WARPS_N = 1, 2"))  # fmt: skip

LEAVING = frozenset({"gemm", "Pieces.put", "Stores.create", "Stores.put", "Stores.tail"})


def _gemm(shape: tuple, cut: plan.Plan, launches: int, space: dict, options: dict) -> None:
    a, b, c = gemm_host.problem(*shape, cute.BFloat16)
    sums, counts = (np.zeros(n, np.int32) for n in plan.scratch_of(c, cut, 1))
    args, grid = plan.arguments(a, b, c, cute.BFloat16, 1, cut, scratch=(sums, counts) if cut.splits > 1 else None)
    kernel = cute.cluster_shape(cut.sharers, cut.parts)(space["gemm"])
    with cute.simulate.sequence():
        for i in range(launches):
            cute.simulate(kernel, pdl=i > 0, **options)[grid, HOPPER.THREADS](*args)
    gemm_host.check(a, b, c)


def _by_index(shape: tuple, cut: plan.Plan, space: dict, options: dict) -> None:
    """Rows of A and of C by an index, more of K than stages."""
    *given, want = test_indexed.problem(*shape, 30, 200)
    args, grid = test_indexed.launched(*given, shape[1], cut, cute.BFloat16, cut.sharers)
    kernel = cute.cluster_shape(cut.sharers, cut.parts)(space["gemm"])
    cute.simulate(kernel, **options)[grid, HOPPER.THREADS](*args)
    test_indexed.compare(given[2], want)


OF_HOPPER = (
    partial(_gemm, (128, 64, 256), plan.Plan(64, 1, stages=2, kept=4), 1),  # a B that stays
    partial(_gemm, (256, 256, 256), plan.Plan(128, stages=2, slots=2), 1),
    partial(_gemm, (256, 256, 64), plan.Plan(256, stages=2, slots=2), 1),  # more pieces of C than slots
    partial(_gemm, (128, 64, 256), plan.Plan(64, 1, 2), 2),  # a K that CTAs share, behind a launch of the same C
    partial(_gemm, (128, 64, 256), plan.Plan(64, 1, splits=2), 2),  # and that clusters share
    partial(_by_index, (150, 18, 400), plan.Plan(64, 1, stages=3)),
    partial(_by_index, (200, 72, 400), plan.Plan(64, 2, stages=3)),
)


def _mixed(space: dict, options: dict) -> None:
    a, b, c = gemm_host.problem(256, 256, 192, cute.BFloat16, a_dtype=cute.Int8)
    args, grid = MIXED.arguments(a, b, c, 1)
    cute.simulate(space["gemm"], **options)[grid, MIXED.THREADS](*args)
    gemm_host.check(a, b, c)


def _ampere(space: dict, options: dict) -> None:
    a, b, c = gemm_host.problem(24, 32, 320, cute.BFloat16)
    args, grid = AMPERE.arguments(a, b, c, "bf16")
    cute.simulate(space["gemm"], **options)[grid, AMPERE.THREADS](*args)
    gemm_host.check(a, b, c)


def _transpose(space: dict, options: dict) -> None:
    a = bandwidth.host_random(140, 70, cute.Float32, 0)
    b = np.full((70, 140), np.nan, a.dtype)
    args, grid = transpose.arguments(a, b)
    cute.simulate(space["transpose"], **options)[grid, transpose.THREADS](*args)
    np.testing.assert_array_equal(b, a.T)


def _reduce(space: dict, options: dict) -> None:
    a = bandwidth.host_random(10, 1100, cute.Float32, 0)
    out = np.full(10, np.nan, np.float32)
    args, grid = reduce.arguments(a, out)
    cute.simulate(space["root_mean_square"], **options)[grid, reduce.THREADS](*args)
    np.testing.assert_allclose(out, np.sqrt((a.astype(np.float64) ** 2).mean(1)), rtol=1e-5)


def _elementwise(space: dict, options: dict) -> None:
    a, b = (bandwidth.host_random(30, 70, cute.Float32, seed) for seed in (0, 1))
    c = np.full_like(a, np.nan)
    args, grid = elementwise.arguments(a, b, c)
    cute.simulate(space["add"], **options)[grid, elementwise.THREADS](*args)
    np.testing.assert_array_equal(c, a + b)


def _pipe_tma(space: dict, options: dict) -> None:
    args = pipelines.arguments()
    cute.simulate(space["tma"](), **options)[1, 96](*args)
    np.testing.assert_array_equal(args[2], 2 * np.arange(args[2].size, dtype=np.float32))


def _pipe_threads(space: dict, options: dict) -> None:
    out = np.zeros(64, np.int32)
    cute.simulate(space["threads"](), **options)[1, 96](out)
    assert (out == 1000 + 5 * (31 - np.arange(64) % 32)).all()


def _pipe_store(space: dict, options: dict) -> None:
    x = np.zeros(pipelines.ROUNDS * pipelines.TILE, np.float32)
    store = pipelines.cpasync.CopyBulkTensorTileS2GOp()
    tile = pipelines.TILE
    args = pipelines.cpasync.make_tiled_tma_atom(store, pipelines.from_dlpack(x), cute.make_layout(tile), (tile,))
    cute.simulate(space["stored"](), **options)[1, tile](*args)
    np.testing.assert_array_equal(x, np.arange(x.size))


def _pipe_order(space: dict, options: dict) -> None:
    out = np.full(8, -1, np.int32)
    cute.simulate(space["ordered"](), **options)[1, 96](out)
    assert out.tolist() == [0, 1, 2, 0, 1, 2, -1, -1]


def _pipe_cp_async(space: dict, options: dict) -> None:
    x, out = np.arange(512, dtype=np.float32), np.zeros(128, np.float32)
    tensor = pipelines.from_dlpack(x, assumed_align=16)
    cute.simulate(space["copied"](), **options)[1, 64](tensor, out)
    np.testing.assert_array_equal(out.reshape(4, 32), x.reshape(4, 128)[:, :95:-1])


def _matrix_unit(space: dict, options: dict) -> None:
    out = np.zeros((128, 2), np.float32)
    kernel = cute.simulate(space["rounds"](), arch="sm_100a", **options)
    kernel[1, matrix_unit.THREADS, 0, 16384](out)
    assert (out == 16).all()


def _multicast(space: dict, options: dict) -> None:
    a, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    cute.simulate(space["multicast_ring"]("both"), cluster=2, **options)[2, 64, 0, 8192](a, out)
    np.testing.assert_array_equal(out, np.arange(64) % 32)


def _raw(space: dict, options: dict) -> None:
    got, want = space["run"](256, 256, 320, np.random.default_rng(0), space["Broken"](), **options)
    np.testing.assert_allclose(got, want, rtol=0, atol=2.0**-8 * np.abs(want).max())


def _threads(space: dict, options: dict) -> None:
    out = np.zeros(64, np.int32)
    cute.simulate(space["threads_kernel"](2), **options)[1, 96](out, np.int32(5))
    assert (out == 100 * sum(range(5)) + 5 * (31 - np.arange(64) % 32)).all()


def _tma(space: dict, options: dict) -> None:
    x = np.random.default_rng(0).standard_normal(7 * test_pipelines.TILE, dtype=np.float32)
    out = np.full_like(x, np.nan)
    atom, source = (make(lambda a: a) for make in space["tma_arguments"](x))
    cute.simulate(space["tma_kernel"](2), **options)[1, 96](atom, source, out, np.int32(7))
    np.testing.assert_array_equal(out, 2 * x)


def _turns(space: dict, options: dict) -> None:
    out = np.zeros(32, np.int32)
    cute.simulate(space["take_turns"], **options)[1, 64](out)
    assert (out == np.arange(32) + 100).all()


def _store(space: dict, options: dict) -> None:
    out = np.zeros(128, np.int32)
    cute.simulate(space["store"](full=True, then="read"), **options)[1, 64, 0, 8192](out)
    assert (out == np.arange(128) % 64).all()


def _copies(space: dict, options: dict) -> None:
    a, out = np.arange(192, dtype=np.int32), np.zeros(192, np.int32)
    cute.simulate(space["pipeline"](), **options)[1, 64, 0, 8192](a, out)
    np.testing.assert_array_equal(out, a)


KERNELS = [
    Kernel("Hopper GEMM", HOPPER, frozenset({"fill", "gemm", "is_last", "Pieces.put", "put_sums"}), OF_HOPPER),
    Kernel("mixed GEMM", MIXED, LEAVING, (_mixed,)),
    Kernel("raw GEMM", gemm_kernel, frozenset({"produce", "consume", "epilogue", "gemm"}), (_raw,)),
    Kernel("threads to threads", test_pipelines, frozenset({"threads_kernel"}), (_threads,)),
    Kernel("TMA to warps", test_pipelines, frozenset({"tma_kernel"}), (_tma,)),
    Kernel("named barriers", test_pipelines, frozenset({"take_turns"}), (_turns,)),
    Kernel("TMA store", memory, frozenset({"store"}), (_store,)),
    Kernel("bulk copies", memory, frozenset({"pipeline"}), (_copies,)),
    Kernel("Ampere GEMM", AMPERE, frozenset({"gemm"}), (_ampere,)),
    Kernel("transpose", transpose, frozenset({"transpose"}), (_transpose,)),
    Kernel("reduce", reduce, frozenset({"root_mean_square"}), (_reduce,)),
    Kernel("elementwise", elementwise, frozenset({"add"}), (_elementwise,)),
    Kernel("PipelineTmaAsync", pipelines, frozenset({"tma"}), (_pipe_tma,)),
    Kernel("PipelineAsync", pipelines, frozenset({"threads"}), (_pipe_threads,)),
    Kernel("PipelineTmaStore", pipelines, frozenset({"stored"}), (_pipe_store,)),
    Kernel("PipelineOrder", pipelines, frozenset({"ordered"}), (_pipe_order,)),
    Kernel("PipelineCpAsync", pipelines, frozenset({"copied"}), (_pipe_cp_async,)),
    Kernel("tensor memory", matrix_unit, frozenset({"rounds"}), (_matrix_unit,)),
    Kernel("multicast", clusters, frozenset({"multicast_ring", "meet"}), (_multicast,)),
    *blackwell.KERNELS,
    *shipped.KERNELS,
    *shipped_later.KERNELS,
]
