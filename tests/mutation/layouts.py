# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.mutation.layouts [--every N] [--only WORDS] [kernel ...]`: mutants of the lines that lay out shared
memory, make atoms and deal out operands, one at a time. Each that changes a result must be refused, or reported by the
simulator, before anybody compares numbers. (Which of two tensors of one type and shape is meant, no library can know:
that is not mutated.) Adds to benchmarks/results/mutation_layouts.json what is not judged there yet."""

import argparse
import ast
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import numba_cute as cute
from numba_cute.kernels.attention import forward, plan as attention_plan
from numba_cute.kernels.gemm import plan
from numba_cute.seam import CuteError

from ..kernels.attention import reference, test_forward
from . import blackwell
from .blackwell import blackwell_gemm
from .kernels import AMPERE, HOPPER, MIXED, gemm_host
from .mutants import Mutant, name_of
from .source import Kernel

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "mutation_layouts.json"


# ------------------------------------------------------------------ small problems: a tile or two of each kernel


def _hopper(space, options):
    a, b, c = gemm_host.problem(128, 128, 192, cute.BFloat16)
    args, grid = plan.arguments(a, b, c, cute.BFloat16, 1, plan.Plan(128, stages=2, slots=2))
    cute.simulate(space["gemm"], **options)[grid, HOPPER.THREADS](*args)
    gemm_host.check(a, b, c)


def _mixed(space, options):
    a, b, c = gemm_host.problem(128, 128, 192, cute.BFloat16, a_dtype=cute.Int8)
    args, grid = MIXED.arguments(a, b, c, 1)
    cute.simulate(space["gemm"], **options)[grid, MIXED.THREADS](*args)
    gemm_host.check(a, b, c)


def _ampere(space, options):
    a, b, c = gemm_host.problem(32, 32, 320, cute.BFloat16)
    args, grid = space["arguments"](a, b, c, "bf16")
    cute.simulate(space["gemm"], **options)[grid, AMPERE.THREADS](*args)
    gemm_host.check(a, b, c)


def _blackwell(space, options):
    a, b, c = gemm_host.problem(128, 64, 48, cute.BFloat16)
    space["simulate"](a, b, c, cute.BFloat16, space["Plan"](*blackwell_gemm.Plan(1, (1, 1), False)), 1, **options)
    gemm_host.check(a, b, c)


def _attention(space, options):
    """The attention forward of Hopper."""
    q, k, v = test_forward.random(test_forward.BF16, (1, 128, 1, 64), (1, 192, 1, 64), (1, 192, 1, 64))
    o, lse = np.full(q.shape, math.nan, q.dtype), np.full((1, 1, 128), math.nan, np.float32)
    made = attention_plan.Options(1 / math.sqrt(64), None, None, tile=(128, 64))
    kept, attention_plan.kernel_of = attention_plan.kernel_of, space["kernel_of"]
    try:
        kernel, args, grid, block = attention_plan.arguments(q, k, v, o, lse, np.zeros(1, np.int32), 1, made)
    finally:
        attention_plan.kernel_of = kept
    cute.simulate(kernel, arch="sm_90a", **options)[grid, block](*args)
    reference.check(o, lse, *test_forward.batched(q, k, v, window=(None, None)))


KERNELS = [
    Kernel("Hopper GEMM", HOPPER, frozenset(), (_hopper,)),
    Kernel("mixed GEMM", MIXED, frozenset(), (_mixed,)),
    Kernel("Ampere GEMM", AMPERE, frozenset(), (_ampere,)),
    Kernel("Blackwell GEMM", blackwell.GEMM, frozenset(), (_blackwell,)),
    Kernel("Hopper attention", forward, frozenset(), (_attention,)),
]


# ------------------------------------------------------------------ mutants

ALLOCATED = {
    "without its swizzle": "{0}, {1}, 1024, None",
    "by one of 64 bytes": "{0}, {1}, 1024, cute.make_swizzle(2, 4, 3)",
    "by one of 32 bytes": "{0}, {1}, 1024, cute.make_swizzle(1, 4, 3)",
    "by one of chunks of 32 bytes": "{0}, {1}, 1024, cute.make_swizzle(2, 5, 2)",
    "by one of 8 bytes": "{0}, {1}, 1024, cute.make_swizzle(3, 3, 3)",
    "by one of elements": "{0}, cute.make_composed_layout({2}, 0, {1}), 1024, None",
    "by another of elements": "{0}, cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, {1}), 1024, None",
    "as words": "cute.Int32, {1}, 1024, {2}",
    "as bytes": "cute.Int8, {1}, 1024, {2}",
    "as halves": "cute.Float16, {1}, 1024, {2}",
    "in another order": "{0}, cute.make_layout(cute.product_each({1}.shape)), 1024, {2}",
    "in rows": "{0}, cute.make_ordered_layout(cute.product_each({1}.shape), (1, 0, 2)), 1024, {2}",
    "turned": "{0}, cute.select({1}, mode=[1, 0, 2]), 1024, {2}",
    "aligned to 16 bytes": "{0}, {1}, 16, {2}",
    "from 16 bytes on": "{0}, {1}, 1024, {2}",
}
"""What takes the place of `dtype, layout, 1024, swizzle` where memory is allocated, and in words what that is."""
_PAIRS = ("make_tiled_copy_A make_tiled_copy_B", "make_fragment_A make_fragment_B", "partition_A partition_B",
          "make_smem_layout_a make_smem_layout_b")  # fmt: skip
CALLED = [tuple(pair.split()) for pair in _PAIRS] + [tuple(reversed(pair.split())) for pair in _PAIRS]
"""Functions, and those that take their place."""
ARGUMENTS = [
    ("LdMatrix8x8x16bOp", 0, "True"), ("StMatrix8x8x16bOp", 0, "True"), ("group_modes", 2, "2"),
    ("make_copy_atom", 1, "cute.Float32"), ("make_copy_atom", 1, "cute.Int8"), ("make_smem_layout_a", 2, "cute.Int8"),
    ("make_smem_layout_b", 2, "cute.Float32"), ("make_smem_layout_a", 3, "1"), ("make_smem_layout_epi", 0, "cute.Int8"),
    ("make_tiled_copy_tv", 2, "cute.make_layout((vector, 1))"), ("tile_to_shape", 2, "(1, 0, 2)"),
]  # fmt: skip
"""A function, which of its arguments, and what takes its place."""


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """All mutants of a kernel's module."""
    for at, node in enumerate(ast.walk(ast.parse(kernel.source))):
        if isinstance(node, ast.Call):
            yield from _of_call(kernel, node, at)


