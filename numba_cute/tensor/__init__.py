# SPDX-License-Identifier: Apache-2.0
"""Tensors and all that they are made of: pointers, symbolic numbers, register vectors, storage, and what moves
elements."""
