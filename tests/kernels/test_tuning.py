# SPDX-License-Identifier: Apache-2.0
"""What was measured of a GPU is data, by which plans choose."""

import json

import pytest

from . import choices


@pytest.mark.parametrize("part", [f.__name__ for f in choices.PARTS])
def test_an_h200_has_the_plans_that_were_measured_there(part):
    kept = json.loads(choices.KEPT.read_text())[part]
    assert getattr(choices, part)() == kept and len(kept) > 20
