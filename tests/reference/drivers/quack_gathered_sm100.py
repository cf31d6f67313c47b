# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm100 of rows that are gathered."""

from compared import judge
from gemms import gathered_rows, run

run([gathered_rows])
judge()
