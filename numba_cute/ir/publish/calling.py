# SPDX-License-Identifier: Apache-2.0
"""Published operations as the calls that they mean: the converse of publishing.py, of whatever text they come from."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

import numba_cute as cute

from ...compiler.inspection.inference import is_whole
from ...seam import CuteError
from ...typed.descriptions import Constant, Description, Scalar
from ..dialect.attributes import CuteType
from ..dialect.inference import compatible
from ..dialect.operations import CuteOperation
from ..dialect.printed_inference import alike
from ..dialect.printed_types import PrintedType
from ..dialect.spelled import SpelledOperation, plain_attributes
from ..library import operations as calls
from ..library.calls import pattern_of
from ..library.constants import constant_of, is_constant
from ..library.types import description_of, description_of_value, type_of
from ..text.reader import Reader
from . import rules
from .publishing import PARTS
from .rules import Rule
from .tuples import filled, kept


def is_published(op: Operation) -> bool:
    """Return whether an operation is of the published dialect, or one that the CuTe DSL prints."""
    return isinstance(op, (CuteOperation, SpelledOperation))


def call(module: ModuleOp) -> dict[Operation, Operation]:
    """Write each published operation of a module as the calls that it means, in its place; gives the operations that
    were made, with those that they stand for. Raises VerifyException for one that no kernel can have, with the
    operation."""
    calling = _Calling(calls.target_of(module))
    for op in module.regions[0].blocks:
        calling.block(op)
    return calling.origin


class Refused(VerifyException):
    """An operation that no kernel can have. op: it."""

    def __init__(self, op: Operation, why: str) -> None:
        super().__init__(why)
        self.op = op


class _Calling:
    """Makes calls of operations, block by block. held: what each value of a published operation is: a constant, an SSA
    value, or a tuple of them. origin: what each operation that was made stands for."""

    def __init__(self, arch: str) -> None:
        self.arch = arch
        self.held: dict[SSAValue, Any] = {}
        self.origin: dict[Operation, Operation] = {}

    def block(self, block: Block) -> None:
        """Write the operations of a block."""
        published: list[Operation] = []
        for op in list(block.ops):
            self.op = op
            if not is_published(op):
                self._plain(op)
                continue
            published.append(op)
            try:
                given = self._meaning(op)
            except (CuteError, VerifyException) as e:
                raise e if isinstance(e, Refused) else Refused(op, f"{op.name}: {e}") from e
            for result, value in zip(op.results, given, strict=True):
                self.held[result] = value
        for op in reversed(published):
            op.detach()  # type: ignore[no-untyped-call]
            op.erase(safe_erase=False)

    # ------------------------------------------------------------ operations of other dialects

    def _plain(self, op: Operation) -> None:
        """Give an operation that stays the values in the place of those of published operations."""
        if any(v in self.held for v in op.operands):
            if isinstance(op, calls.Inferred):
                self._call(op)
                return
            for i, v in enumerate(op.operands):
                if v in self.held:
                    op.operands[i] = self.single(self.held[v], v.type)
        for region in op.regions:
            for block in region.blocks:
                self.block(block)

    def _call(self, op: calls.Inferred) -> None:
        positional, keywords = op.arguments.filled(lambda o: self.value(op.values[o.index]))
        operands, arguments = pattern_of(positional, list(keywords.items()))
        made = type(op).create(
            operands=operands, result_types=self._results(op, operands, arguments), attributes=op.attributes,
            properties={**op.properties, "arguments": arguments},
        )  # fmt: skip
        self._insert(made)
        self.origin[made] = self.origin.pop(op, op)
        for old, new in zip(op.results, made.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        op.detach()  # type: ignore[no-untyped-call]
        op.erase()

    def _results(self, op: Any, operands: Any, arguments: Any) -> Sequence[Attribute]:
        """The types of what a call gives for the values in the place of its operands: it may know more of them."""
        if not op.results or isinstance(op, calls.CastOp) or op.lacking() is not None:
            return op.result_types  # type: ignore[no-any-return]
        bare = type(op).create(operands=operands, properties={**op.properties, "arguments": arguments})
        try:
            found = type_of(bare.infer(self.arch))
        except CuteError:  # the verifier says it
            return op.result_types  # type: ignore[no-any-return]
        finally:
            bare.erase(safe_erase=False)
        declared = op.results[0].type
        return [found] if compatible(found, declared) or alike(found, declared) else [declared]

    def value(self, value: SSAValue) -> Any:
        """Return what a value is: the value itself, of what is no published operation's."""
        return self.held.get(value, value)

    def single(self, held: Any, t: Attribute) -> SSAValue:
        """Give what a value is as an SSA value of a type."""
        if isinstance(held, SSAValue) and held.type == t:
            return held
        kind: type[calls.Inferred] = calls.MakeTuple if isinstance(held, tuple) else calls.CastOp
        return self.emit(kind, [held], result=t)  # type: ignore[no-any-return]

    # ------------------------------------------------------------ making calls

    def _insert(self, op: Operation) -> None:
        block = self.op.parent
        assert block is not None
        op.location = self.op.location
        block.insert_op_before(op, self.op)

    def emit(self, kind: type[calls.Inferred], args: Sequence[Any], result: Attribute | None = None,
             keywords: Sequence[tuple[str, Any]] = ()) -> Any:  # fmt: skip
        """Make a call in the place of the operation; gives its result. result: its type; None: what it infers."""
        return self.made(calls.make(kind, *pattern_of(args, keywords), result))

    def made(self, op: Any) -> Any:
        """Insert a call, with the result that it has."""
        if not op.results and not isinstance(op, calls.CastOp):
            found = op.infer(self.arch)
            if found != Constant(None):
                made = type(op).create(operands=op.operands, result_types=[type_of(found)], properties=op.properties)
                op.erase(safe_erase=False)
                op = made
        self._insert(op)
        self.origin[op] = self.op
        op.attributes.update(self.op.attributes)
        if not op.results:
            return None
        value = op.results[0]
        value.name_hint = self.op.results[0].name_hint if self.op.results else None
        d = description_of(value.type)
        return constant_of(d) if is_constant(d) else value

    def whole(self, d: Description) -> SSAValue:
        """Give what a description says whole."""
        if not is_whole(d):
            raise CuteError(f"parts of {type_of(d)} are known only at run time, and no operand is one of them")
        op = calls.StaticOp.create(result_types=[type_of(d)])
        self._insert(op)
        self.origin[op] = self.op
        value = op.results[0]
        value.name_hint = self.op.results[0].name_hint
        return value

    # ------------------------------------------------------------ what operations mean

    def _meaning(self, op: Any) -> list[Any]:
        args = [self.value(v) for v in op.args]
        short = op.name.removeprefix("cute.")
        if op.name in rules.RULES:
            given = self._by_rule(op, rules.RULES[op.name], args)
        elif short in _MEANS:
            given = _MEANS[short](self, op, args)
        elif short in _ATTRIBUTES:
            given = self.emit(calls.GetAttr, [args[0], _ATTRIBUTES[short]])
        elif op.name in rules.STEPS:
            function, number = rules.STEPS[op.name]
            if args:
                raise CuteError("a kernel's takes no operands")
            given = self.made(calls.call(function, [plain_attributes(op.properties)[n] for n in [number] if n]))
        elif op.name.startswith(rules.READ):
            given = self._read(op.name.removeprefix(rules.READ))
        else:
            raise CuteError("no kernel can be made of it: it is none of those that mean a function of this library")
        if len(op.results) > 1:
            raise CuteError(f"a kernel's gives one value, not {len(op.results)}: take single ones by cute.get")
        if not op.results:
            return []
        if _MEANS.get(short) not in (_make, _static, _same, _get_scalars):  # which are what their types say
            self._agrees(op, given)
        return [given]

    def _read(self, register: str) -> Any:
        if register in rules.REGISTERS:
            return self.made(calls.call(rules.REGISTERS[register], []))
        name, _, axis = register.rpartition(".")
        if name not in rules.INDICES:
            raise CuteError(f"a kernel has no function that gives %{register} alone")
        return self.emit(calls.SliceOp, [self.made(calls.call(rules.INDICES[name], [])), "xyz".index(axis)])

    def _agrees(self, op: Any, given: Any) -> None:
        """Refuse an operation whose type is not that of what it gives here. It may say less of divisors and alignment;
        what is said of them is not used."""
        declared, d = op.res[0].type, description_of_value(given)
        found = type_of(d, declared.kind if isinstance(declared, CuteType) else None)
        if found == declared or compatible(found, declared) or alike(found, declared):
            return
        if isinstance(declared, (CuteType, PrintedType)) and description_of(declared) == d:
            return
        raise CuteError(f"it gives {found} here, not {declared}")

    def _by_rule(self, op: Any, rule: Rule, args: list[Any]) -> Any:
        given: dict[str, Any] = dict(zip((p.name for p in rule.parameters), args))
        if len(args) > len(rule.parameters):
            raise CuteError(f"a kernel's has {len(rule.parameters)} operands at most")
        for name, value in plain_attributes(op.properties).items():
            if name == "proj":
                value = _projection(str(value), given["tiler"])
            if value is not None:
                given[name] = value
        positional, keywords = [], []
        by_name = False
        for name, p in rule.signature.parameters.items():
            by_name = by_name or p.kind is p.KEYWORD_ONLY or name not in given
            if name in given:
                (keywords.append((name, given[name])) if by_name else positional.append(given[name]))
            elif p.default is inspect.Parameter.empty:
                raise CuteError(f"a kernel's needs {name} too")
        return self.made(calls.call(rule.function, positional, keywords))


