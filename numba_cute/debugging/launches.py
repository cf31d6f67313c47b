# SPDX-License-Identifier: Apache-2.0
"""`debug`: run a kernel on the GPU with every wait watched and every access checked, and raise what was wrong."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from cuda.bindings import driver as bindings
from cuda.core import ObjectCode
from numba.cuda.cudadrv import devices
from numba.cuda.cudadrv.libs import get_cudalib

from ..compiler.ground.asserting import ASSERTS
from ..compiler.ground.target import arch_name
from ..compiler.host import linking, ptxas
from ..compiler.host.facts import facts
from ..compiler.host.launching import Launch, launched, on_device_of
from ..compiler.host.mapped import mapped
from ..compiler.host.native import arrays, packing
from ..compiler.host.streams import core_stream
from ..seam import CuteError
from ..seam.marks.constexpr import LAUNCHER, is_host, static_arguments
from ..sim.ground.report import SimError, UninitializedReadError, count
from . import pieces
from .instrument import CHECKS, Instrumented, instrument
from .memory import names_of, on_gpu, ranges_of, reached
from .records import Ran, Range, error_of, hang_of

_FLOATS = {16: {"Float16": 0x7C00, "BFloat16": 0x7F80}, 32: {"Float32": 0x7F800000, "TFloat32": 0x7F800000}}
_FLOATS[64] = {"Float64": 0x7FF0000000000000}


def debug(
    kernel: Any, *, timeout: float = 2.0, most: float = 60.0, checks: Any = True, cluster: Any = None, outputs: Any = (),
) -> Debugged:  # fmt: skip
    """A kernel that runs on the GPU and says what is wrong with it: `debug(kernel)[grid, block, stream, smem](*args)`.

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
    """
    for name, value in (("timeout", timeout), ("most", most)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 4000:
            raise CuteError(f"debug: {name} {value!r}: give seconds, more than 0 and less than 4000")
    named = CHECKS if checks is True else (checks,) if isinstance(checks, str) else tuple(checks or ())
    wrong = [c for c in named if c not in CHECKS]
    if wrong:
        raise CuteError(f"debug: checks {wrong[0]!r}: there are {', '.join(CHECKS)}")
    given = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    return Debugged(kernel, float(timeout), float(most), named, cluster, given)


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
        grid, block, stream, smem = (*config, *(0, 0)[len(config) - 2 :])
        return partial(self._launch, self.kernel, {"grid": grid, "block": block, "stream": stream, "smem": smem})

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

    def _launch(self, kernel: Any, options: dict[str, Any], *args: Any, **named: Any) -> None:
        options = {"cluster": self.cluster, **options}
        args, copies = on_gpu(static_arguments(kernel, args, named))
        launch = Launch(kernel, **options)
        with on_device_of(args):
            _Run(self, launch, mapped(launch.kernel, args), names_of(launch.kernel, args)).run()
        for array, copy in copies:
            if array.flags.writeable:
                copy.copy_to_host(array)


def twin_of(kernel: Any, options: dict[str, Any], checks: tuple[str, ...]) -> tuple[Any, Instrumented]:
    """Compile a kernel's debugged twin, which it remembers; gives what its PTX became too."""
    known = kernel.__dict__.setdefault("_cute_debugged", {})
    if checks not in known:
        given = {**getattr(kernel, "_cute_options", options), "lineinfo": True, "lto": False}
        with ASSERTS:
            twin = type(kernel)(kernel.py_func, kernel.argtypes, **given)
        twin._cute_records = True
        library = twin._codelibrary
        made = instrument(library.get_asm_str(), checks)
        cc = library._ensure_cc(None)
        parts = sorted(library._linking_files, key=lambda p: str(getattr(p, "name", p)))
        parts += [get_cudalib("cudadevrt", static=True)] if library.use_cooperative or library.needs_cudadevrt else []
        registers = library._max_registers
        cubin, _ = ptxas.assemble(made.ptx, arch_name(cc), registers, relocatable=bool(parts))
        cubin = linking.link(cubin, parts, arch_name(cc), cc, registers) if parts else cubin
        library._cubin_cache[cc] = ObjectCode.from_cubin(cubin, name=kernel.py_func.__name__)
        known[checks] = twin, made
    found: tuple[Any, Instrumented] = known[checks]
    return found


