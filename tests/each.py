# SPDX-License-Identifier: Apache-2.0
"""One test that checks many things alike, such as all files: a test for each would take longer to begin than to run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each(names: str, values: Iterable[Any], ids: Callable[[Any], str] = str) -> Callable[[Callable[..., None]], Any]:
    """Run a check for each value, as `pytest.mark.parametrize` does, but as one test that lists all that fail."""
    parts, values = names.replace(" ", "").split(","), list(values)

    def of(check: Callable[..., None]) -> Callable[..., None]:
        def test(**fixtures: Any) -> None:
            wrong = []
            for value in values:
                try:
                    check(**dict(zip(parts, value if len(parts) > 1 else [value])), **fixtures)
                except AssertionError as error:
                    wrong.append(f"{ids(value)}: {error}")
            if wrong or not values:  # an assert would add its own words, where pytest has rewritten this file
                raise AssertionError("\n".join(wrong) or "there are no values")

        signature = inspect.signature(check)
        fixtures = [p for name, p in signature.parameters.items() if name not in parts]
        test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
        return test

    return of
