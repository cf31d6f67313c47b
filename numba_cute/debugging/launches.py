# SPDX-License-Identifier: Apache-2.0
"""`debug`: run a kernel on the GPU with every wait watched and every access checked, and raise what was wrong."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..compiler.host import debugged
from ..compiler.host.facts import facts
from ..compiler.host.launching import Launch, launched, on_device_of
from ..compiler.host.map_memory import no_memory
from ..compiler.host.mapped import mapped
from ..compiler.host.refused import folding_launches
from ..seam import CuteError
from ..seam.ground.folding import folding
from ..seam.marks.constexpr import LAUNCHER, is_host, static_arguments
from ..sim.ground.report import SimError, UninitializedReadError, count
from . import pieces
from .instrument import CHECKS, Instrumented, instrument
from .memory import names_of, ranges_of, reached
from .records import Ran, Range, error_of, hang_of

_FLOATS = {16: {"Float16": 0x7C00, "BFloat16": 0x7F80}, 32: {"Float32": 0x7F800000, "TFloat32": 0x7F800000}}
_FLOATS[64] = {"Float64": 0x7FF0000000000000}


def debug(
    kernel: Any, *, timeout: float = 2.0, most: float = 60.0, checks: Any = True, cluster: Any = None,
    outputs: Any = (),
) -> Debugged:  # fmt: skip
    """Run a kernel on the GPU, and raise what is wrong with it: `debug(kernel)[grid, block, stream, smem](*args)`.

    kernel: a kernel of `cuda.jit` or `cute.kernel`; or a function of the host that `cute.jit` marks: `debug(f)(*args)`
    debugs what it launches. timeout: seconds that a wait may last; then the kernel is ended. most: seconds that the
    kernel may run; then it is told to end. checks: True for all, or names of some: "waits", "bounds", "alignment",
    "numbers" (stores of NaN), "unwritten" (stores of what nobody wrote to shared memory) and "asserts". cluster: CTAs
    of a cluster, as for `cute.launch`. outputs: names of parameters, arrays each element of which the kernel is to
    write.

    The launch is waited for. Raises the simulator's exceptions, in its words: DeadlockError (who waits where and for
    what), OutOfBoundsError, UninitializedReadError, SimError for a NaN, and the AssertionError of an `assert`. All
    threads end by themselves, so the CUDA context survives, unless a message says that it does not. NumPy arrays are
    copied to the GPU and back.

    >>> @cuda.jit
    ... def shifted(a, out):
    ...     i = arch.thread_idx()[0]
    ...     out[i] = a[i + 1]
    >>> a, out = np.zeros(32, np.float32), np.zeros(32, np.float32)
    >>> cute.debug(shifted)[1, 31](a, out)
    >>> cute.debug(shifted)[1, 32](a, out)
    Traceback (most recent call last):
    numba_cute.sim.OutOfBoundsError: ...
    """
    for name, value in (("timeout", timeout), ("most", most)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 4000:
            raise CuteError(f"debug: {name} {value!r}: give seconds, more than 0 and less than 4000")
    named = CHECKS if checks is True else () if checks is False or checks is None else _names("checks", checks)
    wrong = [c for c in named if c not in CHECKS]
    if wrong:
        raise CuteError(f"debug: checks {wrong[0]!r}: there are {', '.join(CHECKS)}")
    return Debugged(kernel, float(timeout), float(most), named, cluster, _names("outputs", outputs))


def _names(option: str, given: Any) -> tuple[str, ...]:
    """Return the names that an option gives: one, or several."""
    names = (given,) if isinstance(given, str) else given
    if not isinstance(names, (tuple, list, set, frozenset)) or not all(isinstance(n, str) for n in names):
        raise CuteError(f"debug: {option} {given!r}: give a name, or several in a list")
    return tuple(names)


class Debugged:
    """A kernel to be debugged; index it with the launch configuration. `debug` makes it."""

    def __init__(
        self, kernel: Any, timeout: float, most: float, checks: tuple[str, ...], cluster: Any, outputs: tuple[str, ...]
    ) -> None:
        self.kernel, self.timeout, self.most, self.checks = kernel, timeout, most, checks
        self.cluster, self.outputs = cluster, outputs

    def __getitem__(self, config: Any) -> Callable[..., None]:
        """`[grid, block]`, and optionally stream and the bytes of dynamic shared memory."""
        config = config if isinstance(config, tuple) else (config,)
        if not 2 <= len(config) <= 4:
            raise CuteError(f"debug(...)[{config}]: give grid, block, and optionally stream and smem")
        grid, block, stream, smem = [*config, 0, 0][:4]
        return partial(self._launch, self.kernel, {"grid": grid, "block": block, "stream": stream, "smem": smem})

    @folding
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Run a function of the host on `args` and `named`, and debug what it launches. CuteError for a kernel."""
        if not is_host(self.kernel):
            raise CuteError("debug(kernel)(…): give the launch configuration: debug(kernel)[grid, block](…)")
        token = LAUNCHER.set(self._launch_for)
        try:
            return self.kernel(*args, **named)
        finally:
            LAUNCHER.reset(token)

    def _launch_for(self, kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
        known = {name: options[name] for name in ("grid", "block", "smem", "cooperative", "fallback_cluster")}
        self._launch(kernel, {**known, "stream": 0, "cluster": options["cluster"]}, *args)

    @folding_launches(lambda debugged: getattr(debugged.kernel, "py_func", debugged.kernel))
    def _launch(self, kernel: Any, options: dict[str, Any], *args: Any, **named: Any) -> None:
        options = {"cluster": self.cluster, **options}
        args, copies = debugged.on_gpu(static_arguments(kernel, args, named))
        launch = Launch(kernel, **options)
        with on_device_of(args):
            _Run(self, launch, mapped(launch.kernel, args, memory=no_memory), names_of(launch.kernel, args)).run()
        for array, copy in copies:
            if array.flags.writeable:
                copy.copy_to_host(array)


def twin_of(kernel: Any, options: dict[str, Any], checks: tuple[str, ...]) -> tuple[Any, Instrumented]:
    """Compile a kernel's debugged twin, which it remembers; gives what its PTX became too."""
    known = kernel.__dict__.setdefault("_cute_debugged", {})
    if checks not in known:
        made: list[Instrumented] = []

        def rewrite(ptx: str) -> str:
            made.append(instrument(ptx, checks))
            return made[0].ptx

        known[checks] = debugged.twin(kernel, options, rewrite), made[0]
    found: tuple[Any, Instrumented] = known[checks]
    return found


def table_of(ranges: list[Range], strict: bool) -> Any:
    """Return the contents of the symbol RANGES. strict: whether what is in no range is reported."""
    words = np.zeros(2 + 4 * pieces.MOST_RANGES, np.uint64)
    words[0] = len(ranges) | int(strict) << 32
    for i, r in enumerate(ranges):
        width = getattr(r.dtype, "width", 0)
        infinity = _FLOATS.get(width, {}).get(str(r.dtype), 0)
        words[2 + 4 * i : 6 + 4 * i] = (r.start, r.stop, infinity, width if infinity else 0)
    return words


class _Run:
    """One launch."""

    def __init__(self, of: Debugged, launch: Any, args: Any, names: list[str]) -> None:
        self.of, self.launch, self.args, self.names = of, launch, args, names
        self.setting = launch._setting
        kernel = launch._compiled(args)
        self.name = kernel.py_func.__name__
        self.twin, self.made = twin_of(kernel, dict(launch.kernel.targetoptions), of.checks)
        self.ranges = ranges_of(args, names)

    def run(self) -> None:
        """Launch, wait, and raise what was wrong."""
        board = debugged.Board(pieces.RECORD * pieces.MOST, self.control_bytes)
        self.set(board.records, board.control)
        wanted = self._fill()
        launched(self.twin, self.args, self.setting)
        finished, error = self._wait(board)
        if finished:  # a kernel that goes on writes there
            board.free()
        if error is not None:
            raise error
        self._check_written(wanted)

    @property
    def control_bytes(self) -> int:
        """The bytes of the control words."""
        return pieces.GATES + (64 * int(np.prod(self.setting.grid)) if self.made.gates else 0)

    def _ran(self) -> Ran:
        cluster = facts(self.twin).cluster or self.setting.cluster or (1, 1, 1)
        return Ran(
            self.name, self.made.sites, self.ranges, self.setting.grid, self.setting.block, self.of.timeout, cluster
        )

    def set(self, records: int, control: int) -> None:
        """Tell the module where to write, and what memory the kernel may use. records, control: addresses."""
        known = [*self.ranges, *reached(self.ranges, debugged.parameters_of(self.twin, self.args))]
        for name in self.made.symbols:
            found = debugged.symbol_of(self.twin, name)
            if found is not None:
                known.append(Range(found[0], sum(found), name))
        self.ranges = known[: pieces.MOST_RANGES]
        strict = "bounds" in self.of.checks and len(known) <= pieces.MOST_RANGES
        limit = max(pieces.PATIENCE, int(self.of.timeout * 1e9) >> 20)
        debugged.set_symbol(self.twin, pieces.TABLE, np.array([records, control, limit, 0], np.uint64))
        debugged.set_symbol(self.twin, pieces.RANGES, table_of(self.ranges, strict))

    def _wait(self, board: debugged.Board) -> tuple[bool, BaseException | None]:
        """Wait until the kernel has ended; gives whether it has, and what was wrong."""
        stream, began, told = debugged.stream_of(self.setting, self.args), time.monotonic(), False
        while True:
            state = debugged.state_of(stream)
            if state == "":
                return True, error_of(board.data(), self._ran())
            if state is not None:
                return False, self._lost(state, board.data())
            waited = time.monotonic() - began
            if waited > self.of.most + self.of.timeout + 2:
                return False, hang_of(self._ran(), board.data(), waited)
            if waited > self.of.most and not told:
                told = True
                board.end()
            time.sleep(0.0005 if waited < 0.1 else 0.01)

    def _lost(self, state: str, data: bytes) -> BaseException:
        """The exception of a kernel that the GPU stopped."""
        found = error_of(data, self._ran())
        words = f"the GPU stopped the kernel, {state}, so the CUDA context is lost: end the process"
        if found is None:
            return SimError(
                f"kernel {self.name}: {words}; no check saw why: copies by TMA, cp.async and the matrix unit are not "
                "watched, nor is code that is linked in"
            )
        return type(found)(f"{found}\n  {words}")

    # outputs
    def _fill(self) -> list[Range]:
        """Fill the outputs with what nobody writes."""
        wanted = [self._output(name) for name in self.of.outputs]
        for r in wanted:
            debugged.fill(r.start, r.stop - r.start, pieces.FILL & 0xFFFF)
        return wanted

    def _output(self, name: str) -> Range:
        if name not in self.names:
            raise CuteError(
                f"debug: outputs {name!r} is not a parameter of the kernel, which has {', '.join(self.names)}"
            )
        found = next((r for r in self.ranges if r.name == name), None)
        if found is None or found.dtype is None or found.dtype.width not in (16, 32, 64):
            raise CuteError(f"debug: outputs {name!r}: give an array or tensor of elements of 16, 32 or 64 bits")
        if found.dtype.width == 16 and found.dtype.is_integer:
            raise CuteError(f"debug: outputs {name!r}: of integers of 16 bits each may be one that was written")
        return found

    def _check_written(self, wanted: list[Range]) -> None:
        for r in wanted:
            held = debugged.contents(r.start, (r.stop - r.start) // r.dtype.bytes, f"<u{r.dtype.bytes}")
            fill = int.from_bytes((pieces.FILL & 0xFFFF).to_bytes(2, "little") * (r.dtype.bytes // 2), "little")
            missing = np.flatnonzero(held == fill)
            if missing.size:
                raise UninitializedReadError(
                    f"output {r.name} of kernel {self.name}: {missing.size} of {count(held.size, 'element')} were "
                    f"never written, element {missing[0]} of its memory first"
                )
