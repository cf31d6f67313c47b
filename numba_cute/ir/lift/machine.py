# SPDX-License-Identifier: Apache-2.0
"""Registers of threads, barriers, fences and tensor memory: the operations of `nvvm`, `cute_nvgpu.arch` and LLVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import UnitAttr

from ..dialect.printed_operations import REGISTERS
from . import objects
from .patterns import RESPONSES
from .tensors import objects_name
from .tuples import attributes, give
from .values import COMPARE, Expr
from .writer import Lifter, lifts

_AXES = {"x": 0, "y": 1, "z": 2}
_VECTORS = {
    "tid": "thread_idx", "ntid": "block_dim", "ctaid": "block_idx", "nctaid": "grid_dim", "clusterid": "cluster_idx",
    "nclusterid": "cluster_dim", "cluster.ctaid": "block_in_cluster_idx", "cluster.nctaid": "block_in_cluster_dim",
}  # fmt: skip
_SCALARS = {
    "cluster.ctarank": "block_idx_in_cluster", "cluster.nctarank": "cluster_size", "laneid": "lane_idx",
    "warpid": "physical_warp_id", "smid": "smid",
}  # fmt: skip


@lifts(*(f"nvvm.read.ptx.sreg.{name}" for name in REGISTERS))
def register(w: Lifter, op: Any) -> None:
    """A register of the machine's: the same all the time that a thread runs."""
    name, _, axis = op.name.removeprefix("nvvm.read.ptx.sreg.").rpartition(".")
    if name in _VECTORS:
        w.values[w.root(op.results[0])] = Expr(w.place(_VECTORS[name], _AXES[axis]))
        return
    text = f"cute.arch.{_SCALARS[op.name.removeprefix('nvvm.read.ptx.sreg.')]}()"
    w.values[w.root(op.results[0])] = Expr(text)


def _plain(form: str) -> Any:
    """Make a rule that writes a call in one line: `{0}` is the first operand."""

    def rule(w: Lifter, op: Any) -> None:
        operands = [str(w.expr(v)) for v in op.operands]
        if op.name.startswith(("nvvm.mbarrier", "nvvm.cluster")):
            w.synchronises("arrive" in op.name)
        text = form.format(*operands, **attributes(op))
        if not op.results or w.flow.uses[w.root(op.results[0])] == 0 and has_no_use(w, op):
            w.line(text)
        else:
            w.bind(op.results[0], Expr(text), moves=False)

    return rule


def has_no_use(w: Lifter, op: Any) -> bool:
    """Say whether nothing that is needed reads the results of an operation."""
    return all(w.root(r) not in w.flow.values for r in op.results)


for _name, _form in {
    "nvvm.cluster.arrive": "cute.arch.cluster_arrive()",
    "nvvm.cluster.arrive.relaxed": "cute.arch.cluster_arrive_relaxed()",
    "nvvm.cluster.wait": "cute.arch.cluster_wait()",
    "nvvm.cp.async.bulk.commit.group": "cute.arch.cp_async_bulk_commit_group()",
    "nvvm.cp.async.commit.group": "cute.arch.cp_async_commit_group()",
    "nvvm.cp.async.wait.group": "cute.arch.cp_async_wait_group({n})",
    "nvvm.elect.sync": "cute.arch.elect_one()",
    "nvvm.wgmma.commit.group.sync.aligned": "cute.nvgpu.warpgroup.commit_group()",
    "nvvm.wgmma.fence.aligned": "cute.nvgpu.warpgroup.fence()",
    "nvvm.wgmma.wait.group.sync.aligned": "cute.nvgpu.warpgroup.wait_group({group})",
    "nvvm.bar.warp.sync": "cute.arch.sync_warp({0})",
    "cute_nvgpu.arch.make_warp_uniform": "cute.arch.make_warp_uniform({0})",
}.items():
    lifts(_name)(_plain(_form))


@lifts("cute_nvgpu.arch.make_warp_uniform")
def warp_uniform(w: Lifter, op: Any) -> None:
    """A number that all lanes of a warp have."""
    give(w, op, f"cute.arch.make_warp_uniform({w.expr(op.operands[0])})")


@lifts("nvvm.barrier")
def barrier(w: Lifter, op: Any) -> None:
    """The threads of a block wait for each other: all of them, or those of a barrier."""
    w.synchronises(arrives=True)
    names = ("barrier_id", "number_of_threads")
    args = [f"{n}={w.expr(v)}" for n, v in zip(names, op.operands)]
    w.line(f"cute.arch.barrier({', '.join(args)})" if args else "cute.arch.sync_threads()")


