# SPDX-License-Identifier: Apache-2.0
"""The disk cache of this library's kernels, on by default: what a launch or `compile` made once is read the next time.

A key digests all that compiling reads (`fingerprint`): the kernel's code and what it reaches, its arguments' types, its
options, the target, and the versions of what compiles. A kernel of which something cannot be followed is not kept, and
a note says what. `cache=True` asks for the same; plain Numba's kernels have Numba's own cache.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from cuda.core import ObjectCode

from ... import config
from ...seam import CuteError
from ..ground.numba import cuda, devices
from ..ground.numba_cuda import CUDACodeLibrary, _Cache, _Kernel, signature, sigutils, types
from ..ground.ownership import owns
from ..ground.target import arch_name
from ..ground.taught import registered
from . import ptxas, store
from .fingerprint import Unfollowed, fingerprint
from .installed import compiler_version, content
from .kernel import CuteKernel
from .result import Compiled, warn_of

_COMPILED_WITH = (
    "numba", "numba-cuda", "llvmlite", "numpy", "ml-dtypes", "cuda-core", "cuda-bindings", "nvidia-nvvm",
    "nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12", "nvidia-nvjitlink", "nvidia-nvjitlink-cu12",
)  # fmt: skip
_NUMBA = Path(cuda.__file__).parent
_UNKEPT_OPTIONS = ("debug", "link")
"""Options whose kernels are not kept: they hold what is of this process, or read files."""


@functools.cache
def _versions() -> tuple[Any, ...]:
    there = _installed()
    found = [(name, there.get(name) or _asked(name)) for name in _COMPILED_WITH]
    return (sys.version, compiler_version(), tuple(found))


_INFO = re.compile(r"([^-]+)-([^-]+)(?:-.*)?\.(?:dist|egg)-info")


def _installed() -> dict[str, str]:
    """Give the versions of the packages that are installed, as their folders are named: to read what is in each takes
    longer than to look for all."""
    found: dict[str, str] = {}
    for folder in sys.path:
        with contextlib.suppress(OSError):
            for said in filter(None, map(_INFO.fullmatch, sorted(os.listdir(folder or ".")))):
                found.setdefault(re.sub(r"[_.]+", "-", said[1]).lower(), said[2])
    return found


def _asked(name: str) -> str | None:
    """Give the version of a package that is installed in some other way; None if it is not."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _environment() -> tuple[tuple[str, str], ...]:
    """The environment variables by which Numba and the toolkit are set."""
    ours = "NUMBA_CUTE_"
    named = {k: v for k, v in os.environ.items() if k.startswith("NUMBA_") and not k.startswith(ours)}
    return tuple(sorted(named.items() | {(k, os.environ.get(k, "")) for k in ("CUDA_HOME", "CUDA_PATH")}))


def _assembler() -> str:
    try:
        return content(ptxas.tool("ptxas"))
    except (CuteError, OSError):
        return ""


class Key(NamedTuple):
    """The key under which a kernel is kept. text: None if it is not kept. why: the part of it that cannot be followed;
    empty if the cache is off."""

    text: str | None
    why: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        return (f"the kernel is not kept in the disk cache: {self.why}",) if self.why else ()


def key_of(py_func: Any, argtypes: Any, options: dict[str, Any], target: str, what: str) -> Key:
    """Return the key of a kernel.

    py_func: its Python. argtypes: its arguments' types. options: those of `cuda.jit`. target: what it is compiled for.
    what: what is kept of it.
    """
    if not config.current().cache:
        return Key(None)
    for name in _UNKEPT_OPTIONS:
        if options.get(name):
            return Key(None, f"it has the option `{name}`")
    lines = (py_func.__code__.co_filename, _lines(py_func.__code__)) if options.get("lineinfo") else None
    made_with = (what, target, _versions(), _environment(), _assembler(), lines, config.current().backend)
    try:
        text = fingerprint(
            (made_with, "what compiles"), (tuple(argtypes), "an argument"), (options, "an option"),
            (py_func, py_func.__name__), (registered(), "what Numba was taught"),
        )  # fmt: skip
    except Unfollowed as error:
        return Key(None, str(error))
    return Key(text)


