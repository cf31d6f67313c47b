# SPDX-License-Identifier: Apache-2.0
"""The examples of docs/layouts.md give what they show."""

import doctest
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_examples_of_the_layouts_page():
    failed, tried = doctest.testfile(str(DOCS / "layouts.md"), module_relative=False)
    assert tried > 10 and failed == 0
