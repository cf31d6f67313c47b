# SPDX-License-Identifier: Apache-2.0
"""The kinds of texts that the library reads: right ones of each, and what reads them as users have it read."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import gzip
import hashlib
import importlib.util
import io
import json
import linecache
import os
import re
import sys
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numba import cuda

import numba_cute as cute
from numba_cute import config, seam
from numba_cute.__main__ import main as command_line
from numba_cute.compiler.host import disk_cache, locks, recording, shipped, store
from numba_cute.dtypes import Int32
from numba_cute.seam.hooks.recording import NAMES, Event
from numba_cute.testing import tuned
from numba_cute.testing.measuring import Pace
from numba_cute.timelines import Timeline
from tests.testing.fake import FakeGPU

ROOT = Path(__file__).resolve().parents[2]
KEY = "ab" * 20


@dataclasses.dataclass(frozen=True)
class Kind:
    """Texts that one thing reads."""

    seeds: list[str]
    read: Callable[[bytes], object]


def kinds(folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what makes each kind, by name; those of the IR where xDSL is installed. folder: where they may write."""
    own = (Archives, Entries, Timelines, Tunings, *((Commands,) if importlib.util.find_spec("xdsl") else ()))
    made: dict[str, Callable[[], Any]] = {c.__name__: functools.partial(c, folder) for c in own}
    made |= {name: lambda kind=kind: kind for name, kind in PLAIN.items()}
    if importlib.util.find_spec("xdsl"):
        from . import texts_printed

        made |= {"IR": lambda: Kind(_modules(), _read_ir), "Types": lambda: Kind(_types(), _read_type)}
        made["Printed"] = lambda: Kind(texts_printed.texts(), texts_printed.read)
    return made


def encoded(kind: Any) -> list[bytes]:
    """Return the right texts of a kind as bytes."""
    return [s if isinstance(s, bytes) else s.encode() for s in kind.seeds]


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def program(source: str) -> dict[str, Any]:
    """Run a text as Python, with the names that users have."""
    source = source.encode("utf-8", "replace").decode()  # what is no UTF-8 Python refuses itself
    linecache.cache["<text>"] = (len(source), None, source.splitlines(True), "<text>")
    space: dict[str, Any] = {"__name__": "text", "cute": cute, "cuda": cuda, "np": np, "Int32": Int32}
    exec(compile(source, "<text>", "exec", dont_inherit=True), space)
    return space


@cuda.jit
def small(out, n):
    out[0] = cute.make_layout((4, 8))(n)


