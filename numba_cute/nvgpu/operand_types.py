# SPDX-License-Identifier: Apache-2.0
"""The types of a matrix operation's operands, from the fields that its user gives."""

from __future__ import annotations

from ..dtypes import DType


class OneType:
    """Operations whose field `ab_dtype` is the type of both operands."""

    ab_dtype: DType

    @property
    def a_type(self) -> DType:
        return self.ab_dtype

    @property
    def b_type(self) -> DType:
        return self.ab_dtype


class TwoTypes:
    """Operations with a type for each operand."""

    a_dtype: DType
    b_dtype: DType

    @property
    def a_type(self) -> DType:
        return self.a_dtype

    @property
    def b_type(self) -> DType:
        return self.b_dtype
