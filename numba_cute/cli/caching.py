# SPDX-License-Identifier: Apache-2.0
"""`cache`: the kernels that are kept on disk: list them, remove them, ship them, ask why one is not kept."""

from __future__ import annotations

import argparse
import datetime
from typing import Any

from ..seam import CuteError
from . import naming

HELP = "list the kernels that are kept on disk, remove or ship them, or ask why one is not kept"
EXAMPLE = """\
examples:
  python -m numba_cute cache                             the kernels, and the folder
  python -m numba_cute cache why saxpy.py:saxpy          whether it is kept, and what hinders it
  python -m numba_cute cache export kernels.tar.gz       for an image, or another machine: cache import
  python -m numba_cute cache clear
"""


def add(cache: argparse.ArgumentParser) -> None:
    cache.add_argument("what", choices=("list", "clear", "path", "export", "import", "why"), nargs="?", default="list")
    cache.add_argument(
        "file", nargs="?", metavar="FILE", help="of export and import: the archive, a .tar.gz; of why: FILE.py:KERNEL"
    )


def run(given: argparse.Namespace) -> int:
    """Run it; gives the exit code."""
    print(_cache(given.what, given.file), end="")
    return 0


def _cache(what: str, file: str | None) -> str:
    from ..compiler.host import shipped, store

    if (file is None) == (what in ("export", "import", "why")):
        raise CuteError(f"cache {what} takes {'a file' if file is None else 'no file'}")
    if file is not None and (not file or "\0" in file):
        raise CuteError(f"cache {what}: {file!r} is not a name of a file")
    if file is not None and what == "why":
        return _why(naming.kernel_of(file)[0], naming.split(file)[1])
    if what == "path":
        return f"{store.folder()}\n"
    if file is not None and what == "export":
        return f"{shipped.export(file)} kernels of {store.folder()} are in {file}\n"
    if file is not None:
        taken, left = shipped.take(file)
        return f"{taken} kernels of {file} are in {store.folder()}, {left} were there, are broken, or are none\n"
    if what == "clear":
        return f"{store.clear()} kernels removed from {store.folder()}\n"
    lines, total = [], 0
    for key, used, size, entry in store.entries():
        facts = entry.facts
        when = datetime.datetime.fromtimestamp(used).isoformat(" ", "minutes")
        lines.append(f"{key[:12]}  {when}  {size:>9,} B  {facts.get('arch', '?')!s:<8}  {facts.get('kernel', '?')}\n")
        total += size
    return "".join([*lines, f"{len(lines)} kernels, {total:,} bytes, in {store.folder()}\n"])


def _why(kernel: Any, name: str) -> str:
    """Say whether a kernel is kept, and if not why."""
    from ..compiler.host import disk_cache

    key = disk_cache.key_of(getattr(kernel, "py_func", kernel), (), getattr(kernel, "targetoptions", {}), "", "kernel")
    if key.text is not None:
        return f"{name} is kept in the disk cache: all that compiling it reads can be followed\n"
    return f"{name} is not kept in the disk cache: {key.why or 'the cache is off (NUMBA_CUTE_CACHE=0)'}\n"
