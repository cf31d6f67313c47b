# SPDX-License-Identifier: Apache-2.0
"""The types that the CuTe DSL prints beside the published ones: pointers, tensors, atoms, tiled objects, launches.
Their definition is not published; each is one line here, as it is printed.

A line is literal text with fields in it. `{elem}` is an element type, `{int}` an integer, `{layout}` a layout in
quotes, `{type}` a type, and so on, as `_FIELDS` has them; `[…]` may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...layout.int_tuple import congruent
from ...seam import CuteError
from .checked import Refused, checked
from .notation import Malformed, RawComposed, RawLayout, body_end, fitting, read, write

_POINTER = "{pointee}, {space}[, align<{int}>][, {swizzle}]"
FORMS = {
    "cuda.launch_cfg": "max_attrs = {int}",
    "cuda.result": "",
    "cuda.stream": "",
    "cute.ptr": _POINTER,
    "cute.memref": _POINTER + ", {any_layout}",
    "cute.coord_tensor": "{int_tuple}, {any_layout}",
    "cute.arith_tuple_iter": "{int_tuple}",
    "cute.i32": "[divby {int}]",
    "cute.i64": "[divby {int}]",
    "cute.tiled_copy": "{type}, layout_copy_tv = <{layout}>, tiler_mn = <{tile}>",
    "cute.tiled_mma": "{type}[, atom_layout_MNK = <{layout}>][, permutation_MNK = <{tile}>]",
    "cute.fast_divmod_divisor": "{int}",
    "cute_nvgpu.smem_desc": "",
    "cute_nvgpu.smem_desc_view": "{type}, {any_layout}",
    "cute_nvgpu.atom.universal_copy": "{elem}[, {int} b][, l1_cache_eviction_priority={word}]",
    "cute_nvgpu.atom.universal_fma": "{extents}, ({elem}, {elem}) -> {elem} ",
    "cute_nvgpu.atom.simt_async_copy": "{elem}, cache = {word}[, {int} b]",
    "cute_nvgpu.atom.ldsm": "val_type = {elem}, mode = <{shape}>, sz_pattern = {word}, num_matrices = {int}, {word}",
    "cute_nvgpu.atom.stsm": "{elem}, mode = <{shape}>, num_matrices = {int}, {word}",
    "cute_nvgpu.atom.tmem_load": "{elem}, {int} DP, {int} bit, x{int}",
    "cute_nvgpu.atom.tmem_store": "{elem}, {int} DP, {int} bit, x{int}",
    "cute_nvgpu.atom.s2t_copy": "{elem}, {int} DP, {int} bit, {int} cta, x{int}",
    "cute_nvgpu.atom.tma_load": "{elem}, copy_bits = {int}, mode = {word}, num_cta = {int}, g_stride = <{stride}> "
    "[mcast = {word} ]"
    "tma_gbasis = <{layout}>",
    "cute_nvgpu.atom.tma_store": "{elem}, copy_bits = {int}, mode = {word}, g_stride = <{stride}> "
    "tma_gbasis = <{layout}>",
    "cute_nvgpu.atom.tma_reduce": "{elem}, copy_bits = {int}, mode = {word}, kind = {word}, g_stride = <{stride}> "
    "tma_gbasis = <{layout}>",
    "cute_nvgpu.atom.non_exec_tiled_tma_reduce": "{word}, {elem}, copy_bits = {int}, tma_gbasis = <{layout}>, "
    "tma_format = {word}",
    "cute_nvgpu.tma_descriptor_tiled": "",
    "cute_nvgpu.atom.non_exec_tiled_tma_load": "{word}, {elem}, copy_bits = {int}, tma_gbasis = <{layout}>, "
    "tma_format = {word}",
    "cute_nvgpu.atom.non_exec_tiled_tma_store": "{elem}, copy_bits = {int}, tma_gbasis = <{layout}>, "
    "tma_format = {word}",
    "cute_nvgpu.sm80.mma": "{extents}, elem_type = ({elem}, {elem}, {elem}) ",
    "cute_nvgpu.sm90.mma": "{extents}, ab_major = ({word}, {word}), elem_type = ({elem}, {elem}, {elem}), "
    "frag_kind = {word}",
    "cute_nvgpu.sm100.mma": "{extents}, num_cta = {int}, ab_major = ({word}, {word}), "
    "elem_type = ({elem}, {elem}, {elem}), frag_kind = {word}, c_scale_exp = {int}",
    "cute_nvgpu.sm100.mma_bs": "{extents}, num_cta = {int}, ab_major = ({word}, {word}), "
    "elem_type = ({elem}, {elem}, {elem}), sf_type = {elem}, frag_kind = {word}, vec_size = {int}",
}
"""The types by name, with their dialects, and what stands between < and >."""


@dataclass(frozen=True)
class Field:
    """A piece of a type that differs. pattern: what it looks like. value: its value, which refuses other texts. text:
    how a value is written."""

    pattern: str
    value: Callable[[str], Any]
    text: Callable[[Any], str] = str


def _positive(text: str) -> int:
    found = fitting(text)
    if found < 0:
        raise Refused(f"{text} is negative")
    return found


def _one_of(*words: str) -> Callable[[str], str]:
    def chosen(text: str) -> str:
        if text not in words:
            raise Refused(f"{text!r} is none of {', '.join(words)}")
        return text

    return chosen


def _quoted(kind: str) -> Field:
    """A value of the published notation, in quotes."""

    def value(text: str) -> Any:
        found = read(kind, text[1:-1])
        return _any_layout(found) if kind in ("layout", "composed_layout") else checked(kind, found)

    return Field(r'"[^"]*"', value, lambda x: f'"{write(kind, x)}"')


def _any_layout(found: Any) -> Any:
    """A layout as tensors have them: fractions of basis strides, which count elements of half a byte, among them."""
    layout = found.outer if isinstance(found, RawComposed) else found
    if isinstance(layout, RawLayout) and not congruent(layout.shape, layout.stride):
        raise Refused(f'"{write("layout", layout)}" has no stride for each extent: nest the strides as the shape')
    return found


def _either(text: str) -> Any:
    return _any_layout(read("composed_layout" if " o " in text else "layout", text[1:-1]))


def _nested(text: str) -> Any:
    name, _, rest = text[1:].partition("<")
    if name not in TYPES:
        raise Refused(f"!{name} is not a type of an atom, or of what is tiled")
    return TYPES[name](parsed(name, rest[: rest.rindex(">")] if rest else ""))


_ELEMENT = r"[su]?i\d+|bf16|tf32|f\d+(?:E\d+M\d+\w*)?"
_FIELDS: dict[str, Field] = {
    "elem": Field(_ELEMENT, str),
    "pointee": Field(rf"{_ELEMENT}|!cute_nvgpu\.tma_descriptor_tiled", str),
    "int": Field(r"-?\d+", _positive),
    "word": Field(r"\w+", str),
    "extents": Field(r"\d+(?:x\d+)*", str),
    "space": Field(r"\w+", _one_of("generic", "gmem", "smem", "rmem", "tmem", "dsmem")),
    "swizzle": Field(r"S<[^>]*>", lambda text: read("swizzle", text)),
    "type": Field(r"![\w.]+(?:<(?:[^<>]|->|<[^<>]*>)*>)?", _nested),
    "any_layout": Field(r'"[^"]*"', _either, lambda x: f'"{write("layout", x)}"'),
    **{kind: _quoted(kind) for kind in ("layout", "tile", "shape", "stride", "int_tuple")},
}
_PIECE = re.compile(r"\{(\w+)\}|(\[(?!_))|(\])")


def _compiled(form: str) -> tuple[re.Pattern[str], list[str]]:
    """The pattern of a line, with a group for each field, and the fields' names."""
    out, names, at = "", [], 0
    for found in _PIECE.finditer(form):
        out += _literal(form[at : found.start()])
        at = found.end()
        if found[1]:
            names.append(found[1])
            out += rf"\s*({_FIELDS[found[1]].pattern})\s*"
        else:
            out += "(?:" if found[2] else ")?"
    return re.compile(out + _literal(form[at:]) + r"\s*"), names


