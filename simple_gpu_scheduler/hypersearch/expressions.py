"""Conditions such as `lr * bs < 1` or `opt in ("sgd", "adam")`, read by Python's parser and evaluated here.

Only what is listed below is supported: no calls, no attributes, no names except parameters. Numbers are exact, so that
0.1 * 3 == 0.3. Errors that do not depend on values are found before the first evaluation.
"""

import ast
import math
import operator
import warnings
from fractions import Fraction
from functools import lru_cache

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, NamedTuple

from .conditions import habits, meant_by, without_keywords
from .sweep import bare, shown
from .values import EITHER, NUMBER, TEXT, is_number, is_whole

Value = int | Fraction | str
_Evaluate = Callable[[Mapping[str, str]], Any]

_LONGEST = 2000
_EXACT_BITS = 10_000
TRUTH = "true or false"


def _power(base: int | Fraction, exponent: int | Fraction) -> Fraction:
    """Exact if that is short; else in floating point, since roots are irrational and 9**9**9 has too many digits."""
    base, exponent = Fraction(base), Fraction(exponent)
    size = base.numerator.bit_length() + base.denominator.bit_length()
    if exponent.denominator == 1 and abs(exponent) * size < _EXACT_BITS:
        return base ** int(exponent)
    return Fraction(math.pow(base, exponent))


_ARITHMETIC: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: Fraction.__truediv__,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_ORDER: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_EQUALITY: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {ast.Eq: operator.eq, ast.NotEq: operator.ne}
_MEMBERSHIP: Mapping[type[ast.AST], Callable[[Any, Any], bool]] = {
    ast.In: lambda value, many: value in many,
    ast.NotIn: lambda value, many: value not in many,
}


class Condition(NamedTuple):
    """A parsed condition, and the parameters that it uses."""

    text: str
    names: frozenset[str]
    evaluate: _Evaluate
    may_fail: bool  # for some values, such as by a division by zero

    def holds(self, values: Mapping[str, str]) -> bool:
        """Whether it is true for these values; a UserError says where it cannot be evaluated."""
        try:
            return bool(self.evaluate(values))
        except (ArithmeticError, ValueError) as error:
            shown_values = ", ".join(f"{name}={bare(values[name])}" for name in sorted(self.names))
            where = f" for {shown_values}" if shown_values else ""
            too_large = "a number is too large" if isinstance(error, OverflowError) else "the result is undefined"
            why = "division by 0" if isinstance(error, ZeroDivisionError) else too_large
            raise UserError(f"the condition {shown(self.text)} cannot be evaluated{where}: {why}") from None


class _Part(NamedTuple):
    kind: str
    evaluate: _Evaluate


@lru_cache(maxsize=2**16)
def _read(text: str) -> Value:
    return int(text) if is_whole(text) else Fraction(text) if is_number(text) else text


