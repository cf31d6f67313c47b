# SPDX-License-Identifier: Apache-2.0
"""The examples and pipelines on problems whose loops go round often enough for `prove(rounds=True)` to find a round
that may be done any number of times."""

from unittest import mock

import numpy as np

import numba_cute as cute
from numba_cute.sim import simulate

from ...bugs import pipelines
from ...mutation import blackwell, kernels
from ...mutation.kernels import AMPERE, HOPPER, MIXED, gemm_host, gemm_kernel, plan, test_pipelines

TIMES = 24


def threads():
    simulate(test_pipelines.threads_kernel(2))[1, 96](np.zeros(64, np.int32), np.int32(TIMES))


def tma():
    x = np.zeros(TIMES * test_pipelines.TILE, np.float32)
    atom, source = (make(lambda a: a) for make in test_pipelines.tma_arguments(x))
    simulate(test_pipelines.tma_kernel(2))[1, 96](atom, source, np.zeros_like(x), np.int32(TIMES))


def of_bugs(run):
    """A kernel of tests/bugs with more rounds."""
    return mock.patch.object(pipelines, "ROUNDS", TIMES)(run)


def pipe_threads():
    simulate(pipelines.threads())[1, 96](np.zeros(64, np.int32))


def raw():
    gemm_kernel.run(128, 256, 64 * 2 * TIMES, np.random.default_rng(0), gemm_kernel.Broken())


def ampere():
    a, b, c = gemm_host.problem(24, 32, 64 * TIMES, cute.BFloat16)
    args, grid = AMPERE.arguments(a, b, c, "bf16")
    simulate(AMPERE.gemm)[grid, AMPERE.THREADS](*args)


def hopper():
    kernels._gemm((128, 128, 64 * TIMES), plan.Plan(128, 1, stages=2, slots=2), 1, vars(HOPPER), {})


def mixed():
    a, b, c = gemm_host.problem(128, 128, 64 * TIMES, cute.BFloat16, a_dtype=cute.Int8)
    args, grid = MIXED.arguments(a, b, c, 1)
    simulate(MIXED.gemm)[grid, MIXED.THREADS](*args)


def on_blackwell(ctas, cluster):
    form = blackwell.blackwell_gemm.Plan(ctas, cluster, False)
    blackwell._gemm(form, (128 * ctas * cluster[0], 64 * cluster[1], 32 * TIMES), 1)(vars(blackwell.GEMM), {})


def scaled():
    space = vars(blackwell.SCALED)
    kind = space["KINDS"]["mxf8"]
    p, _, _ = space["problem"](128, 128, 128 * TIMES, kind)
    space["simulate"](p, kind, 1)


def attention():
    space = vars(blackwell.ATTENTION)
    p = space["problem"](256, 128 * TIMES, 1, 1, 64, cute.BFloat16)
    space["simulate"](p, False)


PROBLEMS = {
    "threads to threads": threads,
    "TMA to warps": tma,
    "PipelineTmaAsync": of_bugs(lambda: kernels._pipe_tma(vars(pipelines), {})),
    "PipelineAsync": of_bugs(pipe_threads),
    "PipelineTmaStore": of_bugs(lambda: kernels._pipe_store(vars(pipelines), {})),
    "raw GEMM": raw,
    "Ampere GEMM": ampere,
    "Hopper GEMM": hopper,
    "mixed GEMM": mixed,
    "Blackwell GEMM": lambda: on_blackwell(1, (1, 1)),
    "Blackwell GEMM of pairs": lambda: on_blackwell(2, (2, 2)),
    "Blackwell block-scaled GEMM": scaled,
    "Blackwell attention": attention,
}
"""By the names of tests/mutation."""
