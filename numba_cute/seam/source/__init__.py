# SPDX-License-Identifier: Apache-2.0
"""Readers of the user's source and bytecode: what Numba lacks is rewritten, or refused with its line."""