def _of_call(kernel: Kernel, node: ast.Call, at: int) -> Iterator[Mutant]:
    name, line = name_of(node), node.lineno
    if name == "allocate_tensor" and len(node.args) >= 4 and ast.unparse(node.args[3]) != "None":
        dtype, lay, _, swizzle = (ast.unparse(x) for x in node.args[:4])
        for words, form in ALLOCATED.items():
            edit = _allocated(form.format(dtype, lay, swizzle), words.startswith("from"))
            yield Mutant(line, f"{lay.removesuffix('.outer')} {words}", kernel.source, at, edit)
    shown = " ".join(ast.unparse(node).split())[:70]
    for old, new in CALLED:
        if name == old:
            yield Mutant(line, f"{shown}: {new}", kernel.source, at, _called(new))
    for called, which, new in ARGUMENTS:
        if name == called and which < len(node.args) and ast.unparse(node.args[which]) != new:
            yield Mutant(line, f"{shown}: argument {which} {new}", kernel.source, at, _given(which, new))


def _allocated(arguments: str, beyond: bool):
    made = ast.parse(f"f({arguments})", mode="eval").body

    def edit(node):
        node.args[:4] = made.args
        if beyond:  # the allocator has given out 16 bytes before, and is told of no alignment
            node.args[2] = ast.Constant(16)
            node.func.value = ast.parse("(smem.allocate(16), smem)[1]", mode="eval").body

    return edit


def _called(name: str):
    def edit(node):
        if isinstance(node.func, ast.Attribute):
            node.func.attr = name
        else:
            node.func.id = name

    return edit


def _given(which: int, text: str):
    def edit(node):
        node.args[which] = ast.parse(text, mode="eval").body

    return edit


# ------------------------------------------------------------------ judging


def judged(kernel: Kernel, mutant: Mutant, at: int) -> str:
    """How the mutant ends: "said" (and what), "wrong" numbers, or "right" ones."""
    space = mutant.load(f"layout_{at}_of_{kernel.name.replace(' ', '_')}.py", vars(kernel.module))
    for checks in ("swizzles", True):
        try:
            kernel.run(space, {"checks": checks})
        except CuteError as e:
            return f"said: {str(e).splitlines()[0][:160]}"
        except (AssertionError, SystemExit) as e:
            wrong = f"wrong: {str(e).splitlines()[0] if str(e) else ''}"
        else:
            return "right"
    return wrong


def record(kernel: Kernel, every: int, only: str) -> None:
    """Judge each `every`th mutant of a kernel that is not in the results, and put it there. only: words of its text."""
    for at, mutant in enumerate(mutants(kernel)):
        known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        mine = known.setdefault(kernel.name, {"said": {}, "right": [], "wrong": {}, "seconds": 0.0})
        text = str(mutant)
        if at % every or only not in text or text in mine["said"] or text in mine["right"] or text in mine["wrong"]:
            continue
        start = time.time()
        result, _, words = judged(kernel, mutant, at).partition(": ")
        if result == "right":
            mine["right"].append(text)
        else:
            mine[result][text] = words
        mine["seconds"] = round(mine["seconds"] + time.time() - start, 1)
        RESULTS.write_text(json.dumps(known, indent=1) + "\n")
        print(f"{kernel.name}, {text}: {result} {words} ({time.time() - start:.1f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="judge only each so manyth mutant")
    parser.add_argument("--only", default="", help="judge only mutants whose description holds this")
    parser.add_argument("kernels", nargs="*", help="names; all by default")
    args = parser.parse_args()
    for kernel in KERNELS:
        if not args.kernels or kernel.name in args.kernels:
            kernel.run(vars(kernel.module), {"checks": "swizzles"})  # the right one says nothing
            record(kernel, args.every, args.only)


if __name__ == "__main__":
    main()
