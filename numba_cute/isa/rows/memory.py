# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="valid-type"
"""Loads and stores that say more than an assignment does: order and scope, cache operators and priorities (PTX ISA,
"ld", "st"). Any thread.

Rows are named by space (global; shared, of the CTA; dsmem, of any CTA of the cluster) and register: b16 (elements of 8
or 16 bits), b32, b64; those of global memory that end in …_policy take an L2 cache policy (isa/rows/cache.py). Static
parameters: width (bits of an element), count (1, 2, 4 elements; 16 bytes at most), order
("" or like ".acquire.gpu") and hint ("" or like ".cg", ".L1::evict_first.L2::128B").
"""

# No `from __future__ import annotations`: the rows are made in a loop, and their annotations are its variables.
from typing import Any

import numpy as np

from ...seam import CuteError
from ..form.instr import cluster_smem, gmem, instr, out, smem, u16, u32, u64
from ..form.machine import Machine

_REF = "data-movement-and-conversion-instructions"
SPACES = {"global": (gmem, "global"), "shared": (smem, "shared::cta"), "dsmem": (cluster_smem, "shared::cluster")}
_REGISTERS = {16: (u16, (8, 16)), 32: (u32, (32,)), 64: (u64, (64,))}
_EVICTIONS = ("evict_normal", "evict_first", "evict_last", "no_allocate", "evict_unchanged")
_PREFETCHES = ("64B", "128B", "256B")
_CACHES = {"ld": ("ca", "cg", "cs", "lu", "cv"), "st": ("wb", "cg", "cs", "wt")}
_ORDERS = {"ld": ("relaxed", "acquire"), "st": ("relaxed", "release")}


def _priorities(op: str) -> list[str]:
    """What an access to global memory may say of the caches, whatever its order."""
    evictions = [f".L1::{e}" for e in _EVICTIONS]
    if op == "st":
        return evictions
    ahead = [f".L2::{p}" for p in _PREFETCHES]
    return evictions + ahead + [e + p for e in evictions for p in ahead]


def with_policy(hint: str) -> str:
    """A hint that says that a cache policy comes too: before what is fetched ahead, after all else."""
    first, ahead, size = hint.partition(".L2::")
    return f"{first}.L2::cache_hint{ahead}{size}"


def _cases(op: str, widths: tuple[int, ...], space: str, part: str) -> list[dict[str, Any]]:
    """part: "" (no hints), "hint", "cluster" (scope cluster), or "policy" and "cluster_policy" (a policy, and perhaps
    hints)."""
    cluster = part.startswith("cluster")
    scopes = ("cluster",) if cluster else ("cta", "gpu", "sys")
    if space == "dsmem":
        scopes = (*scopes, "cluster")
    orders = [f".{o}.{s}" for o in _ORDERS[op] for s in scopes]
    orders = orders if cluster else ["", *orders]
    forms = [] if part == "hint" else [(order, "") for order in orders]
    if space == "global" and part != "":
        forms += [(order, h) for order in orders for h in _priorities(op)]
        forms += [] if cluster else [("", f".{c}") for c in _CACHES[op]]
    return [
        {
            "order": order,
            "hint": hint,
            "width": w,
            "count": n,
            "vec": f".v{n}" if n > 1 else "",
            **({"said": with_policy(hint)} if part.endswith("policy") else {}),
        }
        for order, hint in forms
        for w in widths
        for n in (1, 2, 4)
        if n * w <= 128
    ]


def _checked(addr: int, nbytes: int, what: str) -> None:
    if addr % nbytes:
        raise CuteError(f"{what}: address {addr:#x} must be a multiple of the {nbytes} bytes that it accesses")


def _where(m: Machine, space: str, addr: int) -> tuple[int, int | None]:
    if space != "dsmem":
        return addr, None
    cta, at = m.owner(addr)
    return at, cta


def _get(m: Machine, space: str, addr: int, nbytes: int, order: str) -> Any:
    at, cta = _where(m, space, addr)
    if order:
        _, sem, scope = order.split(".")
        return m.atomic(at, nbytes, None, shared=space != "global", cta=cta, sem=sem, scope=scope)
    return m.read_global(at, nbytes) if space == "global" else m.read(at, nbytes, cta=cta)


