# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 bits in the order in which the mixed GEMM's threads read them."""

from typing import Any, NamedTuple

import numpy as np

from numba_cute.seam import CuteError

from .. import entry

ROWS, COLUMNS, BLOCK = 128, 64, 128  # of a tile of words; elements along K of a block
BASE = {"BFloat16": 0x4300, "Float16": 0x6400}  # the bits of 128 and 1024: the last bits count from there in ones
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
AWQ_COLUMNS = (0, 2, 4, 6, 1, 3, 5, 7)  # of 8, in the order of a word's digits
_BASES = {"bfloat16": (128, 0x4300), "float16": (1024, 0x6400)}


class Int4Weights(NamedTuple):
    """Weights as the mixed GEMM reads them, made by `int4_weights`. words: (N / 128, K / 64, 1024) int32, digits.
    factors: (N / 128, K / 128, groups, kinds, 128) int16, of each 128 along K the groups' bits of scales and, of two
    kinds, of zero points. middle: that of the zero point where factors have none. shape: (N, K). dtype: that of the
    scales, by name."""

    words: Any
    factors: Any
    middle: int
    shape: tuple[int, int]
    dtype: str


def int4_weights(w, scales, zeros=None, *, group_size=BLOCK):
    """Pack weights of 4 bits, `(w - zeros) * scales`, for `mixed_gemm`; once, on any device.

    w: (N, K) int8 from -8 to 7, or uint8 from 0 to 15, torch's or NumPy's; N is a multiple of 8. scales: (N, ceil(K /
    group_size)) bfloat16 or float16, one for each group along K of a row. zeros: the number that stands for zero, of
    each group: integers in the range of `w`; None for 0. group_size: 32, 64, a multiple of 128, or -1 for all of K.
    Gives Int4Weights. CuteError says what is not so.

    >>> import torch
    >>> w = torch.ones(8, 128, dtype=torch.int8)
    >>> weights = cute.kernels.int4_weights(w, torch.full((8, 1), 0.5, dtype=torch.float16))
    >>> weights.shape
    (8, 128)
    """
    what = "int4_weights"
    entry.check(what, "w", w, dtypes=("int8", "uint8"), rank=2, last=False)
    least = -8 if entry.type_name(w) == "int8" else 0
    _check_range(what, "w", w, least, entry.type_name(w))
    if zeros is not None:
        entry.check(what, "zeros", zeros, dtypes=INTEGERS, rank=2, last=False, like=w)
        _check_range(what, "zeros", zeros, least, entry.type_name(w))
    return _packed(what, w - least, scales, None if zeros is None else _as(zeros, "int16") - least, group_size, -least)


