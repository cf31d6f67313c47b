# SPDX-License-Identifier: Apache-2.0
"""What happens on the host: launches, targets, the assembler, compiling with no GPU."""
