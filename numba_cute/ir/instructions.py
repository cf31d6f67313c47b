# SPDX-License-Identifier: Apache-2.0
"""The instructions of the dialect `cute_nvgpu` for which the API has no function of that name."""

from __future__ import annotations

__all__: list[str] = []
