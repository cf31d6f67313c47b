# SPDX-License-Identifier: Apache-2.0
"""Random kernels: what is compiled must be what the source says, whatever Python Numba takes."""
