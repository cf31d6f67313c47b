# SPDX-License-Identifier: Apache-2.0
"""Lanes of a warp that run a kernel's Python together, once."""
