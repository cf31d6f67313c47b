# SPDX-License-Identifier: Apache-2.0
"""Kernels of others, to compare with."""
