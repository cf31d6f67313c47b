# SPDX-License-Identifier: Apache-2.0
"""The dialect `cute` as NVIDIA published it: its types in their notation, its operations, what each gives, and the
tools that read and run its modules. Needs `numba-cute[ir]`."""
