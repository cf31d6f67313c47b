# SPDX-License-Identifier: Apache-2.0
"""The host's side: kernels, their arguments and launches, the assembler, compiling with no GPU."""
