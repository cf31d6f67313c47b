# SPDX-License-Identifier: Apache-2.0
"""The kernels that become modules: each of the examples' and of tests/kernels, with arguments and a target."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import numba_cute as cute
from numba_cute.nvgpu import cpasync
from numba_cute.runtime import from_dlpack

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import blackwell_attention as attention  # noqa: E402
import blackwell_blockscaled_gemm as blockscaled  # noqa: E402
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
from ..kernels import raw_gemm, test_ordinary_numba  # noqa: E402

Case = Callable[[], tuple[Any, tuple[Any, ...], str]]
"""What gives a kernel, its arguments and its target."""

BF16 = cute.BFloat16


def _hopper() -> Any:
    args = hopper_gemm.arguments(*gemm_host.problem(256, 512, 128, BF16), BF16, 1)[0]
    return hopper_gemm.gemm, args, "sm_90a"


def _hopper_split() -> Any:
    a, b, c = gemm_host.problem(256, 512, 256, BF16, majors="mnn")
    cut = hopper_gemm.Plan(128, 1, 2)
    args = hopper_gemm.arguments(a, b, np.zeros_like(c, np.float32), BF16, 1, cut)[0]
    return hopper_gemm.kernel_of(cut), args, "sm_90a"


def _finish() -> Any:
    args = hopper_gemm.finish_arguments(np.zeros((37, 24), np.float32), np.zeros((37, 24), BF16.numpy), BF16)
    return hopper_gemm.finish, args, "sm_90a"


def _hopper_mixed() -> Any:
    a, b, c = gemm_host.problem(40, 24, 80, cute.Float16, a_dtype=cute.Int8)
    return hopper_mixed_gemm.gemm, hopper_mixed_gemm.arguments(a, b, c, 1)[0], "sm_90a"


def _ampere(kind: str) -> Any:
    arrays = gemm_host.problem(200, 264, 160, ampere_gemm.KINDS[kind][0])
    return ampere_gemm.gemm, ampere_gemm.arguments(*arrays, kind)[0], "sm_80"


def _blackwell(plan: Any) -> Any:
    kernel, args, _ = blackwell_gemm.arguments(*gemm_host.problem(256, 256, 256, BF16), BF16, 1, plan)
    return kernel, args, "sm_100a"


def _attention(causal: bool) -> Any:
    kernel, args, _ = attention.arguments(attention.problem(256, 256, 1, 1, 64, BF16), causal)
    return kernel, args, "sm_100a"


def _scaled(module: Any, kind: str, *how: Any) -> Any:
    form = blockscaled.KINDS[kind]
    kernel, args, _ = module.arguments(blockscaled.problem(256, 256, 512, form)[0], form, *how)
    return kernel, args, "sm_100a"


def _experimental() -> Any:
    kernel, args, _ = experimental_gemm.arguments(*gemm_host.problem(256, 512, 128, BF16), BF16, 1)
    return kernel, args, "sm_90a"


def _experimental_blackwell() -> Any:
    plan = experimental_blackwell_gemm.Plan(2, (2, 1))
    kernel, args, _ = experimental_blackwell_gemm.arguments(*gemm_host.problem(256, 256, 256, BF16), BF16, plan)
    return kernel, args, "sm_100a"


def _elementwise(dtype: Any) -> Any:
    return elementwise.add, elementwise.arguments(*(np.zeros((50, 131), dtype) for _ in range(3)))[0], "sm_80"


def _transpose() -> Any:
    return transpose.transpose, transpose.arguments(np.zeros((128, 70)), np.zeros((70, 128)))[0], "sm_80"


def _reduce() -> Any:
    args = reduce.arguments(np.zeros((9, 2100), ml_dtypes.bfloat16), np.zeros(9, np.float32))[0]
    return reduce.root_mean_square, args, "sm_80"


def _lesson(number: int) -> Any:
    _, kernel, _, args, out, _ = list(warp_specialization.lessons(np.asarray))[number]
    return kernel, (*args, out), "sm_90a"


def _raw() -> Any:
    args = hopper_gemm.arguments(*gemm_host.problem(256, 256, 128, BF16), BF16, 1)[0]
    numbers = np.int32(1), np.int32(1), np.int32(128)
    return raw_gemm.raw_gemm, (BF16, args[2], args[4], np.zeros((2, 1, 128, 256), np.float32), *numbers), "sm_90a"


def _ordinary() -> Any:
    x = np.zeros(256, np.float32)
    atom = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), from_dlpack(x), cute.make_layout(64), (64,))
    rest = np.zeros(2, np.float32), np.zeros_like(x), np.zeros(4, np.float32), np.zeros(1, np.int32)
    return test_ordinary_numba.mixed, (*atom, *rest), "sm_90a"


_PAIR = blackwell_gemm.Plan(2, (2, 1))

CASES: dict[str, Case] = {
    "hopper_gemm": _hopper,
    "hopper_gemm_split": _hopper_split,
    "hopper_gemm_finish": _finish,
    "hopper_mixed_gemm": _hopper_mixed,
    **{f"ampere_gemm_{kind}": lambda kind=kind: _ampere(kind) for kind in ampere_gemm.KINDS},
    "blackwell_gemm": lambda: _blackwell(blackwell_gemm.Plan()),
    "blackwell_gemm_pair": lambda: _blackwell(_PAIR),
    "blackwell_gemm_dynamic": lambda: _blackwell(_PAIR._replace(dynamic=True)),
    "blackwell_attention": lambda: _attention(False),
    "blackwell_attention_causal": lambda: _attention(True),
    "blackwell_blockscaled_gemm_mxf8": lambda: _scaled(blockscaled, "mxf8", 1, 1),
    "blackwell_blockscaled_gemm_nvf4": lambda: _scaled(blockscaled, "nvf4", 1, 2),
    "experimental_gemm": _experimental,
    "experimental_blackwell_gemm": _experimental_blackwell,
    "experimental_blockscaled_gemm": lambda: _scaled(experimental_blockscaled_gemm, "mxf8"),
    "elementwise": lambda: _elementwise(np.float32),
    "elementwise_bf16": lambda: _elementwise(ml_dtypes.bfloat16),
    "transpose": _transpose,
    "reduce": _reduce,
    **{f"lesson_{i + 1}": lambda i=i: _lesson(i) for i in range(3)},
    "raw_gemm": _raw,
    "ordinary_numba": _ordinary,
}  # fmt: skip
