# SPDX-License-Identifier: Apache-2.0
"""Lowering of functions whose operations are recorded: as it is otherwise, with the number of each statement."""

from __future__ import annotations

from .ground.numba_cuda import CUDALower, CUDANativeLowering, register_pass
from .inspection.operations import Recorded
from .passes.lower import Lower, Lowering


class _RecordedPlain(Recorded, CUDALower):
    pass


class _RecordedLower(Recorded, Lower):
    pass


@register_pass(mutates_CFG=True, analysis_only=False)
class RecordedPlainLowering(CUDANativeLowering):
    """Numba's own."""

    _name = "numba_cute_recorded_plain_lowering"

    @property
    def lowering_class(self) -> type:
        return _RecordedPlain


@register_pass(mutates_CFG=True, analysis_only=False)
class RecordedLowering(Lowering):
    """That of functions of this library."""

    _name = "numba_cute_recorded_lowering"

    @property
    def lowering_class(self) -> type:
        return _RecordedLower
