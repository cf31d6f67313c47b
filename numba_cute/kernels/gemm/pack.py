# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 bits in the order in which the mixed GEMM's threads read them."""

from typing import Any, NamedTuple

import numpy as np

from numba_cute.seam import CuteError

from .. import entry

ROWS, COLUMNS, BLOCK = 128, 64, 128  # of a tile of words; elements along K that share a scale
BASE = {"BFloat16": 0x4300, "Float16": 0x6400}  # the bits of 128 and 1024: the last bits count from there in ones
INTEGERS = ("int8", "uint8", "int16", "int32", "int64")
_BASES = {"bfloat16": (128, 0x4300), "float16": (1024, 0x6400)}


class Int4Weights(NamedTuple):
    """Weights as the mixed GEMM reads them, made by `int4_weights`. words: (N / 128, K / 64, 1024) int32, digits.
    factors: (N / 128, K / 128, kinds, 128) int16, the bits of scales and, of two kinds, of zero points. middle: that of
    the zero point where factors have none. shape: (N, K). dtype: that of the scales, by name."""

    words: Any
    factors: Any
    middle: int
    shape: tuple[int, int]
    dtype: str


def int4_weights(w, scales, zeros=None):
    """Pack weights of 4 bits, `(w - zeros) * scales`, for `mixed_gemm`; once, on any device.

    w: (N, K) int8 from -8 to 7, or uint8 from 0 to 15, torch's or NumPy's; N is a multiple of 8. scales: (N, ceil(K /
    128)) bfloat16 or float16, one for each 128 along K of a row. zeros: the number that stands for zero, of each of
    these: integers in the range of `w`; None for 0. Gives Int4Weights. CuteError says what is not so.
    """
    what = "int4_weights"
    entry.check(what, "w", w, dtypes=("int8", "uint8"), rank=2, last=False)
    n, k = w.shape
    blocks = -(-k // BLOCK)
    entry.check(what, "scales", scales, dtypes=tuple(_BASES), shape=(n, blocks), last=False, like=w)
    entry.check(what, "zeros", zeros, dtypes=INTEGERS, shape=(n, blocks), last=False, like=w, optional=True)
    entry.refuse_gradients(what, [scales])
    if not n or n % 8 or not k:
        raise CuteError(
            f"{what}: w is {entry.described(w)}; N must be a multiple of 8, as TMA needs, and neither 0: pad w"
        )
    least = -8 if entry.type_name(w) == "int8" else 0
    for name, x in (("w", w), ("zeros", zeros)):
        if x is not None and not (least <= int(x.min()) and int(x.max()) <= least + 15):
            raise CuteError(
                f"{what}: {name} holds {int(x.min())} to {int(x.max())}; of {entry.type_name(w)} weights it must hold "
                f"{least} to {least + 15}: clamp it, or give the other type"
            )
    rows, columns = -(-n // ROWS) * ROWS, blocks * BLOCK
    numbers, bits = _BASES[entry.type_name(scales)]
    words = words_of(_padded(w - least, rows, columns))
    kinds = [_padded(scales, rows, blocks)]
    if zeros is not None:
        exact = _padded(_as(zeros, "int16") - least, rows, blocks) + numbers
        kinds.append(_as(exact, entry.type_name(scales)))
    factors = [_bits(x).reshape(rows // ROWS, ROWS, blocks) for x in kinds]
    if isinstance(w, np.ndarray):
        made = np.ascontiguousarray(np.stack(factors, 1).transpose(0, 3, 1, 2))
    else:
        made = entry.pytorch().stack(factors, 1).permute(0, 3, 1, 2).contiguous()
    return Int4Weights(words, made, bits - least, (n, k), entry.type_name(scales))


def _padded(x, rows, columns):
    """A matrix with zeros below and to the right."""
    out = np.zeros((rows, columns), x.dtype) if isinstance(x, np.ndarray) else x.new_zeros((rows, columns))
    out[: x.shape[0], : x.shape[1]] = x
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
