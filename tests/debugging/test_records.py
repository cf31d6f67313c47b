# SPDX-License-Identifier: Apache-2.0
"""Records of debugged kernels, made by hand, are the simulator's exceptions."""

import json

import numpy as np
import pytest

import numba_cute as cute
from numba_cute.debugging.comparing import first_difference
from numba_cute.debugging.launches import table_of
from numba_cute.debugging.pieces import ENDED, FILL, MOST_RANGES
from numba_cute.debugging.records import FORM, Ran, Range, error_of, hang_of, missing
from numba_cute.debugging.sites import (
    ASSERTION,
    BLOCK,
    MBARRIER,
    MISALIGNED,
    NAMED,
    NOT_A_NUMBER,
    OUTSIDE,
    OUTSIDE_SHARED,
    Lines,
    Site,
    access_of,
    parsed,
    statements,
)  # fmt: skip
from numba_cute.sim import DeadlockError, OutOfBoundsError, SimError, UninitializedReadError

LINE = 9  # of this file
SITES = (Site("wait", __file__, LINE), Site("st", __file__, LINE + 1))
OUT = Range(4096, 8192, "out", cute.Float32)


def ran(site=None, block=(64, 1, 1), cluster=(1, 1, 1)):
    return Ran("kernel", (*SITES, *([site] if site else [])), (OUT,), (4, 1, 1), block, 2.0, cluster)


def record(kind, words=(0, 0, 0), threads=(0,), site=0, block=(0, 0, 0), last=0, at=1):
    made = np.zeros(len(threads), FORM)
    made["kind"], made["site"], made["block"], made["thread"] = kind, site, block, threads
    made["words"], made["last"], made["time"] = words, last, at
    return made


def said(*records, of=None, error=None):
    found = error_of(np.concatenate([*records, np.zeros(3, FORM)]).tobytes(), of or ran())
    assert type(found) is error or isinstance(found, error)
    return str(found)


def test_a_deadlock_says_who_waits_where_and_for_what():
    text = said(
        record(MBARRIER, (1024, 1, 7), range(32), last=3),
        record(BLOCK | ENDED, threads=range(32, 48), site=1, at=2),
        record(MBARRIER | ENDED, (1024, 1, 7), (5,), block=(3, 0, 0), at=2),
        error=DeadlockError,
    )
    assert text.splitlines()[0].startswith("deadlock in kernel kernel, block (0, 0, 0): 48 threads waited, one of them")
    for words in (
        "warp 0 (32 threads) wait at ", f":{LINE} (kernel): `", "for the mbarrier at 0x400", "parity 1",
        "3 arrivals missing", "lanes 0-15 of warp 1 (16 threads) wait", "for the barrier of the block",
        "lanes 16-31 of warp 1 (16 threads) had ended", "threads of 1 other block waited too, as of (3, 0, 0)",
    ):  # fmt: skip
        assert words in text
    assert text.index("warp 0 (32") < text.index("lanes 0-15")


def test_bytes_that_are_missing_and_named_barriers_and_clusters_have_their_words():
    assert "bytes of copies" in said(record(MBARRIER, (1024, 0, 0x000003FFE01FFFFE)), error=DeadlockError)
    text = said(record(NAMED, (3, 96, 64), range(64), block=(1, 0, 0)), of=ran(cluster=(2, 1, 1)), error=DeadlockError)
    assert "for named barrier 3: 64 of 96 threads have arrived" in text and "of CTA 1" in text


@pytest.mark.parametrize(
    "kind, words, error, said_",
    [
        (OUTSIDE, (8192, 4, 0), OutOfBoundsError, "0 bytes behind the end of out (1024 elements of Float32)"),
        (OUTSIDE, (4000, 4, 0), OutOfBoundsError, "96 bytes before out"),
        (OUTSIDE, (8184, 16, 0), OutOfBoundsError, "partly in out: its memory ends 8 bytes behind that"),
        (MISALIGNED, (4100, 16, 0), OutOfBoundsError, "misaligned: thread 37 (warp 1) of block (1, 0, 0)"),
        (OUTSIDE_SHARED, (5000, 4, 4096), OutOfBoundsError, "shared memory"),
        (NOT_A_NUMBER, (4104, 0x7FC00000, 32), SimError, "stores a NaN (bits 0x7fc00000) to out, element 2"),
        (NOT_A_NUMBER, (4104, FILL, 32), UninitializedReadError, "what nobody has written"),
    ],
)
def test_what_is_wrong_names_the_thread_the_line_and_the_argument(kind, words, error, said_):
    wait = record(MBARRIER | ENDED, (1024, 1, 7), range(4))
    text = said(wait, record(kind, words, (37,), site=1, block=(1, 0, 0)), error=error)
    assert said_ in text and f"test_records.py:{LINE + 1} (kernel)" in text and "thread 37" in text


