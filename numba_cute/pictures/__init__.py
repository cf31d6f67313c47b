# SPDX-License-Identifier: Apache-2.0
"""`show`: anything of this library that has a picture, as one."""

from .shown import show

__all__ = ["show"]
