# SPDX-License-Identifier: Apache-2.0
"""Kernels' Python as the simulator runs it: Numba's arithmetic, and stand-ins for numba.cuda and arrays."""
