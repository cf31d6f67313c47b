# SPDX-License-Identifier: Apache-2.0
"""What plans choose for a grid of problems on an H200, as text, beside the file in which it is kept.

python -m tests.kernels.choices     keep what they choose now
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import numba_cute as cute
from numba_cute.kernels import entry, gemm
from numba_cute.kernels.attention import plan as attention
from numba_cute.kernels.conv import plan as conv
from numba_cute.kernels.gemm import grouped, mixed, mixed_warps_plan, plan as gemm_plan
from numba_cute.kernels.rows import norm, softmax, topk
from numba_cute.kernels.rows.plan import Habit, spread_rows

KEPT = Path(__file__).with_name("choices.json")
BF16, F16, F32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32)
SMS = 132
ROOM = {1: 132, 2: 66, 3: 42, 4: 30, 5: 22, 6: 20, 7: 16, 8: 14}
"""Clusters of so many CTAs that an H200 holds."""


def told(cut: Any) -> str:
    """A cut by its values."""
    return " ".join(str(int(x)) for x in cut)


def of_matmul() -> dict[str, str]:
    found = {}
    for m, n, k in itertools.product((1, 64, 200, 4096), (128, 4096, 8200), (512, 4096, 16384)):
        c = np.empty((m, n), np.int8)
        found[f"{m} {n} {k}"] = told(gemm_plan.plan(c, k, cute.BFloat16, SMS))
    for m, n in ((64, 4096), (3072, 3072)):
        c, k = np.empty((m, n), np.int8), 3072
        for dtype in gemm_plan.RESULTS:
            found[f"{m} {n} {k} {dtype}"] = told(gemm_plan.plan(c, k, dtype, SMS, c_width=32))
        for name, epilogue in (("swiglu", gemm.swiglu()), ("relu", gemm.relu())):
            found[f"{m} {n} {k} {name}"] = told(gemm_plan.plan(c, k, cute.BFloat16, SMS, epilogue))
        found[f"5 {m} {n}"] = told(gemm_plan.plan(np.empty((5, m, n), np.int8), k, cute.BFloat16, SMS))
    return found


def of_convolutions() -> dict[str, str]:
    found = {}
    for pixels, outs, k in itertools.product((100, 6272, 100352), (32, 64, 128, 512), (64, 576, 4608)):
        c = np.empty((pixels, outs), np.int8)
        found[f"{pixels} {outs} {k}"] = told(conv.plan(c, k, cute.BFloat16, SMS, None, 16, 2 * pixels * k // 9))
    for outs, channels, pixels in itertools.product((64, 512), (64, 512), (6272, 100352)):
        cut, *others = conv.groups(entry.WARPGROUPS, outs, channels, (3, 3), pixels, 64, SMS)
        found[f"filters {outs} {channels} {pixels}"] = f"{told(cut)} {told(others)}"
    return found


def of_other_products() -> dict[str, str]:
    found = {}
    for tokens, tiles, blocks in itertools.product((1, 16, 64, 128, 256, 512, 4096), (8, 64, 112), (32, 64)):
        found[f"mixed {tokens} {tiles} {blocks}"] = told(mixed.cut_of(tokens, tiles, blocks, 1, ROOM.get))
    for arch, sms in (("sm_80", 108), ("sm_86", 82), ("sm_89", 128), ("sm_100a", 148)):
        for tokens, n, k in itertools.product((1, 16, 48, 100, 2048), (4096, 10240), (4096, 28672)):
            cut = mixed_warps_plan.cut_of(tokens, n, k, (1, 2), sms, cute.target(arch))
            found[f"mixed {arch} {tokens} {n} {k}"] = told((*cut.tile, *cut.warps, *cut[2:]))
    for rows, groups, n in itertools.product((1000, 24575, 24576), (1, 8), (128, 136)):
        tile_n, cluster, draws = grouped.cut_of(rows, groups, n, lambda ctas: 1)
        found[f"grouped {rows} {groups} {n}"] = told((tile_n, *cluster, draws))
    return found


def of_attention() -> dict[str, str]:
    found = {}
    kinds = ((1, 8, 4096, 4096), (32, 32, 1, 4096), (4, 28, 1, 32768), (2, 16, 600, 600))
    for d, right, (batch, heads, queries, keys) in itertools.product((64, 128, 192, 256), (None, 0), kinds):
        for dtype in (BF16, np.dtype(ml_dtypes.float8_e4m3fn)):
            q, k = np.zeros((batch, queries, heads, d), dtype), np.zeros((batch, keys, heads // 4, d), dtype)
            options = attention.Options(1.0, right=right)
            form = attention.form_of(q, k, k, queries, attention.ALL, options)
            splits = attention.best_splits(q, k, k, options, attention.ALL, SMS)
            found[f"{d} {right} {batch} {heads} {queries} {keys} {dtype}"] = (
                f"{told(form[1:12])} {told(form[13:16])} {splits}"
            )
    return found


def of_rows() -> dict[str, str]:
    habits = {
        "softmax": softmax.FORWARD, "softmax backward": softmax.BACKWARD, "logits": softmax.LOGITS,
        "losses": softmax.LOSSES, "norm": norm.FORWARD, "norm backward": norm.BACKWARD,
        "centred": norm.FULL_BACKWARD, "topk": topk.forward_habit(8, False), "usual": Habit(),
    }  # fmt: skip
    found = {}
    for (name, habit), dtype in itertools.product(habits.items(), (BF16, F32)):
        for length in (60, 1000, 1024, 4096, 16384, 20000, 65536, 131072):
            x, w = np.zeros((512, length), dtype), np.zeros(length, dtype)
            two = name in ("softmax backward", "norm backward", "centred")
            chosen = spread_rows("x", [x] * (1 + two), [w], habit=habit)
            s = chosen.spread
            values = s.vector, s.threads, s.vectors, s.teams, s.cluster, s.stages, s.again, s.share, s.alone
            found[f"{name} {dtype} {length}"] = told((*values, chosen.groups, chosen.resident))
    return found


PARTS = (of_matmul, of_convolutions, of_other_products, of_attention, of_rows)

if __name__ == "__main__":
    KEPT.write_text(json.dumps({part.__name__: part() for part in PARTS}, indent=0) + "\n")