def int4_weights_from_awq(qweight, qzeros, scales):
    """Pack weights that AutoAWQ has written (version "gemm") for `mixed_gemm`; once, on any device.

    qweight: (K, N / 8) int32, of each word the lowest 4 bits are column 0 of 8, then 2, 4, 6, 1, 3, 5, 7. qzeros: (K /
    group_size, N / 8) int32, zero points in the same order. scales: (K / group_size, N) float16 or bfloat16. The size
    of groups follows from the shapes. Gives Int4Weights, of (N, K). CuteError says what is not so.

    >>> import torch
    >>> qweight, qzeros = torch.zeros(128, 8, dtype=torch.int32), torch.zeros(1, 8, dtype=torch.int32)
    >>> weights = cute.kernels.int4_weights_from_awq(qweight, qzeros, torch.ones(1, 64, dtype=torch.float16))
    >>> weights.shape
    (64, 128)
    """
    what = "int4_weights_from_awq"
    entry.check(what, "qweight", qweight, dtypes=("int32",), rank=2, last=False)
    k, n = qweight.shape[0], 8 * qweight.shape[1]
    group_size = _group_size(what, scales, k, n, qweight)
    entry.check(what, "qzeros", qzeros, dtypes=("int32",), shape=(scales.shape[0], n // 8), last=False, like=qweight)
    digits, zeros = (_digits(x, AWQ_COLUMNS).reshape(len(x), n).T for x in (qweight, qzeros))
    return _packed(what, digits, scales.T, zeros, group_size)


def int4_weights_from_gptq(qweight, qzeros, scales, g_idx=None, *, version=1):
    """Pack weights that GPTQ has written (AutoGPTQ's, GPTQModel's files) for `mixed_gemm`; once, on any device.

    qweight: (K / 8, N) int32, of each word the lowest 4 bits are the first of 8 along K. qzeros: (K / group_size, N /
    8) int32, the lowest 4 bits the first of 8 along N. scales: (K / group_size, N) float16 or bfloat16. g_idx: (K,)
    int32, the group of each of K; None for groups in order. version: of the format: 1, where zero points are one less
    than they mean, or 2 ("gptq_v2"). Gives Int4Weights, of (N, K). CuteError says what is not so.

    >>> import torch
    >>> qweight, qzeros = torch.zeros(16, 64, dtype=torch.int32), torch.zeros(1, 8, dtype=torch.int32)
    >>> weights = cute.kernels.int4_weights_from_gptq(qweight, qzeros, torch.ones(1, 64, dtype=torch.float16))
    >>> weights.shape
    (64, 128)
    """
    what = "int4_weights_from_gptq"
    entry.check(what, "qweight", qweight, dtypes=("int32",), rank=2, last=False)
    k, n = 8 * qweight.shape[0], qweight.shape[1]
    if version not in (1, 2) or n % 8:
        raise CuteError(f"{what}: version {version}, N {n}; version is 1 or 2, and N a multiple of 8")
    group_size = _group_size(what, scales, k, n, qweight)
    entry.check(what, "qzeros", qzeros, dtypes=("int32",), shape=(scales.shape[0], n // 8), last=False, like=qweight)
    if g_idx is not None:
        entry.check(what, "g_idx", g_idx, dtypes=INTEGERS, shape=(k,), last=False, like=qweight)
        if any(int(g) != i // group_size for i, g in enumerate(g_idx.tolist())):
            raise CuteError(
                f"{what}: g_idx is not in order (desc_act=True): the groups of K are not contiguous. Sort K by g_idx, "
                f"as order = argsort(g_idx, stable=True), repack the weights in that order, and multiply x[:, order]"
            )
    digits = _digits(qweight.T, range(8)).reshape(n, k)
    zeros = _digits(qzeros, range(8)).reshape(scales.shape[0], n).T
    if version == 1 and n and int(zeros.max()) == 15:
        raise CuteError(
            f"{what}: qzeros holds 15, which readers of version 1 take for 16 or for 0: write version 2, or repack "
            f"with int4_weights"
        )
    return _packed(what, digits, scales.T, zeros + (version == 1), group_size)


def _check_range(what, name, x, least, kind):
    """Raise a CuteError where an array holds what is not a digit of weights of this type."""
    if 0 not in x.shape and not (least <= int(x.min()) and int(x.max()) <= least + 15):
        raise CuteError(
            f"{what}: {name} holds {int(x.min())} to {int(x.max())}; of {kind} weights it must hold {least} to "
            f"{least + 15}: clamp it, or give the other type"
        )


def _group_size(what, scales, k, n, like):
    """Give how many of K share a scale, by the shape of scales (groups, N). like: where they must be."""
    entry.check(what, "scales", scales, dtypes=tuple(_BASES), shape=(None, n), last=False, like=like)
    groups = scales.shape[0]
    if not groups or k % groups:
        raise CuteError(f"{what}: scales has {groups} groups, of which K of {k} must be a multiple")
    return -1 if groups == 1 else k // groups


def _digits(words, order):
    """Spread the 8 digits of each word along a new last mode. order: the place there of each of its digits, the lowest
    4 bits first."""
    wide = _as(words, "int64")
    made: list[Any] = [None] * 8
    for i, place in enumerate(order):
        made[place] = wide >> 4 * i & 15
    stacked = np.stack(made, -1) if isinstance(wide, np.ndarray) else entry.pytorch().stack(made, -1)
    return _as(stacked, "uint8")


def _packed(what, digits, scales, zeros, group_size, middle=0):
    """Pack digits (N, K) from 0 to 15. scales, zeros: (N, groups); zeros: in digits; None for `middle`."""
    n, k = digits.shape
    if group_size not in (32, 64, -1) and (group_size < 1 or group_size % BLOCK):
        raise CuteError(f"{what}: group_size {group_size}: it must be 32, 64, a multiple of 128, or -1 for all of K")
    blocks = -(-k // BLOCK)
    of_block = BLOCK // group_size if group_size in (32, 64) else 1  # groups
    repeats = blocks if group_size == -1 else max(group_size // BLOCK, 1)  # blocks of a group
    shape = (n, 1 if group_size == -1 else -(-k // group_size))
    entry.check(what, "scales", scales, dtypes=tuple(_BASES), shape=shape, last=False, like=digits)
    entry.check(what, "zeros", zeros, dtypes=INTEGERS, shape=shape, last=False, like=digits, optional=True)
    entry.refuse_gradients(what, [scales])
    if not n or n % 8 or not k:
        raise CuteError(
            f"{what}: w is {entry.described(digits)}; N must be a multiple of 8, as TMA needs, and neither 0: pad w"
        )
    rows = -(-n // ROWS) * ROWS
    numbers, bits = _BASES[entry.type_name(scales)]
    kinds = [scales]
    if zeros is not None:
        kinds.append(_as(_as(zeros, "int16") + numbers, entry.type_name(scales)))
    kinds = [_bits(_padded(_repeated(x, repeats), rows, blocks * of_block)) for x in kinds]
    factors = [x.reshape(rows // ROWS, ROWS, blocks, of_block) for x in kinds]
    order = (0, 3, 4, 1, 2)
    if isinstance(digits, np.ndarray):
        made = np.ascontiguousarray(np.stack(factors, 1).transpose(order))
    else:
        made = entry.pytorch().stack(factors, 1).permute(order).contiguous()
    words = words_of(_padded(digits, rows, blocks * BLOCK))
    return Int4Weights(words, made, bits + middle, (n, k), entry.type_name(scales))


def _repeated(x, times):
    """Repeat each column of a matrix."""
    return x.repeat(times, 1) if isinstance(x, np.ndarray) else x.repeat_interleave(times, 1)


def _padded(x, rows, columns):
    """Give a matrix with zeros below and to the right, or without what stands there."""
    out = np.zeros((rows, columns), x.dtype) if isinstance(x, np.ndarray) else x.new_zeros((rows, columns))
    n, k = min(rows, x.shape[0]), min(columns, x.shape[1])
    out[:n, :k] = x[:n, :k]
    return out


def _as(x, name):
    """Convert an array's elements to the type of this name."""
    if isinstance(x, np.ndarray):
        return x.astype(np.dtype(name))
    return x.to(getattr(entry.pytorch(), name))


def _bits(x):
    return x.view(np.int16) if isinstance(x, np.ndarray) else x.view(entry.pytorch().int16)


def words_of(digits):
    """Pack digits (N, K), 0 to 15, NumPy's or torch's, N and K multiples of 128: (N / 128, K / 64, 1024), int32.

    A word holds what a thread has of a block of 16 of K in wgmma's fragment: of the pair p of the registers' four
    (8 * (p % 2) rows down, 8 * (p // 2) along K) one digit at bit 4 * p, the next along K at bit 16 + 4 * p.
    """
    n, k = digits.shape
    # row: tile, warpgroup, warp, 8 rows down, lane / 4; column: tile, block, 8 along, lane % 4, which of two
    d = digits.reshape(n // ROWS, 2, 4, 2, 8, k // COLUMNS, 4, 2, 4, 2)
    order = (0, 5, 1, 2, 4, 8, 6, 9, 7, 3)  # ..., lane / 4, lane % 4, block, which of two, 8 along, 8 down
    d = d.transpose(order) if isinstance(d, np.ndarray) else d.permute(*order)
    d = d.reshape(n // ROWS, k // COLUMNS, 2 * 128 * 4, 8)
    if isinstance(d, np.ndarray):
        return np.ascontiguousarray(_word([d[..., i].astype(np.uint32) for i in range(8)])).view(np.int32)
    import torch

    words = _word([d[..., i].to(torch.int64) for i in range(8)])
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32).contiguous()


def _word(digits):
    out = digits[0]
    for i, d in enumerate(digits[1:], 1):
        out = out | d << 4 * i
    return out
