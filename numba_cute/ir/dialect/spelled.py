# SPDX-License-Identifier: Apache-2.0
"""The operations of the table of printed operations in xDSL: read, written and verified by their lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, SymbolRefAttr, i1, i32, i64
from xdsl.ir import Attribute, Data, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, var_operand_def, var_result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ...seam import CuteError
from . import listed, older
from .attributes import CuteAttr
from .inference import without_promises
from .listed import one_of
from .notation import write
from .printed_inference import AGREE, agrees, alike, most_known, printed_kind
from .printed_operations import ROWS, WORDS, Part, Row

_PIECE = re.compile(
    r"(?P<open>\[\[)|(?P<close>\]\])|\{(?P<name>\w+):(?P<form>\w+)\}|(?P<sign>%|(?<![A-Za-z_])[TRFD](?![A-Za-z_]))(?P<at>\d*)(?P<rest>\*?)"
)
_TOKEN = re.compile(r"->|\w+|[^\w\s]")
Piece = tuple[Any, ...]


def _pieces(spelling: str) -> tuple[Piece, ...]:
    """Split a spelling: ("text", t), ("attribute", name, form), (sign, first, rest) and ("group", pieces)."""
    stack: list[list[Piece]] = [[]]
    at = 0
    for found in _PIECE.finditer(spelling):
        if found.start() > at:
            stack[-1].append(("text", spelling[at : found.start()]))
        at = found.end()
        if found["open"]:
            stack.append([])
        elif found["close"]:
            group = tuple(stack.pop())
            stack[-1].append(("group", group))
        elif found["name"]:
            stack[-1].append(("attribute", found["name"], found["form"]))
        else:
            stack[-1].append((found["sign"], int(found["at"]) if found["at"] else None, bool(found["rest"])))
    if at < len(spelling):
        stack[-1].append(("text", spelling[at:]))
    return tuple(stack[0])


def _attributes(pieces: Sequence[Piece], needed: bool = True) -> dict[str, tuple[str, bool]]:
    """The attributes of a spelling by name: the form, and whether it must be there."""
    found: dict[str, tuple[str, bool]] = {}
    for piece in pieces:
        if piece[0] == "attribute":
            found[piece[1]] = piece[2], needed
        elif piece[0] == "group":
            found |= _attributes(piece[1], False)
    return found


# ------------------------------------------------------------------ attributes


_FORMS: dict[str, type[Attribute]] = {
    "int": IntegerAttr,
    "path": DenseArrayBase,
    "word": StringAttr,
    "text": StringAttr,
    "symbol": SymbolRefAttr,
    "attribute": Attribute,
}
"""The attributes by the names that spellings have for them."""


def _parse_attribute(form: str, parser: Parser) -> Attribute:
    if form == "int":
        return IntegerAttr(parser.parse_integer(), i32)
    if form == "path":
        numbers = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return DenseArrayBase.from_list(i32, numbers)
    if form == "word":
        return StringAttr(parser.parse_identifier())
    if form == "text":
        return StringAttr(parser.parse_str_literal())
    at = parser.pos
    found = parser.parse_attribute()
    if form == "symbol" and not isinstance(found, SymbolRefAttr):
        parser.raise_error("expected the name of a symbol, @name", at)
    return found


_GENERIC = {"operand_id": "part", "proj": "proj", "coord": "coord", "fmt": "format", "maxNumAttrs": "max_attrs"}
"""The names that MLIR's generic form has for attributes, with those of the lines."""
_UNSAID = ("operandSegmentSizes", "resultSegmentSizes")


def generic_properties(
    pieces: Sequence[Piece], given: dict[str, Attribute]
) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
    """Take properties of the generic form for the attributes of a spelling; gives them, and the others."""
    forms = _attributes(pieces)
    if "group" in forms and "group" not in given:
        given["group"] = StringAttr("cta_2" if given.pop("is_two_cta", None) is not None else "cta_1")
    found: dict[str, Attribute] = {}
    others: dict[str, Attribute] = {}
    for key, a in given.items():
        name = key if key in forms else _GENERIC.get(key, key)
        if name in forms:
            found[name] = _as_spelled(forms[name][0], a)
        elif key not in _UNSAID:
            others[key] = a
    return found, others


