# SPDX-License-Identifier: Apache-2.0
"""GEMMs with epilogues: `matmul` for PyTorch's tensors, and what its epilogues are made of."""

import importlib as _importlib
import sys as _sys

from ...seam.ground import names as _names

# By name, the module that has it: each is loaded when it is first asked for.
_FOUND_IN = {
    **dict.fromkeys(
        ("Epilogue", "amax", "bias", "columns", "geglu", "gelu", "magnitude", "matrix", "one", "relu", "residual",
         "rows", "scale", "silu", "sums", "swiglu", "total"),
        "epilogue",
    ),
    "Plan": "plan", "Umma": "cuts", "Warps": "cuts", "matmul": "entry",
}  # fmt: skip
__all__ = sorted(_FOUND_IN)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name in _FOUND_IN:
        found = getattr(_importlib.import_module(f".{_FOUND_IN[name]}", __name__), name)
        return globals().setdefault(name, found)
    raise _names.absent_from(__name__, name, _sys._getframe(1))


def __dir__() -> list[str]:
    return __all__
