# SPDX-License-Identifier: Apache-2.0
"""Modules of the IR: read, printed, verified."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

from xdsl.context import Context as XdslContext
from xdsl.dialects import arith, builtin, cf, func, gpu, math, memref, scf, ub
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Attribute, Dialect, Operation
from xdsl.utils.exceptions import ParseError, VerifyException

from ..seam import CuteError
from ..seam.ground.drawing import brief
from ..seam.ground.naming import described, is_unicode
from .dialect import operations as published, printed_modules
from .dialect.verifying import verify_alone
from .library import definitions, foreign, operations, rows
from .library.calls import Arguments, SymbolAttr
from .library.options import is_old
from .library.types import TYPES, reading
from .publish.calling import Refused, call, is_published
from .publish.portable import NotPortable, not_portable
from .publish.reading import either
from .text.names import Names, collected
from .text.python import TARGET, Text, parsed, printed
from .text.registry import own_name

OWN = ("numba_cute", "numba")
_STANDARD = (arith.Arith, builtin.Builtin, cf.Cf, func.Func, gpu.GPU, math.Math, memref.MemRef, scf.Scf, ub.UB)


def dialects() -> tuple[Dialect, ...]:
    """Return the dialects `numba_cute` and `numba` with all their operations and types."""
    everything = [
        *map(operations.operation, definitions.all_definitions()),
        *operations.OTHERS,
        *foreign.OPERATIONS,
        *rows.OPERATIONS,
    ]
    return tuple(_dialect(name, everything) for name in OWN)


def _dialect(name: str, operations: Iterable[type[Operation]]) -> Dialect:
    """Make a dialect of those operations that are its own, and of its types."""
    attributes: list[type[Attribute]] = [t for n, t in TYPES.items() if n.startswith(f"{name}.")]
    if Arguments.name.startswith(f"{name}."):
        attributes += [Arguments, SymbolAttr]
    return Dialect(name, [op for op in operations if op.name.startswith(f"{name}.")], attributes)


class Context(XdslContext):
    """A context that knows the dialects of this package. Operations of the API become classes when they are met. names:
    what the symbols of the text mean. old: whether the text has something as this library wrote it before its dialect
    had a name of its own."""

    names = Names()
    old = False

    def get_optional_op(self, name: str, *, dialect_stack: Any = ()) -> type[Operation] | None:
        found = super().get_optional_op(name, dialect_stack=dialect_stack)
        own = own_name(name)
        if found is not None and own == name:
            return found
        definition = definitions.named(own)
        old = operations.operation(definition) if definition is not None else super().get_optional_op(own)
        if found is not None:
            return found if old is None else either(found, old)
        self.old |= old is not None and own != name
        return old

    def get_optional_type(self, name: str) -> Any:
        return reading(name) or super().get_optional_type(name)


def context(names: Names | None = None) -> Context:
    """Return a context in which modules are parsed. names: what their symbols mean."""
    made = Context()
    made.names = names or Names()
    for dialect in _STANDARD:
        made.load_dialect(dialect)
    made.load_dialect(published.dialect())
    printed_modules.load(made)
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

    def __repr__(self) -> str:
        """Write its first lines."""
        return brief(str(self))

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
        mixed = any(map(is_published, self.op.walk()))
        for op in self.op.walk():
            if not (mixed and isinstance(op, operations.Inferred)):  # what it takes the calls tell
                self._verify(op)
        if mixed:
            calls = self.calls()
            for op in calls:
                calls._verify(op)

    def _verify(self, op: Operation) -> None:
        try:
            verify_alone(op)
        except VerifyException as e:
            raise CuteError(f"{self._place(op)}{e}\n    {_shown(op)}") from e

    def portable(self, *, published: bool = False) -> list[NotPortable]:
        """List what a tool cannot read that knows only the dialects of the reference, and MLIR's own: the operations,
        types and attributes that are this library's alone, each with its line. An empty list: it reads all.

        published: whether the tool knows what NVIDIA published of the dialect `cute`, and nothing of what the CuTe DSL
        prints besides (pointers, tensors, atoms, and their operations).
        """
        return not_portable(self.op, self.text or printed(self.op), published)

    def calls(self) -> Module:
        """Return the module with each operation of the published dialect as the call of this library that it means, at
        the same place of the text: what `to_kernel` and passes take. Raises CuteError for one that means none."""
        if not any(map(is_published, self.op.walk())):
            return self
        text = self.text or printed(self.op)
        op = self.op.clone()
        pairs = dict(zip(op.walk(), self.op.walk(), strict=True))
        for new, old in pairs.items():
            new.location = old.location
        try:
            origin = call(op)
        except Refused as e:
            old = pairs[e.op]
            raise CuteError(f"{Module(self.op, text)._place(old)}{e}\n    {_shown(old)}") from e
        made = ((new, pairs.get(origin.get(new, new))) for new in op.walk())
        at = {new: text.at[old] for new, old in made if old is not None and old in text.at}
        return Module(op, replace(text, at=at, names={}))

    def _place(self, op: Operation) -> str:
        if self.text is None or op not in self.text.at:
            return ""
        return f"{self.text.file}:{self.text.at[op][0]}: "


_OLD = (
    "this text is as numba-cute wrote it before its dialect was called numba_cute (cute.make_layout (4, 8), "
    "!cute.layout<(4,8), (1,4)>): it is read for this version; str(module) has it as it is written now"
)


def _renamed(module: ModuleOp) -> bool:
    """Give attributes of an old text the names that they have now; say whether there were any."""
    old = [
        (op.attributes, name) for op in module.walk() for name in op.attributes if is_old(name)
    ]  # fmt: skip
    for attributes, name in old:
        attributes[own_name(name)] = attributes.pop(name)
    return bool(old)


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
    module prints it, passes leave it as it is, and `to_kernel` refuses it. Raises CuteError for what is not a module of
    these dialects, with line and column, and for one that does not verify.
    """
    if not isinstance(text, str) or not is_unicode(text):
        raise CuteError(f"parse: text {described(text)}: give a text in Unicode")
    try:
        known = context(Names(names))
        op, read = parsed(text, known, file, target)
    except ParseError as e:
        raise CuteError(str(e)) from e
    if target is not None:
        op.attributes[TARGET] = StringAttr(target)
    if _renamed(op) or known.old:
        warnings.warn(f"{read.file}: {_OLD}", DeprecationWarning, stacklevel=2)
    module = Module(op, read)
    module.verify()
    return module
