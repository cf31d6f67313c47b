# SPDX-License-Identifier: Apache-2.0
"""Mutants of a kernel's source: one synchronising call at a time left out or changed, by its syntax tree."""

import ast
import linecache
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

# Calls that order threads, proxies or copies: as a statement each can be left out.
LEFT_OUT = {
    "mbarrier_wait_parity", "mbarrier_arrive", "mbarrier_arrive_expect_tx", "mbarrier_init",
    "fence_mbarrier_init", "fence_proxy_async", "fence_proxy", "bar_sync", "arrive_and_wait", "sync",
    "cluster_arrive", "cluster_wait", "wgmma_fence", "wgmma_commit_group", "wgmma_wait_group", "fence", "commit_group",
    "wait_group", "cp_async_bulk_commit_group", "cp_async_bulk_wait_group", "producer_acquire", "producer_commit",
    "producer_tail", "release", "commit", "tail", "sync_warp", "syncthreads", "arrive", "sync_threads",
    "cp_async_commit_group", "cp_async_wait_group", "consumer_wait", "consumer_release", "pipeline_init_arrive",
    "pipeline_init_wait", "wait", "tcgen05_fence_before", "tcgen05_fence_after", "tcgen05_wait_ld", "tcgen05_commit",
    "tcgen05_alloc", "tcgen05_dealloc", "shuffle_sync_bfly", "bar_warp_sync", "tcgen05_wait_st", "alloc_tmem",
    "dealloc_tmem", "fence_view_async_tmem_load", "fence_view_async_tmem_store", "fence_view_async_shared",
    "tcgen05_fence_before_thread_sync", "tcgen05_fence_after_thread_sync", "allocate", "wait_for_alloc", "free",
    "mbarrier_wait", "mbarrier_init_fence",
    "mbarrier_arrive_and_expect_tx", "cluster_arrive_relaxed", "arrive_unaligned", "griddepcontrol_wait",
}  # fmt: skip
"""Not a permit to allocate that is given up: a kernel that keeps it is slow, for blocks that share an SM, but right."""
# Waits whose value is used: with the token 1 ("already complete") they do not wait.
TOKENS = {"acquire_and_advance", "wait_and_advance", "acquire"}
# (call, number of the argument, or its keyword): its integer is raised and lowered.
COUNTS = {
    ("mbarrier_init", 1), ("CooperativeGroup", 1), ("NamedBarrier", 1), ("wait_group", 0), ("wgmma_wait_group", "n"),
    ("cp_async_bulk_wait_group", "n"), ("mbarrier_arrive_expect_tx", 1), ("create", "tx_count"),
    ("bar_sync", 1), ("mbarrier_wait_parity", 1), ("arrive", 1), ("cp_async_wait_group", 0), ("tcgen05_commit", 1),
    ("commit", 1), ("mbarrier_wait", 1), ("mbarrier_arrive_and_expect_tx", 1),
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One changed source: what was changed, and where. `edit` changes node `at` of the source's syntax tree."""

    line: int
    change: str
    source: str
    at: int
    edit: Callable[[ast.AST], None]

    def __str__(self) -> str:
        return f"line {self.line}: {self.change}"

    def load(self, file: str, scope: dict) -> dict:
        """Run the changed module's definitions in a copy of `scope`; `file` is where reports find its source."""
        tree = ast.parse(self.source)
        self.edit(list(ast.walk(tree))[self.at])
        text = ast.unparse(ast.fix_missing_locations(tree))
        linecache.cache[file] = (len(text), None, text.splitlines(True), file)
        space = dict(scope)
        exec(compile(text, file, "exec"), space)
        return space


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def mutants(source: str, functions: set[str]) -> Iterator[Mutant]:
    """All mutants of the named functions of a module's source; the second with the same description is its #2."""
    seen: dict[str, int] = {}
    for m in _mutants(source, functions):
        nth = seen[m.change] = seen.get(m.change, 0) + 1
        yield m if nth == 1 else replace(m, change=f"{m.change} #{nth}")


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """A module's functions by name, and those of its classes as "Class.function"."""
    classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)]
    of_class = {id(f): c.name for c in classes for f in c.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{of_class[id(node)]}.{node.name}" if id(node) in of_class else node.name, node


def _mutants(source: str, functions: set[str]) -> Iterator[Mutant]:
    tree = ast.parse(source)
    places = {id(n) for name, f in functions_of(tree) if name in functions for n in ast.walk(f)}
    for at, node in enumerate(ast.walk(tree)):
        if id(node) not in places:
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and name_of(node.value) in LEFT_OUT:
            yield _mutant(source, node, at, f"without {ast.unparse(node)}", _leave_out)
        if isinstance(node, ast.Call):
            if name_of(node) in TOKENS:
                yield _mutant(source, node, at, f"{ast.unparse(node)} does not wait", _token)
            for call, which in COUNTS:
                if name_of(node) == call and _argument(node, which) is not None:
                    for by in (1, -1):
                        text = f"{ast.unparse(node)[:60]}: argument {which} {by:+d}"
                        yield _mutant(source, node, at, text, lambda n, w=which, b=by: _add(n, w, b))


def _mutant(source: str, node: ast.AST, at: int, text: str, edit) -> Mutant:
    return Mutant(node.lineno, " ".join(text.split()), source, at, edit)


def _leave_out(node: ast.Expr) -> None:
    node.value = ast.Constant(None)


def _token(node: ast.Call) -> None:
    node.args = [ast.Constant(1)]


def _argument(node: ast.Call, which: int | str) -> ast.expr | None:
    if isinstance(which, int):
        return node.args[which] if which < len(node.args) else None
    return next((k.value for k in node.keywords if k.arg == which), None)


def _add(node: ast.Call, which: int | str, by: int) -> None:
    name = name_of(node)
    step = 32 if name in ("NamedBarrier", "bar_sync") else 1
    if name in ("mbarrier_arrive_expect_tx", "mbarrier_arrive_and_expect_tx") or which == "tx_count":
        step = 16
    old = _argument(node, which)
    new = ast.BinOp(old, ast.Add() if by > 0 else ast.Sub(), ast.Constant(step))
    if name in ("mbarrier_wait_parity", "mbarrier_wait"):
        new = ast.BinOp(old, ast.BitXor(), ast.Constant(1))
    if isinstance(which, int):
        node.args[which] = new
    else:
        next(k for k in node.keywords if k.arg == which).value = new
