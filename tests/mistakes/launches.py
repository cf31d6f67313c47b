# SPDX-License-Identifier: Apache-2.0
"""Mistakes with what a kernel is given, and with what it captures."""

import numpy as np

import numba_cute as cute
from numba_cute.runtime import from_dlpack

from .form import mistake
from .tensors import tensor

ARRAY = np.zeros(4, np.float32)
FROZEN = np.arange(4, dtype=np.float32)
HOST = from_dlpack(np.zeros((4, 4), np.float32))
ITEMS = [1, 2, 3]
TABLE = {"a": 1}


class Plain:
    pass


OBJECT = Plain()


@mistake("read-only", tensor(8, 4))
def global_array_written(t):
    ARRAY[0] = 1.0  # wrong
    t[0, 0] = cute.size(t)


@mistake("s memory, and is captured as a global or closure variable:", tensor(8, 4))
def tensor_of_the_host_captured(t):
    t[0, 0] = HOST[0, 0]  # wrong


@mistake("is none of this table's keys", tensor(8, 4))
def key_that_a_global_dict_has_not(t):
    t[0, 0] = TABLE["no such key"]  # wrong


@mistake(
    "no such operation", tensor(8, 4), np.int32(1), only="compiler",
    reason="a list of the simulator's is Python's, which any number indexes",
)  # fmt: skip
def global_list_indexed_at_run_time(t, n):
    t[0, 0] = ITEMS[n]  # wrong


@mistake("and kernels cannot use it: pass what they need of it", tensor(8, 4))
def global_object(t):
    t[0, 0] = OBJECT.x  # wrong


@mistake("a kernel is given a dict: it takes arrays, tensors,", tensor(8, 4), lambda: {"a": 1})
def dict_as_an_argument(t, table):  # wrong
    t[0, 0] = table["a"]


@mistake("bits, which kernels do not have", tensor(8, 4), 1 << 70)
def argument_beyond_64_bits(t, n):  # wrong
    t[0, 0] = n


@mistake("kernel argument_that_is_missing", tensor(8, 4))
def argument_that_is_missing(t, n):  # wrong
    t[0, 0] = n


@mistake("arguments, but the launch gives", tensor(8, 4), np.int32(1), np.int32(2))
def argument_too_many(t, n):  # wrong
    t[0, 0] = n


@mistake(
    "the array is read-only, and cannot be written: write to", lambda: np.broadcast_to(np.zeros(1, np.float32), (4,))
)
def array_that_may_only_be_read(x):
    x[0] = 1.0  # wrong
    cute.size(4)
