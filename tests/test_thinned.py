# SPDX-License-Identifier: Apache-2.0
"""The tests of which the default suite runs some cases are there."""

from pathlib import Path

import pytest

from .thinned import THINNED

HERE = Path(__file__).parent


@pytest.mark.parametrize("file, test", [(file, test) for file, tests in THINNED.items() for test in tests])
def test_a_thinned_test_is_there_and_has_cases(file, test):
    text = (HERE / file).read_text()
    assert f"\ndef {test}(" in text
    assert "parametrize" in text or "params=" in text
