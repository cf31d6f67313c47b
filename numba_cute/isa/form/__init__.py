# SPDX-License-Identifier: Apache-2.0
"""What a row of the instruction table is, and what its body may ask of the machine."""
