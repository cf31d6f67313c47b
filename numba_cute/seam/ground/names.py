# SPDX-License-Identifier: Apache-2.0
"""Word the errors for unknown names, and for calls with other arguments than a function takes.

An error of an unknown name writes its words when they are asked for: `hasattr` and `getattr` with a default raise one
each time.
"""

from __future__ import annotations

import abc
import enum
import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any

from . import absent
from .bytecode import operation_at
from .error import CuteError
from .folding import FOLDED

_ROOT = "numba_cute"
_LOCATIONS = ("loc", "ip")


class UnknownName(CuteError, AttributeError):
    """Something of this library was asked for a name that it does not have.

    Made of its words; or of what writes them, or of the owner (a module, class or object) and the name: then they are
    written when they are asked for."""

    # Python notes the name to suggest another by, on the object since 3.12: there is no place for it.
    name: Any = property(lambda self: None, lambda self, name: None)

    def __str__(self) -> str:
        if len(self.args) != 1:
            owner, missing = self.args
            self.args = (unknown(owner, missing),)
        elif callable(self.args[0]):
            self.args = (self.args[0](),)
        return str(self.args[0])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def __reduce__(self) -> Any:
        return _unknown_name, (str(self),)


def _unknown_name(text: str) -> UnknownName:
    """Make an error of its words, as copying does."""
    return UnknownName(text)


class UnknownImport(CuteError, ImportError):
    """A name was imported that this library does not have."""


class WrongArguments(CuteError, TypeError):
    """A function or class of this library was called with other arguments than it takes."""


UnknownName.__module__ = UnknownImport.__module__ = WrongArguments.__module__ = _ROOT


# ---------------------------------------------------------------- words


def unknown(owner: Any, name: str, names: Iterable[str] | None = None) -> str:
    """Write the message for a name that `owner`, a module, class or object, lacks. names: those that it has, of which
    the nearest is suggested (None: what Python finds)."""
    public = sorted(set(_public(owner) if names is None else names))
    kind = "member" if isinstance(owner, enum.EnumMeta) else "attribute"
    said = f"{_called(owner)} has no {kind} {name!r}"
    instead = _instead(owner, name)
    if instead is not None:
        return f"{said}: {instead}"
    near = nearest(name, public)
    if near is not None:
        return f"{said}; did you mean {near!r}?"
    elsewhere = _elsewhere(name)
    if elsewhere is not None:
        return f"{said}; did you mean {elsewhere}{'' if isinstance(owner, ModuleType) else '(x, …)'}?"
    if public and len(public) <= _FEW:
        return f"{said}; it has {', '.join(public)}"
    return f"{said}; dir({_called(owner)}) lists what it has"


_FEW = 24
"""At most so many names are listed where none is near."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that `name` was probably meant to be; None if none is near."""
    choices = list(names)
    folded = {n.lower().replace("_", ""): n for n in reversed(choices)}
    same = folded.get(name.lower().replace("_", ""))
    if same is not None:
        return same
    import difflib  # here: few ever need it

    return next(iter(difflib.get_close_matches(name, choices, n=1, cutoff=0.7)), None)


def suggestion(name: str, names: Iterable[str]) -> str:
    """Write "; did you mean …?" for a name that is not among `names`; nothing if none is near."""
    near = nearest(name, names)
    return "" if near is None else f"; did you mean {near!r}?"


def no_field(owner: str, name: str, fields: Iterable[str]) -> str:
    """Write the message for a field that a struct, whose class is called `owner`, lacks."""
    near = suggestion(name, fields)
    return f"{owner} has no field {name!r}{near or '; its fields are ' + ', '.join(fields)}"


def _public(owner: Any) -> Iterable[str]:
    if isinstance(owner, enum.EnumMeta):
        return list(owner.__members__)
    if isinstance(owner, ModuleType):
        return vars(owner).get("__all__") or [n for n in vars(owner) if not n.startswith("_")]
    cls = owner if isinstance(owner, type) else type(owner)
    found = {*getattr(cls, "__cute_fields__", ()), *getattr(cls, "__dataclass_fields__", ()), *dir(owner)}
    return [n for n in found if not n.startswith("_")]


