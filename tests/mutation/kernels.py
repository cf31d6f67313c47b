# SPDX-License-Identifier: Apache-2.0
"""The project's right kernels, by source, and how each is run on a small problem."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import numba_cute as cute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import hopper_gemm  # noqa: E402
from ..bugs import memory  # noqa: E402
from ..pipeline import test_pipelines  # noqa: E402
from ..sim import gemm_kernel  # noqa: E402


@dataclass(frozen=True)
class Kernel:
    """A module's kernel. functions: where its synchronisation stands. run(space, options): run it as the module's
    names in `space` define it, and compare its result."""

    name: str
    module: Any
    functions: frozenset[str]
    run: Callable[[dict, dict], None]

    @property
    def source(self) -> str:
        return inspect.getsource(self.module)


def _hopper(space: dict, options: dict) -> None:
    a, b, c = hopper_gemm.problem(256, 256, 384, cute.BFloat16)
    args, grid = hopper_gemm.arguments(a, b, c, cute.BFloat16, 1)
    cute.simulate(space["gemm"], **options)[grid, hopper_gemm.THREADS](*args)
    hopper_gemm.check(a, b, c)


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
    Kernel("Hopper GEMM", hopper_gemm, frozenset({"gemm"}), _hopper),
    Kernel("raw GEMM", gemm_kernel, frozenset({"produce", "consume", "epilogue", "gemm"}), _raw),
    Kernel("threads to threads", test_pipelines, frozenset({"threads_kernel"}), _threads),
    Kernel("TMA to warps", test_pipelines, frozenset({"tma_kernel"}), _tma),
    Kernel("named barriers", test_pipelines, frozenset({"take_turns"}), _turns),
    Kernel("TMA store", memory, frozenset({"store"}), _store),
    Kernel("bulk copies", memory, frozenset({"pipeline"}), _copies),
]