def front(kernel: Any, *args: Any, arch: str = "sm_90a") -> None:
    """Have both engines take a kernel."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cute.compile(kernel, args, arch=arch)
        cute.simulate(kernel, arch=arch)[1, 1](*args)


# ------------------------------------------------------------------ the IR


def _written() -> list[str]:
    """Modules that were written by hand."""
    from tests.ir import test_kernels_in_ir as own

    examples = [p.read_text() for p in sorted((ROOT / "examples" / "ir").glob("*.mlir"))]
    return [*examples, own.COPY, own.SAXPY, own.REDUCE, own.GEMM, own.OF_NUMBA, own.OBJECTS]


def _modules() -> list[str]:
    from numba_cute import ir

    from .build import arguments, kernel_of, with_tensor
    from .choices import Seeded
    from .cutes import CuteWriter

    kernel = kernel_of(CuteWriter(Seeded(3), statements=4, depth=2).source())
    published = [str(ir.passes.run(ir.parse(text), ["publish"])) for text in _written()[:-2]]
    return [*_written(), *published, str(ir.from_kernel(kernel, with_tensor(arguments())))]


def _read_ir(data: bytes) -> None:
    from numba_cute import ir

    module = ir.parse(text_of(data), "text.mlir")
    printed = str(module)
    assert str(ir.parse(printed)) == printed, "a module that is printed is another when it is read again"
    module.verify()
    ir.to_kernel(module)
    passes = sorted(ir.passes.PASSES)
    ir.passes.run(module, [passes[zlib.crc32(data) % len(passes)]])


def _types() -> list[str]:
    found = [
        m.group() for text in _written() for m in re.finditer(r"!(?:numba_)?cute\w*\.\w+<[^\n]*>(?=[ ,)\n])", text)
    ]
    own = ["(4,8):(1,4)", "((2,2),4):((1,8),2)", "S<3,4,3> o 0 o (8,64):(64,1)", "(?,?{i64 div=4}):(1@0,4@1)"]
    own += ['"a\\0Ab"', "#numba_cute.AddressSpace.gmem", "!f16", "1.5e3", '@"numba_cute.layout.layout:make_layout"']
    return [*own, *sorted(set(found))[:40]]


def _read_type(data: bytes) -> None:
    from numba_cute.ir.text.spelling import parse_description, spell

    found = parse_description(text_of(data))
    spelled = spell(found)
    assert spell(parse_description(spelled)) == spelled, "a type that is written is another when it is read again"


# ------------------------------------------------------------------ the command line


class Commands:
    """Command lines, with the file that they are of: arguments one a line, an empty line, the file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ir = (ROOT / "examples" / "ir" / "gemm_sm80.mlir").read_text()
        python = "from numba import cuda\n\n\n@cuda.jit\ndef kernel(o):\n    o[0] = 1\n"
        lines = (
            ("ir text.mlir", ir), ("ir text.mlir --pass dce,fold", ir), ("ir - --target sm_90a", ir),
            ("ir text.mlir -o out.mlir --pass coalesce", ir), ("ir text.mlir --pass list", ir),
            ("ir text.mlir --module text", ir), ("cache list", ""), ("cache", ""), ("cache path", ""),
            ("cache clear", ""), ("cache export out.tar.gz", ""), ("cache import text.tar.gz", ""),
            ("cache why text.py:kernel", python), ("cache why text.py:cuda", python), ("--help", ""), ("ir --help", ""),
        )  # fmt: skip
        self.seeds = ["\n".join(line.split()) + "\n\n" + text for line, text in lines]

    def read(self, data: bytes) -> None:
        head, _, held = data.partition(b"\n\n")
        arguments = [text_of(a) for a in head.split(b"\n")]
        for name in ("text.mlir", "text.py", "text.tar.gz"):
            (self.folder / name).write_bytes(held)
        sys.modules.pop("text", None)
        importlib.invalidate_caches()
        came, path = sys.stdin, list(sys.path)
        sys.stdin = io.TextIOWrapper(io.BytesIO(held), "utf-8")
        try:
            with config.override(cache=True, cache_dir=str(self.folder / "cache")):
                command_line(arguments)
        except SystemExit as e:
            if e.code not in (0, 2):
                raise
        finally:
            sys.stdin, sys.path[:] = came, path


# ------------------------------------------------------------------ the cache


class Entries:
    """Entries of the disk cache, as their files have them without the checksum; and whole files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "cache"
        with config.override(cache=True, cache_dir=str(self.folder)):
            made = cute.compile(small, (np.zeros(4, np.int32), 3))
            said = {"kernel": "k", "arguments": ["i"], "arch": "sm_90a", "notes": [], "symbol": made.name}
            blobs = {"ptx": made.ptx.encode(), "cubin": made.cubin[:2000]}
            resources = dataclasses.asdict(made.resources)
            kept = {"cc": [9, 0, "a"], "cooperative": False, "carveout": None, "lineinfo": False, "max_registers": None}
            entries = [store.Entry({**said, "resources": resources}, blobs), store.Entry({**said, **kept}, blobs)]
        self.seeds = [store._packed(KEY, entry)[32:] for entry in entries]
        self.seeds += [store._packed(KEY, entry) for entry in entries]

    def read(self, data: bytes) -> None:
        whole = data if not data.startswith(b"{") else hashlib.sha256(data).digest() + data
        with config.override(cache=True, cache_dir=str(self.folder)):
            for kinds_ in (disk_cache._KERNEL, disk_cache._COMPILED):
                store._write(KEY, whole)
                command_line(["cache"])
                if kinds_ is disk_cache._COMPILED:
                    disk_cache._compiled(KEY, "sm_90a")
                else:
                    disk_cache._sound(KEY, kinds_)
            shipped.export(self.folder.parent / "out.tar.gz")
            command_line(["cache", "clear"])


class Archives:
    """Archives of the cache: their bytes, and those before they are compressed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        entry = store.Entry({"kernel": "k", "arch": "sm_90a"}, {"ptx": b"p" * 100, "cubin": b"\x7fELF" + b"c" * 100})
        with config.override(cache=True, cache_dir=str(folder / "shipped")):
            store.save(KEY, entry)
            store.save("cd" * 20, entry)
            shipped.export(folder / "whole.tar.gz")
            command_line(["cache", "clear"])
        whole = (folder / "whole.tar.gz").read_bytes()
        self.seeds = [whole, gzip.decompress(whole)]

    def read(self, data: bytes) -> None:
        (self.folder / "text.tar.gz").write_bytes(data)
        with config.override(cache=True, cache_dir=str(self.folder / "taken")):
            shipped.take(self.folder / "text.tar.gz")
            command_line(["cache", "clear"])