def _lines(code: Any) -> tuple[Any, ...]:
    """The lines of code, which lineinfo writes into the PTX."""
    inner = tuple(_lines(c) for c in code.co_consts if hasattr(c, "co_lines"))
    return (code.co_firstlineno, tuple(line for _, _, line in code.co_lines()), inner)


class KernelCache(_Cache):
    """The cache that a dispatcher of this library's kernel asks for a kernel that this process has not compiled."""

    def __init__(self, dispatcher: Any) -> None:
        self._dispatcher = dispatcher
        self._enabled = True
        self._found: tuple[Any, Key] = (None, Key(None))

    @property
    def cache_path(self) -> str:
        return str(store.folder())

    def key(self, sig: Any) -> Key:
        """Return the key of the kernel for a signature."""
        if not self._enabled:
            return Key(None)
        if self._found[0] is not sig:
            d, (argtypes, _) = self._dispatcher, sigutils.normalize_signature(sig)
            target = arch_name(devices.get_context().device.compute_capability)
            self._found = (sig, key_of(d.py_func, argtypes, d.targetoptions, target, "kernel"))
        return self._found[1]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self.key(sig).text
        entry = None if key is None else _sound(key, _KERNEL)
        if entry is None:
            return None
        return _rebuilt(self._dispatcher, sig, target_context, entry)

    def save_overload(self, sig: Any, data: Any) -> None:
        key = self.key(sig)
        data._cute_notes += key.notes
        entry = None if key.text is None else _entry(self._dispatcher.py_func, data)
        if key.text is not None and entry is not None:
            store.save(key.text, entry)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Leave what is there: an entry is never out of date, and others may use it."""


def keeping(compile: Callable[..., Any]) -> Callable[..., Any]:
    """Make of the `compile` of Numba's dispatchers one that looks for a kernel of this library on disk first.

    While one process compiles a kernel, others that need it wait for it.
    """

    def kept(self: Any, sig: Any) -> Any:
        argtypes = tuple(sigutils.normalize_signature(sig)[0])
        if self.specialized or argtypes in self.overloads:
            return compile(self, sig)
        if not isinstance(self._cache, KernelCache) and owns(self.py_func, argtypes):
            self._cache = KernelCache(self)
        key = self._cache.key(sig).text if isinstance(self._cache, KernelCache) else None
        if key is None or store.has(key):
            return compile(self, sig)
        with store.alone(key, self.py_func.__qualname__):
            return compile(self, sig)

    return kept


def _entry(py_func: Any, kernel: Any) -> store.Entry | None:
    """Return the entry that keeps a compiled kernel; None if it holds parts of this process, or of foreign files."""
    library = kernel._codelibrary
    of_process = library._setup_functions or library._teardown_functions or library.referenced_objects
    if of_process or kernel.launch_config_sensitive or not all(map(_is_numbas, library._linking_files)):
        return None
    ((cc, cubin),) = library._cubin_cache.items()
    facts = {
        **_said(py_func, kernel.argument_types, arch_name(cc), kernel._cute_notes),
        "cc": cc,
        "symbol": kernel.entry_name,
        "cooperative": kernel.cooperative,
        "carveout": kernel.shared_memory_carveout,
        "lineinfo": kernel.lineinfo,
        "max_registers": library._max_registers,
    }
    return store.Entry(facts, {"ptx": library.get_asm_str().encode(), "cubin": bytes(cubin.code)})


def _is_numbas(linked: Any) -> bool:
    """Say whether a file that was linked is Numba's own. Its memory management is not a file, and more than code."""
    return isinstance(linked, str) and Path(linked).is_relative_to(_NUMBA)