def _put(m: Machine, space: str, addr: int, data: Any, order: str) -> None:
    at, cta = _where(m, space, addr)
    if order:
        _, sem, scope = order.split(".")
        shared = space != "global"
        m.atomic(at, data.size, lambda _: data, shared=shared, cta=cta, sem=sem, scope=scope, reads=False)
    elif space == "global":
        m.write_global(at, data)
    else:
        m.write(at, data, cta=cta)


def _bytes(values: Any, width: int) -> Any:
    """The low `width` bits of registers, next to each other."""
    mask = (1 << width) - 1
    return np.array([int(v) & mask for v in values], f"u{width // 8}").view(np.uint8)


_SAYS = {
    "": "", "hint": ", with a hint to the caches", "cluster": ", ordered at cluster scope",
    "policy": ", with an L2 cache policy", "cluster_policy": ", ordered at cluster scope, with an L2 cache policy",
}  # fmt: skip


def _load(space: str, bits: int, part: str, target: str) -> None:
    address, ptx = SPACES[space]
    kind, _ = _REGISTERS[bits]

    def load(m: Machine, addr: int, width: int, count: int, order: str) -> Any:
        nbytes = width // 8 * count
        _checked(addr, nbytes, f"ld.{ptx}")
        return _get(m, space, addr, nbytes, order).view(f"u{width // 8}").tolist()

    def row(m: Machine, addr: address, value: out(kind["count"]), *, width: int, count: int, order: str) -> Any:
        return load(m, addr, width, count, order)

    def hinted(
        m: Machine, addr: address, policy: u64, value: out(kind["count"]), *, width: int, count: int, order: str
    ) -> Any:
        return load(m, addr, width, count, order)

    doc = f"Load `count` elements of `width` bits from {ptx} memory, at a multiple of all their bytes{_SAYS[part]}."
    _declare("ld", "$value, [$addr]", hinted if part.endswith("policy") else row, space, bits, part, target, doc)


def _store(space: str, bits: int, part: str, target: str) -> None:
    address, ptx = SPACES[space]
    several = _REGISTERS[bits][0]["count"]

    def store(m: Machine, addr: int, value: Any, width: int, count: int, order: str) -> None:
        nbytes = width // 8 * count
        _checked(addr, nbytes, f"st.{ptx}")
        _put(m, space, addr, _bytes(value, width), order)

    def row(m: Machine, addr: address, value: several, *, width: int, count: int, order: str) -> None:
        store(m, addr, value, width, count, order)

    def hinted(m: Machine, addr: address, value: several, policy: u64, *, width: int, count: int, order: str) -> None:
        store(m, addr, value, width, count, order)

    doc = f"Store `count` elements of `width` bits to {ptx} memory, at a multiple of all their bytes{_SAYS[part]}."
    _declare("st", "[$addr], $value", hinted if part.endswith("policy") else row, space, bits, part, target, doc)


def _declare(op: str, operands: str, body: Any, space: str, bits: int, part: str, target: str, doc: str) -> None:
    body.__name__, body.__doc__ = "_".join(filter(None, (op, space, f"b{bits}", part))), doc
    says, last = ("{said}", ", $policy") if part.endswith("policy") else ("{hint}", "")
    text = f"{op}{{order}}.{SPACES[space][1]}{says}{{vec}}.b{{width}} {operands}{last};"
    instr(text, target=target, ref=f"{_REF}-{op}", over=_cases(op, _REGISTERS[bits][1], space, part))(body)


for _bits in _REGISTERS:
    for _row in (_load, _store):
        _row("global", _bits, "", "sm_70")
        _row("global", _bits, "hint", "sm_80")
        _row("global", _bits, "cluster", "sm_90")
        _row("global", _bits, "policy", "sm_80")
        _row("global", _bits, "cluster_policy", "sm_90")
        _row("shared", _bits, "", "sm_70")
        _row("shared", _bits, "cluster", "sm_90")
        _row("dsmem", _bits, "", "sm_90")