def test_an_assertion_has_its_text_and_message():
    n = np.arange(3)
    line = test_an_assertion_has_its_text_and_message.__code__.co_firstlineno + 3
    assert n.sum() == 3
    site = Site("assert " + json.dumps(["AssertionError", "three"]), __file__, line)
    text = said(record(ASSERTION, site=2), of=ran(site), error=AssertionError)
    assert "`assert n.sum() == 3` is false: three" in text and isinstance(AssertionError(), Exception)
    text = said(record(ASSERTION, site=2), of=ran(Site('assert ["ValueError", ""]', __file__, line)), error=SimError)
    assert "ValueError" in text


@pytest.mark.parametrize(
    "word, pending, words",
    [  # words that an H200 had
        (0x7FFFF800001FFFBE, 1, "1 of 33 arrivals missing"),
        (0x7FFF0800001FFF80, 31, "31 of 64 arrivals missing"),
        (0xFFFE0000001FFF80, 64, "64 of 64 arrivals missing"),
        (0x000003FFE01FFFFE, 1 << 20, "256 bytes of copies missing"),
        (0x1234, 5, "5 arrivals missing"),
        (0x7FFFF800001FFFBE, 0, "bytes of copies are missing"),
    ],
)
def test_the_word_of_an_mbarrier_is_read_where_it_agrees_with_its_pending_count(word, pending, words):
    assert missing(word, pending) == words


def test_a_kernel_that_cannot_be_ended_says_that_the_context_is_lost():
    assert "the CUDA context is lost" in str(hang_of(ran(), np.zeros(2, FORM).tobytes(), 60.0))


def test_no_record_is_no_error():
    assert error_of(np.zeros(4, FORM).tobytes(), ran()) is None


def test_the_table_of_ranges_knows_which_bits_are_no_number():
    held = table_of([OUT, Range(1 << 40, (1 << 40) + 4, "n", cute.Int32), Range(16, 32, "h", cute.BFloat16)], True)
    assert held[0] == 3 | 1 << 32 and len(held) == 2 + 4 * MOST_RANGES
    assert held[2:14].tolist() == [4096, 8192, 0x7F800000, 32, 1 << 40, (1 << 40) + 4, 0, 0, 16, 32, 0x7F80, 16]


def test_ptx_is_taken_apart():
    text = "{ .reg .pred done; again: mbarrier.try_wait.b64 done, [%r1], %r2; @!done bra again; }"
    parts = list(statements(text))
    assert parts == [
        "{", ".reg .pred done", "again:", "mbarrier.try_wait.b64 done, [%r1], %r2", "@!done bra again", "}"
    ]  # fmt: skip
    a = access_of(parsed("st.global.v4.f32 [%rd1+-16], {%f1, %f2, 0f00000000, %f4}"))
    assert (a.space, a.base, a.offset, a.size, a.values[2]) == ("global", "%rd1", -16, 16, "0f00000000")
    a = access_of(parsed("ld.shared::cta.v2.b16 {%rs1, %rs2}, [%r7]"))
    assert (a.space, a.size, a.values) == ("shared", 4, ())
    assert access_of(parsed("ld.param.u64 %rd1, [kernel_param_0]")) is None
    assert access_of(parsed("st.shared::cluster.u32 [%r1], %r2")) is None


def test_lines_are_the_users_where_the_library_is_inlined():
    from numba_cute import pipeline

    where = Lines(f'.file 1 "{pipeline.__file__}"\n.file 2 "/home/user/k.py"\n')
    where.see("\t.loc\t1 88 5, function_name $L__info_string0, inlined_at 2 45 3")
    assert where.here == ("/home/user/k.py", 45)
    where.see("\t.loc\t1 90 5")
    assert where.here == ("/home/user/k.py", 45)


def test_the_first_difference_counts_nans_as_equal_and_keeps_the_tolerance():
    a = np.array([[1.0, np.nan], [3.0, 4.0]], np.float32)
    b = np.array([[1.01, np.nan], [3.0, 5.0]], np.float32)
    assert first_difference(a, b, 0, 0) == ((0, 0), 2)
    assert first_difference(a, b, 0.1, 0) == ((1, 1), 1)
    assert first_difference(a, b, 0, 1) is None
    assert first_difference(np.arange(4), np.arange(4), 0, 0) is None
