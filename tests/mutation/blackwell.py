# SPDX-License-Identifier: Apache-2.0
"""The examples for Blackwell on smaller tiles, in forms that use all of their synchronisation."""

import sys
from pathlib import Path

import numpy as np

import numba_cute as cute

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
import blackwell_attention  # noqa: E402
import blackwell_blockscaled_gemm  # noqa: E402
import blackwell_gemm  # noqa: E402

import gemm_host  # noqa: E402
from .source import Kernel, small  # noqa: E402

GEMM = small(blackwell_gemm, ("TILE_M, TILE_N, ROW = 128, 128, 128", "TILE_M, TILE_N, ROW = 128, 64, 32"),
             ("STAGES, ACC_STAGES, STORE_STAGES, RESPONSES = 4, 2, 2, 2",
              "STAGES, ACC_STAGES, STORE_STAGES, RESPONSES = 2, 2, 1, 1"))  # fmt: skip
SCALED = small(blackwell_blockscaled_gemm, ("STAGES, WARPS = 4, 6", "STAGES, WARPS = 2, 6"))
ATTENTION = small(blackwell_attention, ("KV_STAGES = 3", "KV_STAGES = 2"))


def _gemm(plan: blackwell_gemm.Plan, shape: tuple[int, int, int], clusters: int):
    def run(space: dict, options: dict) -> None:
        a, b, c = gemm_host.problem(*shape, cute.BFloat16)
        space["simulate"](a, b, c, cute.BFloat16, space["Plan"](*plan), clusters, **options)
        gemm_host.check(a, b, c)

    return run


def _scaled(space: dict, options: dict) -> None:
    kind = space["KINDS"]["mxf8"]
    p, a, b = space["problem"](256, 512, 384, kind)
    space["simulate"](p, kind, 2, **options)
    gemm_host.check(a, b, p.c)


def _attention(space: dict, options: dict) -> None:
    p = space["problem"](256, 384, 1, 1, 64, cute.BFloat16)
    p.k[...] = (p.k.astype(np.float32) * np.repeat([0.1, 4.0, 16.0], 128)[:, None, None]).astype(p.k.dtype)
    space["simulate"](p, False, **options)
    space["check"](p, False)


ROLES = frozenset({"kernel", "epilogue", "next_static", "next_dynamic"})
KERNELS = [
    Kernel("Blackwell GEMM", GEMM, ROLES, (_gemm(blackwell_gemm.Plan(1, (1, 1), False), (384, 128, 64), 1),)),
    Kernel("Blackwell GEMM of pairs", GEMM, ROLES, (_gemm(blackwell_gemm.Plan(2, (2, 2), True), (256, 512, 64), 1),)),
    Kernel("Blackwell block-scaled GEMM", SCALED, frozenset({"kernel"}), (_scaled,)),
    Kernel("Blackwell attention", ATTENTION, frozenset({"kernel", "softmax", "scale", "leave"}), (_attention,)),
]
