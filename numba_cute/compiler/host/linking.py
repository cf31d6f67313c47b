# SPDX-License-Identifier: Apache-2.0
"""Link a kernel with code besides its own PTX, as a launch links it, without a GPU or a driver.

Numba's half precision, the grid's barrier, arrays that are reshaped, and functions that are declared (`declare_device`,
`cuda.jit(link=…)`) are code of others: CUDA C++, PTX, objects and libraries.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from typing import Any

from cuda.core import ObjectCode, Program, ProgramOptions
from cuda.pathfinder import locate_nvidia_header_directory

from ...seam import CuteError
from ..ground.numba import config
from ..ground.numba_cuda import dispatcher, driver, get_cuda_paths, get_cudalib, nvrtc

_NUMBA = Path(dispatcher.__file__).parent


def parts_of(cres: Any, ptx: str, options: dict[str, Any]) -> list[Any]:
    """Return what a launch links a kernel with besides its PTX: files by their paths, and Numba's linkable code.

    cres: Numba's result for the kernel. ptx: its PTX. options: those of `cuda.jit`.
    """
    library = cres.library
    given = options.get("link") or ()
    parts = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if any(name in ptx for name in dispatcher.reshape_funcs):
        parts.append(str(_NUMBA / "reshape_funcs.cu"))
    dispatcher._Kernel.maybe_link_nrt(dispatcher._Kernel, parts, cres.target_context, ptx)
    parts += sorted((p for p in library._linking_files if p not in parts), key=lambda p: str(getattr(p, "name", p)))
    if library.use_cooperative or library.needs_cudadevrt:
        parts.append(get_cudalib("cudadevrt", static=True))
    return [os.fspath(p) if isinstance(p, os.PathLike) else p for p in parts]


def link(cubin: bytes, parts: list[Any], arch: str, cc: Any, max_registers: int | None) -> bytes:
    """Link a kernel's relocatable code with `parts`; gives the whole. CuteError: a part does not compile, or a function
    is in none of them, in the words of who says so."""
    linker = _Linker(max_registers=max_registers, cc=cc)
    try:
        linker.add_cubin(cubin)
        for part in parts:
            linker.add_file_guess_ext(part)
        return bytes(linker.complete().code)
    except CuteError:
        raise
    except Exception as e:  # of nvJitLink, NVRTC or Numba: they have no class in common
        said = [line.strip() for line in str(e).splitlines() if line.strip()]
        names = ", ".join(_name(p) for p in parts)
        raise CuteError(f"the kernel could not be linked for {arch} with {names}:\n  " + "\n  ".join(said[:6])) from e


def _name(part: Any) -> str:
    return os.path.basename(part) if isinstance(part, str) else str(part.name)


class _Linker(driver._Linker):
    """Numba's linker, which compiles CUDA C++ to machine code: for PTX it would ask the driver what it can load."""

    def add_cu(self, cu: Any, name: str = "<cudapy-cu>") -> None:
        text = cu.decode() if isinstance(cu, bytes) else cu
        self._object_codes.append(_compiled(text, name, self.arch))


@functools.lru_cache(maxsize=64)
def _compiled(text: str, name: str, arch: str) -> ObjectCode:
    options = ProgramOptions(arch=arch, include_path=_includes(), relocatable_device_code=True, name=name)
    return Program(text, "c++", options=options).compile("cubin")


@functools.cache
def _includes() -> list[str]:
    """Return the folders that Numba has its CUDA C++ look for headers in."""
    cccl = locate_nvidia_header_directory("cccl")
    folders = [_NUMBA / "include" / str(nvrtc._get_nvrtc_version()[0]), get_cuda_paths()["include_dir"].info]
    folders += [] if cccl is None else [cccl.abs_path]
    extra = config.CUDA_NVRTC_EXTRA_SEARCH_PATHS
    return [*map(str, folders), str(_NUMBA / "memory_management"), *(extra.split(":") if extra else ())]
