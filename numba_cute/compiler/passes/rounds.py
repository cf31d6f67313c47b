# SPDX-License-Identifier: Apache-2.0
"""Numba's rounds of type inference, in which a statement is typed again only if a type has changed that it asks for.

Numba types each statement in each round, until a round changes nothing: all of them twice at least. A statement that
asks for the same types gives the same, or the same error.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

from numba.cuda import types, utils
from numba.cuda.core.errors import ForceLiteralArg, TypingError, WarningsFixer
from numba.cuda.core.typeinfer import ConstraintNetwork, Propagate, TypeInferer, TypeVar, TypeVarMap

from ..bridge.contexts import CuteTypingContext

LEANS_ON = (ConstraintNetwork, TypeVarMap, TypeVar, TypeInferer.get_state_token, WarningsFixer, Propagate)


def asking_once(propagate: Callable[..., Any]) -> Callable[..., Any]:
    """Make of Numba's rounds of inference those of this library's functions."""

    def propagated(self: Any, raise_errors: bool = True) -> Any:
        if not isinstance(self.context, CuteTypingContext):
            return propagate(self, raise_errors)
        errors = _Rounds(self).run()
        if errors and raise_errors:
            literal = [e for e in errors if isinstance(e, ForceLiteralArg)]
            raise functools.reduce(operator.or_, literal) if literal else errors[0]
        return errors or None

    return propagated


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
    """The rounds of one inference. seen: of each statement, the variables that it asked for, with their types when it
    was done, and its error."""

    def __init__(self, inferer: Any) -> None:
        self._inferer = inferer
        self._variables = inferer.typevars = _Asked(inferer.typevars, inferer.context)
        self._constraints = inferer.constraints.constraints
        self._seen: list[tuple[list[tuple[Any, Any]], Exception | None] | None] = [None] * len(self._constraints)

    def run(self) -> list[Exception]:
        """Go on until a round changes no type; gives the errors of the last one."""
        before = None
        now = self._types()
        while before is None or before != now:
            self._inferer.debug.propagate_started()
            errors = self._round()
            before, now = now, self._types()
            self._inferer.debug.propagate_finished()
        return errors

    def _types(self) -> list[Any]:
        return [variable.type for variable in self._variables.values()]

    def _round(self) -> list[Exception]:
        errors: list[Exception] = []
        heard: list[tuple[Any, list[Any]]] = []
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", self._inferer.warnings._category)
            for at, constraint in enumerate(self._constraints):
                error = self._error_of(at, constraint)
                if error is not None:
                    errors.append(error)
                if warned:
                    heard.append((constraint.loc, warned[:]))
                    warned.clear()
        for loc, found in heard:
            with self._inferer.warnings.catch_warnings(filename=loc.filename, lineno=loc.line):
                for w in found:
                    warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
        return errors

    def _error_of(self, at: int, constraint: Any) -> Exception | None:
        """Type a statement, unless it asks for what it asked for before; gives its error."""
        if type(constraint) is Propagate and self._assign(constraint):
            return None
        seen = self._seen[at]
        if seen is not None:
            for variable, ty in seen[0]:
                if variable.type is not ty:
                    break
            else:
                return seen[1]
        asked: list[Any] = []
        self._variables.asked = asked
        error = _run(constraint, self._inferer)
        if any(isinstance(v.type, types.RecursiveCall) for v in asked):  # whose type others tell
            self._seen[at] = None
        else:
            self._seen[at] = [(v, v.type) for v in dict.fromkeys(asked)], error
        return error

    def _assign(self, constraint: Any) -> bool:
        """Give a variable the type of another, as most statements do; False if their types must be joined."""
        to, given = self._variables[constraint.dst], self._variables[constraint.src].type
        if given is not None and to.type is not given:
            if to.type is not None or to.locked:
                return False
            to.type, to.define_loc = given, constraint.loc
        self._inferer.refine_map[constraint.dst] = constraint
        return True


def _run(constraint: Any, inferer: Any) -> Exception | None:
    found: Exception | None = None
    try:
        constraint(inferer)
    except ForceLiteralArg as e:
        found = e
    except TypingError as e:
        found = utils.chain_exception(TypingError(str(e), loc=constraint.loc, highlighting=False), e)
    return found
