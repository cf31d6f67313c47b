# SPDX-License-Identifier: Apache-2.0
"""The examples for Blackwell: right in the simulator with every check on, and as they should be in assembly."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import numba_cute as cute
from benchmarks.code import grown

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import blackwell_attention as attention  # noqa: E402
import blackwell_blockscaled_gemm as scaled  # noqa: E402
import blackwell_gemm as gemm  # noqa: E402

import gemm_host  # noqa: E402

SLOW = pytest.mark.slow
BF16, F16, TF32, E4M3, S8 = cute.BFloat16, cute.Float16, cute.TFloat32, cute.Float8E4M3FN, cute.Int8
ONE, PAIR = gemm.Plan(), gemm.Plan(2, (2, 1))
FOUR = gemm.Plan(2, (2, 2))


def dynamic(plan):
    return plan._replace(dynamic=True)


def parameters(make, kernel):
    """Each of a kernel's arguments as a function of `place`; `make(place)` makes them all, once."""
    made = {}

    def argument(i):
        def at(place):
            if not made:
                made["args"] = make(place)
            return made["args"][i]

        return at

    return [argument(i) for i in range(len(inspect.signature(kernel.py_func).parameters))]


def run_gemm(run, shape, dtype, plan, majors="kkn", clusters=1, arch="sm_100a"):
    a, b, c = gemm_host.problem(*shape, dtype, majors=majors)
    kernel, _, grid = gemm.arguments(a, b, c, dtype, clusters, plan)
    args = parameters(lambda place: gemm.arguments(place(a), place(b), place(c), dtype, clusters, plan)[1], kernel)
    run(kernel, grid, gemm.THREADS, args, outputs=[c], check=lambda: gemm_host.check(a, b, c), arch=arch)


@pytest.mark.parametrize(
    ("dtype", "plan"),
    [
        (TF32, dynamic(ONE)), (F16, dynamic(PAIR)),
        *(pytest.param(*x, marks=SLOW) for x in (
            (E4M3, PAIR), (BF16, ONE), (S8, ONE), (F16, ONE), (TF32, ONE), (E4M3, ONE), (F16, PAIR), (TF32, PAIR),
            (S8, dynamic(PAIR)), (F16, dynamic(FOUR)),
            *((dtype, dynamic(plan)) for dtype in (BF16, E4M3) for plan in (ONE, PAIR)),
            *((BF16, plan._replace(cluster=(4, 2))) for plan in (ONE, PAIR)),
        )),
    ],
    ids=repr,
)  # fmt: skip
def test_gemm_is_right_for_every_type_schedule_and_number_of_ctas(run, dtype, plan):
    rows = 128 * plan.cluster[0]
    run_gemm(run, (rows + 72, 128 * plan.cluster[1] + 48, 208), dtype, plan)


@pytest.mark.parametrize("majors", ["mnn", *(pytest.param(m, marks=SLOW) for m in ("mkn", "knm", "kkm"))])
def test_gemm_takes_operands_of_either_order(run, majors):
    run_gemm(run, (72, 144, 80), BF16, ONE, majors)


@pytest.mark.parametrize(("shape", "plan"), [((8, 8, 8), ONE), pytest.param((520, 264, 72), PAIR, marks=SLOW)], ids=str)
def test_gemm_is_right_on_ragged_shapes(run, shape, plan):
    run_gemm(run, shape, BF16, plan)


def run_attention(run, p, causal):
    kernel, _, grid = attention.arguments(p, causal)
    args = parameters(lambda place: attention.arguments(attention.Problem(*map(place, p)), causal)[1], kernel)
    run(
        kernel, grid, attention.THREADS, args, outputs=[p.o, p.lse], check=lambda: attention.check(p, causal),
        arch="sm_100a",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dtype", "causal"),
    [
        ((256, 256, 1, 1, 128), BF16, True),
        pytest.param((200, 170, 2, 1, 64), F16, False, marks=SLOW),
        pytest.param((300, 300, 2, 1, 64), BF16, True, marks=SLOW),
        pytest.param((130, 520, 1, 1, 128), BF16, False, marks=SLOW),
    ],
    ids=str,
)
def test_attention_is_right(run, shape, dtype, causal):
    run_attention(run, attention.problem(*shape, dtype), causal)