def _as_spelled(form: str, a: Attribute) -> Attribute:
    """Return an attribute of the generic form as lines have it: words and texts as strings, integers of 32 bits."""
    if form == "word" and isinstance(a, IntegerAttr):
        return StringAttr("ABC"[a.value.data])
    if form == "word" and isinstance(a, Data) and isinstance(a.data, str):
        return StringAttr(a.data)
    if form == "text" and isinstance(a, CuteAttr):
        return StringAttr(write(a.kind, a.data))
    return IntegerAttr(a.value.data, i32) if form == "int" and isinstance(a, IntegerAttr) else a


def escaped(text: str) -> str:
    """Write a text in quotes as MLIR does: what does not print, and quotes, by two digits."""
    out = ""
    for byte in text.encode():
        c = chr(byte)
        out += "\\\\" if c == "\\" else c if 32 <= byte < 127 and c != '"' else f"\\{byte:02X}"
    return f'"{out}"'


def _shown(a: Any, form: str) -> str:
    if form == "int":
        return str(a.value.data)
    if form == "path":
        return "[" + ", ".join(map(str, a.get_values())) + "]"
    if form == "text":
        return escaped(a.data)
    return str(a.data) if form == "word" else str(a)


# ------------------------------------------------------------------ reading


class _Reader:
    """Reads an operation behind its name."""

    def __init__(self, cls: type[SpelledOperation], parser: Parser) -> None:
        self.cls, self.parser, self.row = cls, parser, cls.ROW
        self.names: list[Any] = []
        self.types: list[Attribute | None] = []
        self.results: list[Attribute] | None = None
        self.properties: dict[str, Attribute] = {}
        self.attributes: dict[str, Attribute] = {}

    def read(self) -> SpelledOperation:
        """Read it whole."""
        start = self.parser.pos
        self.older = self.cls.OLDER is not None and not self.parser.lexer.input.content.startswith("(", start)
        self.pieces(self.cls.OLDER if self.older and self.cls.OLDER else self.cls.PIECES)
        operands = self.operands(start)
        results = self.results
        if results is None:
            results = self.inferred([v.type for v in operands])
        return self.cls(
            operands=[operands], result_types=[results], properties=self.properties, attributes=self.attributes
        )

    def pieces(self, pieces: Sequence[Piece], begun: bool = False) -> None:
        """Read pieces. begun: the first of their words is read already."""
        for piece in pieces:
            if piece[0] == "text":
                words = _TOKEN.findall(piece[1])
                for word in words[1:] if begun else words:
                    self.word(word)
            elif piece[0] == "group":
                if self.begins(piece[1]):
                    self.pieces(piece[1], begun=True)
            elif piece[0] == "attribute":
                self.properties[piece[1]] = _parse_attribute(piece[2], self.parser)
            else:
                self.sign(*piece)
            begun = False

    def begins(self, group: Sequence[Piece]) -> bool:
        """Say whether a group that may be left out is there, and read its first word."""
        word = _TOKEN.findall(group[0][1])[0]
        if word[0].isalpha():
            return self.parser.parse_optional_keyword(word) is not None
        return self.parser.parse_optional_punctuation(word) is not None

    def word(self, word: str) -> None:
        """Read a word or a sign."""
        if word[0].isalnum():
            self.parser.parse_keyword(word)
        else:
            self.parser.parse_punctuation(word)  # type: ignore[arg-type]

    def sign(self, sign: str, first: int | None, rest: bool) -> None:
        """Read operands, types or attributes."""
        parser = self.parser
        if sign == "D":
            self.attributes |= parser.parse_optional_attr_dict()
        elif sign == "%":
            self.some(self.names, first, rest, one_of(parser, self.row.name, parser.parse_optional_unresolved_operand))
        elif sign == "T":
            if first is not None and not rest:
                self.types += [None] * (first + 1 - len(self.types))
                self.types[first] = parser.parse_type()
            elif self.names[first or 0 :]:
                self.some(self.types, first, rest, one_of(parser, self.row.name, parser.parse_type))
        elif sign == "R":
            self.results = [parser.parse_type()] * (len(self.row.results) if rest else 1)
        else:
            self.types += parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            parser.parse_punctuation("->")
            several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
            self.results = [parser.parse_type()] if several is None else list[Attribute](several)

    def some(self, found: list[Any], first: int | None, rest: bool, one: Callable[[], Any]) -> None:
        """Read one thing, or all that commas part."""
        if first is not None and first != len(found):
            self.parser.raise_error(f"expected operand #{len(found)} before operand #{first}")
        item = one()
        if item is None and first is not None and not rest:
            self.parser.raise_error("expected operand")
        if item is None:
            return
        found.append(item)
        while first is None or rest:
            at = self.parser.pos
            if not self.parser.parse_optional_punctuation(","):
                return
            item = one()
            if item is None:  # an attribute follows the last operand
                self.parser._resume_from(at)
                return
            found.append(item)

    def operands(self, start: int) -> Sequence[SSAValue]:
        """Find the operands by their names. A type that the text does not say is that of the value, or the only one."""
        while not self.cls.TYPED and len(self.types) < len(self.names):
            i = len(self.types)
            self.types.append(self.hidden(self.names[i], _part(self.row.operands, i)))
        types = [
            self.hidden(self.names[i], _part(self.row.operands, i)) if t is None else t
            for i, t in enumerate(self.types)
        ]
        return self.parser.resolve_operands(self.names, types, start)

    def hidden(self, operand: Any, part: Part | None) -> Attribute:
        """Return the type of an operand that is not written."""
        values = self.parser.ssa_values.get(operand.operand_name)
        if values is not None and operand.index < len(values):
            found: Attribute = values[operand.index].type
            return found
        plain = {"i32": i32, "i64": i64, "i1": i1}
        if part is not None and part.kinds[0] in plain and len(part.kinds) == 1:
            return plain[part.kinds[0]]
        self.parser.raise_error(
            f"%{operand.operand_name} is used before it is defined, and the text does not say its type", operand.span
        )

    def inferred(self, types: Sequence[Attribute]) -> list[Attribute]:
        """Return the types of the results, which the text does not say: an error stands where the name does."""
        if all(part.optional for part in self.row.results):
            return []
        at = getattr(self.parser, "operation_at", self.parser.pos)
        wrong = differing(self.row.operands, types, "operand")
        if wrong:
            self.parser.raise_error(f"'{self.row.name}' op {wrong}", at)
        try:
            found = most_known(self.row.name, types, plain_attributes(self.properties))
            if found is None and self.older:
                found = older.RESULTS[self.row.name](types)
        except CuteError as e:
            self.parser.raise_error(str(e), at)
        if found is None:
            self.parser.raise_error(f"'{self.row.name}' op gives no type for such operands", at)
        return found


