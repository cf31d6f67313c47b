# SPDX-License-Identifier: Apache-2.0
"""A kernel's function with its operators and surroundings replaced: Python's operators by Numba's, numba.cuda by the
stand-in, dispatchers by their Python.

Nothing here imports Numba: a kernel that uses it has brought it.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import sys
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from .... import promotion, seam
from ....seam.ground.bytecode import operations
from ....seam.ground.counterparts import counterpart, if_known
from ....seam.ground.naming import shown
from ....seam.ground.packages import is_library, is_librarys
from ....seam.ground.places import at_line, line_naming
from ....seam.guards.messages import no_array
from ....seam.marks import prints
from ....seam.marks.host_objects import OPERATORS, is_snapshot, mapping_of, python_of
from ....seam.marks.plain import fields_of, is_named_tuple, is_plain_class, is_users, is_users_class, is_users_module
from ....seam.source.class_statements import without_classes
from ....seam.source.with_statements import without_with
from ....typed.meetings import Meetings
from ..arithmetic import by_reference
from ..arithmetic.functions import python_functions
from ..arithmetic.modules import Module, replaced
from ..arithmetic.number import from_python
from ..dropped import judged, watched
from ..extensions import Extensions
from ..numba_functions import declared
from ..numba_stand_in import CudaStandIn, NumbaType
from .conversions import Conversions, Plan
from .members import as_python_wants, is_generated, own_members
from .rewrite import rewritten

_HOOKS = frozenset(("__subclasshook__", "__init_subclass__", "__class_getitem__", "__set_name__"))
"""Members that Python's own machinery calls, as `isinstance` does for every subclass: no kernel's code."""

_STUBS = ("threadIdx", "blockIdx", "blockDim", "gridDim", "grid", "gridsize", "syncthreads", "syncthreads_count",
          "syncthreads_and", "syncthreads_or", "syncwarp", "shared", "local", "const", "atomic", "warpsize",
          "shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync", "all_sync", "any_sync", "eq_sync",
          "ballot_sync", "match_any_sync", "match_all_sync", "lanemask_lt", "activemask", "threadfence",
          "threadfence_block", "threadfence_system", "nanosleep", "fma", "popc", "clz", "ffs", "brev", "cbrt",
          "selp")  # fmt: skip


def taken(kernel: Any, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A kernel's own Python, and its arguments as the kernel takes them."""
    fn = python_function(kernel)
    takes = getattr(fn, "__cute_arguments__", None)
    return fn, args if takes is None else takes.seeking(args, 0)


def function_of(kernel: Any) -> Any:
    """Return the function that is called for an object whose class has a host function as its `__call__`; anything else
    itself, or its counterpart in Numba."""
    kernel = counterpart(kernel)
    called = inspect.getattr_static(type(kernel), "__call__", None)
    return kernel.__call__ if getattr(called, "__cute_host__", False) else kernel


def python_function(kernel: Any) -> FunctionType:
    """The Python function of a dispatcher (`py_func`), of numba's simulated kernel (`fn`), or itself."""
    return without_with(written_function(kernel))  # type: ignore[no-any-return]


def written_function(kernel: Any) -> FunctionType:
    """The same as it is written."""
    kernel = function_of(kernel)
    for fn in (getattr(kernel, "py_func", None), getattr(kernel, "fn", None), kernel):
        if isinstance(fn, FunctionType):
            return fn
    raise seam.CuteError(f"simulate: {kernel!r} is neither a @cuda.jit kernel nor a Python function")


