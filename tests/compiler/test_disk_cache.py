# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels are kept on disk, by a key that is another one for all that makes another kernel."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import textwrap
import time
from array import array
from collections import OrderedDict, deque
from enum import Enum
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from cuda.bindings import driver
from numba import cuda
from numba.cuda import types
from numba.cuda.typing.typeof import typeof

import numba_cute as cute
from numba_cute import config
from numba_cute.__main__ import main
from numba_cute.compiler.host import disk_cache, store
from numba_cute.compiler.host.fingerprint import Unfollowed, fingerprint

ROOT = Path(__file__).resolve().parents[2]
ARRAY = types.Array(types.float32, 1, "C")


@pytest.fixture(autouse=True)
def folder(tmp_path):
    """A folder of each test's own, with the cache on."""
    with config.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


MODULE = """
    import enum, functools, math
    from dataclasses import dataclass
    import numpy as np
    from numba import cuda
    from numba.cuda.extending import intrinsic
    import numba_cute as cute
    import helpers

    N = 4
    SHAPE = cute.make_layout((2, N))
    TABLE = np.arange(3)
    WIDTHS = {"a": 1}

    class Kind(enum.IntEnum):
        A = 1

    @dataclass(frozen=True)
    class Config:
        stages: int = 2
        def doubled(self):
            return 2 * self.stages

    CONFIG = Config()

    @intrinsic
    def answer(context):
        def codegen(context, builder, sig, args):
            return context.get_constant(sig.return_type, 42)
        from numba.cuda import types
        return types.int64(), codegen

    @cuda.jit(device=True)
    def helper(x):
        return x + 1

    def plain(x):
        return helper(x) * 3

    def make(scale):
        @cuda.jit
        def kernel(out, n=5, *, m=6):
            i = cute.arch.lane_idx()
            out[i] = plain(i) * scale + N + cute.size(SHAPE) + TABLE[1] + Kind.A + CONFIG.doubled() + answer()
            out[i] += helpers.weight() + helpers.BIAS + WIDTHS["a"] + (lambda y: y + 7)(i)
        return kernel

    kernel = make(2)
"""
HELPERS = """
    BIAS = 1
    UNUSED = 1
    def weight():
        return inner() + 1
    def inner():
        return 10
"""


def loaded(tmp_path, module, helpers, monkeypatch):
    """The kernel of a module's text, and its helpers', as a process that imports them has it."""
    for name, text in (("helpers", helpers), ("module_of_kernels", module)):
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        spec = importlib.util.spec_from_file_location(name, path)
        made = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, made)
        exec(compile(path.read_text(), str(path), "exec"), vars(made))
    return made.kernel


def key(kernel, argtypes=(ARRAY,), target="sm_90a", **options):
    return disk_cache.key_of(kernel.py_func, argtypes, {**kernel.targetoptions, **options}, target, "kernel").text


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """The keys of the kernel before and after a change of its text, or its helpers'."""

    def keys(old, new):
        assert (old in MODULE) + (old in HELPERS) == 1
        before = key(loaded(tmp_path, MODULE, HELPERS, monkeypatch))
        return before, key(loaded(tmp_path, MODULE.replace(old, new), HELPERS.replace(old, new), monkeypatch))

    return keys


@pytest.mark.parametrize(
    "old, new",
    [
        ("lane_idx()", "warp_idx()"),
        ("N = 4", "N = 5"),
        ("make_layout((2, N))", "make_layout((N, 2))"),
        ("np.arange(3)", "np.arange(3, dtype=np.int32)"),
        ('{"a": 1}', '{"a": 2}'),
        ("A = 1\n", "A = 2\n"),
        ("stages: int = 2", "stages: int = 3"),
        ("return 2 * self.stages", "return 3 * self.stages"),
        ("sig.return_type, 42", "sig.return_type, 43"),
        ("return x + 1", "return x + 2"),
        ("@cuda.jit(device=True)", "@cuda.jit(device=True, fastmath=True)"),
        ("helper(x) * 3", "helper(x) * 4"),
        ("make(2)", "make(3)"),
        ("make(2)", "make(2.0)"),
        ("n=5", "n=4"),
        ("m=6", "m=4"),
        ("y + 7", "y + 8"),
        ("BIAS = 1", "BIAS = 2"),
        ("return 10", "return 11"),
        ("    kernel = make(2)", "    kernel = cute.cluster_shape(2)(make(2))"),
    ],
    ids=lambda text: re.sub(r"\W+", "-", text).strip("-"),
)
def test_what_a_kernel_reads_makes_another_key(changed, old, new):
    before, after = changed(old, new)
    assert before and after and before != after


