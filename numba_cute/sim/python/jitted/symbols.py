# SPDX-License-Identifier: Apache-2.0
"""Python's operators in bytecode, by the names of `operator`."""

from __future__ import annotations

from .bytecode import Instruction

_SYMBOLS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
            "<<": "lshift", ">>": "rshift", "&": "and_", "|": "or_", "^": "xor"}  # fmt: skip
_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_WORDS = {"ADD": "add", "SUBTRACT": "sub", "MULTIPLY": "mul", "TRUE_DIVIDE": "truediv", "FLOOR_DIVIDE": "floordiv",
          "MODULO": "mod", "POWER": "pow", "LSHIFT": "lshift", "RSHIFT": "rshift", "AND": "and_", "OR": "or_",
          "XOR": "xor"}  # fmt: skip
_UNARY = {"UNARY_NEGATIVE": "neg", "UNARY_POSITIVE": "pos", "UNARY_INVERT": "invert", "UNARY_NOT": "not_"}
_INTRINSIC_POSITIVE = 5


def operator_name(i: Instruction) -> tuple[str, str] | None:
    """(kind, the name of a function of `operator`) of an operator: "binary", "inplace", "unary", "contains"."""
    name = i.name
    if name == "BINARY_OP":
        inplace = i.value.endswith("=")
        found = _SYMBOLS.get(i.value[:-1] if inplace else i.value)
        return None if found is None else ("inplace" if inplace else "binary", found)
    if name == "COMPARE_OP":
        found = _COMPARISONS.get(i.value.removeprefix("bool(").removesuffix(")"))
        return None if found is None else ("binary", found)
    if name == "CONTAINS_OP":
        return "contains", "lacks" if i.arg else "contains"
    if name in _UNARY:
        return "unary", _UNARY[name]
    if name == "CALL_INTRINSIC_1" and i.arg == _INTRINSIC_POSITIVE:
        return "unary", "pos"
    kind, _, word = name.partition("_")
    return (kind.lower(), _WORDS[word]) if kind in ("BINARY", "INPLACE") and word in _WORDS else None
