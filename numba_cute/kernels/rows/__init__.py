# SPDX-License-Identifier: Apache-2.0
"""Kernels that take the rows of a matrix one by one: norms, softmax, cross-entropy, and what is like them."""
