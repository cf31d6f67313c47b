# SPDX-License-Identifier: Apache-2.0
"""The code of kernels as the simulator runs it: Python's own, with Numba's operators, whose variables have one type.

`bytecode` takes a code object apart and puts it together; `rewrite` replaces operators. `conversions` casts where ways
through the code meet, as the front end found it.
"""
