# SPDX-License-Identifier: Apache-2.0
"""docs/language.md: each example runs alike by Python, in the simulator and compiled, or is refused by both engines in
the words that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .fuzz.language import engines

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "language.md").read_text()
EXAMPLES = [
    pytest.param(text, id=f"{title}-{i}")
    for title, section in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.S | re.M)
    for i, text in enumerate(re.findall(r"```python\n(.*?)```", section, re.S))
]


@pytest.mark.parametrize("source", EXAMPLES)
def test_an_example_of_the_language_holds_in_python_the_simulator_and_compiled(source):
    refused = re.match(r"# refused: (.+)\n", source)
    found = engines.run(source)
    if refused is None:
        assert found.kind == "same", found
        return
    for engine in (found.simulator, found.compiled):
        assert engine.values is None and engine.words, found
        assert refused[1] in engine.error
