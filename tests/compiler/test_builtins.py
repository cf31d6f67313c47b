# SPDX-License-Identifier: Apache-2.0
"""Python's own functions mean the same by whatever name a kernel calls them."""

import pytest

from tests.compiler.three_ways import results

LINES = {
    "abs": "o[0] = NAME(n - 9) + NAME(-m)",
    "min": "o[0] = NAME(n, m, 4)",
    "max": "o[0] = NAME(n, m, 4)",
    "round": "o[0] = NAME(n / m)",
    "int": "o[0] = NAME(n / m) * 2147483647 * 3",
    "float": "o[0] = NAME(n) / 2 * 4",
    "bool": "o[0] = NAME(n) + NAME(n - 5)",
    "pow": "o[0] = NAME(n, 2)",
    "divmod": "o[0], o[1] = NAME(-n, m)",
    "sum": "o[0] = NAME((n, m, 4))",
    "len": "o[0] = NAME((n, m))",
    "range": "for i in NAME(n, 0, -2):\n    o[i] = i * m",
    "enumerate": "for i, x in NAME((n, m)):\n    o[i] = x",
    "isinstance": "o[0] = 1 if NAME(2, int) else 2",
}


@pytest.mark.parametrize("head, name", [("import builtins", "builtins.{}"), ("another = {}", "another")])
@pytest.mark.parametrize("function", LINES)
def test_a_function_by_another_name(function, head, name):
    python, simulated, compiled = results(head.format(function), LINES[function].replace("NAME", name.format(function)))
    assert simulated == python and compiled == python