def _read_lock(data: bytes) -> None:
    holder = locks._Holder(data)
    str(holder), holder.stopped


# ------------------------------------------------------------------ what is measured


class Tunings:
    """Files of autotune."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "tuned"
        self.tuned().tune(np.zeros(8))
        (self.file,) = self.folder.iterdir()
        self.seeds = [self.file.read_text()]

    def tuned(self) -> Any:
        gpu, pace = FakeGPU(), Pace(turn=1e-3, least=1e-3, most=2e-3)

        @cute.autotune({"tile": [64, 128]}, pace=pace, device=gpu, progress=False, store=str(self.folder))
        def multiply(a, tile=64):
            gpu.launch(f"tile {tile}", {64: 3e-5, 128: 1e-5}[tile])()
            return tile

        return multiply

    def read(self, data: bytes) -> None:
        self.file.write_bytes(data)
        function = self.tuned()
        found = function.tune(np.zeros(8))
        assert found.best["tile"] in (64, 128)
        found.slower({"tile": 64})
        str(found)
        function(np.zeros(8))


class Timelines:
    """Events of a timeline, one a line of JSON; and buffers that a GPU wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        NAMES.setdefault("all", len(NAMES))
        of = [("push", "all", None), ("push", "step <&>", 3), ("mark", "é", -1), ("pop", "", None), ("pop", "", None)]
        events = [[10 * i, 7 * i, sm, [sm, 0, 0], 0, *told, "kernel"] for sm in (0, 1) for i, told in enumerate(of)]
        record = np.zeros(2, recording._RECORD)
        record["what"] = (0 | NAMES["all"] << 4, 1)
        self.seeds = [
            "\n".join(map(json.dumps, events)).encode(),
            b"\2" + bytes(recording.HEADER - 1) + record.tobytes(),
        ]

    def read(self, data: bytes) -> None:
        part = recording.HEADER + recording.RECORD * 2
        if not data.startswith(b"["):
            held = np.frombuffer(data.ljust(part, b"\0")[:part], np.uint8)
            events, lost = recording.decode(held, (1, 1, 1), 1, 2, "kernel")
        else:
            events, lost = _events(data), 0
        for unit in ("ns", "instructions"):
            t = Timeline(events, unit, lost)
            str(t), t.ranges, t.only(sm=0, block=(0, 0, 0))
            t.chrome(self.folder / "run.json")
            t.svg(self.folder / "run.svg")


def _events(data: bytes) -> list[Event]:
    """The events of lines that still are such: of another form none comes from a launch."""
    found = []
    for line in data.splitlines():
        with contextlib.suppress(ValueError, TypeError, RecursionError):
            clock, time, sm, block, warp, kind, name, payload, kernel = json.loads(line)
            whole = all(type(x) is int and abs(x) < 1 << 63 for x in (clock, time, sm, warp, *block))
            if whole and len(block) == 3 and kind in ("push", "pop", "mark") and isinstance(name, str):
                found.append(Event(clock, time, sm, tuple(block), warp, kind, name, payload, str(kernel)))
    return found


# ------------------------------------------------------------------ texts in kernels


FIELDS = """@cute.struct
class S:
    n: Int32
    m: cute.Float32 = 1.5
    k: int = 3

    def bump(self, by=1):
        self.n += by
        return self.n
"""
STORAGE = """@cute.struct
class S:
    n: 'Int32'
    a: cute.struct.MemRange[cute.Float32, 16]
    b: cute.struct.Align[cute.struct.MemRange[Int32, 4], 128]
"""
DATACLASS = """import dataclasses


@cute.struct
@dataclasses.dataclass
class S:
    n: Int32 = 0
    t: tuple = (1, 2)
    f: object = dataclasses.field(default=None)

    @property
    def twice(self):
        return self.n * 2
"""
INHERITED = """@cute.struct
class A:
    n: Int32 = 1


@cute.struct
class S(A):
    a: A
    b: bool = True
    c: list = None
"""
STATIC = """@cute.seam.frozen
class S:
    n: int
    m: object = (1, (2, 3))
"""


def _read_struct(data: bytes) -> None:
    made = program(text_of(data)).get("S")
    if not callable(made):
        return
    for args in ((), (1,), (1, 2)):
        with contextlib.suppress(cute.CuteError, TypeError):
            repr(made(*args))

    def kernel(out):
        s = made(out[0])
        out[1] = s.n

    front(cuda.jit(kernel), np.zeros(4, np.int32))