@pytest.mark.parametrize("old, new", [("UNUSED = 1", "UNUSED = 2"), ("N = 4", "# moved\n\n    N = 4")])
def test_what_it_does_not_read_makes_none(changed, old, new):
    before, after = changed(old, new)
    assert before == after


def test_types_options_and_target_are_of_the_key(tmp_path, monkeypatch):
    kernel = loaded(tmp_path, MODULE, HELPERS, monkeypatch)
    arguments = [
        (ARRAY,), (types.Array(types.float32, 1, "A"),), (types.float32,), (types.literal(4),), (types.literal(5),),
        (typeof(cute.make_layout(4)),), (typeof(cute.make_layout(8)),), (typeof(cute.Float16),), (ARRAY, ARRAY),
    ]  # fmt: skip
    keys = [key(kernel, a) for a in arguments]
    keys += [key(kernel, target="sm_100a"), key(kernel, fastmath=True), key(kernel, launch_bounds=128)]
    keys += [key(kernel, lineinfo=True), key(kernel, max_registers=64)]
    assert None not in keys and len(set(keys)) == len(keys)


def test_versions_and_settings_are_of_the_key(tmp_path, monkeypatch):
    kernel = loaded(tmp_path, MODULE, HELPERS, monkeypatch)
    keys = [key(kernel)]
    monkeypatch.setattr(disk_cache, "compiler_version", lambda: "another")
    disk_cache._versions.cache_clear()
    keys.append(key(kernel))
    monkeypatch.undo()
    disk_cache._versions.cache_clear()
    monkeypatch.setenv("NUMBA_OPT", "1")
    keys.append(key(kernel))
    monkeypatch.undo()
    with config.override(ptxas=sys.executable):
        keys.append(key(kernel))
    assert len(set(keys)) == 4


def test_what_users_teach_numba_is_of_the_key(tmp_path, monkeypatch):
    kernel = loaded(tmp_path, MODULE, HELPERS, monkeypatch)
    before = key(kernel)
    overloaded = """
    from numba.cuda.extending import overload
    def twice(x): ...
    @overload(twice)
    def overload_twice(x):
        return lambda x: 2 * x
    """
    loaded(tmp_path, MODULE, HELPERS + overloaded, monkeypatch)
    assert before != key(kernel)


@pytest.mark.parametrize("options", [{"debug": True}, {"link": ["x.cu"]}], ids=["debug", "link"])
def test_kernels_of_one_process_are_not_kept(tmp_path, monkeypatch, options):
    kernel = loaded(tmp_path, MODULE, HELPERS, monkeypatch)
    assert key(kernel, **options) is None
    with config.override(cache=False):
        assert key(kernel) is None


def test_of_a_class_of_others_an_annotation_reads_the_name():
    def launched(stream):
        return stream

    digests = []
    for stream in (driver.CUstream, driver.CUstream | None, driver.CUevent):
        launched.__annotations__ = {"stream": stream}
        digests.append(fingerprint((launched, "launched")))
    assert len(set(digests)) == 3
    with pytest.raises(Unfollowed, match="a class of cuda.bindings.driver"):
        fingerprint((driver.CUstream, "stream"))


def test_kernels_that_call_declared_functions_are_not_kept():
    declared = cuda.declare_device("declared", types.float32(types.float32))
    with pytest.raises(Unfollowed, match="declared"):
        fingerprint((declared, "declared"))


class Cyclic:
    def __init__(self):
        self.itself = [self]


def digest(value):
    return fingerprint((value, "value"))


@pytest.mark.parametrize(
    "value",
    [
        open,
        iter(()),
        time.time,
        random.random,
        os.environ,
        sys.stdout,
        cute.utils.HardwareInfo,
        config.current,
    ],
)
def test_what_no_digest_describes_is_said(value):
    with pytest.raises(Unfollowed, match="`value` "):
        digest(value)


