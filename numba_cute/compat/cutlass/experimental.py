# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.cute.experimental` that are those of `cutlass.cute` in other files."""

from .core import compile as compile, jit as jit

__all__ = ["compile", "jit"]
