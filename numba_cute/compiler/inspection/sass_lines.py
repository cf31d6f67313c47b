# SPDX-License-Identifier: Apache-2.0
"""A kernel's machine code under the lines of its source."""

from __future__ import annotations

import linecache
import re
from collections import defaultdict
from typing import Any

from ..ground.target import compiling_for
from ..host import ptxas
from ..host.offline import ptx_of, taken

_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")


def sass_of(kernel: Any, signature: Any, arch: str = "sm_90a") -> str:
    """Return a kernel's machine code, by the lines of its source: a text (needs nvdisasm).

    kernel: a ``@cuda.jit`` kernel, or a plain function. signature: example arguments as a tuple, or a Numba signature.
    arch: the target. It is the code of the kernel with line numbers, which is the code without.
    """
    function, argtypes, options = taken(kernel, signature, arch, "sass_of")
    with compiling_for(arch) as cc:
        name, ptx = ptx_of(function, argtypes, {**options, "lineinfo": True, "debug": False}, cc)
    cubin, _ = ptxas.assemble(ptx, arch, options.get("max_registers"))
    return _listing(function.__name__, arch, function.__code__.co_filename, ptxas.disassemble(cubin, lines=True), name)


def _listing(kernel: str, arch: str, file: str, text: str, name: str) -> str:
    """Write the instructions of a disassembly under their lines. name: the kernel's symbol, which is long."""
    by_line: dict[tuple[str, int], list[str]] = defaultdict(list)
    at = ("", 0)
    for line in text.replace(name, kernel).splitlines():
        place = _LINE.search(line)
        if place is not None:
            at = place[1], int(place[2])
        found = _INSTRUCTION.search(line)
        if found is not None and found[1] != "NOP":
            by_line[at].append(found[1])
    out = [f"kernel {kernel} for {arch}, {file}: {sum(map(len, by_line.values()))} instructions"]
    for (where, number), instructions in sorted(by_line.items(), key=lambda item: (item[0][0] != file, item[0])):
        source = linecache.getline(where, number).strip()
        head = f"{number:>5} | {source}" if where == file else f"{where}:{number} | {source}"
        out += ["", head, *(f"            | {text}" for text in instructions)]
    return "\n".join(out) + "\n"
