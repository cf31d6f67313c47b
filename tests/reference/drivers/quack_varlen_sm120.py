# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm120 of matrices of many sizes, one behind the other."""

from compared import judge
from gemms import rows_of_many, run, sums_of_many

run([rows_of_many, sums_of_many])
judge()
