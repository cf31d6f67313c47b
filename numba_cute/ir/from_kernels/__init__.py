# SPDX-License-Identifier: Apache-2.0
"""Modules of kernels: what Numba has typed, statement by statement, as operations."""
