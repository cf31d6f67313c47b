# SPDX-License-Identifier: Apache-2.0
"""The assembler: PTX to cubin, with what it says of registers, spills and lost speed."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ... import config
from ...seam import CuteError

# Notes that mean lost speed: setmaxnreg ignored; wgmma serialised for a call, registers, or code in between.
SLOW_NOTES = ("C7508", "C7510", "C7511", "C7514", "C7515")


@dataclass(frozen=True)
class Resources:
    """The resources of one kernel: 32-bit registers a thread; bytes of spills, stack and local memory a thread, and of
    static and dynamic shared memory a CTA (dynamic: what its SmemAllocator takes)."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    local: int
    shared: int
    dynamic_shared: int


def tool(name: str) -> str:
    """Find the path of a CUDA tool ("ptxas", "nvdisasm"): the one that is set, or the first that is found."""
    named = getattr(config.current(), name)
    if named is None:
        return _found(name)
    if not Path(named).is_file():
        raise CuteError(f"NUMBA_CUTE_{name.upper()}={named}: there is no such file")
    return str(named)


@functools.cache
def _found(name: str) -> str:
    """Search the NVIDIA wheels, the toolkit that the environment names, the PATH, and the toolkit's usual place."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [*_wheel_folders(), *(Path(home, "bin") for home in homes)]
    places = [folder / name for folder in folders] + [Path(shutil.which(name) or ""), Path("/usr/local/cuda/bin", name)]
    for place in places:
        if place.is_file():
            return str(place)
    raise CuteError(
        f"{name} was not found: install numba-cute[cu13] (or nvidia-cuda-nvcc, nvidia-cuda-nvdisasm), or set "
        f"NUMBA_CUTE_{name.upper()} to its path"
    )


def _wheel_folders() -> list[Path]:
    try:
        import nvidia
    except ImportError:
        return []
    return sorted(p for root in nvidia.__path__ for p in Path(root).glob("*/bin"))


def assemble(ptx: str, arch: str, max_registers: int | None = None, relocatable: bool = False) -> tuple[bytes, str]:
    """Assemble PTX; gives the cubin, `relocatable` if it shall be linked with more, and what ptxas said (`-v`). A
    refusal is a CuteError with its first lines."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptx)
        command = [tool("ptxas"), "-v", f"-arch={arch}", str(source), "-o", str(target)]
        if relocatable:
            command.insert(1, "-c")
        if max_registers:
            command.insert(1, f"-maxrregcount={max_registers}")
        done = subprocess.run(command, capture_output=True, text=True)
        said = done.stdout + done.stderr
        if done.returncode:
            lines = [ln for ln in said.splitlines() if "error" in ln or "fatal" in ln][:5] or said.splitlines()[:5]
            raise CuteError(f"ptxas refused the kernel for {arch}:\n  " + "\n  ".join(lines))
        return target.read_bytes(), said


def resources(said: str, dynamic_shared: int = 0) -> Resources:
    """Read the figures in what `ptxas -v` said of the entry function."""

    def number(pattern: str) -> int:
        return max((int(n) for n in re.findall(pattern, said)), default=0)

    stack = number(r"(\d+) bytes stack frame")
    return Resources(
        registers=number(r"Used (\d+) registers"),
        spill_stores=number(r"(\d+) bytes spill stores"),
        spill_loads=number(r"(\d+) bytes spill loads"),
        stack=stack,
        local=max(stack, number(r"(\d+) bytes lmem")),
        shared=number(r"(\d+) bytes smem"),
        dynamic_shared=dynamic_shared,
    )


def notes(said: str) -> tuple[str, ...]:
    """List the assembler's numbered notes and warnings, as it words them."""
    return tuple(ln.strip() for ln in said.splitlines() if re.search(r"\(C\d{4}\)|warning", ln))


def disassemble(cubin: bytes) -> str:
    """Disassemble a cubin: its machine code as nvdisasm prints it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        done = subprocess.run([tool("nvdisasm"), "-c", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise CuteError(f"nvdisasm failed: {done.stderr.strip()[:300]}")
    return done.stdout
