# SPDX-License-Identifier: Apache-2.0
"""Launch kernels with what Numba's launches lack: clusters, large shared memory, programmatic dependent launch.

Plain `kernel[grid, block, stream, smem](…)` of a kernel of this library comes here as well (host/kernel.py). A launch
that was made once is made in machine code from then on (host/native).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...seam import CuteError
from ...seam.ground.collecting import seldom
from ...seam.ground.counterparts import counterpart
from ...seam.ground.naming import described
from ...seam.hooks import watch
from ...seam.hooks.recording import recording
from ...seam.marks.constexpr import forget_notes, static_arguments
from ...seam.marks.host_objects import python_of
from ..ground.numba import devices
from ..ground.numba_cuda import (
    _LAUNCH_CONFIG_KW,
    _dispatcher,
    _LaunchConfiguration,
    normalize_kernel_dimensions,
    types,
)
from . import peer_memory  # noqa: F401 - it answers for the driver
from .cluster import checked_cluster, checked_extents
from .current import current_device
from .debugging import raising_of_kernel
from .facts import facts
from .functions import Function, settled, submit
from .kept_code import kept
from .map_memory import MapMemory, no_memory
from .mapped import changes, mapped
from .native import arrays, launcher, oracle
from .native.options import PLAIN
from .native.plans import Setting, packed_for_good, plan
from .native.sites import FORGETS, Site, prepared, relate, relatives
from .options import DEFAULTS, options_of
from .recording import launch_recorded
from .refused import folding_launches
from .streams import core_stream

launcher.keep_by(kept)


def _settled(kernel: Any, setting: Setting) -> Setting:
    """Check the setting of a compiled kernel's launch, and fill in what the kernel knows itself."""
    cufunc = kernel._codelibrary.get_cufunc()
    function = Function(cufunc.handle, cufunc.attrs.shared, facts(kernel))
    return replace(settled(function, setting), kernel=kernel)


def _parameters(kernel: Any, args: Any, stream: Any, write_back: list[Any]) -> list[Any]:
    out: list[Any] = []
    for t, v in zip(kernel.argument_types, args):
        kernel._prepare_args(t, v, stream, write_back, out)
    return out


def _name_of(kernel: Any) -> str:
    """Return the name of a compiled kernel: one from the disk has no function."""
    return getattr(getattr(kernel, "py_func", None), "__name__", None) or str(kernel.entry_name)


def launched(kernel: Any, args: Any, setting: Setting) -> Setting:
    """Launch a compiled kernel, this library's or Numba's own; while a timeline is recorded, what tells it. Return how
    it was launched. setting: its stream is None for the one that the arguments' libraries are using."""
    recorder = recording()
    if recorder is not None and hasattr(kernel, "_cute_options") and not hasattr(kernel, "_cute_records"):
        launch_recorded(
            kernel, setting.grid, setting.block, recorder, lambda twin: launched(twin, args, setting)
        )  # fmt: skip
        return setting
    watch.launched(args, _name_of(kernel))
    setting = _settled(kernel, setting)
    stream = arrays.current_stream(args) if setting.stream is None else setting.stream
    write_back: list[Any] = []
    parameters = _parameters(kernel, args, core_stream(stream), write_back)
    with raising_of_kernel(kernel, core_stream(stream)):
        submit(setting, stream, parameters, _name_of(kernel))
    for write in write_back:
        write()
    return setting


def wanted(kernel: Any, args: Any, setting: Setting) -> oracle.Wanted | None:
    """Say what `launched` is to give the driver."""
    setting = _settled(kernel, setting)
    stream = arrays.current_stream(args) if setting.stream is None else setting.stream
    return oracle.wanted(setting, stream, args)


@contextmanager
def on_device_of(args: Any) -> Iterator[None]:
    """Make the GPU current on which the first argument lies that says where it does, as torch's do."""
    found = next(arrays.streams_of(args), None)
    if found is None or found.device == devices.get_context().device.id:
        yield
        return
    with current_device(found.device):
        yield


