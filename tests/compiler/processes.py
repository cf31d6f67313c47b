# SPDX-License-Identifier: Apache-2.0
"""Compile the kernels of kinds_of_change.py in processes of their own, by the disk cache, and tell what each did; or
tell their keys.

python -m tests.compiler.processes {compiled,keys} FOLDER KIND…
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OLD, NEW = 1000003, 1000033
NOT_KEPT = {
    "a function that remembers", "singledispatch", "a file", "json", "the environment", "eval", "exec", "importlib",
    "sys.modules", "a line number", "a ufunc of one's own", "a file that a path reads", "a memory map", "today",
    "hints that are text", "numpy's print options", "decimal's context", "an iterator", "a generator",
    "a ctypes number", "a context variable", "a random number",
}  # fmt: skip
"""Kinds that cannot be followed: such a kernel is compiled in each process."""
HEAD = """
import abc, array, collections, contextlib, dataclasses, datetime, decimal, enum, fractions, functools
import operator, pathlib
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import ClassVar, Generic, TypeVar
import numpy as np
from numba import cuda
from numba.cuda import extending
import numba_cute as cute
"""
TAIL = """
@cuda.jit
def kernel(out):
    out[0] = read()
    out[1] = cute.size(cute.make_layout(1))
"""


def kinds() -> dict[str, tuple[str, str]]:
    """By name: the files before and after the change, each a text of sections."""
    found = {}
    text = Path(__file__).with_name("kinds_of_change.txt").read_text()
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        head, _, body = part.partition("\n")
        name, _, change = head.partition(" : ")
        old, new = change.split(" -> ") if change else ("VALUE", str(NEW))
        assert old in body, name
        found[name] = (body.replace("VALUE", str(OLD)), body.replace(old, new).replace("VALUE", str(OLD)))
    return found


def write(folder: Path, text: str) -> None:
    """Write the files of a kind, all of one time, as an installer may."""
    first, *rest = re.split(r"^=== ", text, flags=re.M)
    files = {"users_kernel.py": HEAD + first + TAIL}
    files |= {name: body for name, _, body in (part.partition("\n") for part in rest)}
    for name, body in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(body)
        os.utime(folder / name, (1e9, 1e9))


def compiled(folder: Path) -> dict[str, Any]:
    """Compile the kernel of a folder; say what it stores, whether it was compiled, and its notes."""
    import numba_cute as cute
    from numba_cute import config
    from numba_cute.compiler.host import offline

    made = []
    compile = offline._compile
    offline._compile = lambda *given: made.append(1) or compile(*given)
    kernel = imported(folder)
    with config.override(cache_dir=str(folder / "cache")):  # of its own: kinds may read the same, by other ways
        keys = [key_of(kernel)]
        result = cute.compile(kernel, (array_type(),), arch="sm_90a")
        keys.append(key_of(kernel))
    values = [v for v in (OLD, NEW) if re.search(rf"\b{v}\b", result.ptx)]
    return {"values": values, "compiled": bool(made), "notes": result.notes, "keys": keys}


def keys(folder: Path, texts: tuple[str, str]) -> list[str | None]:
    """Return the keys of the kernels of texts of a kind."""
    found = []
    for text in texts:
        write(folder, text)
        found.append(key_of(imported(folder)))
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
    return found


def key_of(kernel: Any) -> str | None:
    """Return the key of a kernel."""
    from numba_cute.compiler.host import disk_cache

    return disk_cache.key_of(kernel.py_func, (array_type(),), kernel.targetoptions, "sm_90a", "kernel").text


def imported(folder: Path) -> Any:
    """Import the kernel of a folder."""
    sys.path[:0] = [str(folder), str(folder / "site")]
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    return importlib.import_module("users_kernel").kernel


def array_type() -> Any:
    from numba.cuda import types

    return types.int64[::1]


def warmed() -> None:
    """Compile a kernel, so that the forks of this process have what any kernel needs."""
    import numba_cute as cute

    @cute.jit
    def of(x: Any) -> Any:
        return x + 1

    def kernel(out: Any) -> None:
        out[0] = of(cute.size(cute.make_layout(1)))

    cute.compile(kernel, (array_type(),), arch="sm_90a")


def in_a_process(do: Callable[..., Any], *given: Any) -> Any:
    """Do something in a fork of this process, which has imported the libraries alone."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = do(*given)
        except BaseException as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        os.write(writing, json.dumps(said).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text)


def main(what: str, folder: Path, names: list[str]) -> None:
    """Print, for each kind, what three processes did: the first, one after it, and one after the change; or the keys
    before and after it."""
    os.environ |= {"NUMBA_CUTE_CACHE": "1", "NUMBA_CUTE_CACHE_DIR": str(folder / "cache")}
    warmed()
    began = time.time()
    for i, (name, texts) in enumerate(kinds().items()):
        if names and name not in names:
            continue
        place = folder / str(i)
        if what == "keys":
            said = in_a_process(keys, place, texts)
        else:
            write(place, texts[0])
            said = [in_a_process(compiled, place), in_a_process(compiled, place)]
            write(place, texts[1])
            said.append(in_a_process(compiled, place))
        print(json.dumps([name, said]), flush=True)
    print(f"{time.time() - began:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