def _checked(result: Any) -> Any:
    """What a call of the driver gives; CuteError with the driver's word if it failed."""
    error, *values = result
    if error != bindings.CUresult.CUDA_SUCCESS:
        raise CuteError(f"debug: the driver says {error.name}")
    return values[0] if len(values) == 1 else values


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
        blocks = int(np.prod(self.setting.grid))
        size = pieces.RECORD * pieces.MOST
        flags = bindings.CU_MEMHOSTALLOC_DEVICEMAP | bindings.CU_MEMHOSTALLOC_PORTABLE
        host = int(_checked(bindings.cuMemHostAlloc(size, flags)))
        control = int(_checked(bindings.cuMemAlloc(pieces.GATES + (64 * blocks if self.made.gates else 0))))
        finished = False
        try:
            ctypes.memset(host, 0, size)
            _checked(bindings.cuMemsetD8(control, 0, pieces.GATES + (64 * blocks if self.made.gates else 0)))
            self._set(int(_checked(bindings.cuMemHostGetDevicePointer(host, 0))), control)
            written = self._fill()
            launched(self.twin, self.args, self.setting)
            finished, error = self._wait(host, size, control)
        finally:
            if finished:  # a kernel that goes on writes there
                bindings.cuMemFreeHost(host)
                bindings.cuMemFree(control)
        if error is not None:
            raise error
        self._check_written(written)

    def _ran(self) -> Ran:
        cluster = facts(self.twin).cluster or self.setting.cluster or (1, 1, 1)
        return Ran(
            self.name, self.made.sites, self.ranges, self.setting.grid, self.setting.block, self.of.timeout, cluster
        )

    def _set(self, records: int, control: int) -> None:
        """Tell the module where to write, and what memory the kernel may use."""
        library = _checked(bindings.cuKernelGetLibrary(self.twin._codelibrary.get_cufunc().handle))
        known = list(self.ranges)
        parameters: list[Any] = []
        for t, v in zip(self.twin.argument_types, self.args):
            self.twin._prepare_args(t, v, core_stream(0), [], parameters)
        known += reached(self.ranges, packing.block(parameters)[0])
        for symbol in self.made.symbols:
            error, address, nbytes = bindings.cuLibraryGetGlobal(library, symbol.encode())
            if error == bindings.CUresult.CUDA_SUCCESS:
                known.append(Range(int(address), int(address) + int(nbytes), symbol))
        self.ranges = known[: pieces.MOST_RANGES]
        table = table_of(self.ranges, len(known) <= pieces.MOST_RANGES)
        limit = max(pieces.PATIENCE, int(self.of.timeout * 1e9) >> 20)
        words = np.array([records, control, limit, 0], np.uint64)
        for symbol, values in ((pieces.TABLE, words), (pieces.RANGES, table)):
            address, _ = _checked(bindings.cuLibraryGetGlobal(library, symbol.encode()))
            _checked(bindings.cuMemcpyHtoD(address, values.ctypes.data, values.nbytes))

    def _wait(self, host: int, size: int, control: int) -> tuple[bool, BaseException | None]:
        """Wait until the kernel has ended; gives whether it has, and what was wrong."""
        stream = arrays.current_stream(self.args) if self.setting.stream is None else self.setting.stream
        began, told = time.monotonic(), False
        results, most = bindings.CUresult, self.of.most
        while True:
            (code,) = bindings.cuStreamQuery(stream)
            data = (ctypes.c_char * size).from_address(host)
            if code == results.CUDA_SUCCESS:
                return True, error_of(bytes(data), self._ran())
            if code != results.CUDA_ERROR_NOT_READY:
                return False, self._lost(code, bytes(data))
            waited = time.monotonic() - began
            if waited > most + self.of.timeout + 2:
                return False, hang_of(self._ran(), bytes(data), waited)
            if waited > most and not told:
                told = self._end(control)
            time.sleep(0.0005 if waited < 0.1 else 0.01)

    @staticmethod
    def _end(control: int) -> bool:
        """Tell a running kernel to end."""
        word = np.ones(1, np.uint32)
        stream = _checked(bindings.cuStreamCreate(bindings.CUstream_flags.CU_STREAM_NON_BLOCKING))
        _checked(bindings.cuMemcpyHtoDAsync(control, word.ctypes.data, word.nbytes, stream))
        return True

    def _lost(self, code: Any, data: bytes) -> BaseException:
        """The exception of a kernel that the GPU stopped."""
        found = error_of(data, self._ran())
        words = (
            f"the GPU stopped the kernel, {code.name}, so the CUDA context is lost: end the process"
        )
        if found is None:
            return SimError(
                f"kernel {self.name}: {words}; no check saw why: copies by TMA, cp.async and the matrix unit are not "
                "watched, nor is code that is linked in"
            )
        return type(found)(f"{found}\n  {words}")

    # ------------------------------------------------------------------ outputs
    def _fill(self) -> list[Range]:
        """Fill the outputs with what nobody writes."""
        wanted = [self._output(name) for name in self.of.outputs]
        for r in wanted:
            _checked(bindings.cuMemsetD16(r.start, pieces.FILL & 0xFFFF, (r.stop - r.start) // 2))
        return wanted

    def _output(self, name: str) -> Range:
        if name not in self.names:
            raise CuteError(f"debug: outputs {name!r} is no parameter of the kernel, which has {', '.join(self.names)}")
        found = next((r for r in self.ranges if r.name == name), None)
        if found is None or found.dtype is None or found.dtype.width not in (16, 32, 64):
            raise CuteError(f"debug: outputs {name!r}: give an array or tensor of elements of 16, 32 or 64 bits")
        if found.dtype.width == 16 and found.dtype.is_integer:
            raise CuteError(f"debug: outputs {name!r}: of integers of 16 bits each may be one that was written")
        return found

    def _check_written(self, wanted: list[Range]) -> None:
        for r in wanted:
            held = np.empty((r.stop - r.start) // r.dtype.bytes, f"<u{r.dtype.bytes}")
            _checked(bindings.cuMemcpyDtoH(held.ctypes.data, r.start, held.nbytes))
            fill = int.from_bytes((pieces.FILL & 0xFFFF).to_bytes(2, "little") * (r.dtype.bytes // 2), "little")
            missing = np.flatnonzero(held == fill)
            if missing.size:
                raise UninitializedReadError(
                    f"output {r.name} of kernel {self.name}: {missing.size} of {count(held.size, 'element')} were never "
                    f"written, element {missing[0]} of its memory first"
                )
