# SPDX-License-Identifier: Apache-2.0
"""Names of `cutlass.utils` that are not those of `numba_cute.utils`."""

__all__: list[str] = []
