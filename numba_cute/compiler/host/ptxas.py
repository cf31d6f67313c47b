# SPDX-License-Identifier: Apache-2.0
"""The assembler: PTX to cubin, with what it says of registers, spills and lost speed."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from ... import config
from ...seam import CuteError
from ...seam.ground.records import dataclass

# Notes that mean lost speed: setmaxnreg ignored; wgmma serialised for a call, registers, or code in between.
SLOW_NOTES = ("C7508", "C7510", "C7511", "C7514", "C7515")


@dataclass(frozen=True)
class Resources:
    """The resources of one kernel: 32-bit registers a thread; bytes of spills, stack and local memory a thread, and of
    static and dynamic shared memory a CTA (dynamic: what its SmemAllocator takes). group_registers: the registers a
    thread that warpgroups ask for (setmaxnreg), in the order of the code: of a producer and its consumers (24, 240)."""

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    local: int
    shared: int
    dynamic_shared: int
    group_registers: tuple[int, ...] = ()


@functools.cache
def version() -> tuple[int, int]:
    """Ask the assembler for its version: that of the CUDA toolkit."""
    said = subprocess.run([tool("ptxas"), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"release (\d+)\.(\d+)", said)
    if found is None:
        raise CuteError(f"ptxas --version says no release: {said!r}")
    return int(found[1]), int(found[2])


def tool(name: str) -> str:
    """Find the path of a CUDA tool ("ptxas", "nvdisasm"): the one that is set, or the first that is found."""
    named = getattr(config.current(), name)
    if named is None:
        return _found(name)
    if not os.path.isfile(named):  # of a name that is too long, too
        raise CuteError(f"NUMBA_CUTE_{name.upper()}={named}: there is no such file")
    return str(named)


@functools.cache
def _found(name: str) -> str:
    """Search the NVIDIA wheels, the toolkit that the environment names, the PATH, and the toolkit's usual place."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    folders = [*_wheel_folders(), *(Path(home, "bin") for home in homes)]
    places = [folder / name for folder in folders] + [Path(shutil.which(name) or ""), Path("/usr/local/cuda/bin", name)]
    for place in places:
        if os.path.isfile(place):
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
        done = _run("ptxas", command)
        said = done.stdout + done.stderr
        if done.returncode or not target.is_file():
            raise CuteError(_refusal(command[0], said, arch, ptx))
        return target.read_bytes(), said


_TOO_OLD = re.compile(r"Unsupported \.version|is not defined for option 'gpu-name'")
"""Messages of a ptxas that is older than the PTX, or that does not know the target."""


def _refusal(path: str, said: str, arch: str, ptx: str) -> str:
    """Write the message for PTX of which the assembler at `path` made no cubin."""
    if _TOO_OLD.search(said):
        written = f"PTX {_version(ptx)} for {arch}, which libNVVM writes"
        return f"{path} is too old for {written}: {_of_one_release('ptxas')}"
    lines = [ln for ln in said.splitlines() if "error" in ln or "fatal" in ln][:5] or said.splitlines()[:5]
    if not any(ln.strip() for ln in lines):
        return f"{path} is no ptxas: it made no cubin of the kernel's PTX, and said nothing; {_of_one_release('ptxas')}"
    return f"ptxas refused the kernel for {arch}:\n  " + "\n  ".join(lines)


def _version(ptx: str) -> str:
    found = re.search(r"^\.version (\S+)", ptx, re.MULTILINE)
    return "?" if found is None else found[1]


def _of_one_release(name: str) -> str:
    return (
        f"install numba-cute[cu13] or numba-cute[cu12], whose compiler and tools are of one release, or set "
        f"NUMBA_CUTE_{name.upper()} to the path of a newer one"
    )


def _run(name: str, command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a CUDA tool. A file that cannot be run, and one that does not end, is a CuteError."""
    limit = config.current().tool_seconds
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        raise CuteError(
            f"{command[0]} did not end within {limit:g} seconds: is it {name}? If the kernel is that large, set "
            "NUMBA_CUTE_TOOL_SECONDS to more"
        ) from None
    except OSError as e:
        raise CuteError(f"{command[0]} cannot be run as {name} ({e.strerror or e}): {_of_one_release(name)}") from None


def resources(said: str, dynamic_shared: int = 0, ptx: str = "") -> Resources:
    """Read the figures in what `ptxas -v` said of the entry function, and in its PTX."""

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
        group_registers=tuple(int(n) for n in re.findall(r"setmaxnreg\.\w+\.sync\.aligned\.u32 (\d+)", ptx)),
    )


def notes(said: str) -> tuple[str, ...]:
    """List the assembler's numbered notes and warnings, as it words them."""
    return tuple(ln.strip() for ln in said.splitlines() if re.search(r"\(C\d{4}\)|warning", ln))


def disassemble(cubin: bytes, lines: bool = False) -> str:
    """Disassemble a cubin: its machine code as nvdisasm prints it. lines: with those of the source, if it has them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.cubin")
        path.write_bytes(cubin)
        command = [tool("nvdisasm"), "-c", *(["-g"] if lines else []), str(path)]
        done = _run("nvdisasm", command)
    if done.returncode:
        raise CuteError(f"{command[0]} refused the cubin: {done.stderr.strip()[:300]}; {_of_one_release('nvdisasm')}")
    return done.stdout