def _refusing(error: seam.CuteError) -> Any:
    """A function that is refused when it is called."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    return refuse


class _Module:
    """A module, some of whose names are replaced."""

    def __init__(self, real: ModuleType, replace: Any) -> None:
        self._real, self._replace = real, replace

    def __getattr__(self, name: str) -> Any:
        return self._replace(getattr(self._real, name))


class _Atomics:
    """`cuda.atomic`, of tensors too."""

    def __init__(self, of_arrays: Any) -> None:
        self._of_arrays = of_arrays

    def __getattr__(self, name: str) -> Any:
        of_array = getattr(self._of_arrays, name)

        def call(array: Any, *args: Any) -> Any:
            of_tensor = getattr(array, "__cute_atomic__", None)
            if of_tensor is None and seam.is_frozen_class(type(array)):
                raise seam.CuteError(no_array(name, array))
            return of_array(array, *args) if of_tensor is None else of_tensor(name, *args)

        setattr(self, name, call)
        return call


class Rebuilder:
    """Replaces what one run's functions refer to. stand_in: the class of what stands for numba.cuda. unwrap: is applied
    to static objects (see launch.py). meetings: where the front end converts values. kernel: the function that runs."""

    def __init__(
        self, run: Any, stand_in: type[CudaStandIn], unwrap: Any, meetings: Meetings, kernel: Any = None
    ) -> None:
        self.run, self.unwrap, self._reference = run, unwrap, promotion.follows(kernel)
        self.cuda: Any = stand_in(run, sys.modules.get("numba.cuda"), self.replace)
        self.cuda.atomic = _Atomics(self.cuda.atomic)
        self._extensions = run.extensions = Extensions(self.function)
        self._numbas, self._of_reference = python_functions(), by_reference.python_functions()
        self._conversions = Conversions(meetings)
        self._functions: dict[tuple[int, bool], Any] = {}
        self._globals: dict[tuple[int, bool, bool], dict[str, Any]] = {}
        self._classes: dict[type, type] = {}
        self._objects: dict[int, Any] = {}
        self._keep: list[Any] = []  # so that no id is reused
        self._stubs: dict[int, Any] = {id(seam.const_expr): judged}
        real = sys.modules.get("numba.cuda")
        for name in _STUBS:
            stub = getattr(real, name, None)
            if stub is not None:
                self._stubs[id(stub)] = getattr(self.cuda, name)
        for group in ("atomic", "shared", "local"):
            for name, stub in vars(getattr(real, group, object)).items() if real is not None else ():
                mine = getattr(getattr(self.cuda, group), name, None)
                if mine is not None and not name.startswith("_"):
                    self._stubs[id(stub)] = mine

    def function(self, fn: FunctionType, traced: bool = False) -> Any:
        """`fn`, its globals and closure replaced. traced: whether its operators and Python's functions stay."""
        try:
            fn = without_with(fn)
        except seam.CuteError as e:  # only the kernel knows whether it calls what bears such a name
            return _refusing(e)
        found = self._functions.get((id(fn), traced))
        if found is not None:
            return found
        before, self._reference = self._reference, promotion.follows(fn)
        try:
            return self._function(fn, self._reference, traced)
        finally:
            self._reference = before

    @property
    def _builtins(self) -> dict[str, Any]:
        """Return the replacements of Python's functions in the function that is rebuilt, or in the kernel."""
        return self._of_reference if self._reference else self._numbas

    def _function(self, fn: FunctionType, reference: bool, traced: bool) -> Any:
        self._keep.append(fn)
        names = _names(fn.__code__)
        key = (id(fn.__globals__), prints.prints(fn), traced)
        space = self._globals.get(key)
        if space is None:
            of_dsl = {"print": prints.print} if prints.prints(fn) else {}
            functions = vars(builtins) if traced else self._builtins
            space = self._globals[key] = {**fn.__globals__, "__builtins__": functions | of_dsl}
        cells = tuple(CellType() for _ in fn.__closure__ or ())
        variants: list[FunctionType] = []
        attributes: dict[str, Any] = {}

        def make(plan: Plan) -> FunctionType:
            code = fn.__code__ if traced else rewritten(fn.__code__, plan, reference)
            new = FunctionType(code, space, fn.__name__, None, cells or None)
            variants.append(_with_attributes(new, attributes))
            return new

        # before its surroundings: it may call itself
        made = self._functions[id(fn), traced] = self._conversions.function(fn.__code__, make)
        for name in _globals(fn.__code__):
            if name in fn.__globals__ and type(space.get(name)) is not _Module:  # as another function has it
                space[name] = self._captured(fn, name, names)
        for cell, old in zip(cells, fn.__closure__ or ()):
            try:
                cell.cell_contents = self.replace(old.cell_contents, names)
            except ValueError:  # an empty cell stays empty
                continue
        attributes["__defaults__"] = fn.__defaults__ and tuple(map(self._default, fn.__defaults__))
        attributes["__kwdefaults__"] = fn.__kwdefaults__ and {k: self._default(v) for k, v in fn.__kwdefaults__.items()}
        own = {k: v for k, v in fn.__dict__.items() if not k.startswith("__") or k == "__wrapped__"}
        attributes |= {k: self._default(v) for k, v in own.items()}
        for new in variants:
            _with_attributes(new, attributes)
        return made

    def _default(self, value: Any) -> Any:
        """Replace a default, or an attribute of a function: floats get their type, as those in the code do."""
        return self.replace(value) if isinstance(value, float) or callable(value) else value

    def _captured(self, fn: FunctionType, name: str, names: frozenset[str]) -> Any:
        """Replace what a global of `fn` is: an error is of the line that names it."""
        try:
            return self.replace(fn.__globals__[name], names)
        except seam.CuteError as e:
            line = line_naming(fn.__code__, name)
            if line is not None:
                at_line(e, fn.__code__.co_filename, line)
            raise

    def jitted(self, fn: FunctionType) -> Any:
        """`fn`, which Numba compiles, as `function` gives it, with the classes in it made once."""
        try:
            fn = without_classes(without_with(fn))
        except seam.CuteError as e:
            return _refusing(e)
        return self.function(fn)

    def replace(self, value: Any, names: frozenset[str] = frozenset()) -> Any:
        """Give what stands for `value` in the simulator; `names` are the attributes that the code mentions."""
        value = counterpart(value)
        stub = self._stubs.get(id(value))
        if stub is not None:
            return stub
        if isinstance(value, ModuleType):
            return self._module(value, names)
        if isinstance(value, (int, str)) or seam.is_traced(value):
            return watched(value)
        if isinstance(value, (float, np.generic)):
            return value if type(value) is float and self._reference else from_python(value)
        name = value.__name__ if isinstance(value, (BuiltinFunctionType, type)) else ""
        if name and getattr(builtins, name, None) is value:
            return self._builtins.get(name, value)
        if isinstance(value, (BuiltinFunctionType, np.ufunc)) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            of = by_reference.of_module if self._reference else replaced
            return of(value, getattr(value, "__module__", "") == "math")
        if seam.is_struct_class(value):
            return self.struct_class(value)
        if isinstance(value, tuple) and type(value) is tuple:
            try:
                return tuple(self.replace(v, names) for v in value)
            except RecursionError:
                raise seam.CuteError(f"{shown(value)}: a tuple of more levels than Python goes down") from None
        if isinstance(getattr(value, "py_func", None), FunctionType):
            return self.jitted(value.py_func)
        if type(value) is dict and (mapping := mapping_of(value)) is not None:
            return self._field(mapping)
        if type(value) is functools.partial:
            held = {n: self.replace(x) for n, x in value.keywords.items()}
            return functools.partial(self.replace(value.func), *map(self.replace, value.args), **held)
        found = declared(value, NumbaType)
        if found is not None:
            return found
        if isinstance(value, FunctionType) and not is_library(value.__module__):
            return self._extensions.function(value) or self.function(value)
        if (is_users_class(value) and value is not SimpleNamespace) or is_named_tuple(value):
            return self._plain_class(value)
        if seam.is_frozen_class(value):
            return self._frozen_class(value)
        kind = type(value)
        if kind.__module__.startswith("numba.") and getattr(getattr(value, "dtype", None), "names", None):
            return value.dtype  # records
        if kind.__module__.startswith("numba.") and hasattr(value, "bitwidth"):
            return NumbaType(str(value))
        if kind.__module__.startswith("numba.") and str(value) in ("bool", "boolean"):
            return NumbaType("bool")
        return self._frozen(self.unwrap(value))

    def _frozen(self, value: Any) -> Any:
        """An immutable object with the methods rebuilt that the front end compiled; a trace ran the others."""
        cls = type(value)
        mine = self._frozen_class(cls) if seam.is_frozen_class(cls) and not is_snapshot(value) else cls
        if mine is cls:
            return value
        copy: Any = object.__new__(mine)
        for name, field in fields_of(value).items():
            object.__setattr__(copy, name, field)
        return copy

    def _frozen_class(self, cls: Any) -> type:
        """A class of immutable objects with such methods rebuilt: a subclass of it; itself if it has none."""
        every = {n: m for base in reversed(cls.__mro__) for n, m in vars(base).items()}
        compiled = {n: m for n, m in every.items() if self._conversions.compiled(m)}
        if not compiled or is_users_class(cls):
            return self._plain_class(cls) if compiled else cls
        found = self._classes.get(cls)
        if found is None:
            members = {n: self._member(m) for n, m in compiled.items()}
            found = self._classes[cls] = type(cls.__name__, (cls,), members)
            self._classes[found] = found
        return found

    def struct_class(self, cls: type) -> type:
        """A struct class with its jitted methods rebuilt: a subclass of it, after the rebuilt classes of its bases."""
        found = self._classes.get(cls)
        if found is None:
            bases = tuple(self.struct_class(b) for b in cls.__bases__ if seam.is_struct_class(b))
            if cls in self._classes:  # a method of a base names this class
                return self._classes[cls]
            members = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
            found = self._classes[cls] = type(cls.__name__, (*bases, cls), members)
            self._classes[found] = found
            for name, member in members.items():
                mine = self._member(member)
                if mine is not member:
                    setattr(found, name, as_python_wants(name, mine))
        return found

    def _plain_class(self, cls: Any) -> type:
        """A class of the user's with its functions rebuilt: a subclass of it."""
        found = self._classes.get(cls)
        if found is None and getattr(cls, "_is_protocol", False):  # whose subclasses are none
            return cls  # type: ignore[no-any-return]
        if found is None:
            bases = tuple(
                self._plain_class(b) for b in cls.__bases__ if is_users_class(b)
            )  # Python's and this library's own stay as they are
            if cls in self._classes:  # a method of a base names this class
                return self._classes[cls]
            bases = (*bases, *self._beyond(cls, bases))
            found = self._classes[cls] = type(cls)(cls.__name__, (*bases, cls), {"__module__": cls.__module__})
            self._classes[found] = found
            for name, member in own_members(cls).items():
                member = member if is_generated(member) else self._undecorated(member)
                traced = seam.is_frozen_class(cls) and not self._conversions.compiled(member)
                mine = member if is_generated(member) else self._member(member, traced)
                if name not in _HOOKS and (mine is not member or any(name in vars(b) for b in bases)):
                    setattr(found, name, as_python_wants(name, mine))
        return found

    def _beyond(self, cls: type, bases: tuple[type, ...]) -> tuple[type, ...]:
        """Return a class between the rebuilt bases of a class and the class itself, with the methods that `super()`
        finds in bases which are not rebuilt, as `object.__init__`, and not the class's own. Nothing if it finds none.
        """
        rebuilt = {n for b in bases for k in b.__mro__ if self._classes.get(k) is k for n in vars(k)}
        own = [n for n, m in vars(cls).items() if isinstance(m, FunctionType) and n not in rebuilt]
        found = {n: vars(k)[n] for n in own for k in reversed(cls.__mro__[1:]) if n in vars(k)}
        return (type(f"beyond {cls.__name__}", (), {"__slots__": (), **found}),) if found else ()

    def _undecorated(self, member: Any) -> Any:
        """A class's member without `cute.jit`."""
        if isinstance(member, staticmethod):
            return staticmethod(python_of(member) or member.__func__)
        return (python_of(member) or member) if getattr(member, "__cute_host__", False) else member

    def _member(self, member: Any, traced: bool = False) -> Any:
        """A class's member with its functions rebuilt: `super()` in them then finds the rebuilt bases. traced: whether
        its operators stay Python's, as in a trace."""
        if isinstance(member, FunctionType):
            kept = seam.is_made(member) or seam.is_traced(member)
            kept |= not is_users_module(member.__globals__.get("__name__"))
            return member if kept else self.function(member, traced)
        if isinstance(member, (staticmethod, classmethod)):
            return type(member)(self._member(member.__func__))
        if isinstance(member, property):
            return property(*(f and self._member(f, traced) for f in (member.fget, member.fset, member.fdel)))
        return member

    def own(self, value: Any) -> Any:
        """A kernel argument as one thread has it: structs are each thread's own copy."""
        if is_snapshot(value):
            return self._held(value)
        if type(value) is tuple:
            own = tuple(map(self.own, value))
            return value if all(a is b for a, b in zip(own, value)) else own
        if callable(value):
            return self._called(value)
        if not seam.is_struct_class(type(value)):
            return self._frozen(value)
        copy: Any = object.__new__(self.struct_class(type(value)))
        for name, field in vars(value).items():
            held = seam.current().hold(type(copy).__cute_types__.get(name), self.own(field))  # type: ignore[attr-defined]
            object.__setattr__(copy, name, held)
        return copy

    def _called(self, value: Any) -> Any:
        """Return the replacement of a function, or a class of the user's, that is an argument of a kernel."""
        if type(value) is partial:
            return partial(self._called(value.func), *map(self.own, value.args), **value.keywords)
        is_function = isinstance(value, FunctionType) or isinstance(getattr(value, "py_func", None), FunctionType)
        is_class = isinstance(value, type) and (is_users_class(value) or seam.is_struct_class(value))
        return self.replace(value) if is_function or is_class else value

    def _held(self, value: Any) -> Any:
        """Return the replacement of an object of the host, with its methods, and the functions and classes in it,
        rebuilt."""
        found = self._objects.get(id(value))
        if found is None:
            found = self._objects[id(value)] = object.__new__(self._held_class(type(value)))
            for name, field in vars(value).items():
                object.__setattr__(found, name, self._field(field))
        return found

    def _field(self, value: Any) -> Any:
        if is_snapshot(value):
            return self._held(value)
        if type(value) is tuple:
            return tuple(map(self._field, value))
        if type(value) is partial:
            return self._called(value)
        plain = isinstance(value, (float, type, FunctionType)) or python_of(value) is not None
        return self.replace(value) if plain else value

    def _held_class(self, cls: Any) -> type:
        found = self._classes.get(cls)
        if found is None:
            members: dict[str, Any] = {"__module__": cls.cute_of.__module__}
            if is_plain_class(cls.cute_of) and cls.cute_of is not SimpleNamespace:
                members["cute_of"] = self._plain_class(cls.cute_of)
            for base in cls.cute_of.__mro__[-2::-1]:
                for name, member in vars(base).items():
                    if not name.startswith("__") or name in ("__call__", *OPERATORS):
                        members[name] = self._member(self._plain(member))
            found = self._classes[cls] = type(cls.__name__, (cls,), {n: m for n, m in members.items() if m is not None})
        return found

    def _plain(self, member: Any) -> Any:
        """A class's member as Python has it, without decorators; None for kernels and what Snapshot finds by itself."""
        if getattr(member, "__cute_kernel__", False):
            return None
        fn = python_of(member)
        if fn is None:
            return member if isinstance(member, (classmethod, property)) else None
        return staticmethod(fn) if isinstance(member, staticmethod) else fn

    def _module(self, module: ModuleType, names: frozenset[str]) -> Any:
        if module.__name__ == "numba.cuda":
            return self.cuda
        if module.__name__.startswith("numba.cuda") and module.__name__.endswith(".cg"):
            return self.cuda.cg
        if module.__name__ in ("math", "numpy"):
            return Module(module, by_reference.of_module if self._reference else replaced)
        if module is builtins or module.__name__ == "numba" or module.__name__.startswith("numba."):
            return _Module(module, self.replace)
        if is_librarys(module):
            return watched(module)
        for name in names:
            member = vars(module).get(name)
            if isinstance(getattr(member, "py_func", None), FunctionType) or _is_cuda(member) or is_users(member):
                return _Module(module, self.replace)
        return module


def _with_attributes(function: FunctionType, attributes: dict[str, Any]) -> FunctionType:
    for name, value in attributes.items():
        setattr(function, name, value)
    return function


def _is_cuda(member: Any) -> bool:
    return isinstance(member, ModuleType) and if_known(member).__name__ == "numba.cuda"


@functools.lru_cache(maxsize=1024)
def _globals(code: CodeType) -> frozenset[str]:
    """Every global that a function's code, and the code inside it, reads: an attribute's name may be a global's."""
    inside = (_globals(c) for c in code.co_consts if isinstance(c, CodeType))
    return frozenset(o.value for o in operations(code) if o.name == "LOAD_GLOBAL").union(*inside)


def _names(code: CodeType) -> frozenset[str]:
    """Every global and attribute that a function's code, and the code inside it, mentions."""
    names = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names |= _names(const)
    return frozenset(names)