def _projection(text: str, tiler: Any) -> Any:
    """Return the projection of a tile; None of one that keeps all modes."""
    found = constant_of(Reader(text).whole())
    return None if found == kept(tiler) else found


_ATTRIBUTES = {operation: part for (_, part), operation in PARTS.items()}


def _make(c: _Calling, op: Any, args: list[Any]) -> Any:
    """A tuple, a tile or a number: what its type says, with the operands in the places of the `?`."""
    d = description_of(op.res[0].type)
    numbers = iter(args)

    def number(wanted: Any) -> Any:
        value = next(numbers)
        return (
            value
            if description_of_value(value) == wanted or not isinstance(value, SSAValue)
            else c.single(value, type_of(wanted))
        )

    return filled(d, number, c.whole)


def _static(c: _Calling, op: Any, args: list[Any]) -> Any:
    t = op.res[0].type
    d = description_of(t)
    if is_constant(d) or isinstance(t, CuteType) and t.kind == "tile":
        return filled(d, lambda wanted: None, c.whole)
    return c.whole(d)


def _get_scalars(c: _Calling, op: Any, args: list[Any]) -> Any:
    (held,) = args
    if len(op.res) != 1 or isinstance(held, tuple):
        raise CuteError("a kernel takes the number of a tuple of one number: take others by cute.get")
    if not isinstance(held, SSAValue):
        return held
    d = description_of_value(held)
    return held if isinstance(d, Scalar) and d.divisor == 1 else c.single(held, op.res[0].type)


