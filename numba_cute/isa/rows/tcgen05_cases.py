# SPDX-License-Identifier: Apache-2.0
"""The cases of the rows of tcgen05.mma (PTX ISA, "Matrix Shape", "Transpose and Negate operations", "Valid combinations
of scale_vectorsize with types and MMA-Kind", and the qualifiers of each instruction's syntax)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from ... import dtypes
from ...seam import CuteError
from ..facts.canonical import CHUNK
from ..facts.tensor_descriptors import Tcgen05Instruction, Tcgen05ScaledInstruction
from ..form.cases import Cases, Each, each
from ..form.targets import FEATURES

_FLOATS: dict[int, dtypes.DType] = {
    0: dtypes.Float8E4M3FN, 1: dtypes.Float8E5M2, 3: dtypes.Float6E2M3FN, 4: dtypes.Float6E3M2FN,
    5: dtypes.Float4E2M1FN,
}  # fmt: skip
TYPES: dict[str, dict[int, dtypes.DType]] = {
    "f16": {0: dtypes.Float16, 1: dtypes.BFloat16},
    "tf32": {2: dtypes.TFloat32},
    "f8f6f4": _FLOATS,
    "i8": {0: dtypes.Uint8, 1: dtypes.Int8},
    "mxf8f6f4": _FLOATS,
    "mxf4": {1: dtypes.Float4E2M1FN},
    "mxf4nvf4": {1: dtypes.Float4E2M1FN},
}
"""For each kind its element types by their code."""
RESULTS = {0: "f16", 1: "f32", 2: "s32"}
"""The results' types by their code, as PTX names them."""
K_OF = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
"""The number of elements along K of one dense multiply, by kind; a sparse one takes twice as many."""
A_OPERATIONS = (None, "fill", "use", "lastuse", "discard")
"""Operations on the collector buffer of A."""
B_OPERATIONS = (None, *(f"b{i}::{what}" for i in range(4) for what in A_OPERATIONS[1:]))
"""Operations on the collector buffers of B (.ws), with the buffer."""
ALL_BUT_I8 = FEATURES["tcgen05"]
_I8, _MX4_SPARSE = "sm_100a|sm_110a", "sm_100a|sm_103a|sm_107a|sm_110a"


def _names(kind: str) -> Each:
    return each(*(dtype.ptx for dtype in TYPES[kind].values()))


def _types(kind: str) -> list[dict[str, Any]]:
    """The types (of A, of B, of D) that a kind multiplies, independent of each other in each dict."""
    if kind == "f16":
        mixed = {"a_type": _names(kind), "b_type": _names(kind), "d_type": "f32"}
        return [mixed, {"a_type": "f16", "b_type": "f16", "d_type": "f16"}]
    results = {"tf32": "f32", "i8": "s32", "f8f6f4": each("f32", "f16")}.get(kind, "f32")
    return [{"a_type": _names(kind), "b_type": _names(kind), "d_type": results}]


def _rows_of_b(kind: str, cta_group: int) -> tuple[int, ...]:
    """The n that a multiply may have."""
    if kind == "i8":
        return (8, 16, 24, *range(32, 257, 16)) if cta_group == 1 else tuple(range(32, 257, 32))
    return tuple(range(8 * cta_group, 257, 8 * cta_group))


