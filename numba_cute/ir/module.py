# SPDX-License-Identifier: Apache-2.0
"""Modules of the IR: read, printed, verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from xdsl.context import Context as XdslContext
from xdsl.dialects import arith, builtin, cf, func, gpu, math, memref, scf, ub
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from ..seam import CuteError
from ..seam.ground.naming import described, is_unicode
from . import definitions, foreign, operations, rows
from .calls import Arguments, SymbolAttr
from .names import Names, collected
from .python.text import TARGET, Text, parsed, printed
from .types import types_of

OWN = ("cute", "cute_nvgpu", "numba")
_STANDARD = (arith.Arith, builtin.Builtin, cf.Cf, func.Func, gpu.GPU, math.Math, memref.MemRef, scf.Scf, ub.UB)


def dialects() -> tuple[Dialect, ...]:
    """Return the dialects `cute`, `cute_nvgpu` and `numba` with all their operations and types."""
    everything = [
        *map(operations.operation, definitions.all_definitions()),
        *operations.OTHERS,
        *foreign.OPERATIONS,
        *rows.OPERATIONS,
    ]
    return tuple(_dialect(name, everything) for name in OWN)


def _dialect(name: str, operations: Iterable[type[Operation]]) -> Dialect:
    """Make a dialect of those operations that are its own, and of its types."""
    attributes: list[type[Attribute]] = types_of(name)
    if Arguments.name.startswith(f"{name}."):
        attributes += [Arguments, SymbolAttr]
    return Dialect(name, [op for op in operations if op.name.startswith(f"{name}.")], attributes)


class Context(XdslContext):
    """A context that knows the dialects of this package. Operations of the API become classes when they are met. names:
    what the symbols of the text mean."""

    names = Names()

    def get_optional_op(self, name: str, *, dialect_stack: Any = ()) -> type[Operation] | None:
        found = super().get_optional_op(name, dialect_stack=dialect_stack)
        if found is None and (definition := definitions.named(name)) is not None:
            return operations.operation(definition)
        return found


def context(names: Names | None = None) -> Context:
    """Return a context in which modules are parsed. names: what their symbols mean."""
    made = Context()
    made.names = names or Names()
    for dialect in _STANDARD:
        made.load_dialect(dialect)
    for name in OWN:
        made.load_dialect(_dialect(name, (*operations.OTHERS, *foreign.OPERATIONS, *rows.OPERATIONS)))
    return made


@dataclass
class Module:
    """A module of the IR: kernels, and the device functions that they call.

    op: the operation `builtin.module`. text: what it was read from; None if it was made.
    """

    op: ModuleOp
    text: Text | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """Print it, with the source locations, as `parse` reads it."""
        return printed(self.op).source

    def __iter__(self) -> Iterator[Operation]:
        """Walk over all operations, each before those within it."""
        return self.op.walk()

    @property
    def names(self) -> dict[str, Any]:
        """The objects of the user that it names, by their symbols: what `parse` needs to read its text again."""
        with collected() as met:
            printed(self.op)
        return met

    @property
    def target(self) -> str:
        """The target that it is for, "sm_90a" if it names none."""
        named = self.op.attributes.get(TARGET)
        return named.data if isinstance(named, StringAttr) else operations.DEFAULT_TARGET

    def verify(self) -> None:
        """Check every operation: its operands, its type, the rules of what it calls. Raises CuteError with the
        operation, its line in the text, and the rule."""
        for op in self.op.walk():
            try:
                op.verify(verify_nested_ops=False)
            except VerifyException as e:
                raise CuteError(f"{self._place(op)}{e}\n    {_shown(op)}") from e

    def _place(self, op: Operation) -> str:
        if self.text is None or op not in self.text.at:
            return ""
        return f"{self.text.file}:{self.text.at[op][0]}: "


def _shown(op: Operation) -> str:
    return str(op).split("\n", 1)[0]


def parse(
    text: str, file: str | None = None, target: str | None = None, *,
    names: Mapping[str, Any] | Iterable[ModuleType] | None = None,
) -> Module:  # fmt: skip
    """Read a module. The text is data: nothing is imported, and of what it names nothing is called but what typing asks
    of the library, and of `names`.

    text: in MLIR's form. file: its name, for errors. target: what it is for, in place of what it says. names: the
    user's functions, classes and objects that it may name, by their symbols, {"module:name": object}, or the modules
    that define them; `Module.names` has those of a module that was lifted. A symbol of none of them stays one: the
    module prints it, passes leave it as it is, and `to_kernel` refuses it. Raises CuteError for what is no module of
    these dialects, with line and column, and for one that does not verify.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise CuteError(f"parse: text {described(text)}: give a text in Unicode")
    try:
        op, read = parsed(text, context(Names(names)), file, target)
    except ParseError as e:
        raise CuteError(str(e)) from e
    if target is not None:
        op.attributes[TARGET] = StringAttr(target)
    module = Module(op, read)
    module.verify()
    return module
