# SPDX-License-Identifier: Apache-2.0
"""Run PTX instructions in the simulator that access memory or work with other threads, by the first word of each."""

from __future__ import annotations

from typing import Any

from .. import arch, isa
from ..arch.atomic import red_in
from ..dtypes import Uint32
from ..seam import CuteError
from ..tensor.pointer import AddressSpace
from .ptx_registers import TYPES, Operation, Registers, Step, as_type

_SCOPES = ("cta", "cluster", "gpu", "sys")
_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_SPACES = {"global": None, "shared": "cta", "shared::cta": "cta", "shared::cluster": "cluster"}
_CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "weak")
"""Words that change no result: where a value is kept, and that nothing is ordered."""


class _Access:
    """Read from an instruction's words which memory it accesses and how. known: whether each word was understood."""

    def __init__(self, words: tuple[str, ...], *others: str) -> None:
        self.dtype: Any = TYPES.get(words[-1])
        said = set(words[1:-1])
        spaces = [s for s in _SPACES if s in said]
        self.space = AddressSpace.smem if spaces and spaces[0] != "global" else AddressSpace.gmem
        self.ss = _SPACES[spaces[0]] if spaces else None
        self.sem = next((o for o in _ORDERS if o in said), None)
        self.scope = next((s for s in _SCOPES if s in said), None)
        if "volatile" in said:
            self.sem, self.scope = "relaxed", "sys"
        self.count = 4 if "v4" in said else 2 if "v2" in said else 1
        hints = {w for w in said if w.startswith(("L1::evict", "L1::no_allocate", "L2::64B", "L2::128B", "L2::256B"))}
        left = said - {*spaces[:1], *_ORDERS, *_SCOPES, *_CACHES, *others, *hints, "volatile", "v2", "v4"}
        self.known = not left and self.dtype is not None and len(spaces) < 2

    def pointer(self, r: Registers, operand: str) -> Any:
        return r.pointer(operand, self.dtype, self.space)


def _load(r: Registers, step: Step) -> bool:
    """ld: a number, or two or four."""
    a = _Access(step.words)
    if not a.known:
        return False
    target, source = step.operands
    made = arch.load(a.pointer(r, source), a.dtype, sem=a.sem, scope=a.scope, ss=a.ss, count=a.count)
    for name, value in zip(r.several(target), made if a.count > 1 else (made,)):
        r.held[name] = value
    return True


def _store(r: Registers, step: Step) -> bool:
    """st: a number, or two or four; st.async tells a barrier of the other block."""
    if step.words[1] == "async":
        return _store_async(r, step)
    a = _Access(step.words)
    if not a.known:
        return False
    place, value = step.operands
    values = tuple(r.read(n, step.words[-1]) for n in r.several(value))
    given = values if a.count > 1 else values[0]
    arch.store(a.pointer(r, place), given, ss=a.ss, sem=a.sem, scope=a.scope)
    return True


def _store_async(r: Registers, step: Step) -> bool:
    *words, kind = step.words[1:]
    count = {"v2": 2, "v4": 4}.get(words[-1], 1)
    if words[1:3] != ["shared::cluster", "mbarrier::complete_tx::bytes"] or kind not in ("f32", "b32", "u32", "s32"):
        return False
    place, value, bar = step.operands
    parts = [as_type(r.read(n, kind), Uint32) for n in r.several(value)]
    isa.st_async(r.address(place), parts, r.address(bar), count=count)
    return len(words) == 3 + (count > 1)


_UPDATES = ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas")


def _reduce(r: Registers, step: Step) -> bool:
    """red: combine a number with one in memory."""
    op = next((w for w in step.words if w in _UPDATES[:8]), None)
    kind = step.words[-1]
    a = _Access((*step.words[:-1], {"f16x2": "b32", "bf16x2": "b32"}.get(kind, kind)), op or "", "noftz")
    if op is None or not a.known:
        return False
    place, value = step.operands
    read = tuple(r.read(n, "b32" if kind.endswith("x2") else kind) for n in r.several(value))
    given = read if a.count > 1 else read[0]
    red_in(a.ss, a.pointer(r, place), given, op, kind, a.sem, a.scope)
    return True


