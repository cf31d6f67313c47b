# SPDX-License-Identifier: Apache-2.0
"""Numba's arithmetic: what type each operator and function gives for operands of which types, and what value.

`overloads` chooses among Numba's signatures, `cases` holds them, `compute` computes, `number` is a number with its
type (and `traced` its operators in traced code), and `operators`, `functions`, `modules` and `intrinsics` are what
kernels call. Nothing here imports Numba.
"""
