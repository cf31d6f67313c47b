# SPDX-License-Identifier: Apache-2.0
"""Names of MLIR's Python that annotations and `isinstance` use; Numba has no MLIR, so nothing is one of these."""

from __future__ import annotations

__all__ = ["InsertionPoint", "IntegerType", "Location", "Type", "Value", "VectorType"]


class Value:
    """A value of MLIR."""


class Location:
    """A place in a source."""


class InsertionPoint:
    """Where operations go."""


class Type:
    """A type of MLIR."""


class VectorType(Type):
    """A type of vectors."""


class IntegerType(Type):
    """A type of integers."""