def _rebuilt(dispatcher: Any, sig: Any, target_context: Any, entry: store.Entry) -> CuteKernel:
    """The kernel of an entry, as Numba holds one."""
    facts, options = entry.facts, dispatcher.targetoptions
    argtypes, name = sigutils.normalize_signature(sig)[0], facts["symbol"]
    cc = tuple(facts["cc"])
    library = CUDACodeLibrary(target_context.codegen(), name, name, max_registers=facts["max_registers"])
    library._ptx_cache[cc] = [entry.blobs["ptx"].decode()]
    library._cubin_cache[cc] = ObjectCode.from_cubin(entry.blobs["cubin"], name=name)
    library._finalized = True
    library.use_cooperative = facts["cooperative"]
    kernel: Any = _Kernel._rebuild(
        cooperative=facts["cooperative"], name=name, signature=signature(types.none, *argtypes), codelibrary=library,
        debug=False, lineinfo=facts["lineinfo"], call_helper=None, extensions=list(options.get("extensions") or ()),
        shared_memory_carveout=facts["carveout"],
    )  # fmt: skip
    kernel.__class__ = CuteKernel
    kernel.py_func, kernel.argtypes = dispatcher.py_func, argtypes
    kernel._cute_options, kernel._cute_notes = dict(options), tuple(facts["notes"])
    kernel.bind()
    warn_of(dispatcher.py_func.__name__, kernel._cute_notes)
    return kernel  # type: ignore[no-any-return]


def compiled(py_func: Any, argtypes: Any, options: dict[str, Any], arch: str, make: Callable[[], Compiled]) -> Compiled:
    """Give what `make` compiles of a kernel for a target, kept from another time where it can be."""
    key = key_of(py_func, argtypes, options, arch, "compile")
    if key.text is None:
        made = make()
        return dataclasses.replace(made, notes=(*made.notes, *key.notes))
    found = _compiled(key.text, arch)
    if found is not None:
        return found
    with store.alone(key.text, py_func.__qualname__):
        found = _compiled(key.text, arch)
        if found is not None:
            return found
        made = make()
        facts = {
            **_said(py_func, argtypes, arch, made.notes),
            "symbol": made.name,
            "resources": dataclasses.asdict(made.resources),
        }
        store.save(key.text, store.Entry(facts, {"ptx": made.ptx.encode(), "cubin": made.cubin}))
        return made


def _compiled(key: str, arch: str) -> Compiled | None:
    """Return the result of `compile` that is kept under a key; None if there is none."""
    entry = _sound(key, _COMPILED)
    if entry is None:
        return None
    facts = entry.facts
    said: dict[str, Any] = {k: tuple(x) if isinstance(x, list) else x for k, x in facts["resources"].items()}
    ptx, cubin = entry.blobs["ptx"].decode(), entry.blobs["cubin"]
    return Compiled(facts["symbol"], arch, ptx, cubin, ptxas.Resources(**said), tuple(facts["notes"]))


_ALL = {"kernel": str, "arch": str, "symbol": str, "notes": list}
_KERNEL = {**_ALL, "cc": list, "cooperative": bool, "carveout": (int, type(None)), "lineinfo": bool,
           "max_registers": (int, type(None))}  # fmt: skip
_COMPILED = {**_ALL, "resources": dict}
_RESOURCES = {f.name for f in dataclasses.fields(ptxas.Resources)}


def _sound(key: str, kinds: dict[str, Any]) -> store.Entry | None:
    """The entry of a key, if it holds what it should; else it goes. kinds: of its facts."""
    entry = store.load(key)
    if entry is None:
        return None
    facts, blobs = entry.facts, entry.blobs
    right = all(isinstance(facts.get(name, ...), kind) for name, kind in kinds.items())
    right = right and set(facts.get("resources", _RESOURCES)) == _RESOURCES and _is_target(facts.get("cc", [0, 0]))
    if right and blobs.keys() == {"ptx", "cubin"} and blobs["cubin"].startswith(b"\x7fELF") and _is_text(blobs["ptx"]):
        return entry
    store.drop(key)
    return None


def _is_target(cc: list[Any]) -> bool:
    return len(cc) in (2, 3) and all(isinstance(x, int) for x in cc[:2]) and all(isinstance(x, str) for x in cc[2:])


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _said(py_func: Any, argtypes: Any, arch: str, notes: tuple[str, ...]) -> dict[str, Any]:
    """Return a kernel's line in a listing of the folder."""
    return {
        "kernel": f"{py_func.__module__}.{py_func.__qualname__}",
        "arguments": [str(ty) for ty in argtypes],
        "arch": arch,
        "notes": list(notes),
    }
