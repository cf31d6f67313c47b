# SPDX-License-Identifier: Apache-2.0
"""Traced code as LLVM IR: leaves, their arithmetic and conversions, instructions."""
