# SPDX-License-Identifier: Apache-2.0
"""All orders of a kernel that differ: `simulate(kernel).explore()`."""