def _atom(r: Registers, step: Step) -> bool:
    """atom: combine a number with one in memory, giving what was there."""
    op = next((w for w in step.words if w in _UPDATES), None)
    kind = step.words[-1]
    a = _Access(step.words, op or "", "noftz")
    if op is None or not a.known or a.ss == "cluster" or a.count > 1:
        return False
    target, place, *values = step.operands
    pointer, read = a.pointer(r, place), [r.read(v, kind) for v in values]
    if op in ("inc", "dec"):
        space, wide = ("global", "u64") if a.ss is None else ("shared", "u32")
        how = {"sem": a.sem or "relaxed", "scope": a.scope or "gpu", "space": space, "op": op, "type": kind}
        r.held[target] = isa.atom(r.address(place, wide), read[0], **how)
    else:
        r.held[target] = getattr(arch, f"atomic_{op}")(pointer, *read, sem=a.sem, scope=a.scope)
    return True


def _map(r: Registers, step: Step) -> bool:
    """mapa: the same place of another block of the cluster."""
    if step.words[1:] != ("shared::cluster", "u32"):
        return False
    target, source, rank = step.operands
    r.held[target] = isa.mapa(r.read(source, "u32"), r.read(rank, "u32"))
    return True


def _as_global(r: Registers, step: Step) -> bool:
    """cvta: an address of global memory, which is the generic one."""
    target, source = step.operands
    r.held[target] = r.read(source, "u64")
    return "global" in step.words and step.words[-1] == "u64"


# ------------------------------------------------------------ copies


def _copy(r: Registers, step: Step) -> bool:
    """cp.async, its groups, and those of bulk copies."""
    words = step.words[1:]
    number = int(step.operands[0], 0) if step.operands and step.operands[0].isdigit() else None
    if words == ("async", "commit_group"):
        isa.cp_async_commit_group()
    elif words == ("async", "wait_all"):
        isa.cp_async_commit_group()
        isa.cp_async_wait_group(n=0)
    elif words == ("async", "wait_group") and number is not None:
        isa.cp_async_wait_group(n=number)
    elif words == ("async", "bulk", "commit_group"):
        arch.cp_async_bulk_commit_group()
    elif words[:3] == ("async", "bulk", "wait_group") and number is not None and words[3:] in ((), ("read",)):
        arch.cp_async_bulk_wait_group(number, read=bool(words[3:]))
    elif words[0] == "async" and words[1] in ("ca", "cg"):
        return _copy_async(r, step)
    elif "bulk" in words[1:3] and "tensor" not in words:
        return _copy_bulk(r, step)
    else:
        return False
    return True


def _copy_async(r: Registers, step: Step) -> bool:
    _, cache, to, *others = step.words[1:]
    if to not in ("shared", "shared::cta") or set(others) - {"global", "L2::64B", "L2::128B", "L2::256B"}:
        return False
    target, source, size, *read = step.operands
    how = {} if not read else {"src_size": r.read(read[0], "u32")}
    isa.cp_async(r.address(target), r.address(source, "u64"), nbytes=int(size, 0), cache=cache, **how)
    return True


def _copy_bulk(r: Registers, step: Step) -> bool:
    """cp.async.bulk between global and shared memory, and cp.reduce.async.bulk into global memory."""
    words = [w for w in step.words[1:] if w not in ("L2::cache_hint", "noftz")]
    target, source, size, *others = step.operands
    hinted, loads = "L2::cache_hint" in step.words, words[:2] == ["async", "bulk"] and words[2:] in _INTO_SHARED
    if len(others) != hinted + loads:
        return False
    how = {"policy": r.read(others[-1], "u64")} if hinted else {}
    nbytes = r.read(size, "u32")
    if words == ["async", "bulk", "global", "shared::cta", "bulk_group"]:
        isa.cp_async_bulk_s2g(r.address(target, "u64"), r.address(source), nbytes, **how)
    elif words[:-2] == ["reduce", "async", "bulk", "global", "shared::cta", "bulk_group"]:
        op, kind = words[-2:]
        isa.cp_reduce_async_bulk_s2g(r.address(target, "u64"), r.address(source), nbytes, op=op, type=kind, **how)
    elif loads:
        isa.cp_async_bulk_g2s(r.address(target), r.address(source, "u64"), nbytes, r.address(others[0]), **how)
    else:
        return False
    return True


