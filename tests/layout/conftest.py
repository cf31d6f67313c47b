# SPDX-License-Identifier: Apache-2.0
"""Hypothesis without deadlines: the machines that run this are shared. A default run draws a third of the examples
that one with slow tests draws, the same ones each time."""

import pytest
from hypothesis import settings


def pytest_configure(config: pytest.Config) -> None:
    examples = 40 if "not slow" in config.option.markexpr else 120
    settings.register_profile("layout", deadline=None, max_examples=examples, derandomize=True)
    settings.load_profile("layout")
