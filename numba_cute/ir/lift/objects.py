# SPDX-License-Identifier: Apache-2.0
"""Atoms and tiled objects as Python, from their types: a type says one whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..dialect.printed_types import PrintedType
from .spelling import NoSuch, dtype_text, element, layout_text, sequence, tile_text


def elements(*names: str) -> list[str]:
    """Write element types. Raises NoSuch for one that kernels do not have."""
    made = []
    for name in names:
        found = element(name)
        if found is None:
            raise NoSuch(f"kernels have no element type {name}")
        made.append(dtype_text(found))
    return made


def _extents(text: str) -> str:
    return sequence(text.split("x"))


# ------------------------------------------------------------------ copies


def _universal(data: Any) -> str:
    elem, bits, priority = data
    (dtype,) = elements(elem)
    bits = "" if bits is None else f", num_bits_per_copy={bits}"
    more = "" if priority is None else f", l1c_evict_priority=cute.CacheEvictionPriority.{priority.upper()}"
    op = "cute.nvgpu.CopyUniversalOp()" if priority is None else "cute.nvgpu.CopyG2ROp()"
    return f"cute.make_copy_atom({op}, {dtype}{bits}{more})"


def _async(data: Any) -> str:
    elem, cache, bits = data
    (dtype,) = elements(elem)
    modes = {"always": "ALWAYS", "global": "GLOBAL"}
    if cache not in modes:
        raise NoSuch(f"cp.async caches always or global, and not {cache}")
    mode = f"cute.nvgpu.cpasync.LoadCacheMode.{modes[cache]}"
    bits = "" if bits is None else f", num_bits_per_copy={bits}"
    return f"cute.make_copy_atom(cute.nvgpu.cpasync.CopyG2SOp({mode}), {dtype}{bits})"


_MATRIX = {
    ("ldsm", (8, 8), "u16"): "LdMatrix8x8x16bOp", ("ldsm", (16, 16), "u8"): "LdMatrix16x16x8bOp",
    ("ldsm", (16, 8), "u8"): "LdMatrix16x8x8bOp", ("ldsm", (8, 16), "u8"): "LdMatrix8x16x8bOp",
    ("stsm", (8, 8), None): "StMatrix8x8x16bOp", ("stsm", (16, 8), None): "StMatrix16x8x8bOp",
}  # fmt: skip


def _matrix(kind: str, elem: str, mode: Any, pattern: str | None, count: int, word: str) -> str:
    name = _MATRIX.get((kind, mode, pattern))
    if name is None or word not in ("n", "t"):
        raise NoSuch(f"this library has no {kind} of {mode} {pattern or ''} {word}")
    (dtype,) = elements(elem)
    return f"cute.make_copy_atom(cute.nvgpu.warp.{name}({word == 't'}, {count}), {dtype})"


_TMEM = {(32, 32): "32x32b", (16, 64): "16x64b", (16, 128): "16x128b", (16, 256): "16x256b"}


def _tmem(way: str, data: Any) -> str:
    elem, lanes, bits, repeat = data
    shape = _TMEM.get((lanes, bits))
    if shape is None:
        raise NoSuch(f"this library has no tcgen05.{way.lower()} of {lanes} lanes and {bits} bits")
    (dtype,) = elements(elem)
    op = f"cute.nvgpu.tcgen05.{way}{shape}Op(cute.nvgpu.tcgen05.Repetition.x{repeat})"
    return f"cute.make_copy_atom({op}, {dtype})"


_TO_TMEM = {(128, 256, 1): "Cp128x256bOp", (128, 128, 1): "Cp128x128bOp", (32, 128, 4): "Cp4x32x128bOp",
            (4, 256, 1): "Cp4x256bOp"}  # fmt: skip


def _to_tmem(data: Any) -> str:
    elem, lanes, bits, ctas, repeat = data
    name = _TO_TMEM.get((lanes, bits, repeat))
    if name is None:
        raise NoSuch(f"this library has no tcgen05.cp of {lanes} lanes and {bits} bits, x{repeat}")
    (dtype,) = elements(elem)
    return f"cute.make_copy_atom(cute.nvgpu.tcgen05.{name}({_group(ctas)}), {dtype})"


def _group(ctas: int) -> str:
    return f"cute.nvgpu.tcgen05.CtaGroup.{'ONE' if ctas == 1 else 'TWO'}"


# ------------------------------------------------------------------ matrix instructions


def _fma(data: Any) -> str:
    extents, a, b, c = data
    if extents != "1x1x1" or not a == b == c:
        raise NoSuch(f"this library's MmaUniversalOp multiplies one element of one type, and not {extents} of {a}, {b}")
    return f"cute.nvgpu.MmaUniversalOp({elements(a)[0]})"


_F16 = ("f16", "bf16")
_F8 = ("f8E4M3FN", "f8E5M2")


def _sm80(data: Any) -> str:
    extents, a, b, c = data
    if a != b:
        raise NoSuch(f"mma.sync of {a} and {b}")
    shape, (ab, acc) = _extents(extents), elements(a, c)
    room = "cute.nvgpu.warp"
    if a in _F16:
        return f"{room}.MmaF16BF16Op({ab}, {acc}, {shape})"
    if a == "tf32":
        return f"{room}.MmaTF32Op({shape})"
    if a in _F8:
        return f"{room}.MmaFP8Op({ab}, {acc}, {shape})"
    if a == "f64":
        return f"{room}.MmaF64Op({shape})"
    if a.endswith("i8"):
        return f"{room}.MmaI8Op({ab}, {ab}, {shape})"
    raise NoSuch(f"this library has no mma.sync of {a}")


def _majors(room: str, *words: str) -> list[str]:
    if any(w not in ("k", "mn") for w in words):
        raise NoSuch(f"ab_major is k or mn, and not {words}")
    return [f"cute.nvgpu.{room}.OperandMajorMode.{w.upper()}" for w in words]


def _sm90(data: Any) -> str:
    extents, a_major, b_major, a, b, c, kind = data
    source = {"ss": "SMEM", "rs": "RMEM"}.get(kind)
    if source is None:
        raise NoSuch(f"frag_kind is ss or rs, and not {kind}")
    ab, other, acc = elements(a, b, c)
    shape, source = _extents(extents), f"cute.nvgpu.warpgroup.OperandSource.{source}"
    majors = _majors("warpgroup", a_major, b_major)
    room = "cute.nvgpu.warpgroup"
    if a in _F16 and a == b:
        return f"{room}.MmaF16BF16Op({', '.join((ab, acc, shape, source, *majors))})"
    if a == "tf32":
        return f"{room}.MmaTF32Op({', '.join((shape, source, *majors))})"
    if a in _F8 and b in _F8:
        return f"{room}.MmaF8Op({', '.join((ab, other, acc, shape, source, *majors))})"
    if a.endswith("i8"):
        return f"{room}.MmaI8Op({', '.join((ab, other, acc, shape, source, *majors))})"
    raise NoSuch(f"this library has no wgmma of {a} and {b}")


def _sm100_source(kind: str) -> str:
    source = {"ss": "SMEM", "ts": "TMEM"}.get(kind)
    if source is None:
        raise NoSuch(f"frag_kind is ss or ts, and not {kind}")
    return f"cute.nvgpu.tcgen05.OperandSource.{source}"


def _sm100(data: Any) -> str:
    extents, ctas, a_major, b_major, a, b, c, kind, scale = data
    if scale:
        raise NoSuch(f"c_scale_exp = {scale}: only 0 is lifted")
    ab, other, acc = elements(a, b, c)
    rest = [_extents(extents), _group(ctas), _sm100_source(kind), *_majors("tcgen05", a_major, b_major)]
    room = "cute.nvgpu.tcgen05"
    if a in _F16 and a == b:
        return f"{room}.MmaF16BF16Op({', '.join((ab, acc, *rest))})"
    if a == "tf32":
        return f"{room}.MmaTF32Op({', '.join(rest)})"
    if a.endswith("i8"):
        return f"{room}.MmaI8Op({', '.join((ab, *rest))})"
    if a == b and a in _F8:
        return f"{room}.MmaFP8Op({', '.join((ab, acc, *rest))})"
    return f"{room}.MmaF8F6F4Op({', '.join((ab, other, acc, *rest))})"


def _sm100_scaled(data: Any) -> str:
    extents, ctas, a_major, b_major, a, b, c, factors, kind, size = data
    ab, other, sf = elements(a, b, factors)
    rest = [_extents(extents), _group(ctas), _sm100_source(kind)]
    majors = _majors("tcgen05", a_major, b_major)
    room = "cute.nvgpu.tcgen05"
    if a == b == "f4E2M1FN" and size == 16:
        return f"{room}.MmaMXF4NVF4Op({', '.join((sf, *rest))})"
    if a == b == "f4E2M1FN" and size == 32 and factors == "f8E8M0FNU":
        return f"{room}.MmaMXF4Op({', '.join(rest)})"
    if size == 32 and factors == "f8E8M0FNU":
        if a == b and a in _F8:
            return f"{room}.MmaMXF8Op({', '.join((ab, *rest, *majors))})"
        return f"{room}.MmaMXF8F6F4Op({', '.join((ab, other, *rest, *majors))})"
    raise NoSuch(f"this library has no block-scaled tcgen05.mma of {a}, {b} and {factors} for each {size}")


_COPIES: dict[str, Callable[[Any], str]] = {
    "universal_copy": _universal,
    "simt_async_copy": _async,
    "ldsm": lambda d: _matrix("ldsm", *d),
    "stsm": lambda d: _matrix("stsm", d[0], d[1], None, *d[2:]),
    "tmem_load": lambda d: _tmem("Ld", d),
    "tmem_store": lambda d: _tmem("St", d),
    "s2t_copy": _to_tmem,
}
_MMAS: dict[str, Callable[[Any], str]] = {
    "atom.universal_fma": _fma,
    "sm80.mma": _sm80,
    "sm90.mma": _sm90,
    "sm100.mma": _sm100,
    "sm100.mma_bs": _sm100_scaled,
}
NAMES = {
    "universal_copy": "copy", "simt_async_copy": "async_copy", "ldsm": "ldmatrix", "stsm": "stmatrix",
    "tmem_load": "tmem_load", "tmem_store": "tmem_store", "s2t_copy": "tmem_copy", "tiled_copy": "tiled_copy",
    "tiled_mma": "tiled_mma", "atom.universal_fma": "fma", "sm80.mma": "mma", "sm90.mma": "mma", "sm100.mma": "mma",
    "sm100.mma_bs": "mma",
}  # fmt: skip
"""The names of objects in Python."""
FROM_TENSORS = ("tmem_load", "tmem_store", "s2t_copy")
"""Copies whose tiling is this library's own, and is made of the tensor that they copy."""