def _called(owner: Any) -> str:
    if isinstance(owner, ModuleType):
        return owner.__name__
    cls = owner if isinstance(owner, type) else type(owner)
    return str(vars(cls).get("__cute_plain__", cls).__name__)


def _instead(owner: Any, name: str) -> str | None:
    """Return the entry of the table of absent names for it; None if there is none."""
    if isinstance(owner, ModuleType):
        return absent.reason(owner.__name__.partition(".")[2], name)
    cls = owner if isinstance(owner, type) else type(owner)
    found = (absent.reason(c.__name__, name) for c in cls.__mro__)
    return next((text for text in found if text is not None), None)


def _elsewhere(name: str) -> str | None:
    """Return where else this library has a public name, as users write it; None if nowhere."""
    for module in PUBLISHED:
        if name in module.get("__all__", ()):
            return f"{module['__name__'].replace(_ROOT, 'cute', 1)}.{name}"
    return None


PUBLISHED: list[dict[str, Any]] = []
"""The globals of the modules that users see."""

# ---------------------------------------------------------------- modules


def of_module(namespace: dict[str, Any]) -> None:
    """Have a module, whose globals are `namespace`, say what it lacks in these words."""
    if all(n is not namespace for n in PUBLISHED):
        PUBLISHED.append(namespace)
        PUBLISHED.sort(key=lambda n: n["__name__"].count("."))
    if "__getattr__" in namespace:
        return

    def __getattr__(name: str) -> Any:
        with FOLDED:
            raise absent_from(namespace["__name__"], name, sys._getframe(1))

    namespace["__getattr__"] = __getattr__


def absent_from(module: str, name: str, frame: FrameType) -> Exception:
    """Return the error of a name that a module lacks. frame: who asks for it, maybe by `from … import`."""
    owner = sys.modules[module]
    if operation_at(frame.f_code, frame.f_lasti) == "IMPORT_FROM":
        return UnknownImport(unknown(owner, name), name=name)
    return UnknownName(owner, name)


# ---------------------------------------------------------------- classes and objects


class Named(type):
    """The class of classes that say in these words what they lack."""

    def __getattr__(cls, name: str) -> Any:
        raise UnknownName(cls, name)


class NamedABC(Named, abc.ABCMeta):
    """The same for abstract classes."""


class NamedEnum(enum.EnumMeta):
    """The class of enumerations that say in these words which members they lack."""

    def __getattr__(cls, name: str) -> Any:
        found = getattr(enum.EnumMeta, "__getattr__", None)  # of Python 3.10 and 3.11
        if found is not None and name in cls.__dict__.get("_member_map_", ()):
            return found(cls, name)
        raise UnknownName(cls, name)


def missing(self: Any, name: str) -> Any:
    """Say of an object what it lacks: the `__getattr__` of its class. A property whose own code lacks something says
    that itself."""
    if not name.startswith("__"):
        raw = member_of(type(self), name)
        if hasattr(type(raw), "__get__"):
            return raw.__get__(self, type(self))
    raise UnknownName(self, name)


class Speaking:
    """The base of classes without a decorator of this library whose objects say in these words what they lack."""

    __slots__ = ()
    __getattr__ = missing


def member_of(cls: type, name: str) -> Any:
    """Return what a class or one of its bases defines by a name, as it stands there; None if nothing."""
    return next((vars(c)[name] for c in cls.__mro__ if name in vars(c)), None)


def says_names(cls: Any) -> Any:
    """Return a class that says, as its objects do, in these words what they lack: the class itself where its bases have
    that already or where it has a metaclass of its own, and otherwise one like it."""
    if all("__getattr__" not in vars(c) for c in cls.__mro__):
        cls.__getattr__ = missing
    if type(cls) is not type or any("__slots__" in vars(c) for c in cls.__mro__):
        return cls
    space = {n: v for n, v in vars(cls).items() if n not in ("__dict__", "__weakref__")}
    made = Named(cls.__name__, cls.__bases__, space)
    made.__qualname__ = cls.__qualname__
    for value in space.values():
        for fn in _functions(value):
            _set_class(fn, cls, made)
    return made


