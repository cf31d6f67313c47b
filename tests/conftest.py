# SPDX-License-Identifier: Apache-2.0
"""The one fixture of kernel tests: `run` takes a kernel through the simulator, the assembler and the GPU."""

from __future__ import annotations

import functools
import gc
import os
import re
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis.internal.conjecture import providers

import numba_cute as cute

from . import no_compiler, ptx_digests, workers
from .alike import first_alike
from .thinned import thin

os.environ.setdefault("NUMBA_CUTE_CACHE", "0")  # what is tested is compiled (tests/compiler/test_disk_cache.py apart)

Place = Callable[[np.ndarray], Any]
POISON = 0xA5


def poison(array: np.ndarray) -> None:
    """Fill with what no kernel computes: NaN where the type has one, 0xA5 bytes elsewhere."""
    if np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_:
        array.view(np.uint8)[...] = POISON
    else:
        array[...] = np.array(np.nan, dtype=array.dtype)


def assert_close(got: np.ndarray, want: np.ndarray, *, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Compare element by element in float64 and show the first bad coordinate (a global score hides a lost tile)."""
    assert got.shape == want.shape, f"shapes {got.shape} and {want.shape} differ"
    g, w = got.astype(np.float64), want.astype(np.float64)
    bad = ~(np.abs(g - w) <= atol + rtol * np.abs(w))  # also true for NaN
    if bad.any():
        at = tuple(int(x) for x in np.argwhere(bad)[0])
        raise AssertionError(
            f"{int(bad.sum())} of {bad.size} elements are wrong; the first is at {at}: got {g[at]!r}, want {w[at]!r} "
            f"(rtol {rtol:g}, atol {atol:g})"
        )


@dataclass
class Places:
    """Where a kernel's arrays live: `place(array)` gives what the kernel is called with, the same one each time, and
    for `array.T` the same turned."""

    move: Callable[[np.ndarray], Any]
    moved: dict[Any, tuple[np.ndarray, Any]] = field(default_factory=dict)

    def __call__(self, array: np.ndarray) -> Any:
        if array.flags.f_contiguous and not array.flags.c_contiguous:
            turned = self(array.T)
            return turned.T if isinstance(turned, np.ndarray) else turned.permute(*reversed(range(turned.ndim)))
        moved = self.moved.get(self.key(array)) or self.moved.get(self.key(array.T))
        if moved is None:
            moved = self.moved[self.key(array)] = (array, self.move(array))
        # of one row or column, an array and its `.T` are both contiguous: the first that came holds the memory
        return moved[1] if moved[0].shape == array.shape else moved[1].reshape(array.shape)

    @staticmethod
    def key(array: np.ndarray) -> Any:
        return array.ctypes.data, array.shape, array.strides, array.dtype

    def arguments(self, args: Sequence[Any]) -> list[Any]:
        """Arrays are placed; a plain function is called with `place`, to make tensors, TMA atoms and the like."""
        placed = []
        for a in args:
            if isinstance(a, np.ndarray):
                placed.append(self(a))
            elif isinstance(a, type(lambda: None)) and not getattr(a, "__cute_traced__", False):
                placed.append(a(self))
            else:
                placed.append(a)
        return placed


def _torch_device(array: np.ndarray) -> Any:
    import torch

    if array.dtype.kind in "fiub" and array.dtype.isbuiltin == 1:
        return torch.from_numpy(np.ascontiguousarray(array)).cuda()
    names = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")
    named = {name: getattr(torch, name) for name in names if hasattr(torch, name)}
    bits = torch.from_numpy(np.ascontiguousarray(array).view(f"i{array.dtype.itemsize}"))
    return bits.view(named.get(array.dtype.name, bits.dtype)).cuda()


def _back(array: np.ndarray, tensor: Any) -> None:
    import torch

    ints = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[array.dtype.itemsize]
    array.view(f"i{array.dtype.itemsize}")[...] = tensor.contiguous().view(ints).cpu().numpy()


class Simulator:
    """Runs the kernel's Python in the simulator, on the arrays themselves. file: the test's."""

    name = "simulator"

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(
        self, kernel: Any, grid: Any, block: Any, args: Sequence[Any], *, outputs: Sequence[np.ndarray] = (),
        inouts: Sequence[np.ndarray] = (),
        check: Callable[[], None] | None = None, cluster: Any = None, smem: int = 0, arch: str = "sm_90a",
    ) -> None:  # fmt: skip
        for out in outputs:
            poison(out)
        simulated = cute.simulate(first_alike(kernel, self.file), cluster=cluster, arch=arch)
        simulated[grid, block, 0, smem](*Places(lambda a: a).arguments(args))
        if check is not None:
            check()


KNOWN_LOSSES = {
    "elementwise.py": "the strides of (src|dst), .* are not all even",  # rows of 131 elements
    "transpose.py": "dst begins at a multiple of [24] bytes",  # a matrix of one element
    "reduce.py": "src begins at a multiple of [24] bytes",  # rows of 5 elements
}
"""Notes of lost speed that examples' kernels may have, by file, for the shapes beside them."""


def hold_at_none(kernel: Any, notes: Sequence[str]) -> None:
    """Reject notes of lost speed of a kernel of the examples or of the package, but for `KNOWN_LOSSES`."""
    file = Path(getattr(kernel, "py_func", kernel).__code__.co_filename)
    if file.parent.name == "examples" or "numba_cute/kernels/" in file.as_posix():
        known = KNOWN_LOSSES.get(file.name)
        lost = [n for n in notes if n.startswith("lost speed") and not (known and re.search(known, n))]
        assert not lost, "\n".join(lost)


class Assembler:
    """Compiles and assembles the kernel for its target, and rejects what means lost speed. properties: those of the
    test, which take the PTX's digest. expected: how a note begins that the test makes on purpose."""

    name = "assembler"
    expected = ""

    def __init__(self, properties: list[tuple[str, object]] | None = None, file: Path | None = None) -> None:
        self.properties = [] if properties is None else properties
        self.file = file

    def keep(self, ptx: str) -> None:
        """Tell the PTX's digest (see ptx_digests.py), and leave the PTX in $CUTE_TEST_PTX, named by the test:
        tests/compare_ptx.py compares two commits by it."""
        self.properties.append((ptx_digests.KEY, ptx_digests.digest(ptx)))
        folder = os.environ.get("CUTE_TEST_PTX")
        if folder:
            test = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)")
            stem = re.sub(r"[^\w.=*-]+", "_", test)[-200:]
            count = len(list(Path(folder).glob(f"{stem}*.ptx")))
            (Path(folder) / f"{stem}.{count}.ptx").write_text(ptx)

    def __call__(
        self, kernel: Any, grid: Any, block: Any, args: Sequence[Any], *, outputs: Sequence[np.ndarray] = (),
        inouts: Sequence[np.ndarray] = (),
        check: Callable[[], None] | None = None, cluster: Any = None, smem: int = 0, arch: str = "sm_90a",
    ) -> None:  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a note that means lost speed is a warning: see cute.compile
            if self.expected:
                warnings.filterwarnings("ignore", self.expected)
            if self.file is not None:
                kernel = first_alike(kernel, self.file)
            compiled = cute.compile(kernel, tuple(Places(lambda a: a).arguments(args)), arch=arch)
        self.keep(compiled.ptx)
        found = compiled.resources
        assert (found.spill_stores, found.spill_loads) == (0, 0), f"it spills: {found}"
        assert found.local == 0, f"{found.local} bytes of local memory: {found}"
        hold_at_none(kernel, compiled.notes)


