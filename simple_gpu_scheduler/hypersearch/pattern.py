"""The pattern of a command: text, and placeholders such as `{lr}`, `{lr:.0e}`, `{opt!s}` and `{--momentum momentum}`.

It knows how placeholders are written and how a value fills one; not what parameters there are.
"""

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from simple_gpu_scheduler.errors import UserError

from .numbers import is_number, is_whole
from .quoting import place_behind, quoted
from .wording import meant, shown

NAME = re.compile(r"[^\W\d][\w.-]*")
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_PLACEHOLDER = re.compile(
    rf"(?P<before>-\S*[ =]|[^\s=]+=|\?)?(?P<name>{NAME.pattern})(?P<raw>!s)?(?::(?P<spec>[^{{}}]*))?"
)
_TOO_WIDE = re.compile(r"\d{4}")


class Placeholder(NamedTuple):
    """One place of a pattern that a value fills."""

    written: str
    name: str
    place: str  # what the shell has open there
    spec: str = ""
    is_raw: bool = False
    before: str | None = None  # what comes and goes with the value, its flag; None where it must be there

    def fill(self, value: str) -> str:
        """What stands there for this value; the UserError says why it cannot."""
        try:
            formatted = _format(value, self.spec)
            return (self.before or "") + (formatted if self.is_raw else quoted(formatted, self.place))
        except ValueError as error:
            raise UserError(
                f"{{{self.written}}} cannot take the value {shown(value)} of {self.name}: {error}"
            ) from None


class Pattern(NamedTuple):
    """Texts and placeholders by turns: one text more than placeholders."""

    texts: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]
    end: str  # what the shell has open at the end

    @property
    def names(self) -> set[str]:
        """The parameters that it needs."""
        return {placeholder.name for placeholder in self.placeholders}

    def alone(self) -> list[Placeholder]:
        """Those that are alone in a word, so that their neighbours' values cannot make up for another one of theirs.

        A raw value could be several words or half of one, and beside it nothing is sure.
        """
        if any(placeholder.is_raw for placeholder in self.placeholders):
            return []
        befores = [placeholder.before or "" for placeholder in self.placeholders]
        gaps = [bool(re.search(r"\s", gap)) for gap in map("".join, zip(self.texts, [*befores, ""], strict=True))]
        gaps[0] = gaps[-1] = True
        ends = zip(self.placeholders, gaps, gaps[1:], strict=False)
        return [placeholder for placeholder, left, right in ends if left and right and not placeholder.place]


def _format(value: str, spec: str) -> str:
    if not spec:
        return value
    if _TOO_WIDE.search(spec):
        raise ValueError("a width has three digits at most")
    try:
        return format(int(value) if is_whole(value) else float(value) if is_number(value) else value, spec)
    except (ValueError, OverflowError):
        kind = "a whole number" if is_whole(value) else "a number" if is_number(value) else "a text"
        raise ValueError(f"':{spec}' cannot format {kind}") from None


def parse_command(text: str, known: Collection[str]) -> Pattern:
    """The pattern of a command; `known` are the names that are good in it."""
    texts, placeholders = [""], []
    read = ""  # what the shell has seen so far, with a letter for each value
    for piece, written in _pieces(text):
        texts[-1] += piece
        read += piece
        if written is None:
            continue
        found = _placeholder(written, known)._replace(place=place_behind(read))
        _check_before(texts[-1], found)
        if found.before is not None:  # the blank before it goes with it
            bare = texts[-1].rstrip(" ")
            found = found._replace(before=texts[-1][len(bare) :] + found.before)
            texts[-1] = bare
        placeholders.append(found)
        texts.append("")
        read += "x"
    return Pattern(tuple(texts), tuple(placeholders), place_behind(read))


def parse_text(text: str, known: Collection[str]) -> Pattern:
    """The pattern of something that no shell will read, so that values stand in it as they are."""
    texts, placeholders = [""], []
    for piece, written in _pieces(text):
        texts[-1] += piece
        if written is not None:
            placeholders.append(_placeholder(written, known)._replace(is_raw=True))
            texts.append("")
    return Pattern(tuple(texts), tuple(placeholders), "")


def _pieces(text: str) -> Iterator[tuple[str, str | None]]:
    """Text as it stands, and what is written in braces."""
    at = 0
    for match in _BRACES.finditer(text):
        yield text[at : match.start()], None
        at = match.end()
        if match[1] is not None:
            yield "", match[1]
        elif len(match[0]) == 1:
            raise UserError(
                f"the pattern has a '{match[0]}' that belongs to no placeholder, at character {match.start() + 1}; "
                "braces that are the shell's are written {{ and }}"
            )
        else:
            yield match[0][0], None
    yield text[at:], None


def _placeholder(written: str, known: Collection[str]) -> Placeholder:
    match = _PLACEHOLDER.fullmatch(written)
    if not match:
        raise UserError(
            f"{{{written}}} is no placeholder, which is {{NAME}}, {{NAME:.2f}}, {{NAME!s}} or {{--flag NAME}}; "
            f"braces that are the shell's are written {{{{{written}}}}}"
        )
    name = match["name"]
    if name not in known:
        raise UserError(
            f"the pattern has {{{written}}} but there is no parameter of that name; "
            f"add {'--repeat N' if name == 'seed' else f'-p {name} VALUE...'}, "
            f"or write {{{{{written}}}}} if these braces are the shell's{meant(name, known)}"
        )
    before = "" if match["before"] == "?" else match["before"]
    return Placeholder(written, name, "", match["spec"] or "", bool(match["raw"]), before)


def _check_before(text: str, found: Placeholder) -> None:
    """Refuse what would make the shell read the first character of a value otherwise."""
    if found.place == "'":
        return
    if text.endswith("$"):
        raise UserError(
            f"${{{found.written}}} would be a variable of the shell; write ${{{{{found.written}}}}} if it shall be one"
        )
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise UserError(f"the backslash before {{{found.written}}} would take the first character of its values")