@lifts("nvvm.barrier.arrive")
def barrier_arrive(w: Lifter, op: Any) -> None:
    """A thread arrives at a barrier of the block's, and does not wait."""
    w.synchronises(arrives=True)
    *given, count = (w.expr(v) for v in op.operands)
    named = f"barrier_id={given[0]}, " if given else ""
    w.line(f"cute.arch.barrier_arrive({named}number_of_threads={count})")


@lifts("nvvm.cp.async.bulk.wait_group")
def wait_bulk(w: Lifter, op: Any) -> None:
    """A thread waits for its bulk copies."""
    read = ", read=True" if "read" in {**op.attributes, **op.properties} else ""
    w.line(f"cute.arch.cp_async_bulk_wait_group({attributes(op)['group']}{read})")


@lifts("nvvm.fence.proxy")
def fence_proxy(w: Lifter, op: Any) -> None:
    """Accesses of one way are ordered before those of another."""
    given = {**op.attributes, **op.properties}
    kind, space = (getattr(given.get(k), "data", None) for k in ("kind", "space"))
    if kind is None:
        w.refuse(op, "it says no kind of proxy")
    more = "" if space is None else f', space="{space}"'
    w.line(f'cute.arch.fence_proxy("{kind}"{more})')


@lifts("nvvm.setmaxregister")
def set_registers(w: Lifter, op: Any) -> None:
    """A warpgroup takes registers, or gives them back: a block that is not all whole warpgroups leaves them as they are
    launched, which PTX asks for."""
    if w.flow.threads % 128:
        return
    found = attributes(op)
    name = {"increase": "setmaxregister_increase", "decrease": "setmaxregister_decrease"}[found["action"]]
    w.line(f"cute.arch.{name}({found['regCount']})")


# ------------------------------------------------------------------ tensor memory


def two_blocks(op: Any) -> str:
    """Write that an operation is of a pair of blocks; "" for one."""
    return ", is_two_cta=True" if attributes(op).get("group") == "cta_2" else ""


@lifts("cute_nvgpu.arch.sm100.alloc_tmem")
def alloc_tmem(w: Lifter, op: Any) -> None:
    """A warp takes columns of tensor memory."""
    columns, pointer = op.operands
    w.line(f"cute.arch.alloc_tmem({w.expr(columns)}, {w.expr(pointer)}{two_blocks(op)})")


@lifts("cute_nvgpu.arch.sm100.dealloc_tmem")
def dealloc_tmem(w: Lifter, op: Any) -> None:
    """A warp gives them back."""
    pointer, columns = op.operands
    w.line(f"cute.arch.dealloc_tmem({w.expr(pointer)}, {w.expr(columns)}{two_blocks(op)})")


@lifts("cute_nvgpu.arch.sm100.relinquish_tmem_alloc_permit")
def relinquish(w: Lifter, op: Any) -> None:
    """A block takes no more."""
    w.line(f"cute.arch.relinquish_tmem_alloc_permit({two_blocks(op).removeprefix(', ')})")


@lifts("cute_nvgpu.arch.sm100.retrieve_tmem_ptr")
def retrieve(w: Lifter, op: Any) -> None:
    """Write the address of the allocated columns."""
    elem, _, align, _ = op.results[0].type.data
    text = f"cute.arch.retrieve_tmem_ptr({w.element(elem)}, {align or 16}, {w.expr(op.operands[0])})"
    w.bind(op.results[0], Expr(text), moves=False)


@lifts("nvvm.tcgen05.wait")
def wait_tmem(w: Lifter, op: Any) -> None:
    """A thread waits for its accesses to tensor memory."""
    w.line(f"cute.arch.fence_view_async_tmem_{attributes(op)['kind']}()")


@lifts("cute_nvgpu.arch.get_dyn_smem")
def dynamic_memory(w: Lifter, op: Any) -> None:
    """Write the beginning of the launch's shared memory."""
    elem, _, align, _ = op.results[0].type.data
    w.bind(op.results[0], Expr(f"cute.arch.get_dyn_smem({w.element(elem)}, {align or 1})"), moves=False)


@lifts("cute_nvgpu.arch.get_dyn_smem_size")
def dynamic_size(w: Lifter, op: Any) -> None:
    """Write the number of bytes of dynamic shared memory."""
    give(w, op, "cute.arch.get_dyn_smem_size()")


@lifts("cf.assert")
def asserted(w: Lifter, op: Any) -> None:
    """Write an assertion."""
    if w.constant(op.operands[0]) is True:
        return
    w.line(f"assert {w.expr(op.operands[0])}, {op.msg.data!r}")


# ------------------------------------------------------------------ single instructions


@lifts("nvvm.fmax", "nvvm.fmin")
def extreme(w: Lifter, op: Any) -> None:
    """The greater or the smaller of two floats."""
    give(w, op, f"cute.arch.{op.name[5:]}({w.typed(op.operands[0])}, {w.typed(op.operands[1])})")