def plain_attributes(properties: dict[str, Attribute]) -> dict[str, Any]:
    """Return the attributes of an operation as plain Python."""
    plain: dict[str, Any] = {}
    for name, a in properties.items():
        if isinstance(a, DenseArrayBase):
            plain[name] = tuple(a.get_values())
        elif isinstance(a, IntegerAttr):
            plain[name] = a.value.data
        elif isinstance(a, StringAttr):
            plain[name] = a.data
    return plain


# ------------------------------------------------------------------ writing


class _Writer:
    """Writes an operation behind its name."""

    def __init__(self, op: SpelledOperation, printer: Printer) -> None:
        self.op, self.printer = op, printer

    def pieces(self, pieces: Sequence[Piece]) -> None:
        """Write pieces."""
        for piece in pieces:
            if piece[0] == "text":
                self.printer.print_string(piece[1])
            elif piece[0] == "attribute":
                self.printer.print_string(_shown(self.op.properties[piece[1]], piece[2]))
            elif piece[0] == "group":
                if self.shows(piece[1]):
                    self.pieces(piece[1])
            else:
                self.sign(*piece)

    def shows(self, group: Sequence[Piece]) -> bool:
        """Say whether what a group holds is there."""
        for piece in group:
            if piece[0] == "attribute":
                return piece[1] in self.op.properties
            if piece[0] in ("%", "T"):
                return len(self.op.args) > (piece[1] or 0)
            if piece[0] == "R":
                return bool(self.op.res)
        return True

    def sign(self, sign: str, first: int | None, rest: bool) -> None:
        """Write operands, types or attributes."""
        p, op = self.printer, self.op
        chosen = op.args if first is None else op.args[first:] if rest else op.args[first : first + 1]
        if sign == "D":
            p.print_op_attributes(op.attributes)
        elif sign == "%":
            listed.write(p, op.name, chosen, p.print_operand)
        elif sign == "T":
            p.print_list([v.type for v in chosen], p.print_attribute)
        elif sign == "R":
            p.print_attribute(op.res[0].type)
        else:
            with p.in_parens():
                p.print_list([v.type for v in op.args], p.print_attribute)
            p.print_string(" -> ")
            if len(op.res) == 1:
                p.print_attribute(op.res[0].type)
                return
            with p.in_parens():
                p.print_list([v.type for v in op.res], p.print_attribute)


