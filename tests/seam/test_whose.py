# SPDX-License-Identifier: Apache-2.0
"""Whose code a module is: that of kernels/ counts as a user's."""

from pathlib import Path

import pytest

import numba_cute
from numba_cute.seam.ground.packages import KERNELS, is_library, is_library_file, package_of
from numba_cute.seam.marks.plain import is_users_module


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("numba_cute", "numba_cute"),
        ("numba_cute.layout.layout", "numba_cute"),
        ("numba_cute.kernels", KERNELS),
        ("numba_cute.kernels.rows.softmax", KERNELS),
        ("numba_cute.kernels_of_mine", "numba_cute"),
        ("numba_cute_pytest", "numba_cute_pytest"),
        ("users.numba_cute", "users"),
        (None, ""),
    ],
)
def test_a_module_goes_by_the_rules_of_its_package(module, package):
    assert package_of(module) == package
    assert is_library(module) == (package == "numba_cute")


def test_files_of_kernels_are_not_the_librarys_own():
    home = Path(numba_cute.__file__).resolve().parent
    assert is_library_file(str(home / "layout" / "layout.py"))
    assert not is_library_file(str(home / "kernels" / "rows" / "softmax.py"))
    assert not is_library_file(str(home.parent / "tests" / "conftest.py"))


@pytest.mark.parametrize(
    ("module", "is_users"),
    [("a_users", True), ("numba_cute.kernels", True), ("numba_cute.layout", False), ("math", False), ("numpy", False),
     (None, False)],
)  # fmt: skip
def test_a_users_module_is_told_from_python_s_and_ours(module, is_users):
    assert is_users_module(module) == is_users