def test_values_are_told_apart():
    values = [
        1,
        1.0,
        True,
        "1",
        b"1",
        None,
        (1,),
        [1],
        {1: 1},
        {1},
        1j,
        -0.0,
        0.0,
        np.float32(1),
        np.int64(1),
        range(1),
    ]
    values += [frozenset({1}), deque([1]), MappingProxyType({1: 1}), OrderedDict({1: 1}), bytearray(b"1")]
    values += [array("l", [1]), memoryview(array("l", [1])), np.str_("1"), SimpleNamespace(a=1), Enum("E", {"a": 1})]
    values += [(1, (2,)), ((1, 2),), (1, 2), slice(1), np.zeros(2), np.zeros((2, 1)), np.dtype("f4"), Cyclic()]
    assert len({digest(v) for v in values}) == len(values)
    assert digest({"a", "b", "c"}) == digest({"c", "b", "a"})


# ------------------------------------------------------------ the folder


def an_entry(size=10):
    return store.Entry({"kernel": "k", "arch": "sm_90a"}, {"ptx": b"p" * size, "cubin": b"\0\n\1"})


@pytest.mark.parametrize(
    "harm",
    [lambda d: d[:-1], lambda d: b"", lambda d: d + b"x", lambda d: d[:40] + b"?" + d[41:]],
    ids=["cut", "empty", "longer", "another byte"],
)
def test_broken_files_are_no_entries_and_go(folder, harm):
    store.save("ab" * 20, an_entry())
    (path,) = folder.glob("*/*.kernel")
    assert store.load("ab" * 20) == an_entry()
    path.write_bytes(harm(path.read_bytes()))
    assert store.load("ab" * 20) is None and not path.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    with config.override(cache_dir=str(tmp_path / "file")), store.alone("ab" * 20, "k"):
        store.save("ab" * 20, an_entry())
        assert store.load("ab" * 20) is None and store.clear() == 0


def test_what_was_not_used_for_long_goes_first(folder):
    for i, age in enumerate((30, 10, 20)):
        store.save(f"{i}0" * 20, an_entry(100))
        (path,) = folder.glob(f"{i}0/*.kernel")
        os.utime(path, (1e9 - age, 1e9 - age))
    store.load("00" * 20)  # now the newest
    store.prune(2 * path.stat().st_size)
    assert sorted(p.parent.name for p in folder.glob("*/*.kernel")) == ["00", "10"]


def test_the_command_line_lists_and_clears(folder, capsys):
    store.save("ab" * 20, an_entry())
    assert main(["cache"]) == 0
    listed = capsys.readouterr().out
    assert "abababababab" in listed and "sm_90a    k" in listed and listed.endswith(f"in {folder}\n")
    assert main(["cache", "path"]) == 0 and capsys.readouterr().out == f"{folder}\n"
    assert main(["cache", "clear"]) == 0 and capsys.readouterr().out.startswith("1 kernels removed")
    assert main(["cache", "list"]) == 0 and capsys.readouterr().out.startswith("0 kernels")


# ------------------------------------------------------------ kernels


@cuda.jit
def scaled(x, layout):
    x[cute.arch.lane_idx()] = cute.size(layout)


def test_compile_reads_what_it_made_before(monkeypatch):
    args = (np.zeros(32, np.float32), cute.make_layout(7))
    made = cute.compile(scaled, args)
    monkeypatch.setattr("numba_cute.compiler.host.offline._compile", None)
    again = cute.compile(scaled, args)
    assert again == made
    with config.override(cache=False), pytest.raises((TypeError, cute.CuteError)):
        cute.compile(scaled, args)


def test_a_note_of_the_assembler_is_said_again(monkeypatch):
    from numba_cute.compiler.host import offline

    compile_anew = offline._compile

    def noted(*args):
        made = compile_anew(*args)
        return type(made)(made.name, made.arch, made.ptx, made.cubin, made.resources, ("note (C7508): slow",))

    monkeypatch.setattr(offline, "_compile", noted)
    for _ in range(2):
        with pytest.warns(cute.PerformanceWarning, match="C7508"):
            cute.compile(scaled, (np.zeros(32, np.float32), cute.make_layout(9)))