# ------------------------------------------------------------------ verifying


def _part(parts: Sequence[Part], i: int) -> Part | None:
    if i < len(parts):
        return parts[i]
    return parts[-1] if parts and parts[-1].many else None


def differing(parts: Sequence[Part], types: Sequence[Attribute], name: str) -> str:
    """Compare the number and the kinds of operands or results with the table's."""
    least = sum(not p.optional and not p.many for p in parts)
    most = len(types) if parts and parts[-1].many else len(parts)
    if not least <= len(types) <= most:
        return f"expected {least}{f' to {most}' if most > least else ''} {name}s, but found {len(types)}"
    for i, t in enumerate(types):
        part = _part(parts, i)
        if part is not None and "any" not in part.kinds and printed_kind(t) not in part.kinds:
            return f"{name} #{i} must be {' or '.join(part.kinds)}, but got '{t}'"
    return ""


class SpelledOperation(IRDLOperation):
    """An operation of the table of printed operations. ROW: its line."""

    args = var_operand_def()
    res = var_result_def()
    ROW: ClassVar[Row]
    PIECES: ClassVar[tuple[Piece, ...]]
    TYPED: ClassVar[bool]
    UNTOLD: ClassVar[bool]
    """True if the text holds the types of all operands (TYPED), and if it leaves out those of the results (UNTOLD)."""
    OLDER: ClassVar[tuple[Piece, ...] | None]
    """The form that an older release wrote."""

    @classmethod
    def parse(cls, parser: Parser) -> SpelledOperation:
        """Read what stands after the name."""
        return _Reader(cls, parser).read()

    @classmethod
    def create(cls, **given: Any) -> Any:
        """Make one. Of what MLIR's generic form calls properties, those are attributes that the line does not name."""
        properties, attributes = generic_properties(cls.PIECES, dict(given.get("properties") or {}))
        attributes |= given.get("attributes") or {}
        return super().create(**{**given, "properties": properties, "attributes": attributes})

    def print(self, printer: Printer) -> None:
        """Write what stands after the name."""
        first = self.PIECES[0]
        if first[0] in ("attribute", "%") or first[0] == "text" and first[1][0].isalnum():
            printer.print_string(" ")
        _Writer(self, printer).pieces(self.PIECES)

    def verify_(self) -> None:
        """Raise VerifyException if it is none of the table's."""
        found = self.problems()
        if found:
            raise VerifyException("\n".join(found))

    def problems(self) -> list[str]:
        """Say what is wrong, as MLIR's verifier does."""
        operands, results = [v.type for v in self.args], [v.type for v in self.res]
        wrong = differing(self.ROW.operands, operands, "operand") or differing(self.ROW.results, results, "result")
        for name, (_, needed) in _attributes(self.PIECES).items():
            if needed and name not in self.properties:
                wrong = wrong or f"expects an attribute {name}"
        wrong = wrong or self._other_word()
        agree = AGREE.get(self.name)
        wrong = wrong or (agree(operands, results) if agree is not None else "")
        if wrong:
            return [f"'{self.name}' op {wrong}"]
        failed = f"'{self.name}' op failed to infer returned types"
        try:
            found = most_known(self.name, operands, plain_attributes(self.properties))
        except CuteError as e:
            return [str(e), failed]
        if found is None or len(found) == len(results) and all(map(agrees, found, results)):
            return []
        wanted, got = (", ".join(f"'{t}'" for t in types) for types in (map(without_promises, found), results))
        wrong = f"inferred type(s) {wanted} are incompatible with return type(s) of operation {got}"
        return [f"'{self.name}' op {wrong}", failed]

    def _other_word(self) -> str:
        """Say which attribute is not a word, or another than its operation has."""
        for name, (form, _) in _attributes(self.PIECES).items():
            word = plain_attributes(self.properties).get(name)
            if form != "word" or word is None:
                continue
            if word not in WORDS.get(name, (word,)) or not re.fullmatch(r"[A-Za-z_]\w*", word):
                return f"has {name} = {word}, and takes {' or '.join(WORDS.get(name, ('a word',)))}"
        return ""

    def hints(self) -> list[str]:
        """Return the names that its results are printed by; "" for none."""
        fields = {k: v for k, v in plain_attributes(self.properties).items() if isinstance(v, str)}
        if self.name == "cute.memref.alloca":
            fields["space"] = str(self.res[0].type.data[1])  # type: ignore[attr-defined]
        return [part.hint.format(**fields) for part in self.ROW.results]