def kind(t: Any) -> str:
    """Name what an object's type is of: "universal_copy", "sm90.mma", "tiled_copy", …; "" for another type."""
    if not isinstance(t, PrintedType):
        return ""
    name = t.name.partition(".")[2]
    if t.name in ("cute.tiled_copy", "cute.tiled_mma"):
        return name
    if not t.name.startswith("cute_nvgpu."):
        return ""
    return name.partition(".")[2] if name.startswith("atom.") and name != "atom.universal_fma" else name


def is_mma(t: Any) -> bool:
    """Say whether a type is a matrix instruction's, tiled or not."""
    return kind(t) == "tiled_mma" or kind(t) in _MMAS


def is_object(t: Any) -> bool:
    """Say whether a type holds a whole atom or tiled object."""
    return is_mma(t) or kind(t) in _COPIES or kind(t) == "tiled_copy" and kind(t.data[0]) not in FROM_TENSORS


def tmem_way(op: Any) -> str:
    """Name how an operation copies from or to tensor memory: "load", "store", "copy"; "" for another one."""
    if op.name != "cute.copy":
        return ""
    t = op.operands[0].type
    name = kind(t.data[0]) if kind(t) == "tiled_copy" else kind(t)
    return {"tmem_load": "load", "tmem_store": "store", "s2t_copy": "copy"}.get(name, "")


