# SPDX-License-Identifier: Apache-2.0
"""Passes over Numba's IR of a function of this library, before typing and after it."""
