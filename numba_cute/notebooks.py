# SPDX-License-Identifier: Apache-2.0
"""Show objects at the end of a notebook's cell as pictures, which are loaded when one is first asked for."""

from __future__ import annotations

import importlib
from typing import Any

from .atoms.copy_atom import CopyAtom, TiledCopy
from .atoms.mma_atom import MmaAtom, TiledMma
from .layout import ComposedLayout, Layout, Swizzle
from .seam import CuteError
from .tensor.tensor import Tensor
from .utils.tile_scheduler import PersistentTileSchedulerParams

__all__: list[str] = []

_MOST_LETTERS = 1 << 19
"""The most letters of a picture: a larger one is shown as text."""


def _svg(self: Any) -> str | None:
    """Return the picture; None where it has none, so that the text is shown."""
    pictures = importlib.import_module(".pictures", __package__)
    try:
        made = str(pictures.show(self).svg())
    except CuteError:  # it is known only at run time, or too large to be looked at
        return None
    return made if len(made) <= _MOST_LETTERS else None


for _cls in (
    Layout, ComposedLayout, Swizzle, Tensor, CopyAtom, TiledCopy, MmaAtom, TiledMma, PersistentTileSchedulerParams
):  # fmt: skip
    setattr(_cls, "_repr_svg_", _svg)  # noqa: B010 - to mypy classes are fixed
