# SPDX-License-Identifier: Apache-2.0
"""Attention: kernels, and what they share: the online softmax, masks, and the order of tiles."""
