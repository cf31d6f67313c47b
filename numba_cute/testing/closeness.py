# SPDX-License-Identifier: Apache-2.0
"""Comparing results with float64, by the error that their type and the number of their summands allow."""

from __future__ import annotations

import math
import sys
from typing import Any

import ml_dtypes
import numpy as np

from ..dtypes import DType, Float32
from ..seam import CuteError
from ..seam.ground.naming import described, shown
from ..seam.guards.messages import FalseAssertion

__all__ = ["allowed_error", "assert_allclose", "to_numpy"]

_SURE = 8.0
"""Standard deviations, so to say: rounding errors of n summands grow as sqrt(n), within this factor of it."""


def to_numpy(array: Any) -> np.ndarray[Any, Any]:
    """Return an array of any library, on the host or a GPU, as one of NumPy's (ml_dtypes' types where NumPy has none).

    array: NumPy's, torch's, CuPy's, Numba's or JAX's, a number, or lists of such. CuteError: none of these.

    >>> cute.testing.to_numpy([1, 2])
    array([1, 2])
    """
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "detach"):  # torch
        array = array.detach().cpu().contiguous()
        name = str(array.dtype).removeprefix("torch.")
        if hasattr(ml_dtypes, name):
            bits = {1: "uint8", 2: "uint16"}[array.element_size()]
            return np.asarray(array.view(getattr(sys.modules["torch"], bits)).numpy()).view(getattr(ml_dtypes, name))
        return np.asarray(array.numpy())
    for method in ("copy_to_host", "get"):  # Numba's and CuPy's
        if hasattr(array, "__cuda_array_interface__") and hasattr(array, method):
            return np.asarray(getattr(array, method)())
    try:
        return np.asarray(array)
    except Exception as e:
        raise CuteError(f"assert_allclose: {type(array).__name__} is not an array ({e})") from e


def _finfo(dtype: Any) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _unit(kind: Any) -> float:
    """The unit roundoff of an element type, or the number that was given in its place."""
    if isinstance(kind, (int, float)) and not isinstance(kind, bool):
        return float(kind)
    if isinstance(kind, DType) and kind.name == "TFloat32":
        return 2.0**-11
    info = _info(kind)
    return 0.0 if info is None else float(info.eps) / 2


def _info(kind: Any) -> Any:
    """Return NumPy's limits of a floating-point type; None for integers."""
    try:
        dtype = np.dtype(kind.numpy if isinstance(kind, DType) else kind)
        return None if np.issubdtype(dtype, np.integer) or dtype == np.bool_ else _finfo(dtype)
    except (TypeError, ValueError, SyntaxError, RecursionError):  # NumPy reads texts as Python's
        raise CuteError(f"assert_allclose: {shown(kind)} is not an element type; give one like cute.Float32") from None


