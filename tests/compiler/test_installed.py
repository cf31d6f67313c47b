# SPDX-License-Identifier: Apache-2.0
"""What compiles is named by what its files hold."""

from __future__ import annotations

import pytest

from numba_cute import config
from numba_cute.compiler.host import installed
from numba_cute.compiler.host.installed import content


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.override(cache_dir=str(tmp_path / "cache")):
        yield tmp_path / "cache"


def installation(folder, text, name="a.py"):
    """A folder of files as one that was installed."""
    (folder / "inner").mkdir(parents=True, exist_ok=True)
    (folder / "inner" / name).write_text(text)
    (folder / "b.py").write_text("b = 2")
    (folder / "inner" / "note.txt").write_text(str(folder))
    return content(str(folder), ".py")


def test_what_is_installed_is_named_by_its_files_wherever_it_is(tmp_path, monkeypatch):
    first = installation(tmp_path / "here", "a = 1")
    read = []
    digest = installed._digest
    monkeypatch.setattr(installed, "_digest", lambda *args: read.append(args) or digest(*args))
    assert content(str(tmp_path / "here"), ".py") == first and not read  # it is remembered
    elsewhere = [installation(tmp_path / "there", "a = 1"), installation(tmp_path / "here", "a = 1")]
    others = [installation(tmp_path / "here", "a = 3"), installation(tmp_path / "more", "a = 1", "c.py")]
    assert elsewhere == [first, first] and len({first, *others}) == 3
    assert len(read) == 4


def test_a_memory_of_what_is_installed_that_others_wrote_is_not_used(tmp_path, folder):
    first = installation(tmp_path / "here", "a = 1")
    (memory,) = (folder / "installed").iterdir()
    memory.write_text(memory.read_text().replace(first, "0" * 64))
    memory.chmod(0o666)
    assert content(str(tmp_path / "here"), ".py") == first
