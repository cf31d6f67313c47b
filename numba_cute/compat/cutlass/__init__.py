# SPDX-License-Identifier: Apache-2.0
"""Names of the CuTe DSL that `numba_cute` does not have, one file for each group of its modules."""