def _get(c: _Calling, op: Any, args: list[Any]) -> Any:
    held = args[0]
    for i in plain_attributes(op.properties).get("mode", ()):
        if isinstance(held, tuple):
            if i >= len(held):
                raise CuteError(f"there is no mode {i} of {len(held)}")
            held = held[i]
        else:
            held = c.made(calls.call(cute.get, [held], [("mode", (i,))])) if _is_layout(held) else c.emit(
                calls.SliceOp, [held, i])  # fmt: skip
    return held


def _is_layout(held: Any) -> bool:
    return hasattr(description_of_value(held), "cls")


def _alloca(c: _Calling, op: Any, args: list[Any]) -> Any:
    d: Any = description_of(op.res[0].type)
    pointer, lay = d.fields
    if str(op.res[0].type.data[1]) != "rmem":
        raise CuteError("a kernel makes tensors of registers so: shared memory comes from an allocator")
    return c.made(calls.call(cute.make_rmem_tensor, [c.whole(lay), pointer.fields[0].value]))


def _load(c: _Calling, op: Any, args: list[Any]) -> Any:
    return c.emit(calls.LoadElement, args)


def _store(c: _Calling, op: Any, args: list[Any]) -> Any:
    return c.emit(calls.StoreElement, args)


def _same(c: _Calling, op: Any, args: list[Any]) -> Any:
    return args[0]


_MEANS: dict[str, Any] = {
    **{f"make_{kind}": _make for kind in ("shape", "stride", "coord", "int_tuple", "tile")},
    **{f"to_{kind}": _same for kind in ("shape", "stride", "coord", "int_tuple")},
    "static": _static,
    "make_atom": _static,
    "get_scalars": _get_scalars,
    "get": _get,
    "memref.alloca": _alloca,
    "memref.load": _load,
    "memref.store": _store,
}

__all__ = ["Refused", "call", "is_published"]
