# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm120: of symmetric results, and with a split K."""

from compared import judge
from gemms import run, split_k, symmetric

run([split_k, symmetric])
judge()
