# SPDX-License-Identifier: Apache-2.0
"""This library's objects as Numba knows them: types, values, calls, structs."""
