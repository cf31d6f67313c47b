# SPDX-License-Identifier: Apache-2.0
"""Plans of launches: for the arguments of a launch that was made, how arguments like them are checked and packed."""

from __future__ import annotations

import ctypes
import enum
import itertools
from collections.abc import Callable
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from ....dtypes import DType, Scalar
from ....seam import StaticEnum
from ....seam.ground.records import dataclass
from ....seam.marks.constexpr import Constexpr
from ....seam.marks.host_objects import as_argument, is_snapshot
from ...bridge import tree
from ...bridge.leaf_types import Multiple
from ...bridge.object_types import Value
from ...bridge.typeofs import type_of_argument
from ...emit.rounding import HALVES
from ...ground.numba_cuda import as_dtype, types
from . import arrays, graphs, packing, templates, words
from .driver import current_context, driver, function_address
from .options import PLAIN, Options

_CONSTANTS = (FunctionType, BuiltinFunctionType, type, DType, StaticEnum, enum.EnumMeta)
"""Types of values that a kernel knows by identity, and not by what they hold."""
_LAYOUTS = {"C": words.IN_C, "F": words.IN_F, "A": words.IN_NEITHER}
_names: dict[str, str] = {}


class Unknown(Exception):
    """Arguments that machine code does not pack."""


@dataclass(frozen=True)
class Setting:
    """The setting of a launch. kernel: the compiled kernel. handle: the driver's, an int. grid, block: three each.
    smem: bytes. stream: its handle; None for the one that the arguments' libraries are using. cluster: three, or None.
    options: further requests to the driver."""

    kernel: Any
    handle: int
    grid: Any
    block: Any
    smem: int
    stream: int | None
    cluster: Any = None
    options: Options = PLAIN

    def config(self, stream: int) -> packing.Config:
        asked = self.options.attributes(self.cluster, bool(self.kernel.cooperative))
        return packing.configuration(self.grid, self.block, self.smem, stream, asked)


