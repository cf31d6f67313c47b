# SPDX-License-Identifier: Apache-2.0
"""Listings of a compiled kernel: its CuTe operations, its layouts, the PTX of each line."""
