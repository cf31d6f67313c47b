# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.mutation.layouts [kernel ...]`: mutants of the lines that lay out shared memory, one at a time. Each
that changes a result must be refused, or reported by the simulator, before anybody compares numbers."""

import ast
import sys
from collections.abc import Iterator

from numba_cute.seam import CuteError

from .kernels import KERNELS
from .mutants import Mutant, name_of
from .source import Kernel

OTHERS = {
    "without its swizzle": ("{0}, {1}.outer, 1024, None"),
    "by one of 64 bytes": "{0}, {1}.outer, 1024, cute.make_swizzle(2, 4, 3)",
    "by one of 32 bytes": "{0}, {1}.outer, 1024, cute.make_swizzle(1, 4, 3)",
    "by one of chunks of 32 bytes": "{0}, {1}.outer, 1024, cute.make_swizzle(2, 5, 2)",
    "by one of 8 bytes": "{0}, {1}.outer, 1024, cute.make_swizzle(3, 3, 3)",
    "by one of elements": "{0}, {1}, 1024, None",
    "by another of elements": "{0}, cute.make_composed_layout(cute.make_swizzle(2, 3, 3), 0, {1}.outer), 1024, None",
    "as words": "cute.Int32, {1}.outer, 1024, {1}.inner",
    "as bytes": "cute.Int8, {1}.outer, 1024, {1}.inner",
    "as halves": "cute.Float16, {1}.outer, 1024, {1}.inner",
    "in another order": "{0}, cute.make_layout(cute.product_each({1}.outer.shape)), 1024, {1}.inner",
    "in rows": "{0}, cute.make_ordered_layout(cute.product_each({1}.outer.shape), (1, 0, 2)), 1024, {1}.inner",
    "turned": "{0}, cute.select({1}.outer, mode=[1, 0, 2]), 1024, {1}.inner",
    "aligned to 16 bytes": "{0}, {1}.outer, 16, {1}.inner",
    "from 16 bytes on": "{0}, {1}.outer, 1024, {1}.inner",
}
"""What takes the place of `dtype, layout.outer, 1024, layout.inner`, and in words what that is."""
NAMES = ("Hopper GEMM", "mixed GEMM")


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """All mutants of a kernel's allocations of swizzled memory."""
    tree = ast.parse(kernel.source)
    for at, node in enumerate(ast.walk(tree)):
        if not isinstance(node, ast.Call) or name_of(node) != "allocate_tensor" or len(node.args) < 4:
            continue
        dtype, lay, _, swizzle = (ast.unparse(x) for x in node.args[:4])
        if lay.endswith(".outer") and swizzle.endswith(".inner"):
            for words, form in OTHERS.items():
                yield Mutant(
                    node.lineno, f"{lay.removesuffix('.outer')} {words}", kernel.source, at,
                    _edit(form.format(dtype, lay.removesuffix(".outer")), words.startswith("from")),
                )  # fmt: skip


def _edit(arguments: str, beyond: bool):
    made = ast.parse(f"f({arguments})", mode="eval").body

    def edit(node):
        node.args[:4] = made.args
        if beyond:  # the allocator has given out 16 bytes before, and is told of no alignment
            node.args[2] = ast.Constant(16)
            node.func.value = ast.parse("(smem.allocate(16), smem)[1]", mode="eval").body

    return edit


def judged(kernel: Kernel, mutant: Mutant, at: int) -> str:
    """How the mutant ends: "said" (and what), "wrong" numbers, or "right" ones."""
    space = mutant.load(f"layout_{at}_of_{kernel.name.replace(' ', '_')}.py", vars(kernel.module))
    try:
        kernel.run(space, {"checks": "swizzles"})
    except CuteError as e:
        return f"said: {str(e).splitlines()[0]}"
    except (AssertionError, SystemExit) as e:
        return f"wrong: {str(e).splitlines()[0] if str(e) else ''}"
    return "right"


def main(names):
    for kernel in KERNELS:
        if kernel.name in (names or NAMES):
            for at, mutant in enumerate(mutants(kernel)):
                print(f"{kernel.name}, {mutant}: {judged(kernel, mutant, at)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