def object_text(t: Any) -> str:
    """Write the object that a type says. Raises NoSuch for one that this library does not have."""
    name = kind(t)
    if name in _COPIES:
        return _COPIES[name](t.data)
    if name in _MMAS:
        return f"cute.make_mma_atom({_MMAS[name](t.data)})"
    if name == "tiled_copy":
        atom, tv, tiler = t.data
        return f"cute.make_tiled_copy({object_text(atom)}, {layout_text(tv)}, {tile_text(tiler)})"
    if name == "tiled_mma":
        atom, layout, tiler = t.data
        given = [_MMAS[kind(atom)](atom.data)] if kind(atom) in _MMAS else []
        if not given:
            raise NoSuch(f"this library has no matrix instruction {atom}")
        given.append("(1, 1, 1)" if layout is None or _ones(layout) else layout_text(layout))
        if tiler is not None and any(x is not None for x in (tiler if isinstance(tiler, tuple) else (tiler,))):
            given.append(tile_text(tiler))
        return f"cute.make_tiled_mma({', '.join(given)})"
    raise NoSuch(f"'{t}' is not a type of an object that this library has")


def _ones(layout: Any) -> bool:
    return bool(layout.shape == (1, 1, 1))


__all__ = ["FROM_TENSORS", "NAMES", "NoSuch", "elements", "is_mma", "is_object", "kind", "object_text",
           "tmem_way"]  # fmt: skip