def _majors(kind: str, cta_group: int, ns: tuple[int, ...], a_src: str) -> Iterator[dict[str, Any]]:
    """n with the majors of A and B. A in tensor memory is K-major, and so are operands of mxf4; an MN-major B of 8-bit
    containers has rows of whole 16-byte chunks in each CTA."""
    if kind in ("mxf4", "mxf4nvf4"):
        yield {"n": each(*ns), "trans_a": 0, "trans_b": 0}
        return
    trans_a = each(0, 1) if a_src == "smem" else 0
    if K_OF[kind] < 32:
        yield {"n": each(*ns), "trans_a": trans_a, "trans_b": each(0, 1)}
        return
    yield {"n": each(*ns), "trans_a": trans_a, "trans_b": 0}
    yield {"n": each(*(n for n in ns if n // cta_group % CHUNK == 0)), "trans_a": trans_a, "trans_b": 1}


def _qualifiers(ms: tuple[int, ...], a_src: str) -> Iterator[dict[str, Any]]:
    """m with the shift of A's rows and the use of its collector buffer."""
    yield {"m": each(*ms), "ashift": False, "collector": each(*A_OPERATIONS)}
    if a_src == "tmem":
        yield {"m": each(*(m for m in ms if m > 64)), "ashift": True, "collector": each(None, "lastuse", "discard")}


def _scales(kind: str) -> Iterator[tuple[Any, dict[str, str]]]:
    """By which power of two the accumulator is divided first, and on which target."""
    yield None, {"target": _I8} if kind == "i8" else {}
    if kind in ("f16", "tf32"):
        yield each(*range(16)), {"target": "sm_100f"}


def plain(a_src: str) -> Iterator[dict[str, Any]]:
    """All multiplies without scale factors, with A in `a_src`, "smem" or "tmem"."""
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        for cta_group, (scale_d, target) in itertools.product((1, 2), _scales(kind)):
            ms = (64, 128) if cta_group == 1 else (128, 256)
            for sparse in (False, True):
                fixed = {"kind": kind, "cta_group": cta_group, "sparse": sparse, "k": K_OF[kind] * (1 + sparse),
                         "a_src": a_src, "lanes": 4 * cta_group, "scale_d": scale_d, **target}  # fmt: skip
                for types in _types(kind):
                    for extents in _majors(kind, cta_group, _rows_of_b(kind, cta_group), a_src):
                        for rows in _qualifiers(ms, a_src):
                            yield {**fixed, **types, **extents, **rows}


def stationary(a_src: str) -> Iterator[dict[str, Any]]:
    """All multiplies that keep B (.ws), with A in `a_src`."""
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        target = {"target": _I8} if kind == "i8" else {}
        for sparse in (False, True):
            ns = (64, 128) if sparse else (64, 128, 256)
            fixed = {"kind": kind, "cta_group": 1, "sparse": sparse, "k": K_OF[kind] * (1 + sparse), "a_src": a_src,
                     "ws": True, "m": each(32, 64, 128), "collector": each(*B_OPERATIONS), **target}  # fmt: skip
            for types in _types(kind):
                for extents in _majors(kind, 1, ns, a_src):
                    yield {**fixed, **types, **extents}


_VECTORS: dict[str, list[tuple[Any, int, tuple[str | None, ...], tuple[str, ...]]]] = {
    "mxf8f6f4": [("ue8m0", 32, ("block32", None), ("scale_vec::1X",))],
    "mxf4": [("ue8m0", 32, ("block32", None), ("scale_vec::2X",))],
    "mxf4nvf4": [
        (each("ue4m3", "ue8m0"), 16, ("block16",), ("scale_vec::4X",)),
        ("ue8m0", 32, ("block32",), ("scale_vec::2X",)),
    ],
}
"""For each kind: the factors' type, of how many elements each is, and how the text says that: for all targets, and for
sm_100a alone."""


def scaled(a_src: str) -> Iterator[dict[str, Any]]:
    """All multiplies with a scale factor for each block of K, with A in `a_src`. (K of 96 is in the PTX ISA's table of
    shapes for cta_group 2 alone; CUTLASS has it for 1 too, and so have these.)"""
    for kind, factors in _VECTORS.items():
        for cta_group in (1, 2):
            for sparse, k in ((False, K_OF[kind]), (False, 96), (True, 2 * K_OF[kind])):
                if k == 96 and kind == "mxf8f6f4":
                    continue
                ms = (128,) if cta_group == 1 else (256,) if sparse else (128, 256)
                for sf, block, everywhere, older in factors:
                    few = "sm_103a" if k == 96 else _MX4_SPARSE if sparse and kind != "mxf8f6f4" else ALL_BUT_I8
                    for vec, target in ((everywhere, few), (older, "sm_100a")) if k != 96 else ((everywhere[:1], few),):
                        fixed = {"kind": kind, "cta_group": cta_group, "sparse": sparse, "k": k, "a_src": a_src,
                                 "m": each(*ms), "sf": sf, "block": block, "vec": each(*vec), "target": target,
                                 "collector": each(*A_OPERATIONS)}  # fmt: skip
                        for extents in _majors(kind, cta_group, _rows_of_b(kind, cta_group), a_src):
                            yield {**fixed, **_types(kind)[0], **extents}


# ---------------------------------------------------------------- words


def _codes(case: dict[str, Any]) -> dict[str, int]:
    """The fields that both instruction descriptors have, of a case."""
    codes = {dtype.ptx: code for code, dtype in TYPES[case["kind"]].items()}
    return {
        "sparse": int(case["sparse"]), "a": codes[case["a_type"]], "b": codes[case["b_type"]],
        "major_a": case.get("trans_a", 0), "major_b": case.get("trans_b", 0), "n": case["n"], "m": case["m"],
    }  # fmt: skip


def instruction(case: dict[str, Any], negate_a: bool = False, negate_b: bool = False, saturate: bool = False,
                selector: int = 0) -> int:  # fmt: skip
    """The instruction descriptor of a case of `plain` or `stationary`."""
    result = {name: code for code, name in RESULTS.items()}[case["d_type"]]
    return Tcgen05Instruction(
        **_codes(case), d=result, negate_a=int(negate_a), negate_b=int(negate_b), saturate=int(saturate),
        selector=selector,
    ).encode()  # fmt: skip


def scaled_instruction(case: dict[str, Any], id_a: int = 0, id_b: int = 0, negate_a: bool = False,
                       negate_b: bool = False) -> int:  # fmt: skip
    """The instruction descriptor of a case of `scaled`, whose factors begin at these bytes of their words."""
    return Tcgen05ScaledInstruction(
        **_codes(case), id_a=id_a, id_b=id_b, negate_a=int(negate_a), negate_b=int(negate_b),
        e8m0=int(case["sf"] == "ue8m0"), k96=int(case["k"] == 96),
    ).encode()  # fmt: skip


def _said(values: list[Any], value: Any) -> str:
    """Legal values as an error names them."""
    if len(values) < 4 or not all(type(v) is int for v in values):
        return " or ".join(map(str, values))
    step = values[-1] - values[-2]
    odd = [str(v) for v in values if v % step]
    return f"a multiple of {step} of {values[0]} to {values[-1]}" + (f", or {', '.join(odd)}" if odd else "")


@lru_cache(maxsize=4096)
def decoded(cases: Cases, word: int, given: tuple[tuple[str, Any], ...]) -> tuple[dict[str, Any], Any]:
    """The case that an instruction descriptor stands for, of a row's `cases` with the static parameters `given`; and
    the descriptor. Raises CuteError if the hardware has no such multiply."""
    known = dict(given)
    kind = known["kind"]
    form: Any = (Tcgen05ScaledInstruction if kind.startswith("mx") else Tcgen05Instruction).decode(word)
    says: dict[str, Any] = {"sparse": bool(form.sparse), "m": form.m, "n": form.n}
    for operand in "ab":
        dtype = TYPES[kind].get(getattr(form, operand))
        if dtype is None:
            known_types = ", ".join(f"{code} ({t.ptx})" for code, t in TYPES[kind].items())
            raise CuteError(
                f"tcgen05.mma, kind {kind}: {operand} type {getattr(form, operand)} of its instruction descriptor must "
                f"be one of {known_types}"
            )
        says[f"{operand}_type"] = dtype.ptx
    if isinstance(form, Tcgen05Instruction):
        says["d_type"] = RESULTS.get(form.d, form.d)
    else:
        says |= {"sf": "ue8m0" if form.e8m0 else "ue4m3", "k": 96 if form.k96 else K_OF[kind] * (1 + form.sparse)}
    says |= {"trans_a": form.major_a, "trans_b": form.major_b}
    for name, value in says.items():
        legal = cases.values(name, known)
        if value not in legal:
            others = ", ".join(f"{k} {v}" for k, v in known.items() if k not in ("kind", "a_src") and v is not None)
            raise CuteError(
                f"tcgen05.mma, kind {kind}: {name} {value} of its instruction descriptor must be "
                f"{_said(legal, value)} with {others}"
            )
        known[name] = value
    if kind == "i8" and (form.negate_a or form.negate_b):
        raise CuteError(f"tcgen05.mma, kind {kind}: integers cannot be negated: negate_a and negate_b must be 0")
    ((at, block),) = cases.having(known)
    return cases.at(at, block.first()), form
