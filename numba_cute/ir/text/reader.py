# SPDX-License-Identifier: Apache-2.0
"""Text as descriptions: the grammar of types."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ... import seam
from ...dtypes import DType, Int32
from ...layout import ComposedLayout, Layout, ScaledBasis, Swizzle
from ...seam import CuteError, StaticEnum
from ...seam.guards.kinds import DEEPEST
from ...tensor.pointer import Pointer
from ...tensor.tensor import Tensor
from ...typed.descriptions import Constant, Description, Foreign, Group, Object, Scalar, Struct
from ..dialect.checked import checked
from ..dialect.notation import body_end, read, write
from . import registry
from .fields import (
    FORMS,
    Fields,
    Form,
    Listed,
    Quoted,
    Thing,
    Word,
    default_fields,
    described_value,
    fields_by_name,
    held,
    instance,
    is_constant,
    is_number,
    is_published,
    lacking,
    names_of,
    record,
)
from .names import Lacking, Names, is_record, symbol_of
from .registry import NVGPU, OWN
from .scanner import Scanner, nested, quoted
from .writer import item, thing_text

Aliases: TypeAlias = Callable[[str], Description | None]
"""Give the type behind a name after `!` in a module's text; None if it has none."""

KINDS = ("int_tuple", "coord", "shape", "stride", "layout", "tile", "composed_layout", "swizzle")
"""The published types of values, whose notation stands in quotes."""

NOTED = ("numba_cute.nvgpu.tma_load", "numba_cute.nvgpu.tma_store")
"""The types whose text may say more than their descriptions hold."""


@dataclass(frozen=True)
class Noted:
    """A description as a type says it that says more: of a TMA atom its box and swizzle, which are in the tensor map.
    things: what the type says without names."""

    description: Description
    things: tuple[Thing, ...]


_BITS = re.compile(r"\d+ +b\b")
_EMPTY = ("numba_cute.nvgpu.tensor_map",)
BUILTIN: dict[str, Callable[[Reader, int], Description]] = {}
"""The functions that read the types that belong to no class, by name; plain_types.py fills it."""


