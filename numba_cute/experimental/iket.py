# SPDX-License-Identifier: Apache-2.0
"""Events inside a kernel, by the names of the CuTe DSL: `cute.timeline` shows them."""

from ..arch.events import mark as mark, range_pop as range_pop, range_push as range_push

__all__ = ["mark", "range_pop", "range_push"]