_INTO_SHARED = [[to, "global", "mbarrier::complete_tx::bytes"] for to in ("shared::cta", "shared::cluster")]


# ------------------------------------------------------------ threads


def _vote(r: Registers, step: Step) -> bool:
    """vote.sync: what the lanes of a warp have of a predicate."""
    target, p, mask = step.operands
    functions: dict[str, Any] = {
        "any": arch.vote_any_sync, "all": arch.vote_all_sync, "uni": arch.vote_uni_sync,
        "ballot": arch.vote_ballot_sync,
    }  # fmt: skip
    if len(step.words) != 4 or step.words[1] != "sync" or step.words[2] not in functions:
        return False
    r.held[target] = functions[step.words[2]](r.predicate(p), r.read(mask, "u32"))
    return True


def _shuffle(r: Registers, step: Step) -> bool:
    """shfl.sync: a word of another lane."""
    target, value, by, clamp, mask = step.operands
    if step.words[1] != "sync" or step.words[3:] != ("b32",) or "|" in target:
        return False
    words = (r.read(x, "b32") for x in (value, by, clamp, mask))
    r.held[target] = isa.shfl_sync(*words, mode=step.words[2])
    return True


def _redux(r: Registers, step: Step) -> bool:
    """redux.sync: a number of all lanes."""
    _, op, kind = step.words[1:]
    target, value, mask = step.operands
    if kind not in ("s32", "u32", "b32"):
        return False
    r.held[target] = isa.redux_sync(r.read(value, "b32"), r.read(mask, "b32"), op=op, type=kind)
    return True


def _elect(r: Registers, step: Step) -> bool:
    """elect.sync: a predicate that holds in one lane of the warp."""
    if step.words[1:] != ("sync",):
        return False
    r.held[step.operands[0].rpartition("|")[2]] = arch.elect_one()
    return True


def _barrier(r: Registers, step: Step) -> bool:
    """bar and barrier: of a warp, of a block by their numbers, of a cluster."""
    words = tuple(w for w in step.words[1:] if w != "cta")
    given = [r.read(x, "u32") for x in step.operands]
    if words[:1] == ("cluster",):
        return _cluster_barrier(words[1:])
    if words == ("warp", "sync"):
        isa.bar_warp_sync(given[0])
    elif words in (("sync",), ("sync", "aligned")) and (words[1:] or step.words[0] == "bar"):
        isa.bar_sync(given[0], given[1] if given[1:] else None)
    elif words in (("arrive",), ("arrive", "aligned")) and (words[1:] or step.words[0] == "bar"):
        isa.bar_arrive(*given)
    else:
        return False
    return True


def _cluster_barrier(words: tuple[str, ...]) -> bool:
    """barrier.cluster: the forms that arch has."""
    known: dict[tuple[str, ...], Any] = {
        ("arrive", "aligned"): arch.cluster_arrive, ("arrive", "release", "aligned"): arch.cluster_arrive,
        ("arrive", "relaxed", "aligned"): arch.cluster_arrive_relaxed,
        ("wait", "aligned"): arch.cluster_wait, ("wait", "acquire", "aligned"): arch.cluster_wait,
    }  # fmt: skip
    if words not in known:
        return False
    known[words]()
    return True


def _fence(r: Registers, step: Step) -> bool:
    """fence and membar: of ordinary accesses, of barriers, and of the async proxy."""
    words = step.words[1:]
    scope = {"cta": "cta", "gl": "gpu", "sys": "sys"}.get(words[-1], words[-1])
    if words == ("mbarrier_init", "release", "cluster"):
        isa.fence_mbarrier_init()
    elif words[:2] == ("proxy", "async") and len(words) < 4:
        isa.fence_proxy_async(space=words[2] if words[2:] else None)
    elif scope in _SCOPES and words[:-1] in ((), ("sc",), ("acq_rel",)):
        getattr(arch, f"fence_acq_rel_{scope}")()
    else:
        return False
    return True