@pytest.mark.parametrize(
    "run",
    ["simulator", pytest.param("assembler", marks=SLOW), pytest.param("gpu", marks=pytest.mark.gpu)],
    indirect=True,
)
def test_output_is_scaled_where_a_maximum_grows(run):
    """Keys that fit better and better: every block's maximum grows by more than `GROWN`."""
    p = attention.problem(128, 384, 1, 1, 64, BF16)
    p.k[...] = (p.k.astype(np.float32) * np.repeat([0.1, 4.0, 16.0], 128)[:, None, None]).astype(p.k.dtype)
    run_attention(run, p, False)


def run_scaled(run, shape, kind, ctas, arch="sm_100a"):
    p, a, b = scaled.problem(*shape, scaled.KINDS[kind])
    how = scaled.KINDS[kind], 1, ctas
    kernel, _, grid = scaled.arguments(p, *how)
    args = parameters(lambda place: scaled.arguments(scaled.Problem(*map(place, p)), *how)[1], kernel)
    run(kernel, grid, scaled.THREADS, args, outputs=[p.c], check=lambda: gemm_host.check(a, b, p.c), arch=arch)


@pytest.mark.parametrize(
    ("kind", "ctas"),
    [
        ("mxf4", 1),
        *(pytest.param(*x, marks=SLOW) for x in (("mxf8", 1), ("mxf8", 2), ("mxf4", 2), ("nvf4", 1), ("nvf4", 2))),
    ],
)  # fmt: skip
def test_scaled_gemm_is_right_for_every_kind(run, kind, ctas):
    run_scaled(run, (128 * ctas + 40, 136, 320), kind, ctas)


# ---------------------------------------------------------------- assembly


def assembled(name, target):
    if name == "attention":
        kernel, args, _ = attention.arguments(attention.problem(256, 256, 1, 1, 128, BF16), False)
    elif name in scaled.KINDS:
        kind = scaled.KINDS[name]
        kernel, args, _ = scaled.arguments(scaled.problem(256, 256, 512, kind)[0], kind, 1, 1 if name == "mxf8" else 2)
    else:
        plan = {"one": ONE, "pair": PAIR, "dynamic": dynamic(PAIR)}[name]
        kernel, args, _ = gemm.arguments(*gemm_host.problem(256, 256, 256, BF16), BF16, 1, plan)
    return cute.compile(kernel, args, arch=target)


WANTED = {
    "one": ("UTCHMMA", "UTMALDG", "UTMASTG", "LDTM", "UTCBAR", "UTCATOMSWS"),
    "pair": ("UTCHMMA.2CTA", "UTMALDG", "UTMASTG", "LDTM", "UTCBAR"),
    "dynamic": ("UTCHMMA.2CTA", "UTMALDG", "UTMASTG", "LDTM", "UGETNEXTWORKID"),
    "mxf8": ("UTCQMMA", "UTCCP", "UTMALDG", "UTMASTG", "LDTM"),
    "nvf4": ("UTCOMMA.2CTA", "UTCCP", "UTMALDG", "UTMASTG", "LDTM"),
    "attention": ("UTCHMMA", "UTMALDG", "UTMASTG", "LDTM", "STTM"),
}
QUICK = ("one", "pair", "nvf4", "attention")  # which have all that the others have
KEPT = {
    "one": "example blackwell_gemm, one",
    "pair": "example blackwell_gemm, pair",
    "dynamic": "example blackwell_gemm, dynamic",
    "mxf8": "example blackwell_blockscaled_gemm, mxf8",
    "nvf4": "example blackwell_blockscaled_gemm, nvf4",
    "attention": "example blackwell_attention",
}
"""The names that benchmarks/results/code.json has for them."""


@pytest.mark.parametrize("target", ["sm_100a", pytest.param("sm_103a", marks=SLOW)])
@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=SLOW) for n in WANTED])
def test_examples_are_the_instructions_meant_in_registers_alone(name, target):
    code = assembled(name, target)
    r = code.resources
    assert (r.spill_stores, r.spill_loads, r.local, r.stack) == (0, 0, 0, 0)
    assert code.notes == ()
    assert [text for text in WANTED[name] if text not in code.sass] == []
    if target == "sm_100a":
        assert not grown(KEPT[name], code)


def test_the_product_of_the_page_is_right_and_compiles(tmp_path):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "blackwell.md").read_text(), re.DOTALL)
    file = tmp_path / "product.py"  # a file, so that errors and Numba find the source
    file.write_text(code)
    scope = {"__name__": "product"}
    exec(compile(code, str(file), "exec"), scope)  # which simulates it and compares with NumPy
    for target in ("sm_100a", "sm_103a"):
        compiled = cute.compile(scope["product"], scope["arguments"], arch=target, notes="error")
        assert compiled.resources.local == 0
        assert "UTCHMMA" in compiled.sass