def told_by_use(value: SSAValue, type: Attribute) -> None:
    """Let a use say what is known of a value's divisors and alignment, where its own line says no type."""
    op = value.owner
    if value.type == type or not isinstance(op, SpelledOperation):
        return
    if op.UNTOLD and alike(value.type, type):
        value._type = type


def _operation(row: Row) -> type[SpelledOperation]:
    title = "".join(word.capitalize() for word in re.split(r"[._]", row.name))
    pieces = _pieces(row.spelling)
    body: dict[str, Any] = {"name": row.name, "__module__": __name__}
    body |= {name: opt_prop_def(_FORMS[form]) for name, (form, _) in _attributes(pieces).items()}
    made: type[SpelledOperation] = irdl_op_definition(type(f"Printed{title}Op", (SpelledOperation,), body))
    made.ROW, made.PIECES = row, pieces
    before = older.SPELLINGS.get(body["name"])
    made.OLDER = None if before is None else _pieces(before)
    made.TYPED = re.search(r"(?<![A-Za-z_])(F|T(?!\d))(?![A-Za-z_])", row.spelling) is not None
    made.UNTOLD = re.search(r"(?<![A-Za-z_])[FR](?![A-Za-z_])", row.spelling) is None
    return made


OPERATIONS: dict[str, type[SpelledOperation]] = {name: _operation(row) for name, row in ROWS.items()}
"""By name, with the dialect's."""


def operations_of(dialect: str) -> list[type[SpelledOperation]]:
    """Return the operations of a dialect."""
    return [op for name, op in OPERATIONS.items() if name.partition(".")[0] == dialect]


__all__ = ["OPERATIONS", "SpelledOperation", "differing", "operations_of", "told_by_use"]