def _functions(value: Any) -> Iterable[Any]:
    """The functions of a class's member."""
    if isinstance(value, property):
        value = (value.fget, value.fset, value.fdel)
    for fn in value if isinstance(value, tuple) else (value,):
        fn = getattr(fn, "func", None) or getattr(fn, "__func__", fn)
        if inspect.isfunction(fn):
            yield inspect.unwrap(fn)


def _set_class(fn: Any, old: type, new: type) -> None:
    """Have `super()` in a function mean the class that was made for another."""
    for cell in fn.__closure__ or ():
        try:
            if cell.cell_contents is old:
                cell.cell_contents = new
        except ValueError:  # an empty cell
            continue


# ---------------------------------------------------------------- calls


def other_arguments(fn: Any, why: str, given: Iterable[str] = ()) -> str:
    """Write the message for a call of `fn` with other arguments than it takes.

    why: what is wrong, in the words of `inspect.Signature.bind`. given: the names of the arguments that the call names.
    """
    shown = _as_called(fn)
    others = [n for n in given if n not in shown.parameters and n not in _LOCATIONS]
    near = suggestion(others[0], [n for n in shown.parameters if n not in set(given)]) if others else ""
    return f"{_name_of(fn)}{shown} was called with other arguments: {why}{near}"


def _as_called(fn: Any) -> inspect.Signature:
    """A function's signature as its caller sees it: without annotations, the method's object, and `loc` and `ip`."""
    found = inspect.signature(fn)
    parameters = [p for n, p in found.parameters.items() if n not in _LOCATIONS]
    if parameters and parameters[0].name == "self":
        del parameters[0]
    return inspect.Signature([p.replace(annotation=p.empty) for p in parameters])


def _name_of(fn: Any) -> str:
    """A function's or class's name with that of its class; a partial object's is that of its function."""
    fn = getattr(fn, "func", fn)
    fn = getattr(fn, "__func__", fn)
    name = getattr(fn, "__qualname__", None) or type(fn).__name__
    return str(name).rpartition("<locals>.")[2]


def refuse_arguments(fn: Any, args: Sequence[Any], named: Mapping[str, Any], e: Exception) -> None:
    """Raise WrongArguments if a call of `fn` that ended in `e` gave arguments that it does not take."""
    if isinstance(e, CuteError):
        return
    try:
        inspect.signature(fn).bind(*args, **named)
    except TypeError as why:
        raise WrongArguments(other_arguments(fn, str(why), named)) from None
    except ValueError:  # it has no signature
        return


_OF_PYTHON = re.compile(r"([\w.<>]+)\(\) (got an unexpected|got some|got multiple|missing|takes)")
"""Python's words for a call with other arguments, after the function's name."""


def explained(e: Exception, classes: Sequence[type]) -> Exception:
    """Return an exception that Python raised in a kernel's own code in the words of this library, if it is of a name
    or a call of this library's; itself otherwise.

    classes: those of this library, and those of the user's that it marks.
    """
    if type(e) is AttributeError and e.name and _is_own(e.obj):
        return UnknownName(e.obj, e.name)
    if type(e) is TypeError:
        found = _OF_PYTHON.match(str(e))
        fn = None if found is None else _find(found[1], classes)
        if found and fn is not None:
            named = re.findall(r"keyword argument '(\w+)'", str(e))
            return WrongArguments(other_arguments(fn, str(e).partition("() ")[2], named))
    return e


def _find(name: str, classes: Sequence[type]) -> Any:
    """Return this library's function, method or class of a qualified name; None if it is of no other's."""
    for cls in reversed(classes):
        if name == f"{cls.__qualname__}.__init__":
            return cls
        owner, _, attribute = name.rpartition(".")
        if owner == cls.__qualname__:
            return member_of(cls, attribute)
    return next((m[name] for m in PUBLISHED if name in m.get("__all__", ())), None)


def _is_own(owner: Any) -> bool:
    if isinstance(owner, ModuleType):
        return owner.__name__.partition(".")[0] == _ROOT
    cls = owner if isinstance(owner, type) else type(owner)
    return any(c.__module__.partition(".")[0] == _ROOT for c in cls.__mro__)