MAKES = """
import json, sys
import numpy as np
import numba_cute as cute
import numba.cuda.cudadrv.nvvm as nvvm
from numba import cuda
from tests.compiler.test_disk_cache import scaled

made, compile_ir = [], nvvm.compile_ir
nvvm.compile_ir = lambda *a, **k: made.append(1) or compile_ir(*a, **k)
x = np.zeros(32, np.float32)
if sys.argv[1] == "launch":
    for size in (7, 7, 8):
        scaled[1, 32](x, cute.make_layout(size))
    print(json.dumps([len(made), x.tolist(), sum(scaled.stats.cache_hits.values())]))
else:
    ptx = cute.compile(scaled, (x, cute.make_layout(7))).ptx
    print(json.dumps([len(made), ptx]))
"""


def processes(folder, what, count):
    """Start so many processes at once that compile or launch the kernel; what each prints."""
    environment = {**os.environ, "NUMBA_CUTE_CACHE": "1", "NUMBA_CUTE_CACHE_DIR": str(folder)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", "-c", MAKES, what]
    running = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(count)]
    return [json.loads(p.communicate(timeout=120)[0]) for p in running]


@pytest.mark.slow
def test_of_many_processes_one_compiles(folder):
    results = processes(folder, "compile", 3)
    assert sorted(calls for calls, _ in results) == [0, 0, 1]
    assert len({ptx for _, ptx in results}) == 1


@pytest.mark.gpu
@pytest.mark.skipif(not cuda.is_available(), reason="needs a GPU")
def test_launches_read_what_another_process_made(folder):
    first, second = (processes(folder, "launch", 1)[0] for _ in range(2))
    assert first[0] >= 2 and first[2] == 0
    assert second[0] == 0 and second[2] == 2
    assert first[1] == second[1] == [8.0] * 32


def without(**change):
    """Facts or blobs of a kept kernel, changed; None: without one."""

    def changed(entry):
        facts, blobs = dict(entry.facts), dict(entry.blobs)
        for name, value in change.items():
            held = blobs if name in blobs else facts
            held[name] = value
            if value is None:
                del held[name]
        return store.Entry(facts, blobs)

    return changed


WRONG = {
    "no symbol": without(symbol=None), "a number for it": without(symbol=3), "no resources": without(resources=None),
    "other resources": without(resources={"registers": 1}), "no notes": without(notes=None),
    "no cubin": without(cubin=None), "no code": without(cubin=b"text"), "no PTX": without(ptx=None),
    "PTX that is no text": without(ptx=b"\xff\xfe"), "another blob": without(more=b""),
}  # fmt: skip


def test_an_entry_that_holds_other_things_is_dropped_and_made_anew():
    args = (np.zeros(4, np.float32), cute.make_layout(3))
    made = cute.compile(scaled, args, arch="sm_90a")
    ((key, _, _, entry),) = store.entries()
    for why, change in WRONG.items():
        bad = change(entry)
        store.save(key, store.Entry({n: x for n, x in bad.facts.items() if n != "more"}, bad.blobs | (
            {"more": b""} if why == "another blob" else {})))  # fmt: skip
        assert disk_cache._sound(key, disk_cache._COMPILED) is None and store.load(key) is None, why
    assert len(cute.compile(scaled, args, arch="sm_90a").cubin) == len(made.cubin)
    assert disk_cache._sound(key, disk_cache._COMPILED) is not None


@pytest.mark.parametrize(
    "name, said",
    [
        ("kept", "kept is kept in the disk cache"),
        ("left", "left is not kept in the disk cache: `os.environ` is an object of os._Environ"),
        ("nothing", "has no kernel 'nothing'"),
    ],
)
def test_the_command_line_says_why_a_kernel_is_not_kept(name, said, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "path", sys.path[:])
    source = "import os\nfrom numba import cuda\nread = lambda: int(os.environ['X'])\n"
    source += "@cuda.jit\ndef left(out): out[0] = read()\n@cuda.jit\ndef kept(out): out[0] = 1\n"
    path = tmp_path / f"users_{name}.py"
    path.write_text(source)
    main(["cache", "why", f"{path}:{name}"])
    told = capsys.readouterr()
    assert said in told.out + told.err
