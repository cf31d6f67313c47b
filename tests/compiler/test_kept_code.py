# SPDX-License-Identifier: Apache-2.0
"""The machine code of launches is compiled once for all processes."""

from __future__ import annotations

import ctypes

import pytest

import numba_cute as cute
from numba_cute.compiler.host import kept_code, launching
from numba_cute.compiler.host.native import launcher
from numba_cute.compiler.host.native.language import Code, Foreign, python_api


def tripled(x):
    return PyLong_AsLongLong(x) * 3 + OFFSET  # noqa: F821


def run(offset, kept=None):
    """Call `tripled` of 14."""
    code = Code([tripled], {"PyLong_AsLongLong": Foreign(python_api("PyLong_AsLongLong"), "i64", "i64")},
                {"OFFSET": offset}, kept)  # fmt: skip
    given = 14
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address("tripled"))(id(given))


class Making:
    """What is compiled once, and how often it was asked for."""

    def __init__(self):
        self.times, self.code = 0, b""

    def __call__(self, make):
        def counted():
            self.times += 1
            return make()

        self.code = kept_code.kept("a module", counted)
        return self.code


@pytest.fixture
def making(tmp_path):
    with cute.config.override(cache_dir=str(tmp_path / "kernels"), cache=True):
        yield Making()


def test_code_holds_nothing_of_the_process_that_made_it(making):
    assert [run(offset, making) for offset in (5, 7, -(1 << 62))] == [47, 49, 42 - (1 << 62)]
    assert making.times == 1


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b[:70] + b"?" + b[71:], lambda b: b"", lambda b: b * 2])
def test_code_that_is_broken_is_made_again(making, tmp_path, change):
    run(5, making)
    (file,) = (tmp_path / "kernels" / "launches").iterdir()
    file.write_bytes(change(file.read_bytes()))
    assert run(7, making) == 49
    assert making.times == 2


def test_code_of_another_version_is_made_again(making, monkeypatch, tmp_path):
    run(5, making)
    monkeypatch.setattr(kept_code, "compiler_version", lambda: "another")
    assert run(7, making) == 49
    assert making.times == 2
    assert len(list((tmp_path / "kernels" / "launches").iterdir())) == 1  # in the old one's place


def test_nothing_is_kept_where_the_cache_is_off(making, tmp_path):
    with cute.config.override(cache=False):
        assert run(5, making) == 47 and run(7, making) == 49
    assert making.times == 2 and not (tmp_path / "kernels" / "launches").exists()


def test_launches_keep_their_code():
    assert launcher._keeper == [launching.kept]
