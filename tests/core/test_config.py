# SPDX-License-Identifier: Apache-2.0
"""Settings come from the environment, and can be changed for a while."""

import dataclasses
from pathlib import Path

import pytest

import numba_cute as cute
from numba_cute import config

PAGE = (Path(__file__).parents[2] / "docs" / "environment.md").read_text()


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


@pytest.fixture
def tool(tmp_path):
    """Makes a program of a shell script, to stand for the assembler."""

    def make(script):
        path = tmp_path / "ptxas"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return config.override(ptxas=str(path), nvdisasm=str(path), tool_seconds=0.2)

    return make


def test_a_tool_that_does_not_end_is_stopped(tool):
    from numba_cute.compiler.host import ptxas

    with tool("exec sleep 60"):
        with pytest.raises(cute.CuteError, match=r"did not end within 0.2 seconds.*NUMBA_CUTE_TOOL_SECONDS"):
            ptxas.assemble("", "sm_90a")
        with pytest.raises(cute.CuteError, match=r"did not end within 0.2 seconds.*NUMBA_CUTE_TOOL_SECONDS"):
            ptxas.disassemble(b"")


def test_a_program_that_is_no_assembler_is_named(tool, tmp_path):
    from numba_cute.compiler.host import ptxas

    with tool("exit 0"), pytest.raises(cute.CuteError, match=r"is no ptxas.*NUMBA_CUTE_PTXAS"):
        ptxas.assemble("", "sm_90a")
    text = tmp_path / "text"
    text.write_text("no program")
    with (
        config.override(ptxas=str(text)),
        pytest.raises(cute.CuteError, match=r"cannot be run as ptxas \(.*NUMBA_CUTE_PTXAS"),
    ):
        ptxas.assemble("", "sm_90a")


@pytest.mark.parametrize("text", ["soon", "0", "-1", "nan"])
def test_the_time_that_a_tool_may_take_is_a_number_of_seconds(monkeypatch, text):
    monkeypatch.setenv("NUMBA_CUTE_TOOL_SECONDS", "90")
    assert config.current().tool_seconds == 90
    monkeypatch.setenv("NUMBA_CUTE_TOOL_SECONDS", text)
    with pytest.raises(cute.CuteError, match=f"NUMBA_CUTE_TOOL_SECONDS={text}: give a number of seconds above 0"):
        config.current()