class Plan:
    """The plan of a launch in machine code: see words.py.

    setting: of the launch. steps: those of the arguments. template: the parameters' bytes, whose constants are there.
    offsets: where each parameter begins. streams: those that tell where to launch. tied: whether an argument says its
    device. kept: what the steps speak of. key: what two plans share that are alike."""

    def __init__(
        self, setting: Setting, arguments: int, steps: list[list[int]], template: bytes, offsets: list[int],
        streams: list[arrays.Stream], tied: bool, kept: list[Any],
    ) -> None:  # fmt: skip
        of = driver()
        self.setting = setting
        self.kept = [setting, kept, of, streams]
        context = current_context()
        self.key = (
            id(setting.kernel), setting.stream, context, arguments, bytes(template), tuple(map(tuple, steps)),
        )  # fmt: skip
        self._template = ctypes.create_string_buffer(template, max(1, len(template)))
        self._offsets = (ctypes.c_int64 * max(1, len(offsets)))(*offsets)
        self._count = len(offsets)
        self._config = setting.config(setting.stream or 0)
        flat = [w for s in steps for w in s]
        self._steps = (ctypes.c_int64 * max(1, len(flat)))(*flat)
        asked = [w for s in streams for w in (s.tells, id(s.calls) if s.calls is not None else 0, s.device)]
        self._streams = (ctypes.c_int64 * max(1, len(asked)))(*asked)
        at = ctypes.addressof
        self.words = (ctypes.c_int64 * words.PLAN_WORDS)(
            0, arguments, at(self._steps), len(steps), at(self._template), len(template), at(self._offsets),
            len(offsets), at(self._config), setting.handle, context, tied, at(self._streams), len(streams), 0, 0,
            of.address, 0, 0, 0, 0,
        )  # fmt: skip

    def as_graph(self, stream: int) -> None:
        """Launch as a graph of one kernel from now on, where no stream is captured; as before, if `stream` is captured
        now, or the driver refuses to make a graph."""
        if graphs.is_captured(stream):
            return
        graph = graphs.graph_of(self._config, self.setting.handle, int(self.words[words.POINTERS // 8]))
        if graph is not None:
            self.kept.append(graph)
            self.words[words.CAPTURES // 8] = function_address("cuStreamIsCapturing")
            self.words[words.GRAPH_LAUNCH // 8] = function_address("cuGraphLaunch")
            self.words[words.GRAPH // 8] = graph.handle

    def on_grid(self, grid: Any) -> Plan:
        """Return the plan of such launches on another grid."""
        made = object.__new__(Plan)
        made.setting = replace(self.setting, grid=grid)
        made._config = made.setting.config(made.setting.stream or 0)
        made.words = type(self.words)(*self.words)
        for word, value in ((words.NEXT, 0), (words.LAUNCHED, 0), (words.CONFIG, ctypes.addressof(made._config))):
            made.words[word // 8] = value
        made.kept, made.key = [self.kept], self.key
        made._template, made._offsets, made._count = self._template, self._offsets, self._count
        made._steps, made._streams = self._steps, self._streams
        return made

    @property
    def address(self) -> int:
        return ctypes.addressof(self.words)

    @property
    def launched(self) -> int:
        """Return the number of launches that it made."""
        return int(self.words[words.LAUNCHED // 8])

    def pack_for_good(self) -> None:
        """Give the driver the template itself: its bytes are those of the arguments."""
        base = ctypes.addressof(self._template)
        aligned = ctypes.create_string_buffer(len(self._template) + packing.MAP)
        start = ctypes.addressof(aligned)
        start += -start % packing.MAP
        ctypes.memmove(start, base, len(self._template))
        self._pointers = (ctypes.c_int64 * max(1, self._count))(*(start + o for o in self._offsets[: self._count]))
        self.kept.append(aligned)
        self.words[words.POINTERS // 8] = ctypes.addressof(self._pointers)


def _itemsize(dtype: Any) -> int:
    """The bytes of an array's element: of bfloat16 too, which NumPy has not."""
    bits = getattr(dtype, "bitwidth", None)
    return int(bits) // 8 if bits else int(as_dtype(dtype).itemsize)


def _is_plain_tuple(x: Any) -> bool:
    """Say whether a tuple, or one with named fields, holds its items alone."""
    return type(x) is tuple or (hasattr(x, "_fields") and not hasattr(x, "__dict__"))


def plan(setting: Setting, given: Any, args: Any, changed: dict[int, tuple[str, Callable[[Any], Any]]],
         function: Any = None) -> Plan | None:  # fmt: skip
    """Make the plan of a launch that was made; None if its arguments are of kinds that machine code does not know.

    given: the launch's arguments as its caller gave them. args: as they were packed. changed: for the places where
    these differ as objects of this library, the attribute that remembers what was made of one, and what makes it.
    function: whose defaults stand for the arguments that are not given."""
    kernel = setting.kernel
    if kernel.debug or kernel.extensions:
        return None
    if len(args) != len(kernel.argument_types):
        raise TypeError(f"{kernel.entry_name} takes {len(kernel.argument_types)} arguments; {len(args)} are given")
    maker = _Maker(kernel, changed)
    try:
        whole = list(zip(args, kernel.argument_types, strict=True))
        for i, (g, (a, t)) in enumerate(zip(given, whole)):
            maker.argument(g, a, t, -1, i)
        if len(given) < len(args):
            maker.defaults(function, whole[len(given) :])
    except Unknown:
        return None
    streams = list(dict.fromkeys(maker.streams)) if setting.stream is None else []
    return Plan(
        setting, len(given), maker.steps, bytes(maker.template), maker.offsets, streams, maker.tied, maker.kept
    )  # fmt: skip


def packed_for_good(setting: Setting, parameters: list[Any], args: Any) -> Plan:
    """Make the plan of a launch whose parameters are packed already. args: those that they are of."""
    template, offsets = packing.block(parameters)
    streams = list(dict.fromkeys(arrays.streams_of(args)))
    named = setting.stream is not None
    return Plan(setting, 0, [], template, offsets, [] if named else streams, bool(streams), [args])


class _Maker:
    """Steps, one after the other. kernel, changed: as of `plan`."""

    def __init__(self, kernel: Any, changed: Any) -> None:
        self.kernel, self.changed = kernel, changed
        self.steps: list[list[int]] = []
        self.template = bytearray()
        self.offsets: list[int] = []
        self.streams: list[arrays.Stream] = []
        self.tied = False
        self.kept: list[Any] = []

    def kept_id(self, obj: Any) -> int:
        self.kept.append(obj)
        return id(obj)

    def name(self, name: str) -> int:
        return self.kept_id(_names.setdefault(name, name))

    def place(self, parameters: list[Any]) -> tuple[int, int]:
        """Add parameters to the template; return where they begin, and their bytes."""
        self.template += bytes(-len(self.template) % packing.MAP)
        start = len(self.template)
        data, offsets = packing.block(parameters)
        self.template += data
        self.offsets += [start + o for o in offsets]
        return start, len(data)

    def used(self, stream: arrays.Stream | None) -> arrays.Stream | None:
        """Note the stream that an argument's library is using, and with it the argument's device."""
        if stream is not None:
            self.streams.append(stream)
            self.tied = True
        return stream

    def parameters(self, t: Any, a: Any) -> list[Any]:
        out: list[Any] = []
        write_back: list[Any] = []
        self.kernel._prepare_args(t, a, 0, write_back, out)
        if write_back:
            raise Unknown
        return out

    def step(self, kind: int, parent: int, index: int, cls: Any, out: int = 0, **more: int) -> int:
        made = [0] * words.STEP_WORDS
        fixed = {"KIND": kind, "PARENT": parent, "INDEX": index, "OUT": out}
        for name, value in {**fixed, "TYPE": 0 if cls is None else self.kept_id(cls), **more}.items():
            made[getattr(words, name) // 8] = value
        self.steps.append(made)
        return len(self.steps) - 1

    def defaults(self, function: Any, whole: list[tuple[Any, Any]]) -> None:
        """Add the steps of a function's last defaults, which are read of it at each launch."""
        held = getattr(function, "__defaults__", None)
        if type(held) is not tuple or len(held) < len(whole):
            raise Unknown
        me = self.watch(function, "__defaults__", held)
        first = len(held) - len(whole)
        for i, (a, t) in enumerate(whole, first):
            self.argument(held[i], a, t, me, i)

    def watch(self, holder: Any, name: str, value: Any) -> int:
        """Add a step that suits while an object's attribute is another one."""
        more = {"A": self.kept_id(holder), "B": self.name(name), "C": self.kept_id(value)}
        return self.step(words.WATCHED, words.NO_ARGUMENT, 0, None, **more)

    def watches(self, a: Any) -> bool:
        """Add the steps that suit while what may be replaced in an object is what it was. False: no attributes tell."""
        parts = tree.changes(tree.flatten(a, []))
        if not all(p.name for p in parts):
            return False
        for p in parts:
            self.watch(*p)
        return True

    def argument(self, given: Any, a: Any, t: Any, parent: int, index: int) -> None:
        """Add the step of an argument. given: as the caller gave it. a: as it was packed. t: its Numba type."""
        here = (parent, index)
        if isinstance(given, MethodType):  # its object may have changed when it is given again
            raise Unknown
        value = a.value if isinstance(a, Constexpr) else a
        if is_snapshot(value) and given is not value:
            self.held(given, a, t, here)
        elif isinstance(a, Constexpr):
            self.static(given, a, t, here)
        elif isinstance(t, types.BaseTuple) and type(given) is type(a) and _is_plain_tuple(a):
            me = self.step(words.TUPLE, *here, type(a), A=len(given))
            for i, (g, x, u) in enumerate(zip(given, a, t, strict=True)):
                self.argument(g, x, u, me, i)
        elif given is not a:
            self.converted(given, a, t, here)
        elif isinstance(t, types.Array):
            self.array(a, t, here)
        elif isinstance(t, Value):
            self.object(a, t, here)
        elif isinstance(t, (types.NoneType, types.Dispatcher)):
            self.same(a, t, here)
        else:
            self.number(a, t, here)

    def same(self, a: Any, t: Any, here: tuple[int, int], make: Callable[[Any], Any] = lambda obj: obj) -> None:
        """An argument that is the one object, as long as what a kernel knows of that is what it was. make: as of
        `asked`."""
        if isinstance(t, Value) and not self.watches(a):
            self.asked(a, t, here, make)
            return
        self.place(self.parameters(t, a))
        self.step(words.SAME, *here, None, A=self.kept_id(a))

    def held(self, given: Any, a: Any, t: Any, here: tuple[int, int]) -> None:
        """An object of the user's, which may have other fields when it is given again: it is held anew each time."""
        if arrays.stream_of_object(a) is not None:
            raise Unknown
        static = isinstance(a, Constexpr)
        self.asked(given, t, here, lambda obj: Constexpr(as_argument(obj)) if static else as_argument(obj))

    def static(self, given: Any, a: Constexpr, t: Any, here: tuple[int, int]) -> None:
        """An argument whose value is known when the kernel is compiled."""
        if given is a:
            self.asked(given, t, here)
        elif type(a.value) is int and -(1 << 63) <= a.value < 1 << 63 and given is a.value:
            self.place(self.parameters(t, a))
            self.step(words.EQUAL, *here, int, A=a.value)
        elif given is a.value and (a.value is None or isinstance(a.value, (bool, *_CONSTANTS))):
            self.same(given, t, here, Constexpr)
        elif given is a.value and isinstance(t, Value):
            self.object(given, t, here)
        else:
            raise Unknown

    def converted(self, given: Any, a: Any, t: Any, here: tuple[int, int]) -> None:
        """An argument of which the launch made another: a number of a type, or a tensor with its maps."""
        if here[0] < 0 and here[1] in self.changed and isinstance(t, Value):
            name, make = self.changed[here[1]]
            self.object(given, t, here, name, make, a)
        elif type(a) is Scalar and type(given) is int and a.dtype.is_integer and not isinstance(t, Multiple):
            self.integer(int, t, here)
        elif type(a) is Scalar and type(given) is float and isinstance(t, types.Float) and t not in HALVES:
            start, size = self.place(self.parameters(t, a))
            self.step(words.FLOAT, *here, float, start, A=t.bitwidth // 8)
        else:
            raise Unknown

    def integer(self, cls: Any, t: Any, here: tuple[int, int], **more: int) -> None:
        bits = t.bitwidth
        unsigned = not t.signed
        low, high = (0, (1 << bits) - 1) if unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)
        start, _ = self.place([getattr(ctypes, f"c_{types.unliteral(t)}")(0)])
        which = words.SMALL if not unsigned or bits < 64 else words.UNSIGNED
        most = high if which == words.SMALL else 0
        self.step(words.INTEGER, *here, cls, start, **{"A": bits // 8, "B": low, "C": most, "G": which, **more})

    def number(self, a: Any, t: Any, here: tuple[int, int]) -> None:
        if type(a) is bool and t == types.boolean:
            start, _ = self.place([False])
            self.step(words.BOOLEAN, *here, bool, start)
        elif type(a) is int and isinstance(t, types.Integer) and not isinstance(t, types.Literal):
            self.integer(int, t, here, **({} if t.signed else {"G": words.ABOVE}))
        elif type(a) is float and t == types.float64:
            start, _ = self.place([ctypes.c_double(0)])
            self.step(words.FLOAT, *here, float, start, A=8)
        elif isinstance(a, np.integer) and isinstance(t, types.Integer):
            self.integer(type(a), t, here, E=words.INDEXED)
        elif isinstance(a, np.floating) and isinstance(t, types.Float) and t not in HALVES and a.itemsize in (4, 8):
            start, _ = self.place([ctypes.c_double(0)])
            self.step(words.FLOAT, *here, type(a), start, A=t.bitwidth // 8)
        elif type(a) is Scalar and a.divisor == 1 and not isinstance(t, Multiple) and t not in HALVES:
            self.scalar(a, t, here)
        elif isinstance(a, (Scalar, np.generic, complex, enum.Enum)):
            self.asked(a, t, here)
        else:
            raise Unknown

    def scalar(self, a: Scalar, t: Any, here: tuple[int, int]) -> None:
        more = {"E": words.SCALAR, "F": self.kept_id(a.dtype)}
        if isinstance(t, types.Integer):
            self.integer(Scalar, t, here, **more)
        elif isinstance(t, types.Float):
            start, _ = self.place([ctypes.c_double(0)])
            self.step(words.FLOAT, *here, Scalar, start, A=t.bitwidth // 8, **more)
        else:
            self.asked(a, t, here)

    def asked(self, a: Any, t: Any, here: tuple[int, int], make: Callable[[Any], Any] = lambda obj: obj) -> None:
        """An argument that a Python function packs, which is told from others by its Numba type. make: gives what is
        packed of it."""
        kernel = self.kernel

        def ask(given: Any) -> bytes | None:
            obj = make(given)
            if type_of_argument(obj) != t:
                return None
            out: list[Any] = []
            kernel._prepare_args(t, obj, 0, [], out)
            return packing.block(out)[0]

        start, size = self.place(self.parameters(t, make(a)))
        self.step(words.ASKED, *here, type(a), start, C=size, D=self.kept_id(ask))

    def object(self, given: Any, t: Any, here: tuple[int, int], name: str = "_cute_launch",
               make: Callable[[Any], Any] = lambda obj: obj, a: Any = None) -> None:  # fmt: skip
        """An object of this library: it remembers its parameters as bytes, after the number of its type."""
        a = given if a is None else a
        if type_of_argument(a) != t:
            raise Unknown
        if isinstance(given, _CONSTANTS) or not hasattr(given, "__dict__"):
            if t.leaves or not isinstance(given, _CONSTANTS):
                raise Unknown
            self.same(given, t, here)
            return
        stream = self.used(arrays.stream_of_object(a))
        if tree.has_partial(t.spec) or not self.watches(a):  # its leaves may change
            if stream is not None:
                raise Unknown
            self.asked(given, t, here, make)
            return
        kernel, own = self.kernel, Value(t.spec)  # what may be replaced is watched

        def remember(obj: Any) -> bytes | None:
            leaves: list[Any] = []
            of = make(obj)
            spec = tree.flatten(of, leaves)
            if tree.identity(spec) != own.key or tree.has_partial(spec):
                return None
            kinds = own._code, arrays.code_of(arrays.stream_of_leaves(leaves))
            head = b"".join(n.to_bytes(8, "little") for n in kinds)
            values, offsets = packing.block(kernel._prepare_leaves(t, leaves, of))
            data = head.ljust(packing.HEADER, b"\0") + values
            object.__setattr__(obj, name, data)
            templates.learn(obj, name, data, leaves, [packing.HEADER + o for o in offsets])
            return data

        start, size = self.place(self.parameters(t, a))
        self.kept += (t, own)
        self.step(
            words.REMEMBERED, *here, type(given), start,
            A=self.name(name), B=own._code, C=size, D=self.kept_id(remember), E=arrays.code_of(stream),
        )  # fmt: skip

    def array(self, a: Any, t: Any, here: tuple[int, int]) -> None:
        itemsize = _itemsize(t.dtype)
        start, _ = self.place([0, 0, 0, itemsize, 0] + [0] * (2 * t.ndim))
        if t.ndim > words.MOST_DIMS:
            raise Unknown
        more = {"D": t.ndim, "E": _LAYOUTS[t.layout], "F": itemsize}
        stream = self.used(arrays.stream_of(a))
        view = arrays.view_of(a)
        if stream is not None:
            more["C"] = stream.device
        if view is not None and stream is not None:
            functions = arrays.exchange_of(a)
            assert functions is not None
            dtype = view.code | view.bits << 8 | view.lanes << 16
            grad = self.name("requires_grad") if hasattr(a, "requires_grad") else 0
            self.step(words.EXCHANGED, *here, type(a), start, A=functions[0], B=dtype, G=grad, **more)
            return
        how = arrays.description(a, t)
        if how is None or (how.device is not None and stream is None):
            raise Unknown
        if how.device is None:
            more["E"] = words.IN_ANY  # it is in the type that the array says itself
        self.step(words.DESCRIBED, *here, type(a), start, A=self.description_words(how, itemsize), **more)

    def description_words(self, how: arrays.Description, itemsize: int) -> int:
        """The words of a description; return their address."""

        def named(name: str | None) -> int:
            return 0 if name is None else self.name(name)

        device = how.device or (None, None)
        held = (ctypes.c_int64 * words.DESCRIPTION_WORDS)(
            named(how.checked), self.kept_id(how.is_), *map(named, device), *map(named, how.pointer),
            named(how.shape), named(how.strides), how.called, how.unit or itemsize, named(how.false),
        )  # fmt: skip
        self.kept.append(held)
        return ctypes.addressof(held)


_serials = itertools.count()


def name_of_changed() -> str:
    """A new name of an attribute by which an object remembers what a launch makes of it."""
    return f"_cute_launch_{next(_serials)}"
