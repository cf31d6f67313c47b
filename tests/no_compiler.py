# SPDX-License-Identifier: Apache-2.0
"""Skip what needs the compiler where there is none: on macOS, which numba-cuda has no wheels for.

Layouts, the simulator and all that they run need numba alone (tests/installs tries it here). A test that asks for the
compiler then fails by one of a few known errors, at import or as it runs; only those are skips.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from numba_cute.compiler.host import absent

ABSENT = ("cuda", "numba.cuda", "numba_cuda")
IN_A_REPORT = re.compile(r"^E +(ImportError|ModuleNotFoundError|AttributeError): .*'(numba\.)?cuda\b", re.MULTILINE)
REASON = "needs numba-cuda, which is not installed"


def is_for_want_of_it(error: BaseException | None) -> bool:
    """Say whether an error, or what it came from, says that numba-cuda or CUDA's packages are missing."""
    while error is not None:
        if isinstance(error, ImportError):
            name = error.name or ""
            if any(name == a or name.startswith(a + ".") for a in ABSENT):
                return True
        if "needs the compiler, and so numba-cuda" in str(error):
            return True
        if isinstance(error, AttributeError) and "module 'numba.cuda." in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class Skips:
    """The plugin: registered where there is no compiler."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        return (yield from skipping())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        return (yield from skipping())

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        report: Any = yield
        if report.failed and IN_A_REPORT.search(str(report.longrepr)):
            report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {REASON}")
        return report


def skipping() -> Any:
    """Run what a hook wraps, and make a skip of an error that means no compiler."""
    try:
        return (yield)
    except BaseException as e:
        if is_for_want_of_it(e):
            pytest.skip(REASON)
        raise


def register(config: pytest.Config) -> None:
    """Add the plugin where there is no compiler."""
    if absent.missing():
        config.pluginmanager.register(Skips())