class _Reader:
    """Reads one condition."""

    def __init__(self, text: str, kinds: Mapping[str, str]) -> None:
        self.text = text
        self.source = without_keywords(text.replace("\n", " ").strip(), kinds)
        self.kinds = kinds
        self.names: set[str] = set()
        self.may_fail = False

    def wrong(self, why: str) -> UserError:
        return UserError(f"the condition {shown(self.text)} is wrong: {why}")

    def read(self, node: ast.expr) -> _Part:
        reader = _READERS.get(type(node))
        if not reader:
            raise self.wrong(
                f"'{ast.unparse(node)}' is not supported; conditions support names, numbers, quoted strings, "
                "+ - * / // % **, comparisons, in, and, or, not"
            )
        return reader(self, node)

    def number(self, node: ast.expr) -> _Part:
        return self._checked_number(node, self.read(node))

    def _checked_number(self, node: ast.expr, part: _Part) -> _Part:
        if part.kind != NUMBER:
            raise self.wrong(f"'{ast.unparse(node)}' must be a number here, but is {part.kind}")
        return part

    def truth(self, node: ast.expr) -> _Part:
        part = self.read(node)
        if part.kind != TRUTH:
            quotes = "; quote a condition that contains < or >" if isinstance(node, ast.Name) else ""
            raise self.wrong(f"'{ast.unparse(node)}' is {part.kind}; compare it with something{quotes}")
        return part

    def name(self, node: ast.Name) -> _Part:
        meant = meant_by(node.id, self.kinds)
        if len(meant) > 1:
            raise self.wrong(f"{node.id} is ambiguous: {' or '.join(meant)}")
        if not meant:
            known = ", ".join(sorted(self.kinds))
            raise self.wrong(
                f'there is no parameter {node.id} (the parameters are {known}; quote strings: "{node.id}")'
            )
        name = meant[0]
        self.names.add(name)
        return _Part(self.kinds[name], lambda values: _read(values[name]))

    def constant(self, node: ast.Constant) -> _Part:
        found = node.value
        if isinstance(found, str):
            if is_number(found):
                raise self.wrong(f"write {found} without quotes: values that look like numbers are numbers")
            return _Part(TEXT, lambda _: found)
        written = (ast.get_source_segment(self.source, node) or "").replace("_", "")
        if isinstance(found, int) and not isinstance(found, bool):
            return _Part(NUMBER, lambda _: found)
        if not isinstance(found, float) or not is_number(written):
            raise self.wrong(f"{shown(written)} is neither a number that fits nor a quoted string")
        value = Fraction(written)
        return _Part(NUMBER, lambda _: value)

    def unary(self, node: ast.UnaryOp) -> _Part:
        if isinstance(node.op, ast.Not):
            inner = self.truth(node.operand).evaluate
            return _Part(TRUTH, lambda values: not inner(values))
        if isinstance(node.op, ast.Invert):
            raise self.wrong("~ is not supported")
        inner = self.number(node.operand).evaluate
        return _Part(NUMBER, (lambda values: -inner(values)) if isinstance(node.op, ast.USub) else inner)

    def binary(self, node: ast.BinOp) -> _Part:
        operate = _ARITHMETIC.get(type(node.op))
        if not operate:
            raise self.wrong(f"the operator in '{ast.unparse(node)}' is not supported")
        left, right = self.number(node.left).evaluate, self.number(node.right).evaluate
        if isinstance(node.op, ast.Div):
            return self._fallible(lambda values: Fraction(left(values)) / right(values))
        if isinstance(node.op, ast.FloorDiv | ast.Mod | ast.Pow):
            return self._fallible(lambda values: operate(left(values), right(values)))
        return _Part(NUMBER, lambda values: operate(left(values), right(values)))

    def _fallible(self, evaluate: _Evaluate) -> _Part:
        self.may_fail = True
        return _Part(NUMBER, evaluate)

    def logic(self, node: ast.BoolOp) -> _Part:
        parts = [self.truth(value).evaluate for value in node.values]
        if isinstance(node.op, ast.And):
            return _Part(TRUTH, lambda values: all(part(values) for part in parts))
        return _Part(TRUTH, lambda values: any(part(values) for part in parts))

    def compare(self, node: ast.Compare) -> _Part:
        operands = [node.left, *node.comparators]
        links = [self._link(*link) for link in zip(operands, node.ops, operands[1:], strict=False)]
        return _Part(TRUTH, lambda values: all(link(values) for link in links))

    def _link(self, left: ast.expr, operation: ast.cmpop, right: ast.expr) -> _Evaluate:
        kind = type(operation)
        first = self.read(left)
        if kind in _MEMBERSHIP:
            second, compare = self._many(right), _MEMBERSHIP[kind]
        else:
            second = self.read(right)
            compare = _EQUALITY.get(kind) or self._order(kind, (left, first), (right, second))
        if (first.kind == TRUTH) != (second.kind == TRUTH):
            raise self.wrong(f"'{ast.unparse(left if first.kind == TRUTH else right)}' is {TRUTH}, not a value")
        return lambda values: compare(first.evaluate(values), second.evaluate(values))

    def _order(
        self, kind: type[ast.cmpop], left: tuple[ast.expr, _Part], right: tuple[ast.expr, _Part]
    ) -> Callable[[Any, Any], bool]:
        if kind not in _ORDER:
            raise self.wrong("'is' is not supported; write ==")
        self._checked_number(*left)
        self._checked_number(*right)
        return _ORDER[kind]

    def _many(self, node: ast.expr) -> _Part:
        if not isinstance(node, ast.Tuple | ast.List | ast.Set):
            raise self.wrong(f"'in' needs a list, as in '(32, 64)', not '{ast.unparse(node)}'")
        found = [self.read(item) for item in node.elts]
        if any(part.kind == TRUTH for part in found):
            raise self.wrong(f"'{ast.unparse(node)}' lists something that is {TRUTH}, not a value")
        parts = [part.evaluate for part in found]
        return _Part(EITHER, lambda values: [part(values) for part in parts])


_READERS: Mapping[type[ast.expr], Callable[[_Reader, Any], _Part]] = {
    ast.Name: _Reader.name,
    ast.Constant: _Reader.constant,
    ast.UnaryOp: _Reader.unary,
    ast.BinOp: _Reader.binary,
    ast.BoolOp: _Reader.logic,
    ast.Compare: _Reader.compare,
}


def parse_condition(text: str, kinds: Mapping[str, str]) -> Condition:
    """Parse a condition on parameters of these kinds; a UserError says what is wrong with it."""
    reader = _Reader(text, kinds)
    if not reader.source:
        raise UserError("a condition is empty; write one, as --where 'lr < 1', or leave it out")
    if len(text) > _LONGEST:
        raise reader.wrong(f"it has more than {_LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's syntax warnings differ between versions
            tree = ast.parse(reader.source, mode="eval")
        whole = reader.truth(tree.body)
    except SyntaxError as error:
        where = f", at character {error.offset}" if error.offset else ""
        raise reader.wrong(f"{error.msg}{where}{habits(reader.source)}") from None
    except (ValueError, RecursionError, MemoryError):
        raise reader.wrong("it cannot be parsed") from None
    return Condition(text, frozenset(reader.names), whole.evaluate, reader.may_fail)
