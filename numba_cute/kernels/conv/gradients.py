# SPDX-License-Identifier: Apache-2.0
"""The gradients of filters: products of the output's gradient and the im2col matrix, over groups of pixels that are
added up. Those of images are a transposed convolution, and the other way round.
"""

from __future__ import annotations

import math
from typing import Any

from .. import entry
from ..gemm.launches import launch_on, sms_here
from .operands import Columns, Walk, whole
from .plan import groups
from .tensors import channels_last, check, pixels_of, placed, remembered

UNIT = 64  # channels of 16 bits that TMA loads together
_known: dict[Any, Any] = {}


def gradient_of_filters(what: str, x: Any, dy: Any, dw: Any, walk: Walk) -> None:
    """Write the gradient of a convolution's filters. what: the entry, for messages. x: the images. dy: the gradient of
    the output. dw: the gradient. walk: of the convolution."""
    torch = entry.pytorch()
    outs, channels, *taps = dw.shape
    cut, count, each = groups(outs, channels, tuple(taps[::-1]), dy.numel() // outs, UNIT, sms_here())
    padded = whole(channels, each)
    sums = torch.empty((count, outs, math.prod(taps) * padded), dtype=torch.float32, device=x.device)

    def made() -> Any:
        for name, t in (("x", x), ("gradient", dy)):
            check(what, name, t)

        def place(dy: Any, x: Any, sums: Any) -> tuple[Any, Any, Any]:
            rows = pixels_of(dy).shape[0] // count
            a = placed(dy, (count, outs, rows), (rows * outs, 1, outs))
            return a, Columns(channels_last(x), walk, each, count), sums

        return launch_on((dy, x, sums), place, entry.element_type(x), cut)

    remembered(_known, [dy, x, sums], (walk,), made)(dy.detach(), x.detach(), sums)
    total = sums.sum(0) if count > 1 else sums[0]
    dw.copy_(total.view(outs, *taps, padded)[..., :channels].movedim(-1, 1))