class Gpu:
    """Launches the kernel on the GPU, on copies of the arrays, and brings the outputs back."""

    name = "gpu"

    def __call__(
        self, kernel: Any, grid: Any, block: Any, args: Sequence[Any], *, outputs: Sequence[np.ndarray] = (),
        inouts: Sequence[np.ndarray] = (),
        check: Callable[[], None] | None = None, cluster: Any = None, smem: int = 0, arch: str = "sm_90a",
    ) -> None:  # fmt: skip
        _need_gpu(arch)
        import torch
        from numba import cuda

        for out in outputs:
            poison(out)
        places = Places(_torch_device)
        placed = places.arguments(args)
        kernel = kernel if hasattr(kernel, "py_func") else cuda.jit(kernel)
        cute.launch(kernel, grid=grid, block=block, cluster=cluster, smem=smem)(*placed)
        torch.cuda.synchronize()
        for out in (*outputs, *inouts):
            _back(out, places(out))
        if check is not None:
            check()


@functools.cache
def _has_gpu() -> bool:
    try:
        from numba import cuda
    except ImportError:  # see no_compiler.py
        return False
    return bool(cuda.is_available())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests of GPUs where they are asked for and there is none, torch or not."""
    if item.get_closest_marker("gpu") is not None and not _has_gpu():
        pytest.skip("needs a GPU")


def _need_gpu(arch: str) -> None:
    from numba import cuda

    if not _has_gpu():
        pytest.skip(f"needs a GPU that runs {arch}")
    pytest.importorskip("torch", reason="device arrays are made with torch")
    major, minor = cuda.get_current_device().compute_capability
    least = int("".join(c for c in arch.removeprefix("sm_") if c.isdigit()))
    exact = arch[-1] in "af"
    if (major * 10 + minor != least) if exact else (major * 10 + minor < least):
        pytest.skip(f"needs a GPU that runs {arch}, and this one is sm_{major}{minor}")


def pytest_configure(config: pytest.Config) -> None:
    ptx_digests.register(config)
    no_compiler.register(config)
    # hypothesis reads the source of all that is imported, for numbers to try: seconds in each process, and what a test
    # draws would hang on what others import
    providers._get_local_constants = lambda: providers._local_constants
    gc.set_threshold(50_000, 20, 20)  # the collector took a tenth of the suite's time


@pytest.hookimpl(tryfirst=True)  # before those that -m leaves out are
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    thin(items)
    if "gpu" not in config.option.markexpr and not _has_gpu():
        left = [item for item in items if item.get_closest_marker("gpu") is not None]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item.get_closest_marker("gpu") is None]


def pytest_sessionstart(session: pytest.Session) -> None:
    workers.register(session.config)


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.freeze()  # what was imported, and the tests themselves, stay to the end: it need not look there


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Leave what a file's tests made and is still held, such as compiled code, out of later collections: each took
    seconds of a long run, and some tests ask for several."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(params=["assembler", "simulator", pytest.param("gpu", marks=pytest.mark.gpu)])
def run(request: pytest.FixtureRequest) -> Any:
    """`run(kernel, grid, block, args, outputs=…, check=…, cluster=…, smem=…, arch=…)`, once in each way to run.

    args: scalars, layouts and the like as they are; NumPy arrays; or functions of `place` that make an argument
    from arrays: ``lambda place: cute.runtime.from_dlpack(place(a))``. outputs: the arrays that the kernel writes;
    they are poisoned first and hold the result when `check()` is called (which the assembler does not do). inouts:
    arrays that it reads and writes. The assembler comes first: then the simulator finds the kernel judged.
    """
    if request.param == Assembler.name:
        return Assembler(request.node.user_properties, request.node.path)
    return Simulator(request.node.path) if request.param == Simulator.name else Gpu()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end what a test does: a debugger that another test entered keeps a handler of its own; and what the
    garbage collector calls (finalizers, hypothesis's callback) loses an exception that comes meanwhile."""
    before, collects = signal.signal(signal.SIGINT, signal.default_int_handler), gc.isenabled()
    gc.disable()
    yield
    if collects:
        gc.enable()
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's name alone."""
    return np.random.default_rng(list(request.node.nodeid.encode()))


@pytest.fixture
def run_sim():
    """Run a kernel with one block in the simulator."""

    def run(kernel, threads, *args, blocks=1):
        cute.simulate(kernel)[blocks, threads](*args)

    return run


@pytest.fixture
def aligned():
    """An array of normal random numbers, its address a multiple of 128 bytes."""
    rng = np.random.default_rng(20240601)

    def make(shape, dtype=ml_dtypes.bfloat16, fill=None):
        count, size = int(np.prod(shape)), np.dtype(dtype).itemsize
        raw = np.zeros(count * size + 128, np.uint8)
        start = -raw.ctypes.data % 128
        array = raw[start : start + count * size].view(dtype).reshape(shape)
        array[...] = rng.standard_normal(shape).astype(dtype) if fill is None else fill
        return array

    return make
