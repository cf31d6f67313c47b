# ruff: noqa: F821
"""A function of words (numba_cute/compiler/host/native/language.py) for launch.py."""


def repeat(count, launch, config, kernel, pointers):
    failed = 0
    while count:
        failed += call32(launch, config, kernel, pointers, 0)
        count -= 1
    return failed
