# SPDX-License-Identifier: Apache-2.0
"""The table of entries by targets in docs/kernels_made.md is the one that was recorded."""

import json

from .targets import BEGIN, END, PAGE, RESULT, TARGETS, table


def test_the_page_has_the_recorded_table():
    record = json.loads(RESULT.read_text())
    assert all(set(of) == set(TARGETS) for of in record.values())
    assert BEGIN + table(record) + END in PAGE.read_text()
