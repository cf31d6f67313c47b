# SPDX-License-Identifier: Apache-2.0
"""Settings come from the environment, and can be changed for a while."""

import dataclasses
from pathlib import Path

import pytest

import numba_cute as cute
from numba_cute import config

PAGE = (Path(__file__).parents[1] / "docs" / "environment.md").read_text()


@pytest.mark.parametrize("field", dataclasses.fields(config.Settings), ids=lambda f: f.name)
def test_every_setting_is_on_the_page(field):
    assert f"| `NUMBA_CUTE_{field.name.upper()}` | `{field.name}` |" in PAGE


def test_the_environment_is_read(monkeypatch):
    monkeypatch.setenv("NUMBA_CUTE_PTXAS", "/opt/ptxas")
    monkeypatch.setenv("NUMBA_CUTE_TRACEBACK", "0")
    monkeypatch.delenv("NUMBA_CUTE_CACHE")
    assert config.current() == config.Settings(ptxas="/opt/ptxas")
    monkeypatch.setenv("NUMBA_CUTE_CACHE", "0")
    assert not config.current().cache


def test_overrides_end_with_their_block():
    before = config.current()
    with config.override(traceback=True), config.override(ptxas="x") as inner:
        assert (inner.traceback, config.current().ptxas) == (True, "x")
    assert config.current() == before


def test_unknown_settings_are_refused():
    with pytest.raises(cute.CuteError, match=r"\['speed'\] is not a setting; there are"), config.override(speed=1):
        pass


def test_the_named_tool_is_used():
    with config.override(ptxas="/no/such/ptxas"), pytest.raises(cute.CuteError, match="/no/such/ptxas"):
        from numba_cute.compiler.host import ptxas

        ptxas.assemble("", "sm_90a")
