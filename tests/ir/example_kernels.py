# SPDX-License-Identifier: Apache-2.0
"""The examples' kernels with arguments and a target of each, for tests of the IR."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import numba_cute as cute
from numba_cute.compiler.host.offline import frontend
from numba_cute.compiler.inspection.type_descriptions import description_of_type
from numba_cute.typed.descriptions import Description

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import blackwell_attention  # noqa: E402
import blackwell_blockscaled_gemm  # noqa: E402
import blackwell_gemm  # noqa: E402
import elementwise  # noqa: E402
import experimental_blackwell_gemm  # noqa: E402
import experimental_blockscaled_gemm  # noqa: E402
import experimental_gemm  # noqa: E402
import reduce  # noqa: E402
import transpose  # noqa: E402
import warp_specialization  # noqa: E402

import ampere_gemm  # noqa: E402
import gemm_host  # noqa: E402
import hopper_gemm  # noqa: E402
import hopper_mixed_gemm  # noqa: E402

BF16, F16, E4M3 = cute.BFloat16, cute.Float16, cute.Float8E4M3FN

Made = tuple[Any, tuple[Any, ...]]


def _memory(kernel: Any, arguments: Any, *shapes: tuple[int, ...]) -> Made:
    return kernel, arguments(*(np.zeros(s, np.float32) for s in shapes))[0]


def _ampere(kind: str) -> Made:
    problem = gemm_host.problem(128, 256, 128, ampere_gemm.KINDS[kind][0])
    return ampere_gemm.gemm, ampere_gemm.arguments(*problem, kind)[0]


def _hopper(dtype: Any, clusters: int) -> Made:
    return hopper_gemm.gemm, hopper_gemm.arguments(*gemm_host.problem(256, 256, 256, dtype), dtype, clusters)[0]


def _mixed(a_dtype: Any, dtype: Any) -> Made:
    problem = gemm_host.problem(256, 256, 256, dtype, a_dtype=a_dtype)
    return hopper_mixed_gemm.gemm, hopper_mixed_gemm.arguments(*problem, 1)[0]


def _blackwell(dtype: Any, plan: Any) -> Made:
    return blackwell_gemm.arguments(*gemm_host.problem(256, 256, 256, dtype), dtype, 1, plan)[:2]


def _scaled(name: str, ctas: int) -> Made:
    kind = blackwell_blockscaled_gemm.KINDS[name]
    problem = blackwell_blockscaled_gemm.problem(256, 256, 512, kind)[0]
    return blackwell_blockscaled_gemm.arguments(problem, kind, 1, ctas)[:2]


def _attention(causal: bool) -> Made:
    problem = blackwell_attention.problem(256, 256, 1, 1, 128, BF16)
    return blackwell_attention.arguments(problem, causal)[:2]


def _experimental_blackwell(plan: Any) -> Made:
    return experimental_blackwell_gemm.arguments(*gemm_host.problem(256, 128, 64, BF16), BF16, plan)[:2]


def _experimental_scaled(name: str) -> Made:
    kind = blackwell_blockscaled_gemm.KINDS[name]
    problem = blackwell_blockscaled_gemm.problem(128, 128, 128, kind)[0]
    return experimental_blockscaled_gemm.arguments(problem, kind)[:2]


def _lesson(which: int) -> Made:
    _, kernel, _, arguments, out, _ = list(warp_specialization.lessons(np.asarray))[which]
    return kernel, (*arguments, out)


_PLANS = blackwell_gemm.Plan(), blackwell_gemm.Plan(2, (2, 1)), blackwell_gemm.Plan(2, (2, 1))._replace(dynamic=True)

KERNELS: dict[str, tuple[str, Callable[[], Made]]] = {
    "elementwise": ("sm_80", lambda: _memory(elementwise.add, elementwise.arguments, *[(50, 131)] * 3)),
    "transpose": ("sm_80", lambda: _memory(transpose.transpose, transpose.arguments, (130, 70), (70, 130))),
    "reduce": ("sm_80", lambda: _memory(reduce.root_mean_square, reduce.arguments, (9, 2100), (9,))),
    "ampere_gemm": ("sm_80", lambda: _ampere("bf16")),
    **{f"ampere_gemm_{k}": ("sm_80", lambda k=k: _ampere(k)) for k in ampere_gemm.KINDS if k != "bf16"},
    "hopper_gemm": ("sm_90a", lambda: _hopper(F16, 66)),
    "hopper_gemm_fp8": ("sm_90a", lambda: _hopper(E4M3, 1)),
    "hopper_mixed_gemm": ("sm_90a", lambda: _mixed(cute.Int8, BF16)),
    "hopper_mixed_gemm_fp8": ("sm_90a", lambda: _mixed(E4M3, F16)),
    "experimental_gemm": (
        "sm_90a", lambda: experimental_gemm.arguments(*gemm_host.problem(256, 256, 256, BF16), BF16, 66)[:2],
    ),
    "producer_warp": ("sm_90a", lambda: _lesson(0)),
    "consumer_warps": ("sm_90a", lambda: _lesson(1)),
    "ordered_warps": ("sm_90a", lambda: _lesson(2)),
    "blackwell_gemm": ("sm_100a", lambda: _blackwell(BF16, _PLANS[0])),
    "blackwell_gemm_pair": ("sm_100a", lambda: _blackwell(F16, _PLANS[1])),
    "blackwell_gemm_dynamic": ("sm_100a", lambda: _blackwell(E4M3, _PLANS[2])),
    "blackwell_blockscaled_gemm": ("sm_100a", lambda: _scaled("mxf8", 1)),
    "blackwell_blockscaled_gemm_mxf4": ("sm_100a", lambda: _scaled("mxf4", 2)),
    "blackwell_blockscaled_gemm_nvf4": ("sm_100a", lambda: _scaled("nvf4", 2)),
    "blackwell_attention": ("sm_100a", lambda: _attention(False)),
    "blackwell_attention_causal": ("sm_100a", lambda: _attention(True)),
    "experimental_blackwell_gemm": ("sm_100a", lambda: _experimental_blackwell(experimental_blackwell_gemm.Plan())),
    "experimental_blackwell_gemm_pair": (
        "sm_100a", lambda: _experimental_blackwell(experimental_blackwell_gemm.Plan(2, (2, 1))),
    ),
    "experimental_blockscaled_gemm": ("sm_100a", lambda: _experimental_scaled("mxf8")),
    "experimental_blockscaled_gemm_nvf4": ("sm_100a", lambda: _experimental_scaled("nvf4")),
}  # fmt: skip
"""The target of each kernel, and what makes the kernel and its arguments."""

QUICK = ("elementwise", "reduce", "ordered_warps", "hopper_gemm")
"""Those that are tested by default."""


@cache
def descriptions(name: str) -> tuple[Description, ...]:
    """The descriptions of all values of a kernel, each once."""
    arch, make = KERNELS[name]
    kernel, args = make()
    found = frontend(kernel, tuple(args), arch)
    return tuple(dict.fromkeys(description_of_type(ty) for ty in found.type_annotation.typemap.values()))
