# SPDX-License-Identifier: Apache-2.0
"""The mutants of the compiler's passes fit the code as it is."""

import pytest

from .mutants import MUTANTS, ROOT


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_s_line_stands_once_in_its_file(name):
    file, line, _ = MUTANTS[name]
    assert (ROOT / "numba_cute" / "compiler" / file).read_text().count(line) == 1
