# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm100 of matrices with scale factors, and with results rounded by chance."""

from compared import judge
from gemms import rounded, run, scaled_blocks

run([rounded, scaled_blocks])
judge()