@lifts("nvvm.rcp.approx.ftz.f")
def reciprocal(w: Lifter, op: Any) -> None:
    """About 1 over a float."""
    give(w, op, f"cute.arch.rcp_approx({w.typed(op.operands[0])})")


def _packed(name: str) -> Any:
    def rule(w: Lifter, op: Any) -> None:
        found = attributes(op)
        rounding = getattr({**op.attributes, **op.properties}.get("rnd"), "data", "rn")
        more = f', rnd="{rounding}"' if rounding != "rn" else ""
        ftz = ", ftz=True" if found.get("ftz") in (1, True, -1) else ""
        pairs = (f"({x.at(95)}[0], {x.at(95)}[1])" for x in map(w.expr, op.operands))
        made = w.temporary("pair")
        w.line(f"{made} = cute.arch.{name}_packed_f32x2({', '.join(pairs)}{more}{ftz})")
        w.values[w.root(op.results[0])] = Expr(made)

    return rule


for _name in ("add", "mul", "fma"):
    lifts(f"nvvm.{_name}.packed.f32x2")(_packed(_name))

_SHUFFLES = {"bfly": "bfly", "up": "up", "down": "down", "idx": "op"}


@lifts("nvvm.shfl.sync")
def shuffle(w: Lifter, op: Any) -> None:
    """A number of another lane."""
    mask, value, offset, clamp = (w.typed(v) for v in op.operands)
    kind = attributes(op)["kind"]
    name = "shuffle_sync" if kind == "idx" else f"shuffle_sync_{_SHUFFLES[kind]}"
    masked = "" if mask in ("-1", "(-1)") else f", mask={mask}"
    w.bind(op.results[0], Expr(f"cute.arch.{name}({value}, {offset}{masked}, mask_and_clamp={clamp})"), moves=False)


@lifts("nvvm.vote.ballot.sync")
def ballot(w: Lifter, op: Any) -> None:
    """The lanes for which something holds."""
    mask, predicate = (w.typed(v) for v in op.operands)
    masked = "" if mask in ("-1", "(-1)") else f", mask={mask}"
    w.bind(op.results[0], Expr(f"cute.Int32(cute.arch.vote_ballot_sync({predicate}{masked}))"), moves=False)


@lifts("nvvm.vote.sync")
def vote(w: Lifter, op: Any) -> None:
    """Write a vote: for all lanes, for any, alike for all; or the lanes that vote yes."""
    mask, predicate = (w.typed(v) for v in op.operands)
    kind = attributes(op)["kind"]
    if kind not in ("all", "any", "uni", "ballot"):
        w.refuse(op, f"a vote {kind} is not lifted")
    masked = "" if mask in ("-1", "(-1)") else f", mask={mask}"
    made = f"cute.arch.vote_{kind}_sync({predicate}{masked})"
    w.bind(op.results[0], Expr(f"cute.Int32({made})" if kind == "ballot" else made), moves=False)


@lifts("nvvm.redux.sync")
def reduce_lanes(w: Lifter, op: Any) -> None:
    """A reduction over the lanes of a warp."""
    value, mask = (w.typed(v) for v in op.operands)
    kind = attributes(op)["kind"]
    if kind not in ("add", "min", "max", "and", "or", "xor"):
        w.refuse(op, f"a reduction {kind} of lanes is not lifted")
    masked = "" if mask in ("-1", "(-1)") else f", {mask}"
    made = f'cute.Int32(cute.arch.warp_redux_sync({value}, "{kind}"{masked}))'
    w.bind(op.results[0], Expr(made), moves=False)


@lifts("nvvm.griddepcontrol")
def grid(w: Lifter, op: Any) -> None:
    """A grid waits for those it depends on, or lets those begin that depend on it."""
    w.line(f"cute.arch.griddepcontrol_{attributes(op)['kind']}()")


@lifts("llvm.intr.ctpop")
def popcount(w: Lifter, op: Any) -> None:
    """Write the number of set bits."""
    give(w, op, f"cute.arch.popc({w.typed(op.operands[0])})")


@lifts("nvvm.clusterlaunchcontrol.try_cancel.multicast")
def request_cluster(w: Lifter, op: Any) -> None:
    """A cluster that has not started is asked for."""
    response, bar = op.operands
    w.line(f"cute.arch.issue_clc_query({w.expr(bar)}, {w.expr(response)})")


_PARTS = ("get_first_ctaid.x", "get_first_ctaid.y", "get_first_ctaid.z", "is_canceled")


