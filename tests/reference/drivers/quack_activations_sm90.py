# SPDX-License-Identifier: Apache-2.0
"""Quack's matrix multiplication for sm90 with activations and their gradients."""

from compared import judge
from gemms import activated, activated_backward, gated, gated_backward, run

run([activated, activated_backward, gated, gated_backward])
judge()
