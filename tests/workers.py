# SPDX-License-Identifier: Apache-2.0
"""Have pytest-xdist's workers send less: 16,000 tests pass, and of each the main process needs one report alone.

A worker sends five messages for each test, of which a setup and a teardown that passed, and the test's start, tell
nothing that is printed. To write, send and read them takes half a millisecond a test, and the main process has no core
of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

LONG = 0.01
"""Seconds of a setup or teardown that are told: `--durations` and tests/seconds.json know of those."""


def register(config: pytest.Config) -> None:
    """Change what this process sends, if it is a worker."""
    for plugin in config.pluginmanager.get_plugins():
        if type(plugin).__name__ == "WorkerInteractor":
            plugin.sendevent = _sending(plugin.sendevent)


def _sending(send: Any) -> Any:
    def sendevent(name: str, **kwargs: Any) -> None:
        report = kwargs["data"] if name == "testreport" else None
        if name != "logstart" and (report is None or _tells(report)):
            send(name, **kwargs)

    return sendevent


def _tells(report: dict[str, Any]) -> bool:
    return report["when"] == "call" or report["outcome"] != "passed" or report["duration"] > LONG