PTX_OF = (
    ("add.s32 {$w0}, {$r0}, {$r1};", 1, 2), ("mov.u32 $0, %clock;", 1, 0), ("membar.gl;", 0, 0),
    ("{\n.reg .pred p;\nsetp.eq.u32 p, $1, 0;\nselp.b32 $0, 1, 2, p;\n}", 1, 1), ("mov.b32 {$w0}, {$r0}; //", 1, 1),
    ("add.cc.u32 {$w0}, {$r0}, 1;\naddc.u32 {$w1}, {$r1}, 0;", 2, 2), ("bra $L1;\n$L1:", 0, 0),
)  # fmt: skip
"""Texts, and how many numbers each writes and reads."""


def _read_ptx(data: bytes) -> None:
    head, _, text = data.partition(b"\n")
    writes, reads = ([int(n[:1]) for n in re.findall(rb"\d+", head)] + [1, 1])[:2]
    ptx, types = text_of(text), (Int32,) * writes

    @seam.traced
    def given(x, y):
        cute.arch.inline_ptx(
            ptx, write_only_types=types, read_only_args=(x, y)[:reads], meaning=lambda *r: (1,) * writes
        )  # fmt: skip

    def kernel(out):
        given(out[0], out[1])

    front(cuda.jit(kernel), np.zeros(4, np.int32))


def _read_format(data: bytes) -> None:
    text = text_of(data)

    def kernel(out):
        cute.printf(text, out[0], 1.5)
        cute.range_push(text)
        cute.range_pop()

    front(cuda.jit(kernel), np.zeros(4, np.int32))
    t = cute.timeline(cute.simulate(cuda.jit(kernel))[1, 1], np.zeros(4, np.int32))
    str(t), t.svg()


SETTINGS = [
    "NUMBA_CUTE_CACHE=1\nNUMBA_CUTE_CACHE_DIR=cache\nNUMBA_CUTE_CACHE_WAIT=2.5", "NUMBA_CUTE_PTXAS=/bin/ls",
    "NUMBA_CUTE_TOOL_SECONDS=10", "NUMBA_CUTE_TRACEBACK=1\nNUMBA_CUTE_TUNED=tuned", "NUMBA_CUTE_NVDISASM=/bin/cat",
    "NUMBA_CUTE_CHECK_LAUNCHES=1\nCUDA_HOME=/usr/local/cuda", "NUMBA_CUTE_CACHE=0\nNUMBA_CUTE_CACHE_DIR=cache",
]  # fmt: skip


def _read_setting(data: bytes) -> None:
    """Settings as the environment has them, one a line; what reads them, with and without a cache."""
    given = {}
    for line in data.replace(b"\0", b"").splitlines():
        name, _, value = line.partition(b"=")
        if name:
            given[text_of(name)] = text_of(value)
    before = dict(os.environ)
    os.environ.pop("NUMBA_CUTE_CACHE", None)
    try:
        os.environ.update(given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config.current()
            command_line(["cache"])
            tuned.store.directory()
            cute.compile(small, (np.zeros(4, np.int32), 3)).sass  # noqa: B018 - it is read
    finally:
        os.environ.clear()
        os.environ.update(before)


def _read_target(data: bytes) -> None:
    arch = text_of(data)
    with contextlib.suppress(cute.CuteError):
        cute.simulate(small, arch=arch)[1, 1](np.zeros(4, np.int32), 3)
    cute.compile(small, (np.zeros(4, np.int32), 3), arch=arch)


def _read_signature(data: bytes) -> None:
    cute.compile(small, text_of(data))


PLAIN = {
    "Locks": Kind(['{"host": "here", "pid": 12, "what": "kernel"}'], _read_lock),
    "Structs": Kind([FIELDS, STORAGE, DATACLASS, INHERITED, STATIC], _read_struct),
    "PTX": Kind([f"{writes} {reads}\n{text}" for text, writes, reads in PTX_OF], _read_ptx),
    "Formats": Kind(["{} {:.3f}\n", "%d %5.2f\n", "{:08x}, {}%", "%s %g", "%%{} {:e}"], _read_format),
    "Settings": Kind(SETTINGS, _read_setting),
    "Targets": Kind(["sm_90a", "sm_80", "sm_100a", "sm_120a"], _read_target),
    "Signatures": Kind(
        ["void(int32[::1], int32)", "(float32[:], int64)", "void(uint8[:, ::1], float64)"], _read_signature
    ),
}
