# SPDX-License-Identifier: Apache-2.0
"""The code of kernels as the simulator runs it: Python's own, whose operators are Numba's.

`bytecode` takes a code object apart and puts it together, `rewrite` replaces operators, and `unify` finds the types of
variables where ways through the code meet.
"""