@lifts(*(RESPONSES + name for name in _PARTS))
def read_response(w: Lifter, op: Any) -> None:
    """The answer to that: which block began the cluster, and whether there was one. It is read once for all."""
    pointer = w.flow.patterns.response(op)
    if pointer is None:
        w.refuse(op, "an answer of cluster launch control is lifted where it is loaded, and asked for all at once")
    key = op.parent, w.root(op.operands[0])
    if key not in w.values:
        w.values[key] = [w.local(name) for name in ("cluster_x", "cluster_y", "cluster_z", "taken")]
        w.line(f"{', '.join(w.values[key])} = cute.arch.clc_response({w.expr(pointer)})")
    name = w.values[key][_PARTS.index(op.name.removeprefix(RESPONSES))]
    w.values[w.root(op.results[0])] = Expr(f"{name} != 0", COMPARE) if op.name.endswith("canceled") else Expr(name)


_MAP = "cute.make_ptr(cute.Uint8, {{{}}}, cute.AddressSpace.{}, assumed_align=128)"
"""A tensor map at an address."""
_ASSEMBLY = {
    "bar.sync $0, $1;": "cute.arch.barrier(barrier_id={0}, number_of_threads={1})",
    "bar.sync $0;": "cute.arch.barrier(barrier_id={0})",
    "bar.arrive $0, $1;": "cute.arch.barrier_arrive(barrier_id={0}, number_of_threads={1})",
    "cvt.rn.f32.s32 $0, $1;": "cute.Float32({0})",
    "tanh.approx.f32 $0, $1;": "cute.math.tanh({0}, fastmath=True)",
    "ex2.approx.ftz.f32 $0, $1;": "cute.arch.exp2({0})",
    "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [$0], [$1], 128;":
        f"cute.nvgpu.cpasync.cp_fence_tma_desc_release({_MAP.format(0, 'gmem')}, {_MAP.format(1, 'smem')})",
    "fence.proxy.tensormap::generic.acquire.gpu [$0], 128;":
        f"cute.nvgpu.cpasync.fence_tma_desc_acquire({_MAP.format(0, 'gmem')})",
    "griddepcontrol.wait;": "cute.arch.griddepcontrol_wait()",
    "griddepcontrol.launch_dependents;": "cute.arch.griddepcontrol_launch_dependents()",
}  # fmt: skip
"""Inline assembly that this library has a function for."""


_VOTE = re.compile(
    r"{ \.reg \.pred (\w+); \.reg \.pred (\w+); setp\.ne\.b32 \1, \$1, 0; "
    r"vote\.sync\.(all|any|uni)\.pred \2, \1, \$2; selp\.b32 \$0, 1, 0, \2; }"
)
"""Writes a vote, which PTX gives as a predicate, as a number."""


@lifts("llvm.inline_asm")
def inline(w: Lifter, op: Any) -> None:
    """PTX: a function of this library's, if there is one, else the text itself."""
    text = re.sub(r"\s+", " ", op.asm_string.data).strip()
    operands = [str(w.typed(v)) for v in op.operands]
    form, vote = _ASSEMBLY.get(text), _VOTE.fullmatch(text)
    if text.startswith("bar"):
        w.synchronises(arrives=True)
    if form is not None:
        made = Expr(form.format(*operands))
    elif vote:
        made = Expr(f"cute.arch.vote_{vote[3]}_sync({', '.join(operands)})")
    else:
        made = _as_it_stands(w, op, text, operands)
    if not op.results or has_no_use(w, op):
        w.line(made)
        if text.startswith("tensormap.cp_fenceproxy"):  # each lane copies a part
            w.line("cute.arch.sync_warp()")
    else:
        w.bind(op.results[0], made, moves=not isinstance(op.properties.get("has_side_effects"), UnitAttr))


def _as_it_stands(w: Lifter, op: Any, text: str, operands: Sequence[str]) -> Expr:
    """PTX that this library has no function for. A condition is a number there."""
    for c in op.constraints.data.split(","):
        if c.lstrip("=&+").startswith(("0", "1")) or c.startswith(("+", "~")):
            w.refuse(op, f"inline assembly of the constraints {op.constraints.data!r} is not lifted")
    types = ["i32" if str(r.type) == "i1" else str(r.type) for r in op.results]
    results = "".join(f"{w.element(t)}, " for t in types)
    conditions = [str(v.type) == "i1" for v in op.operands]
    reads = "".join(f"cute.Int32({x}), " if c else f"{x}, " for x, c in zip(operands, conditions, strict=True))
    made = Expr(f"cute.arch.inline_ptx({text!r}, write_only_types=({results}), read_only_args=({reads}))")
    return Expr(f"{made} != 0", COMPARE) if [str(r.type) for r in op.results] == ["i1"] else made


__all__ = ["objects", "objects_name"]