def _mbarrier(r: Registers, step: Step) -> bool:
    """mbarrier: made, arrived at, and asked."""
    words = tuple(w for w in step.words[1:-1] if w not in ("shared", "shared::cta"))
    if step.words[-1] != "b64" or any("cluster" in w for w in words):
        return False
    if words[:2] in (("try_wait", "parity"), ("test_wait", "parity")) and not words[2:]:
        target, bar, parity = step.operands[:3]
        row: Any = isa.mbarrier_try_wait_parity if words[0] == "try_wait" else isa.mbarrier_test_wait_parity
        r.held[target] = row(r.address(bar), r.read(parity, "u32"))
        return True
    return _arrive(r, words, step.operands)


def _arrive(r: Registers, words: tuple[str, ...], operands: tuple[str, ...]) -> bool:
    if words == ("init",):
        isa.mbarrier_init(r.address(operands[0]), r.read(operands[1], "u32"))
    elif words == ("inval",):
        isa.mbarrier_inval(r.address(operands[0]))
    elif words == ("expect_tx", "relaxed", "cta"):
        isa.mbarrier_expect_tx(r.address(operands[0]), r.read(operands[1], "u32"))
    elif words == ("arrive",) and operands[0] == "_":
        isa.mbarrier_arrive(r.address(operands[1]), *(r.read(n, "u32") for n in operands[2:]))
    elif words == ("arrive", "expect_tx") and operands[0] == "_":
        isa.mbarrier_arrive_expect_tx(r.address(operands[1]), r.read(operands[2], "u32"))
    else:
        return False
    return True


def _grid(r: Registers, step: Step) -> bool:
    """griddepcontrol: of grids that depend on each other."""
    known = {"wait": arch.griddepcontrol_wait, "launch_dependents": arch.griddepcontrol_launch_dependents}
    known[step.words[1]]()
    return True


def _sleep(r: Registers, step: Step) -> bool:
    """nanosleep."""
    arch.nanosleep(r.read(step.operands[0], "u32"))
    return True


def _active(r: Registers, step: Step) -> bool:
    """activemask."""
    r.held[step.operands[0]] = arch.activemask()
    return True


def _tensor_core(r: Registers, step: Step) -> bool:
    """tcgen05: its fences, and mma without scale factors."""
    if step.words[1] == "fence::before_thread_sync":
        arch.tcgen05_fence_before_thread_sync()
        return True
    if step.words[1] == "fence::after_thread_sync":
        arch.tcgen05_fence_after_thread_sync()
        return True
    words = dict(w.split("::") for w in step.words[2:] if w.count("::") == 1)
    if step.words[1] != "mma" or len(words) != len(step.words) - 2 or set(words) != {"cta_group", "kind"}:
        return False
    d, a, b, form, adds = step.operands
    in_tmem = a.startswith("[")
    row: Any = isa.tcgen05_mma_ts if in_tmem else isa.tcgen05_mma_ss
    first = r.address(a) if in_tmem else r.read(a, "u64")
    row(
        r.address(d), first, r.read(b, "u64"), r.read(form, "u32"), use_acc=r.predicate(adds),
        cta_group=int(words["cta_group"]), kind=words["kind"],
    )  # fmt: skip
    return True


def _trap(r: Registers, step: Step) -> bool:
    """trap: the kernel gives up."""
    raise CuteError("the kernel executed trap: a thread gave up")


MEMORY: dict[str, Operation] = {
    "ld": _load, "st": _store, "red": _reduce, "atom": _atom, "mapa": _map, "cvta": _as_global, "cp": _copy,
    "vote": _vote, "shfl": _shuffle, "redux": _redux, "elect": _elect, "bar": _barrier, "barrier": _barrier,
    "fence": _fence, "membar": _fence, "mbarrier": _mbarrier, "griddepcontrol": _grid, "nanosleep": _sleep,
    "activemask": _active, "tcgen05": _tensor_core, "trap": _trap,
}  # fmt: skip
