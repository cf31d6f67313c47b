# SPDX-License-Identifier: Apache-2.0
"""Each bug of the zoo is found and named in every order tried; its mended twin is silent."""

import warnings

import pytest
from numba import cuda

from numba_cute.seam.hooks.engines import COMPILER
from numba_cute.sim.checks import CHECKS

from . import (  # noqa: F401
    barriers,
    clusters,
    copies,
    dependents,
    grids,
    lax,
    lives,
    maps,
    matrix_unit,
    memory,
    pipelines,
    ranks,
    swizzles,
    tensor_copies,
    tensor_cores,
    tensor_operands,
    tensor_pairs,
    tensor_reports,
    threads,
    tiles,
)
from .zoo import BUGS

STORES = ("store ", "writers that do not wait", "tiles stored")
"""Kernels that are given a host object, which a simulated function takes, and a compiled kernel does not."""

DONE_AT_ONCE = ("result of try wait ignored", "result of test wait ignored")
"""Bugs that cannot be seen where a copy is done when it is issued."""

FIRST, SECOND = {}, {"seed": 1}
MORE = [{"async_mode": "eager"}, {"seed": 3, "async_mode": "lazy"}, *({"seed": s} for s in (0, 2, 4, 5, 6, 7))]


def slow(*orders):
    return [pytest.param(o, marks=pytest.mark.slow) for o in orders]


@pytest.mark.parametrize("options", [FIRST, *slow(SECOND, *MORE)], ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_broken_is_reported_for_what_it_is(bug, options):
    if bug.name in DONE_AT_ONCE and options.get("async_mode") == "eager":
        pytest.skip("the copy is done before the barrier is tested")
    with pytest.raises(bug.error) as caught, warnings.catch_warnings():
        warnings.simplefilter("error")
        bug.run(False, **options)
    for words in bug.words:
        assert any(w in str(caught.value) for w in words.split("|")), words


@pytest.mark.parametrize("options", [SECOND, *slow(FIRST, *MORE)], ids=str)
@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_mended_is_silent(bug, options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bug.run(True, **options)


OF_PIPELINES = [b for b in BUGS if b.make.__module__.endswith(".pipelines") and not b.name.startswith(STORES)]


@pytest.mark.parametrize(
    "bug",
    [pytest.param(b, marks=[] if i % 8 == 0 else pytest.mark.slow) for i, b in enumerate(OF_PIPELINES)],
    ids=lambda b: b.name,
)
def test_mended_has_no_note_at_compile_time(bug):
    made = bug.make(True)
    for kernel in made if isinstance(made, list) else [made]:
        given = cuda.jit(kernel), bug.arguments(), bug.launch.get("arch", "sm_90a")
        COMPILER.check(*given)
        assert COMPILER.likely_wrong(*given) == ()


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda b: b.name)
def test_broken_is_found_by_the_check_that_it_names_alone(bug):
    with pytest.raises(bug.error), warnings.catch_warnings():
        warnings.simplefilter("error")
        bug.run(False, checks=() if bug.check is None else bug.check.name)


def reported(bug, checks, mended=False):
    """What such a run raises, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            bug.run(mended, checks=checks)
    except Exception as e:
        return e
    return None


@pytest.mark.parametrize("check", CHECKS.values(), ids=lambda c: c.name)
def test_every_check_has_a_bug_that_no_other_finds_and_a_silent_twin(check):
    others = [c.name for c in CHECKS.values() if c is not check and check not in c.needs]
    own = [b for b in BUGS if b.check is check]
    alone = (b for b in own if reported(b, others) is None and isinstance(reported(b, check.name), b.error))
    bug = next(alone)
    assert reported(bug, check.name, mended=True) is None


def test_every_bug_says_what_its_report_must_hold():
    assert len(BUGS) > 150
    assert len({b.name for b in BUGS}) == len(BUGS)
    assert [b.name for b in BUGS if not b.words] == []