class Reader(Scanner):
    """Reads descriptions from a text. aliases: what names of the text stand for. names: what its symbols mean. old:
    where a type stands that is written as this library wrote it before it had a dialect of its own; None if none is."""

    old: int | None = None

    def __init__(
        self, text: str, position: int = 0, aliases: Aliases = lambda name: None, names: Names | None = None
    ) -> None:
        super().__init__(text, position)
        self.aliases, self.names = aliases, names or Names()
        self._said: list[Thing] = []
        self.quoting = False

    # -------------------------------------------------------------- items

    @nested
    def item(self) -> Description:
        """Read what may stand within a type."""
        start = self.position
        found = self._layout()
        if not (self.peek_word() == "o" and isinstance(found, Object)):
            return found
        self.word()
        offset = self._primary()
        if self.peek_word() != "o":
            self.expected("'o' and the outer layout, as in S<3,4,3> o 0 o (8,64):(64,1)")
        self.word()
        return self._made(ComposedLayout, {"inner": found, "offset": offset, "outer": self._layout()}, start)

    def constant(self) -> Any:
        """Read a value that is written whole: a number, a string, `_`, an element type, a member, a symbol."""
        start = self.position
        found = self._primary()
        if not isinstance(found, Constant):
            self.fail("an operand or a constant stands here: a number, a string, _, !type, #Enumeration.MEMBER", start)
        return found.value

    def whole(self) -> Description:
        """Read one item, after which the text ends."""
        found = self.item()
        if self.position < len(self.text):
            self.expected("the end of the text")
        return found

    def _layout(self) -> Description:
        start = self.position
        found = self._primary()
        if not self.take(":"):
            return found
        return self._made(Layout, {"shape": found, "stride": self._primary()}, start)

    def _primary(self) -> Description:
        start = self.position
        if self.take("("):
            return Group(tuple(self._until(")", self.item)))
        if self.at("?"):
            return self._basis(self._number(), start)
        if self.take("@"):
            return self._symbol(start)
        if self.take("#"):
            return self._member(start)
        if self.take("!"):
            return self._typed(start)
        text = self.string()
        if text is not None:
            return Constant(text)
        real = self.floating()
        if real is not None:
            return Constant(real)
        number = self.integer()
        if number is not None:
            return self._basis(Constant(number), start)
        return self._named(start)

    def _until(self, end: str, read: Callable[[], Any]) -> list[Any]:
        """Read a list, separated by commas, up to `end`."""
        found: list[Any] = []
        while not self.take(end):
            if found:
                self.need(",", f" or {end!r}")
                if self.take(end):  # a comma may stand after the last
                    break
            found.append(read())
        return found

    def _named(self, start: int) -> Description:
        word = self.peek_word()
        if word == "S" and self.text.startswith("S<", self.position):
            self.word()
            return self._swizzle(start)
        known = {"_": None, "none": None, "true": True, "false": False}
        if word in known:
            self.word()
            return Constant(known[word])
        if word in registry.ELEMENTS:
            self.fail(
                f"{word} is a type: write !{word} for the element type as a value, and ?{{{word}}} for a number of "
                "this type that is known only at run time"
            )
        self.expected("a value: a number, ?, a tuple, a layout, a string, _, !type, #enumeration.member or @symbol")

    def _swizzle(self, start: int) -> Description:
        self.need("<")
        numbers: list[Description] = []
        for name in ("bits", "base", "shift"):
            if numbers:
                self.need(",", " and 3 numbers in all, as in S<3,4,3>")
            numbers.append(Constant(self.need_integer(f"the swizzle's {name}")))
        self.need(">")
        return self._made(Swizzle, dict(zip(("bits", "base", "shift"), numbers)), start)

    def _number(self) -> Scalar:
        """A number that is known only at run time: ?, ?{div=4}, ?{i64}, ?{i64 div=8}."""
        self.need("?")
        dtype: DType = Int32
        divisor = 1
        if self.take("{"):
            word = self.peek_word()
            if word in registry.ELEMENTS:
                self.word()
                dtype = registry.ELEMENTS[word]
            start = self.position
            if self.peek_word() == "div":
                self.word()
                self.need("=")
                divisor = self.need_integer("what divides the number")
                if divisor < 1 or (divisor > 1 and not dtype.is_integer):
                    self.fail(f"div={divisor}: what divides is 1 or more, and divides integers", start)
            if not self.take("}"):
                self.expected("a type such as i64, 'div=', or '}'")
        return Scalar(dtype, divisor)

    def _basis(self, value: Description, start: int) -> Description:
        """A basis stride, if @ stands after its value."""
        mode: list[Description] = []
        while self.at("@") and not self.text.startswith('@"', self.position):
            self.take("@")
            place = self.position
            index = self.need_integer("the mode of a basis stride, as in 1@0")
            if not 0 <= index < DEEPEST:
                self.fail(f"a basis stride is of a mode from 0 to {DEEPEST - 1}", place)
            mode.insert(0, Constant(index))
        if not mode:
            return value
        if not is_number(value):
            self.fail("a basis stride has an integer before the @", start)
        return self._made(ScaledBasis, {"value": value, "mode": Group(tuple(mode))}, start)

    def _symbol(self, start: int) -> Description:
        symbol = self.string()
        if symbol is None:
            self.expected('a symbol, as in @"numba_cute.layout.layout:make_layout"')
        found = self._checked(self.names.find, symbol, start)
        return self._record(found, start) if self.take("(") else Constant(found)

    def _record(self, cls: Any, start: int) -> Description:
        """A frozen dataclass or a named tuple: its fields, by name, up to `)`."""
        named: dict[str, tuple[int, Description]] = {}
        if self.things(named, ")"):
            self.fail("a record has only fields, by name", start)
        fields = {name: value for name, (_, value) in named.items()}
        for name, value in fields.items():
            if not is_constant(value):
                self.fail(f"the field {name!r} of a record is known whole", named[name][0])
        if isinstance(cls, Lacking) or any(map(lacking, fields.values())):
            said = ", ".join(f"{name} = {item(value)}" for name, value in fields.items())
            return Constant(Lacking(symbol_of(cls), f"@{quoted(symbol_of(cls))}({said})"))
        if not is_record(cls):
            self.fail(f"{cls!r} is not a class of records, frozen dataclasses or named tuples", start)
        try:
            return Constant(record(cls, fields))
        except CuteError as e:
            self.fail(str(e), start)
        except (TypeError, ValueError) as e:
            self.fail(f"{cls} cannot be made of these fields: {e}", start)

    def _member(self, start: int) -> Description:
        path = self.word() or ""
        name, _, member = path.rpartition(".")
        known = registry.enumerations()
        found: type[StaticEnum] | None = next(
            (known[n] for n in (name, registry.own_name(name), f"{OWN}.{name}", f"{NVGPU}.{name}") if n in known), None
        )
        if found is None:
            self.fail(f"#{path}: there is no enumeration {name!r}; they are {', '.join(known)}", start)
        if member not in found.__members__:
            self.fail(f"#{path}: {name} has the members {', '.join(found.__members__)}", start)
        return Constant(found[member])

    # -------------------------------------------------------------- types

    def _typed(self, start: int) -> Description:
        """Read a type after a `!`: an element type, an alias, or a type with its body."""
        name = self.word()
        if name is None:
            self.expected("the name of a type after '!'")
        if name in registry.ELEMENTS:
            return Constant(registry.ELEMENTS[name])
        alias = self.aliases(name)
        if alias is not None:
            return alias
        return self.body(name, start)

    def body(self, name: str, start: int) -> Description:
        """Read what a type of this name says, from its `<` on if there is one. start: where the type begins."""
        if is_published(name):
            kind, quoted_ = name.removeprefix("cute."), self.at('<"')
            if kind in KINDS and quoted_:
                return self._value(kind, start)
            if name in FORMS and (FORMS[name].cls is not Tensor or '"' in self.text[start : self._end()]):
                return self._instance(name, FORMS[name].cls, FORMS[name], start)
            name = self._own_name(name, start)
        if name in BUILTIN:
            has = self.take("<")
            if not has and name not in _EMPTY:
                self.expected(f"'<' and what !{name} is of")
            found = BUILTIN[name](self, start)
            if has:
                self.need(">")
            return found
        form, cls = FORMS.get(name), registry.class_of(name)
        if form is not None:
            cls = form.cls
        if cls is None and name not in (registry.OBJECT, registry.STRUCT):
            if "." not in name:
                self.fail(f"!{name}: there is no such element type, and the text defines no such name", start)
            self.fail(f"!{name}: there is no such type in the dialects cute, numba_cute and numba", start)
        return self._instance(name, cls, form, start)

    def _end(self) -> int:
        """Return the end of a type's body."""
        return body_end(self.text, self.position)

    def _own_name(self, name: str, start: int) -> str:
        """The name of a type of this library that the text has as one of the published dialects; it is noted."""
        made = registry.own_name(name)
        if made in BUILTIN or made in FORMS or registry.class_of(made) or made in (registry.OBJECT, registry.STRUCT):
            self.old = start if self.old is None else self.old
            return made
        self.fail(f"!{name}: kernels have no values of this type", start)

    def _value(self, kind: str, start: int) -> Description:
        """A value in the published notation, between quotes."""
        self.need("<")
        text = self.string() or ""
        try:
            value = write(kind, checked(kind, read(kind, text)))
        except CuteError as e:
            self.fail(f'failed to parse {kind} from "{text}": {e}', start)
        self.need(">")
        return Reader(value).value(kind)

    def value(self, kind: str) -> Description:
        """Read a value of a published type. Raises CuteError for what kernels have not."""
        found = self._tile() if kind == "tile" else self.item()
        if self.position < len(self.text):
            self.expected("the end of the text")
        return found

    def _tile(self) -> Description:
        if not self.take("["):
            return self.item()
        modes = [self._tile()]
        while self.take(";"):
            modes.append(self._tile())
        self.need("]")
        return Group(tuple(modes))

    def body_noted(self, name: str, start: int) -> Description | Noted:
        """Read as `body` does; a `Noted` description of what says more than its description holds."""
        found = self.body(name, start)
        if not isinstance(found, Object) or name not in NOTED:
            return found
        said, head = tuple(self._said), FORMS[name].head(fields_by_name(found))
        return Noted(found, said) if said and head is not None and said != tuple(head) else found

    def things(self, named: dict[str, tuple[int, Description]] | None = None, end: str = ">") -> list[Thing]:
        """Read what a type says up to `end`, past which it goes: what has no name is returned, fields go to `named`."""
        found: list[Thing] = []
        named = {} if named is None else named

        def read() -> None:
            start = self.position
            name = self.peek_word()
            if name is not None and "." not in name:
                self.word()
                if self.at("=") and not self.at("=="):
                    self.take("=")
                    if name in named:
                        self.fail(f"the field {name!r} is given twice", start)
                    named[name] = (start, self.item())
                    return
                self.position = start
            if named:
                self.fail("what has no name stands before the fields", start)
            found.append(self.thing())

        self._until(end, read)
        return found

    @nested
    def thing(self) -> Thing:
        """Read what has no name in a type: a word, a list, or a value."""
        if self.quoting and self.take('"'):
            found = Quoted(self.item())
            self.need('"')
            return found
        if self.quoting and (bits := self._match(_BITS)) is not None:
            return Word(" ".join(bits.group().split()))
        if self.take("["):
            return Listed(tuple(self._until("]", self.thing)))
        word = self.peek_word()
        if word is None or word in ("_", "none", "true", "false", "inf", "nan"):
            return self.item()
        if word == "S" and self.text.startswith("S<", self.position):
            return self.item()
        self.word()
        return Word(word, tuple(self._until(">", self.thing)) if self.take("<") else None)

    def _instance(self, name: str, cls: type | None, form: Form | None, start: int) -> Description:
        named: dict[str, tuple[int, Description]] = {}
        has = self.take("<")
        first = self.position
        outside, self.quoting = self.quoting, is_published(name)
        things = self.things(named) if has else []
        self.quoting = outside
        if cls is None:
            cls = self._user_class(name, things, first)
        if isinstance(cls, Lacking):
            said = [cls.said, *map(thing_text, things), *(f"{n} = {item(d)}" for n, (_, d) in named.items())]
            return Foreign(Lacking(cls.symbol, ", ".join(said), name))
        fields = dict(default_fields(cls))
        if form is not None and (things or not named):
            fields |= self._checked(form.implied, things, first)
        elif things:
            self.fail(f"{cls.__name__} has only fields, by name: {', '.join(names_of(cls)) or 'none'}", first)
        self._set(cls, fields, form.within if form else None, named)
        missing = [n for n in names_of(cls) if n not in fields]
        if missing:
            self.fail(f"{cls.__name__}: the field {missing[0]!r} has no value", start)
        made = self._made(cls, fields, first if has else start)
        self._said = things
        if form is not None and isinstance(made, Object) and not form.takes(fields_by_name(made)):
            self.fail(f"what this says is no {form.name}", start)
        return made

    def _user_class(self, name: str, things: list[Thing], first: int) -> type:
        """The class of an object of the user's, which stands first among what its type says."""
        cls: Any = things.pop(0).value if things and isinstance(things[0], Constant) else None
        if isinstance(cls, Lacking):
            return cls  # type: ignore[return-value]
        legal, kind = (seam.is_struct_class, "struct") if name == registry.STRUCT else (seam.is_frozen_class, "frozen")
        if not legal(cls):
            self.fail(f'!{name} begins with the symbol of a `{kind}` class, as in @"module:Name"', first)
        return cls  # type: ignore[no-any-return]

    def _set(self, cls: type, fields: Fields, within: str | None, named: dict[str, tuple[int, Description]]) -> None:
        """Set the fields that are given by name, and those of the object in the field `within`."""
        own = names_of(cls)
        for name, (_, value) in named.items():
            if name in own:
                fields[name] = value
        inner = fields.get(within) if within else None
        inside = fields_by_name(inner) if isinstance(inner, Object) else {}
        changed = False
        for name, (place, value) in named.items():
            if name in own:
                continue
            if name not in inside:
                legal = ", ".join((*own, *inside)) or "none"
                self.fail(f"{cls.__name__} has no field {name!r}; its fields are {legal}", place)
            inside[name] = value
            changed = True
        if changed and isinstance(inner, Object) and within:
            place = min(place for name, (place, _) in named.items() if name not in own)
            fields[within] = self._made(inner.cls, inside, place)

    def _made(self, cls: type, fields: Fields, start: int) -> Object | Struct:
        """Describe an instance, as the class's own checks let it be."""
        made = instance(cls, fields)
        if not isinstance(made, Object) or not hasattr(cls, "__post_init__"):
            return made
        whole = is_constant(made)
        if whole or cls in (Layout, ComposedLayout, ScaledBasis, Pointer):
            obj = held(made)
            self._sound(obj, start)
            return described_value(obj) if whole else made  # type: ignore[return-value]
        return made

    def _checked(self, make: Callable[[Any], Any], given: Any, start: int) -> Any:
        """`make(given)`; what it refuses is an error at `start`."""
        try:
            return make(given)
        except CuteError as e:
            self.fail(str(e), start)

    def _sound(self, obj: Any, start: int) -> None:
        """Let the object's class check it: what it refuses, or cannot even look at, is an error at `start`."""
        try:
            obj.__post_init__()
        except CuteError as e:
            self.fail(str(e), start)
        except (TypeError, AttributeError, ValueError, IndexError) as e:
            self.fail(f"{type(obj).__name__}: a field is not as it must be: {e}", start)
