# SPDX-License-Identifier: Apache-2.0
"""Effects of a call in a kernel besides its result: found by running it, on leaves without values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import seam
from ...seam import CuteError, Regs
from ...seam.guards import facade
from ...typed.descriptions import Description, Struct
from ..bridge import structs
from ..bridge.lasting import is_lasting_value
from ..bridge.values import abstract
from ..emit.tracer import Tracer
from ..ground.target import compiling_for
from .inference import OPERATORS
from .type_descriptions import numba_type

READS, WRITES = "reads", "writes"
Effects = frozenset[str]
PURE: Effects = frozenset()

REQUESTS = {
    "load": READS, "read": READS, "vector": READS, "copy_to_regs": WRITES, "store": WRITES, "copy_from_regs": WRITES,
    "write": WRITES, "fill": WRITES, "unvector": WRITES, "flag": WRITES, "static_smem": WRITES, "smem_needs": WRITES,
    "allocate_smem": WRITES, "at_exit": WRITES, "tensor_map": WRITES, "told": WRITES, "timeline": WRITES,
    "printf": WRITES,
}  # fmt: skip
"""The effects of traced code that makes these requests of its backend. Other requests have none; `issue` has one unless
the instruction's row is pure. Writes to registers that the call itself made are part of its result."""
_OF_REGISTERS = {"copy_to_regs": 2, "write": 0, "fill": 0, "unvector": 1}
"""The arguments in which these requests name the registers that they write."""


class _Noting(Tracer):
    """Runs traced code for what it does. found: its effects. made: the register files that it made."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.made: list[Any] = []

    def registers(self, dtype: Any, count: int) -> Any:
        self.made.append(super().registers(dtype, count))
        return self.made[-1]

    def issue(self, instr: Any, statics: dict[str, Any], operands: dict[str, Any]) -> Any:
        self.found |= set() if instr.pure else {WRITES}
        for o in instr.operands:
            if o.writes and isinstance(operands.get(o.name), Regs):
                self._wrote(operands[o.name])
        return super().issue(instr, statics, operands)

    def _wrote(self, regs: Regs) -> None:
        if not any(regs.file is file for file in self.made):
            self.found.add(WRITES)


def _noted(name: str, effect: str) -> Callable[..., Any]:
    plain = getattr(Tracer, name)

    @functools.wraps(plain)
    def request(self: _Noting, *args: Any, **named: Any) -> Any:
        if name in _OF_REGISTERS:
            self.found.add(READS)
            self._wrote(args[_OF_REGISTERS[name]])
        else:
            self.found.add(effect)
        return plain(self, *args, **named)

    return request


for _name, _effect in REQUESTS.items():
    setattr(_Noting, _name, _noted(_name, _effect))


def effects(
    callee: Any, args: Sequence[Description], keywords: Mapping[str, Description] | None = None, *,
    attribute: str | None = None, arch: str = "sm_90a",
) -> Effects | None:  # fmt: skip
    """Return what a call does in a kernel for `arch`: PURE, or some of READS and WRITES; None: it is not known.

    callee, args, keywords, attribute: as of `inference.infer`. Only traced code is looked through: what Numba compiles
    may do anything, and so may methods of what is held by reference.
    """
    named = tuple(sorted((keywords or {}).items()))
    find = _effects if callee is None or is_lasting_value(callee) else _effects.__wrapped__
    try:
        return find(callee, tuple(args), named, attribute, arch)
    except TypeError:  # unhashable
        return None


@functools.lru_cache(maxsize=4096)
def _effects(callee: Any, args: Any, named: Any, attribute: str | None, arch: str) -> Effects | None:
    if attribute is None:
        plain = facade.plain(callee)
        if not (seam.is_traced(plain) or seam.is_frozen_class(plain)):
            return None

        def run(given: list[Any], by_name: dict[str, Any]) -> Any:
            return plain(*given, **by_name)
    else:
        if isinstance(args[0], Struct):
            return None

        def run(given: list[Any], by_name: dict[str, Any]) -> Any:
            obj = given[0]
            if seam.is_struct_class(obj) and structs.is_jitted(obj, attribute):
                raise CuteError(f"{attribute} is compiled by Numba")
            return getattr(obj, attribute)(*given[1:], **by_name)

    return _run(run, args, dict(named), arch)


def effects_of_attribute(of: Description, name: str, *, arch: str = "sm_90a") -> Effects | None:
    """Return what reading the attribute `name` of a value does, as `effects` does."""
    if isinstance(of, Struct):
        return frozenset({READS})
    return _run(lambda given, _: getattr(given[0], name), (of,), {}, arch)


def effects_of_item(of: Description, index: Description, *, arch: str = "sm_90a") -> Effects | None:
    """Return what `of[index]` does, as `effects` does."""
    return _run(lambda given, _: given[0][given[1]], (of, index), {}, arch)


def effects_of_operator(name: str, operands: Sequence[Description], *, arch: str = "sm_90a") -> Effects | None:
    """Return what an operator of Python does, as `effects` does. name: as in `inference.OPERATORS`."""
    return _run(lambda given, _: OPERATORS[name](*given), tuple(operands), {}, arch)


def _run(run: Callable[..., Any], args: Any, named: Any, arch: str) -> Effects | None:
    """Run traced code on leaves; what it refuses has no known effect."""
    try:
        with compiling_for(arch):
            noting = _Noting()
            given = [abstract(numba_type(a), None, noting) for a in args]
            by_name = {name: abstract(numba_type(a), None, noting) for name, a in named.items()}
            with seam.running(noting):
                run(given, by_name)
    except (CuteError, TypeError, AttributeError, NotImplementedError):
        return None
    return frozenset(noting.found)
