"""One placeholder, as `{lr}`, `{lr:.0e}`, `{opt!s}` or `{--momentum m}`: how it is written, how a value fills it."""

import re
from collections.abc import Collection
from typing import NamedTuple

from simple_gpu_scheduler.errors import UserError

from .numbers import is_number, is_whole
from .quoting import WORD, quoted
from .wording import bare, meant, shown

NAME = re.compile(r"[^\W\d][\w.-]*")
# Nothing of a flag means anything to a shell.
_FLAG = r"[\w.:/+,@%-]+"
_PLACEHOLDER = re.compile(
    rf"(?P<before>-{_FLAG}(?:=| +)|{_FLAG}=|-(?:=| +)|\?)?(?P<name>{NAME.pattern})(?P<raw>!s)?(?::(?P<spec>[^{{}}]*))?"
)
COUNTED = ("i", "n")  # what is no parameter and always known
_TOO_WIDE = re.compile(r"\d{4}")


class Placeholder(NamedTuple):
    """One place of a pattern that a value fills."""

    written: str
    name: str
    spec: str = ""
    is_raw: bool = False
    before: str | None = None  # what comes and goes with the value, its flag; None where it must be there
    place: str = WORD  # what a value is to the shell there

    def __str__(self) -> str:
        """As it is written, braces included."""
        return f"{{{bare(self.written)}}}"

    def fill(self, value: str) -> str:
        """What stands there for this value; the UserError says why it cannot."""
        try:
            formatted = _format(value, self.spec) if self.spec else value
            return (self.before or "") + (formatted if self.is_raw else quoted(formatted, self.place))
        except ValueError as error:
            raise UserError(f"{self} cannot take the value {shown(value)} of {self.name}: {error}") from None


def _format(value: str, spec: str) -> str:
    if _TOO_WIDE.search(spec):
        raise ValueError("a width has three digits at most")
    if spec.endswith("c") or "z" in spec or not spec.isprintable():
        raise ValueError(f"':{spec.encode('unicode_escape').decode()}' is not taken; write one as ':.2f' or ':03d'")
    try:
        return format(int(value) if is_whole(value) else float(value) if is_number(value) else value, spec)
    except (ValueError, OverflowError):
        if spec[-1:] in "bdnoxX" and is_number(value):
            raise ValueError(f"':{spec}' is for whole numbers") from None
        kind = "a whole number" if is_whole(value) else "a number" if is_number(value) else "a text"
        raise ValueError(f"':{spec}' cannot format {kind}") from None


def read_placeholder(written: str, known: Collection[str]) -> Placeholder:
    """What is written between braces; `known` are the names that are good there."""
    match = _PLACEHOLDER.fullmatch(written)
    if not match:
        way_out = f"braces that are the shell's are written {{{{{bare(written)}}}}}"
        if written.strip() in known:
            way_out = f"write {{{written.strip()}}}"
        raise UserError(
            f"{{{bare(written)}}} is no placeholder, which is {{NAME}}, {{NAME:.2f}}, {{NAME!s}} or {{--flag NAME}}; "
            f"{way_out}"
        )
    name = match["name"]
    if name not in known:
        raise UserError(_unknown(written, name, (match["before"] or "")[:1] == "-", known))
    before = "" if match["before"] == "?" else match["before"]
    return Placeholder(written, name, match["spec"] or "", bool(match["raw"]), before)


def _unknown(written: str, name: str, has_flag: bool, known: Collection[str]) -> str:
    flag = " behind the flag stands the name of a parameter;" if has_flag else ""
    add = "--repeat N" if name == "seed" else f"-p {name} VALUE..."
    hint = meant(name, [one for one in known if one not in COUNTED])
    return (
        f"the pattern has {{{bare(written)}}} but there is no parameter of that name;{flag} add {add}, "
        f"or write {{{{{bare(written)}}}}} if these braces are the shell's{hint}"
    )