_MOST_LAUNCHES = 128
"""That a kernel remembers: as many as Numba's."""


def named_stream(stream: Any) -> bool:
    """Say whether a launch names its stream: 0 is the default one, which is that of the arguments' libraries."""
    return not (type(stream) is int and stream == 0) and stream is not None


def _beside_grid(setting: Setting) -> Any:
    """Return the settings of a launch besides its kernel and its grid."""
    return tuple(setting.block), setting.smem, setting.stream, setting.cluster, setting.options


def on_grid(plans: list[Any], grid: Any) -> list[Any]:
    """Return the plans of launches on other grids as those of launches on this one, the first to be tried last: those
    for whose clusters it will do."""
    found = []
    for one in reversed(plans):
        cluster = facts(one.setting.kernel).cluster or one.setting.cluster or (1, 1, 1)
        if not any(g % c for g, c in zip(grid, cluster)):
            found.append(one.on_grid(grid))
    return found


def _forget(kernel: Any) -> None:
    """Forget what was read of a kernel's Python, and what was compiled of it for blocks of some sizes."""
    forget_notes(kernel.py_func)
    for bounded in getattr(kernel, "_cute_bounded", {}).values():
        bounded.recompile()


FORGETS.append(_forget)


def compiled(kernel: Any, args: Any, configuration: Any) -> Any:
    """Return what a kernel is compiled to for arguments. configuration: Numba's."""
    dispatcher = kernel._select_launch_config_dispatcher(configuration)
    found = _dispatcher.Dispatcher._cuda_call(dispatcher, *args, **{_LAUNCH_CONFIG_KW: configuration})
    found = fitting(dispatcher, found, args)
    dispatcher._update_launch_config_sensitivity(found, configuration)
    return found


def fitting(dispatcher: Any, found: Any, args: Any) -> Any:
    """Return what a kernel is compiled to for ints that Numba takes for ones of another type, as it does those that 63
    bits and a sign do not hold, and all in a tuple like one that it saw with such; `found`, what it was found to be,
    for others."""
    if all(_fits(t, a, dispatcher._can_compile) for t, a in zip(found.argument_types, args)):
        return found
    return dispatcher.compile(tuple(map(dispatcher.typeof_pyval, args)))


def _fits(t: Any, a: Any, typed: bool) -> bool:
    """typed: whether types are found of the arguments, and no signature was given."""
    if isinstance(a, tuple) and isinstance(t, types.BaseTuple):
        return all(_fits(u, b, typed) for u, b in zip(t, a))
    if type(a) is not int or t not in (types.int64, types.uint64):
        return True
    if t == types.uint64:
        return a >= 1 << 63 or not typed
    return -(1 << 63) <= a < 1 << 63


_folding = folding_launches(lambda launch: launch.kernel.py_func)


