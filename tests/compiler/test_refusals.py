# SPDX-License-Identifier: Apache-2.0
"""What Numba raises is said in the words of the simulator, whatever Numba adds to its own."""

import pytest
from numba.cuda.core.errors import NumbaNotImplementedError

from numba_cute.compiler.ground.refusals import refusal

SAID = {
    "Unknown attribute 'rank' of type array(float32, 1d, C)": "has no attribute",
    "<numba.cuda.core.base.OverloadSelector object at 0x7f>, (array(float32, 1d, C), int64)": "no such operation for",
}


@pytest.mark.parametrize("text", SAID)
def test_colours_do_not_hide_what_numba_says(text):
    plain, coloured = (refusal(NumbaNotImplementedError(t)) for t in (text, f"\x1b[1m\x1b[31m{text}\x1b[0m\n"))
    assert str(coloured) == str(plain) and SAID[text] in str(plain)
