# SPDX-License-Identifier: Apache-2.0
"""The CuTe IR: the dialects `cute` and `cute_nvgpu` on xDSL, from kernels and to kernels. Needs `numba-cute[ir]`; its
types as text (`text`) stand without."""

from __future__ import annotations

try:
    import xdsl  # noqa: F401
except ModuleNotFoundError:
    from ..seam import CuteError

    def __getattr__(name: str) -> object:
        if name in ("Module", "from_kernel", "parse", "passes", "to_host", "to_kernel", "to_python"):
            raise CuteError(
                'the CuTe IR stands on xDSL, which is not installed: pip install "numba-cute[ir]" (Python 3.11 or '
                "newer); cute.inspect_ptx lists a kernel's operations without it"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

else:
    from . import passes as passes
    from .from_kernels.module import from_kernel as from_kernel
    from .kernels import to_host as to_host, to_kernel as to_kernel, to_python as to_python
    from .module import Module as Module
    from .reading import parse as parse