def _literal(text: str) -> str:
    """A pattern for literal text, with any spaces where it has one, and around signs."""
    return (
        r"\s*".join(re.escape(word) for word in re.split(r"\s+|(?<=[,<(=])|(?=[,<(=])", text))
        if text.strip()
        else r"\s*"
    )


_PATTERNS = {name: _compiled(form) for name, form in FORMS.items()}


def parsed(name: str, body: str) -> tuple[Any, ...]:
    """Read what stands between the < and > of a type: the values of its fields, None for those left out. Raises
    CuteError."""
    pattern, names = _PATTERNS[name]
    found = pattern.fullmatch(body.strip())
    if found is None:
        raise Malformed(f"!{name} is written as !{name}<{FORMS[name]}>")
    return tuple(
        None if text is None else _FIELDS[n].value(text) for n, text in zip(names, found.groups(), strict=True)
    )


def written(name: str, values: tuple[Any, ...]) -> str:
    """Write what stands between the < and > of a type."""
    left = list(values)

    def fill(form: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda m: _FIELDS[m[1]].text(left.pop(0)), form)

    def optional(form: str) -> str:
        count = form.count("{")
        if any(v is None for v in left[:count]):
            del left[:count]
            return ""
        return fill(form)

    return "".join(
        optional(piece[1:-1]) if piece.startswith("[") else fill(piece)
        for piece in re.split(r"(\[[^\]]*\])", FORMS[name])
    )


class PrintedType(TypeAttribute, Data[tuple[Any, ...]]):
    """A type that the CuTe DSL prints: the values of its fields, in the order in which they are written."""

    name: ClassVar[str]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Any, ...]:
        """Read what stands after the name."""
        text, start = parser.lexer.input.content, parser.pos
        end = body_end(text, start)
        try:
            found = parsed(cls.name, text[start + 1 : end - 1] if end > start else "")
        except CuteError as e:
            parser.raise_error(str(e), start)
        parser._resume_from(end)
        return found

    def print_parameter(self, printer: Printer) -> None:
        """Write what stands after the name."""
        inner = written(self.name, self.data)
        printer.print_string(f"<{inner}>" if inner else "")


def _defined(name: str) -> type[PrintedType]:
    title = "".join(word.capitalize() for word in re.split(r"[._]", name))
    return irdl_attr_definition(type(f"{title}Type", (PrintedType,), {"name": name, "__module__": __name__}))


TYPES: dict[str, type[PrintedType]] = {name: _defined(name) for name in FORMS}


def types_of(dialect: str) -> list[type[Attribute]]:
    """Return the types of a dialect: "cute", "cute_nvgpu" or "cuda"."""
    return [cls for name, cls in TYPES.items() if name.partition(".")[0] == dialect]


__all__ = ["FORMS", "TYPES", "PrintedType", "types_of"]
