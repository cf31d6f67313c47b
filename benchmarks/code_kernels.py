# SPDX-License-Identifier: Apache-2.0
"""The kernels whose machine code `python -m benchmarks code` counts: ours, and files of public checkouts.

python -m benchmarks.code_kernels ROOT FILE TARGET ARGUMENTS…     one file of a checkout, as a line of JSON
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import numba_cute as cute

from . import machine_code

BF16, F32, I32, I64 = ml_dtypes.bfloat16, np.float32, np.int32, np.int64
ROWS, LENGTH = 64, 4096
MARK = "code: "
SMS = 8
"""Of the GPU for which files of a checkout are compiled."""


class File(NamedTuple):
    """A file of NVIDIA/cutlass below examples/python/CuTeDSL/cute. target: the GPU. arguments: a small problem."""

    path: str
    target: str
    arguments: str


class Theirs(NamedTuple):
    """What NVIDIA's compiler makes of the same source: registers, bytes of spills stored and loaded, instructions in
    all, in the main loop, and those of kind "other" in it (None without a loop). CuTe DSL 4.8.1, ptxas 13.5.37."""

    registers: int
    spill_stores: int
    spill_loads: int
    all: int
    loop: int | None = None
    loop_other: int | None = None


def figures_of(made: Any) -> dict[str, Any]:
    """What is kept of a compiled kernel."""
    r = made.resources
    held = {"registers": r.registers, "spill_stores": r.spill_stores, "spill_loads": r.spill_loads}
    return held | machine_code.summary(made.sass)


# ---------------------------------------------------------------- ours
def _hopper() -> Any:
    import hopper_gemm

    arrays = hopper_gemm.problem(256, 512, 128, cute.BFloat16)
    return cute.compile(hopper_gemm.gemm, hopper_gemm.arguments(*arrays, cute.BFloat16, 1)[0], arch="sm_90a")


def _ampere() -> Any:
    import ampere_gemm

    a, b, c = (np.zeros(s, np.float16) for s in ((256, 128), (256, 128), (256, 256)))
    kind = next(k for k in ampere_gemm.KINDS if k.startswith("f16"))
    return cute.compile(ampere_gemm.gemm, ampere_gemm.arguments(a, b, c, kind)[0], arch="sm_80")


def _blackwell(pair: bool, dynamic: bool = False) -> Any:
    import blackwell_gemm

    import gemm_host

    plan = blackwell_gemm.Plan(2, (2, 1)) if pair else blackwell_gemm.Plan()
    plan = plan._replace(dynamic=dynamic)
    problem = gemm_host.problem(256, 256, 256, cute.BFloat16)
    kernel, args, _ = blackwell_gemm.arguments(*problem, cute.BFloat16, 1, plan)
    return cute.compile(kernel, args, arch="sm_100a")


def _scaled(kind: str) -> Any:
    import blackwell_blockscaled_gemm as scaled

    of = scaled.KINDS[kind]
    kernel, args, _ = scaled.arguments(scaled.problem(256, 256, 512, of)[0], of, 1, 1 if kind == "mxf8" else 2)
    return cute.compile(kernel, args, arch="sm_100a")


def _blackwell_attention() -> Any:
    import blackwell_attention as attention

    kernel, args, _ = attention.arguments(attention.problem(256, 256, 1, 1, 128, cute.BFloat16), False)
    return cute.compile(kernel, args, arch="sm_100a")


def _elementwise() -> Any:
    import elementwise

    args = elementwise.arguments(*np.zeros((3, 128, 512), F32))[0]
    return cute.compile(elementwise.add, args, arch="sm_90a")


def _forward(d: int, causal: bool) -> Any:
    from numba_cute.kernels.attention import plan

    q, lse = np.zeros((1, 1024, 2, d), BF16), np.zeros((1, 2, 1024), F32)
    options = plan.Options(0.125, None, 0 if causal else None)
    kernel, args, _, _ = plan.arguments(q, q, q, q, lse, np.zeros(1, I32), 132, options)
    return cute.compile(kernel, args, arch="sm_90a")


def _backward(d: int, causal: bool) -> Any:
    from numba_cute.kernels.attention import gradients

    q, lse = np.zeros((1, 1024, 2, d), BF16), np.zeros((1, 2, 1024), F32)
    work = [np.zeros(s, F32 if len(s) > 1 else I32) for s in gradients.room(q)]
    given = (q, q, q, q, q, lse, q, q, q)
    main = gradients.launches(given, work, causal=causal, scale=1.0, sms=132)[1]
    return cute.compile(main.kernel, main.args, arch="sm_90a")


def _rows(name: str) -> Any:
    from numba_cute.kernels.rows import norm, softmax

    x, y, z = (np.zeros((ROWS, LENGTH), BF16) for _ in range(3))
    target, lse, loss = np.zeros(ROWS, I64), np.zeros(ROWS, F32), np.zeros(ROWS, F32)
    given: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]] = {
        "RMSNorm": (norm.forward_work, (x, None, x[0], None, y, None, None, lse), (1e-5, False)),
        "softmax": (softmax.softmax_work, (x, y), ()),
        "softmax backward": (softmax.softmax_backward_work, (x, y, z), ()),
        "cross-entropy": (softmax.cross_entropy_work, (x, target, loss, lse), (-100,)),
        "cross-entropy backward": (softmax.cross_entropy_backward_work, (x, target, lse, loss, y), (-100,)),
    }
    make, arrays, others = given[name]
    return make(*arrays, *others).compile(*arrays)


EXAMPLES: dict[str, Callable[[], Any]] = {
    "example elementwise": _elementwise,
    "example ampere_gemm": _ampere,
    "example hopper_gemm": _hopper,
    "example blackwell_gemm, one": lambda: _blackwell(False),
    "example blackwell_gemm, pair": lambda: _blackwell(True),
    "example blackwell_gemm, dynamic": lambda: _blackwell(True, dynamic=True),
    "example blackwell_blockscaled_gemm, mxf8": lambda: _scaled("mxf8"),
    "example blackwell_blockscaled_gemm, nvf4": lambda: _scaled("nvf4"),
    "example blackwell_attention": _blackwell_attention,
}
FORMS = {False: "all", True: "causal"}
KERNELS: dict[str, Callable[[], Any]] = {
    **{
        f"attention forward d {d}, {form}": lambda d=d, causal=causal: _forward(d, causal)
        for d in (64, 128, 256)
        for causal, form in FORMS.items()
    },
    **{
        f"attention backward d {d}, {form}": lambda d=d, causal=causal: _backward(d, causal)
        for d in (64, 128)
        for causal, form in FORMS.items()
    },
    **{
        name: lambda name=name: _rows(name)
        for name in ("RMSNorm", "softmax", "softmax backward", "cross-entropy", "cross-entropy backward")
    },
}
OURS = {**EXAMPLES, **KERNELS}
"""By name, what compiles a kernel of ours."""

# ---------------------------------------------------------------- of a checkout
_H, _B, _T = "hopper/kernel/dense_gemm/", "blackwell/kernel/dense_gemm/", "blackwell/tutorial/tutorial_gemm/"
_FA2 = "--batch_size 1 --seqlen_q 128 --seqlen_k 128 --num_head 1 --head_dim 128 --m_block_size"
_F16 = "--ab_dtype Float16 --c_dtype Float16 --use_tma_store"
_PAIR = "--use_2cta_instrs --mma_tiler_mn 256,128 --cluster_shape_mn 2,1"
FILES = {
    "elementwise_add": File("ampere/kernel/elementwise/elementwise_add.py", "sm_80", "--M 256 --N 512"),
    "ampere tensorop_gemm": File("ampere/kernel/dense_gemm/tensorop_gemm.py", "sm_80", "--mnkl 256,256,128,1"),
    "ampere sgemm": File("ampere/kernel/dense_gemm/sgemm.py", "sm_80", "--mnk 256,256,64"),
    "ampere flash_attention_v2, m_block 64": File(
        "ampere/kernel/attention/flash_attention_v2.py", "sm_80", f"{_FA2} 64"
    ),
    "ampere flash_attention_v2, m_block 128": File(
        "ampere/kernel/attention/flash_attention_v2.py", "sm_80", f"{_FA2} 128"
    ),
    "hopper dense_gemm 64": File(_H + "dense_gemm.py", "sm_90a", "--mnkl 256,256,128,1 --tile_shape_mn 64,64"),
    "hopper dense_gemm 128x128": File(_H + "dense_gemm.py", "sm_90a", "--mnkl 256,256,128,1"),
    "hopper dense_gemm 128x256": File(
        _H + "dense_gemm.py", "sm_90a", "--mnkl 256,256,128,1 --tile_shape_mn 128,256"
    ),
    "hopper dense_gemm 128x256, cluster 2x1": File(
        _H + "dense_gemm.py", "sm_90a", "--mnkl 256,256,128,1 --tile_shape_mn 128,256 --cluster_shape_mn 2,1"
    ),
    "hopper dense_gemm_persistent 128x128": File(_H + "dense_gemm_persistent.py", "sm_90a", "--mnkl 256,256,128,1"),
    "hopper dense_gemm_persistent 128x256": File(
        _H + "dense_gemm_persistent.py", "sm_90a", "--mnkl 256,256,128,1 --tile_shape_mn 128,256"
    ),
    "hopper fmha": File(
        "hopper/kernel/attention/fmha.py", "sm_90a", "--q_shape 1,256,1,128 --k_shape 1,256,1,128"
    ),
    **{
        f"blackwell fp16_gemm_{n}": File(f"{_T}fp16_gemm_{n}.py", "sm_100a", "--mnk 256,256,128")
        for n in ("0", "1", "3", "3_1", "5")
    },
    **{
        f"blackwell nvfp4_gemm_{n}": File(f"{_T}nvfp4_gemm_{n}.py", "sm_100a", "--mnkl 256,256,256,1")
        for n in ("0", "1")
    },
    "blackwell dense_gemm": File(_B + "dense_gemm.py", "sm_100a", f"--mnkl 256,256,128,1 {_F16}"),
    "blackwell dense_gemm_persistent, 1 CTA": File(
        _B + "dense_gemm_persistent.py", "sm_100a", f"--mnkl 256,256,128,1 {_F16}"
    ),
    "blackwell dense_gemm_persistent, 2 CTAs": File(
        _B + "dense_gemm_persistent.py", "sm_100a", f"--mnkl 512,256,128,1 {_F16} {_PAIR}"
    ),
}  # fmt: skip
"""By name, files of NVIDIA/cutlass, compiled as they are by the hook (docs/cute_dsl_files.md)."""

THEIRS = {
    "elementwise_add": Theirs(71, 0, 0, 331),
    "ampere tensorop_gemm": Theirs(254, 0, 0, 946, 155, 61),
    "ampere sgemm": Theirs(140, 0, 0, 1059, 609, 51),
    "ampere flash_attention_v2, m_block 64": Theirs(190, 0, 0, 1516, 500, 52),
    "hopper dense_gemm 64": Theirs(58, 0, 0, 540, 79, 67),
    "hopper dense_gemm 128x128": Theirs(154, 0, 0, 723, 103, 87),
    "hopper dense_gemm 128x256": Theirs(154, 0, 0, 702, 90, 78),
    "hopper dense_gemm 128x256, cluster 2x1": Theirs(154, 0, 0, 740, 96, 84),
    "hopper dense_gemm_persistent 128x128": Theirs(232, 0, 0, 1282, 122, 98),
    "hopper dense_gemm_persistent 128x256": Theirs(168, 0, 0, 1028, 54, 46),
    "blackwell fp16_gemm_0": Theirs(72, 0, 0, 548, 135, 113),
    "blackwell fp16_gemm_1": Theirs(74, 0, 0, 861, 134, 112),
    "blackwell fp16_gemm_3": Theirs(40, 0, 0, 1057, 72, 60),
    "blackwell dense_gemm": Theirs(40, 0, 0, 758, 87, 74),
    "blackwell dense_gemm_persistent, 1 CTA": Theirs(40, 0, 0, 799, 82, 68),
    "blackwell dense_gemm_persistent, 2 CTAs": Theirs(40, 0, 0, 1013, 91, 77),
    "attention forward d 64, all": Theirs(128, 0, 0, 1344, 420, 59),
    "attention forward d 64, causal": Theirs(128, 0, 0, 2182, 532, 107),
    "attention forward d 128, all": Theirs(168, 0, 0, 1505, 457, 61),
    "attention forward d 128, causal": Theirs(168, 0, 0, 2381, 565, 105),
    "attention forward d 256, all": Theirs(168, 0, 0, 1816, 418, 62),
    "attention forward d 256, causal": Theirs(168, 0, 0, 2633, 495, 100),
    "attention backward d 64, all": Theirs(168, 0, 0, 1276, 652, 193),
    "attention backward d 64, causal": Theirs(168, 0, 0, 1365, 720, 261),
    "attention backward d 128, all": Theirs(168, 0, 0, 1246, 464, 132),
    "attention backward d 128, causal": Theirs(168, 0, 0, 1245, 441, 166),
    "RMSNorm": Theirs(167, 0, 0, 489),
    "softmax": Theirs(95, 0, 0, 663),
    "softmax backward": Theirs(145, 0, 0, 562),
    "cross-entropy": Theirs(80, 0, 0, 492),
    "cross-entropy backward": Theirs(80, 0, 0, 731),
}
"""By the name of a kernel of `OURS` or `FILES`, the figures of the pair's other side. Attention is beside
FlashAttention's kernels and rows are beside Quack's, which are other sources."""

BLOCKS = {"attention forward d 128, all": (128, 176), "attention backward d 128, causal": (64, 80)}
"""By name, where they differ, the keys (backward: the queries) of a block of theirs, and of ours: one round of the main
loop. Ratios are of instructions for each."""


def main(root: str, file: str, target: str, *arguments: str) -> None:
    """Compile a file of a checkout, and print the figures of its first kernel, or why there is none."""
    from numba_cute import config
    from numba_cute.compat.running import run_file
    from numba_cute.compat.runs import Run
    from tests.reference.absent import stand_in

    run = Run(target, simulates=False, keeps_going=True, sms=SMS)
    stand_in()
    sys.path[:0] = [root, str(Path(root, "cute"))]
    why = "it launches no kernel"
    try:
        with contextlib.redirect_stdout(io.StringIO()), config.override(cache=False):
            run_file(Path(file), list(arguments), run)
    except (Exception, SystemExit) as e:  # of the file: what it launched has computed nothing
        why = f"{type(e).__name__}: {e}"
    for e in run.refused[:1]:
        why = str(e)
    found = figures_of(run.kernels[0]) if run.kernels else {"refused": why[:300], "names": {}}
    print(MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