def _float64(name: str, x: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(x, np.float64)
    except (TypeError, ValueError):
        raise CuteError(f"assert_allclose: {name} {described(x)}: give an array of numbers") from None


def allowed_error(
    want: Any, dtype: Any, *, terms: int = 1, accumulate: Any = Float32, operands: Any = None, magnitude: Any = None
) -> np.ndarray[Any, Any]:
    """Return by how much each element of a result may be off: half a unit of its own last place; and for sums, what
    rounding after each of `terms` additions adds up to, by a bound that holds for all but vanishingly few inputs
    (8 sqrt(terms) u magnitude, after Higham and Mary, "A new approach to probabilistic rounding error analysis").

    want: the result in float64. dtype: the element type that it is rounded to. terms: how many summands each element
    has; 1 for none. accumulate: the type that they are added in, or a unit roundoff, as 2.0**-13 for the tensor cores'
    sums of 8-bit floats. operands: the type that two factors of each summand were rounded to, beside what `want` was
    computed from; None if they were not. magnitude: sums of the summands' absolute values, an array like `want`; by
    default sqrt(terms) times the root of the mean square of `want`, as of summands of random sign.

    >>> cute.testing.allowed_error(np.array([1.0]), cute.Float16) < 0.001
    array([ True])
    """
    want = _float64("want", want)
    if isinstance(terms, bool) or not isinstance(terms, int) or terms < 1:
        raise CuteError(f"assert_allclose: terms {terms!r} must be an int from 1 on")
    finite = np.where(np.isfinite(want), want, 0.0)
    last = np.abs(finite) * _unit(dtype) + _least(dtype)
    if terms == 1 and operands is None:
        return last
    if magnitude is None:
        rms = math.sqrt(float(np.mean(finite**2))) if finite.size else 0.0
        sums = np.maximum(np.abs(finite), math.sqrt(terms) * rms)
    else:
        sums = np.abs(_float64("magnitude", magnitude))
        if sums.ndim and sums.shape != want.shape:
            raise CuteError(
                f"allowed_error: magnitude has the shape {sums.shape}, and want {want.shape}: give an array like want"
            )
    of_sums = _SURE * math.sqrt(terms) * _unit(accumulate) * sums if terms > 1 else 0.0
    of_factors = 0.0 if operands is None else _SURE * 2 * _unit(operands) * sums / math.sqrt(terms)
    return np.asarray(last + (of_sums + of_factors) * (1 + _unit(dtype)))


def _least(dtype: Any) -> float:
    """Half of the least number above zero of an element type."""
    info = _info(dtype)
    return 0.0 if info is None else float(info.smallest_subnormal) / 2


def assert_allclose(
    got: Any, want: Any, *, dtype: Any = None, terms: int = 1, accumulate: Any = Float32, operands: Any = None,
    magnitude: Any = None, rtol: float = 0.0, atol: float = 0.0,
) -> float:  # fmt: skip
    """Compare a result with what it should be, element by element, and return ‖got - want‖ / ‖want‖.

    got: the result, an array of any library. want: the same computed in float64; integers must be exact. dtype,
    terms, accumulate, operands, magnitude: what the error is allowed by, see `allowed_error`; dtype is that of `got` by
    default. rtol, atol: what is allowed beside, of |want| and absolutely. NaN and infinities must stand where
    they should; an infinity also where `want` is beyond what the type holds.

    AssertionError: shapes that differ, or elements that do: how many, the first, the worst, and where they lie.

        cute.testing.assert_allclose(c, a.double() @ b.double().T, terms=k)

    >>> cute.testing.assert_allclose(np.float32(1), 1.0, dtype=cute.Float32)
    0.0
    """
    g, w = to_numpy(got), to_numpy(want)
    kind = g.dtype if dtype is None else dtype
    if g.shape != w.shape:
        raise FalseAssertion(f"shapes {g.shape} and {w.shape} differ")
    if np.iscomplexobj(g) or np.iscomplexobj(w):
        raise CuteError("assert_allclose: complex numbers: compare their real and imaginary parts")
    if np.issubdtype(g.dtype, np.integer) and np.issubdtype(w.dtype, np.integer):
        bad = g != w
        allowed = np.zeros(w.shape)
    else:
        g, w = _float64("got", g), _float64("want", w)
        allowed = allowed_error(w, kind, terms=terms, accumulate=accumulate, operands=operands, magnitude=magnitude)
        allowed = allowed + atol + rtol * np.abs(np.where(np.isfinite(w), w, 0.0))
        bad = _bad(g, w, allowed, kind)
    if bad.any():
        raise FalseAssertion(_report(g, w, allowed, bad, kind))
    g, w = g.astype(np.float64), w.astype(np.float64)
    both = np.isfinite(g) & np.isfinite(w)
    size = float(np.linalg.norm(w[both]))
    off = float(np.linalg.norm(g[both] - w[both]))
    return off / size if size else off


def _bad(g: Any, w: Any, allowed: Any, dtype: Any) -> Any:
    with np.errstate(invalid="ignore"):
        close = np.abs(g - w) <= allowed
    same = (g == w) | (np.isnan(g) & np.isnan(w))
    return ~(close | same | (np.isinf(g) & (np.sign(g) == np.sign(w)) & (np.abs(w) + allowed > _most(dtype))))


def _most(dtype: Any) -> float:
    info = _info(dtype)
    return math.inf if info is None else float(info.max)


def _report(g: Any, w: Any, allowed: Any, bad: Any, dtype: Any) -> str:
    places = np.argwhere(bad)
    first = tuple(map(int, places[0]))
    with np.errstate(invalid="ignore"):
        off = np.where(bad, np.nan_to_num(np.abs(g.astype(np.float64) - w.astype(np.float64)), nan=np.inf), -1.0)
    worst = tuple(map(int, np.unravel_index(int(np.argmax(off)), off.shape))) if off.ndim else ()
    box = ", ".join(f"{low}:{high + 1}" for low, high in zip(places.min(0), places.max(0)))
    text = f"{len(places)} of {bad.size} elements of {dtype} are wrong"
    for name, at in (("first", first), ("worst", worst)):
        text += f"; the {name} is at {at}: {g[at].item()}, and should be {w[at].item()} within {allowed[at]:.3g}"
    return text + f"; they lie within [{box}]"