class Launch:
    """A kernel with its launch configuration; calling it with the kernel's arguments launches. See `launch`."""

    def __init__(
        self, kernel: Any, grid: Any, block: Any, cluster: Any, smem: int, stream: Any, graph: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        self.given = kernel = counterpart(kernel)
        kernel = getattr(kernel, "dispatcher", kernel)
        grid, block = normalize_kernel_dimensions(checked_extents("grid", grid), checked_extents("block", block))
        if type(smem) is bool or not hasattr(smem, "__index__"):
            raise CuteError(f"launch: smem {described(smem)}: give the bytes of dynamic shared memory, or 0")
        self.kernel, self.grid, self.block = kernel, grid, block
        self.cluster = None if cluster is None else checked_cluster(cluster)
        asked = options_of(cluster, options)
        if graph and asked != PLAIN:
            named = next(f"{k}={v!r}" for k, v in options.items() if v is not DEFAULTS[k])
            raise CuteError(
                f"launch: graph=True with {named}: a graph of one kernel waits for what is launched before it, and "
                "records nothing; leave one"
            )
        self.smem, self.graph = smem, graph
        self.stream, self._configuration = stream, None
        handle = int(self.configuration.stream.handle) if named_stream(stream) else None
        self._setting = Setting(None, 0, grid, block, smem, handle, self.cluster, asked)
        self._site: Site | None = None
        self._launched = False
        self._launch: Callable[..., None] = self._first

    @property
    def configuration(self) -> Any:
        """Numba's configuration, which is made when it is first asked for: machine code needs none."""
        if self._configuration is None:
            try:
                self._configuration = _LaunchConfiguration(
                    self.kernel, self.grid, self.block, core_stream(self.stream), self.smem
                )
            except TypeError as e:
                raise CuteError(f"launch: stream {described(self.stream)}: {e}") from e
        return self._configuration

    def _compiled(self, args: Any) -> Any:
        return compiled(self.kernel, args, self.configuration)

    def _first(self, *given: Any, **named: Any) -> None:
        """Launch for the first time, by the plans of launches on other grids, if there are any."""
        self._launch = self._slowly
        known = on_grid(relatives(self.kernel, _beside_grid(self._setting)), self.grid)
        if known:
            self._at_site(known)
        self._launch(*given, **named)

    def _at_site(self, plans: list[Any]) -> None:
        """Launch in machine code from now on."""
        if self._site is None:
            self._site = Site(self._slowly, self.kernel, self._again)
            self._launch = self._site.call
            self._launched = True
        for one in plans:
            self._site.add(one)

    def _slowly(self, *given: Any, **named: Any) -> None:
        """Launch what no plan is of, and make one of it."""
        with seldom, on_device_of(given):
            whole = static_arguments(self.given, given, named)
            stream = arrays.current_stream(whole) if self._setting.stream is None else self._setting.stream
            with MapMemory(self.grid, stream) as memory:
                args = mapped(self.kernel, whole, memory=memory)
                setting = launched(self._compiled(args), args, self._setting)
            if memory.used or named or setting.kernel is None or getattr(self.given, "__self__", None) is not None:
                return
            if self.kernel._launch_config_sensitive:
                return
            if not self._launched:  # machine code is made for what is launched again
                self._launched = True
                return
            made = plan(setting, given, args, changes(self.kernel, whole, args), python_of(self.given))
            relate(self.kernel, _beside_grid(self._setting), made)
            self._at_site([made])

    def _again(self, *given: Any) -> oracle.Wanted | None:
        """Say what a launch with these arguments is to be."""
        with on_device_of(given):
            args = mapped(self.kernel, static_arguments(self.given, given))
            return wanted(self._compiled(args), args, self._setting)

    @_folding
    def __call__(self, *args: Any, **named: Any) -> None:
        self._launch(*args, **named)

    @_folding
    def prepare(self, *args: Any, **named: Any) -> Callable[[], None]:
        """Compile, check and pack once; the call that is returned only launches, on the same arguments.

        args, named: the kernel's arguments. Arrays must already be on the device (CuteError): nothing is copied back.
        """
        if recording() is not None:
            raise CuteError("timeline: a prepared launch records nothing: give the launch itself, not its prepare(…)")
        with on_device_of(args):
            whole = mapped(self.kernel, static_arguments(self.given, args, named), memory=no_memory)
            own = self._compiled(whole)
            setting = _settled(own, self._setting)
            write_back: list[Any] = []
            parameters = _parameters(own, whole, self.configuration.stream, write_back)
            if write_back:
                raise CuteError("prepare() takes device arrays: a host array would have to be copied at each launch")

            def refused() -> None:
                with on_device_of(whole):
                    submit(
                        setting,
                        arrays.current_stream(whole) if setting.stream is None else setting.stream,
                        parameters,
                        _name_of(own),
                    )

            stream = arrays.current_stream(whole) if setting.stream is None else setting.stream
            made = packed_for_good(setting, parameters, whole)
            call: Callable[[], None] = prepared(made, refused, self.graph, stream)
            return call


def launch(kernel: Any, *, grid: Any, block: Any, cluster: Any = None, smem: int = 0, stream: Any = 0,
           pdl: bool = False, graph: bool = False, cooperative: bool = False, fallback_cluster: Any = None,
           preferred_smem_carveout: int | None = None, launch_completion_event: Any = None,
           launch_completion_event_flags: int = 0, programmatic_event: Any = None, programmatic_event_flags: int = 0,
           programmatic_event_trigger_at_block_start: int = 0) -> Launch:  # fmt: skip
    """Prepare a launch with what `kernel[grid, block, stream, smem]` cannot say: ``launch(kernel, grid=…, …)(*args)``.

    kernel: a ``@cuda.jit`` kernel. grid: CTAs, an int or up to three. block: threads of a CTA, likewise. cluster: CTAs
    of a cluster, likewise, at most 16 (sm_90); None for the kernel's own shape. smem: bytes of dynamic shared memory;
    0 takes what the kernel's SmemAllocator needs. stream: Numba's, torch's, CuPy's, an int, or anything with
    `__cuda_stream__`; 0 is the one that torch or CuPy is using, if an argument is of theirs, else CUDA's default
    stream. pdl: programmatic dependent launch (sm_90). graph: what `prepare` gives launches a CUDA graph of the one
    kernel, which takes the host less than half of the time; the kernel itself, while the stream is captured. Prepare
    it before a capture begins. It never runs beside itself, on two streams, and profilers show a graph.

    cooperative: all CTAs run at once, so that they may wait for each other; more than the GPU holds the driver refuses.
    fallback_cluster: the shape of the clusters that the driver makes where it has no room for those of `cluster`, a
    multiple of it along each axis; kernels have no shape of their own then. preferred_smem_carveout: percent of an SM's
    memory that is to be shared memory, not L1 cache, as a hint; None leaves it to the driver. launch_completion_event:
    an event (CUevent, cudaEvent_t, torch.cuda.Event, …, without timing) that is recorded when all CTAs have begun.
    programmatic_event: one that is recorded when all have called `arch.griddepcontrol_launch_dependents` or ended, or
    with programmatic_event_trigger_at_block_start=1 begun (sm_90). launch_completion_event_flags,
    programmatic_event_flags: CU_EVENT_RECORD_*.

    CuteError, here or by the call: a cluster that is none or is not the kernel's, a grid that is not a multiple of it,
    more shared memory than the device has, options that are none, or a graph with any of them. LaunchWarning: less
    shared memory than the kernel's allocations take, which it then gets.

    >>> @cute.kernel
    ... def kernel():
    ...     cute.printf("{}", arch.block_idx_in_cluster())
    >>> with cute.simulation():
    ...     cute.launch(kernel, grid=4, block=1, cluster=2)()
    0
    1
    0
    1
    """
    more = (
        pdl, cooperative, fallback_cluster, preferred_smem_carveout, launch_completion_event,
        launch_completion_event_flags, programmatic_event, programmatic_event_flags,
        programmatic_event_trigger_at_block_start,
    )  # fmt: skip
    key = grid, block, cluster, smem, stream, graph
    if type(stream) is not int or type(smem) is not int or getattr(kernel, "__self__", None) is not None:
        return Launch(kernel, *key, **dict(zip(DEFAULTS, more)))
    try:
        known = kernel.__dict__.setdefault("_cute_launches", {})
        return known[key, more]  # type: ignore[no-any-return]
    except (AttributeError, TypeError):  # no kernel, or a list
        return Launch(kernel, *key, **dict(zip(DEFAULTS, more)))
    except KeyError:
        made = Launch(kernel, *key, **dict(zip(DEFAULTS, more)))
        if len(known) < _MOST_LAUNCHES:
            known[key, more] = made
        return made
