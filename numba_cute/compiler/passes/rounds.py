# SPDX-License-Identifier: Apache-2.0
"""Numba's rounds of type inference, in which a statement is typed again only if a type has changed that it asks for.

Numba types each statement in each round, until a round changes nothing: all of them twice at least. A statement that
asks for the same types gives the same. One that failed is typed again: what was traced in vain may be compiled.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..bridge.contexts import CuteTypingContext
from ..ground.carets import note_failed
from ..ground.numba_cuda import (
    ForceLiteralArg,
    PairFirstConstraint,
    Propagate,
    TypeInferer,
    TypeVar,
    TypeVarMap,
    TypingError,
    WarningsFixer,
    types,
    utils,
)

LEANS_ON = (TypeVarMap, TypeVar, TypeInferer.propagate, TypeInferer.add_type, WarningsFixer, Propagate)


def asking_once(propagate: Callable[[Any, Any], list[Exception]]) -> Callable[[Any, Any], list[Exception]]:
    """Make of one of Numba's rounds of inference that of this library's functions. What it raises Numba raises."""

    def propagated(self: Any, typeinfer: Any) -> list[Exception]:
        if not isinstance(typeinfer.context, CuteTypingContext):
            return propagate(self, typeinfer)
        rounds: _Rounds | None = vars(self).get("cute_rounds")
        if rounds is None:
            rounds = self.cute_rounds = _Rounds(typeinfer)
            _INFERERS.append(typeinfer)
        return rounds.next(typeinfer)

    return propagated


_INFERERS: list[Any] = []


@contextmanager
def letting_go() -> Iterator[None]:
    """Drop what an inference holds when it is done: a function of Numba's in it names itself, and so all of it would
    wait for the garbage collector. An error is told by what it came out of (see `origins`)."""
    before = len(_INFERERS)
    try:
        yield
        for inferer in _INFERERS[before:]:
            vars(inferer).clear()
    finally:
        del _INFERERS[before:]


class _Asked(TypeVarMap):
    """Numba's variables of types, which notes which of them were asked for."""

    def __init__(self, found: Any, context: Any) -> None:
        super().__init__(found)
        self.set_context(context)
        self.asked: list[Any] = []

    def __getitem__(self, name: str) -> Any:
        found = self.get(name)
        if found is None:
            found = super().__getitem__(name)
        self.asked.append(found)
        return found


class _Rounds:
    """The rounds of one inference. seen: of each statement that did not fail, the variables that it asked for, with
    their types when it was done."""

    def __init__(self, inferer: Any) -> None:
        self._variables = inferer.typevars = _Asked(inferer.typevars, inferer.context)
        self._constraints = inferer.constraints.constraints
        self._seen: list[list[tuple[Any, Any]] | None] = [None] * len(self._constraints)

    def next(self, inferer: Any) -> list[Exception]:
        """Go through one more round; gives its errors. inferer: the same each time, which holds this one."""
        errors: list[Exception] = []
        heard: list[tuple[Any, list[Any]]] = []
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", inferer.warnings._category)
            for at, constraint in enumerate(self._constraints):
                error = self._error_of(inferer, at, constraint)
                if error is not None:
                    errors.append(error)
                if warned:
                    heard.append((constraint.loc, warned[:]))
                    warned.clear()
        for loc, found in heard:
            with inferer.warnings.catch_warnings(filename=loc.filename, lineno=loc.line):
                for w in found:
                    warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        return errors

    def _error_of(self, inferer: Any, at: int, constraint: Any) -> Exception | None:
        """Type a statement, unless it asks for what it asked for before; gives its error."""
        if type(constraint) is Propagate and self._assign(inferer, constraint):
            return None
        seen = self._seen[at]
        if seen is not None:
            for variable, ty in seen:
                if variable.type is not ty:
                    break
            else:
                return None
        asked: list[Any] = []
        self._variables.asked = asked
        error = _run(constraint, inferer)
        # a recursive call's type is told by others; what failed may be compiled, having been traced in vain
        again = error is not None or any(isinstance(v.type, types.RecursiveCall) for v in asked)
        self._seen[at] = None if again else [(v, v.type) for v in dict.fromkeys(asked)]
        return error

    def _assign(self, inferer: Any, constraint: Any) -> bool:
        """Give a variable the type of another, as most statements do; False if their types must be joined."""
        to, given = self._variables[constraint.dst], self._variables[constraint.src].type
        if given is not None and to.type is not given:
            if to.type is not None or to.locked:
                return False
            to.type, to.define_loc = given, constraint.loc
        inferer.refine_map[constraint.dst] = constraint
        return True


def _let_go(error: BaseException) -> None:
    """Drop what the frames hold that an error came through, whose text is all that is kept: Numba keeps the error in a
    variable of one of them, and so all that was compiled, and the user's frames, would wait for the collector."""
    at: BaseException | None = error
    while at is not None:
        traceback.clear_frames(at.__traceback__)
        at = at.__cause__ or at.__context__


def _run(constraint: Any, inferer: Any) -> Exception | None:
    found: Exception | None = None
    if type(constraint) is PairFirstConstraint and _gives_later(inferer.typevars[constraint.pair.name]):
        return found
    try:
        constraint(inferer)
    except ForceLiteralArg as e:
        found = e
    except TypingError as e:
        if type(constraint) is not Propagate:  # a variable of two types: its place is where ways meet
            note_failed(str(e), constraint.loc)
        found = utils.chain_exception(TypingError(str(e), loc=constraint.loc, highlighting=False), e)
        _let_go(e)
    return found


def _gives_later(variable: Any) -> bool:
    """Say whether an iterator's items are not typed yet, which Numba asserts that they are: those of a list that is
    unrolled after a loop before it."""
    pairs = [ty for ty in variable.get() if isinstance(ty, types.Pair)]
    return not all(isinstance(p.first_type, types.UndefinedFunctionType) or p.first_type.is_precise() for p in pairs)
