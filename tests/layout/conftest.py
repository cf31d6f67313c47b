# SPDX-License-Identifier: Apache-2.0
"""Hypothesis without deadlines: the machines that run this are shared."""

from hypothesis import settings

settings.register_profile("layout", deadline=None, max_examples=120, derandomize=True)
settings.load_profile("layout")
