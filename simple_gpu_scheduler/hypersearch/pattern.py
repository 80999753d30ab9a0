"""Placeholders such as `{lr}`, `{lr:.0e}`, `{opt!s}` or `{--momentum m}`: their syntax, and how values fill them."""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Collection, NamedTuple, Sequence

from .shell_quotes import COMMANDS, COMMENT, ENDS_ESCAPED, OPTIONS, SINGLE, WORD, WORDS, left_open, place_behind, quoted
from .sweep import bare, meant, shown
from .values import is_number, is_whole

NAME = re.compile(r"[^\W\d][\w.-]*")
# The characters of a flag mean nothing to a shell.
_FLAG = r"[\w.:/+,@%-]+"
_PLACEHOLDER = re.compile(
    rf"(?P<before>-{_FLAG}(?:=| +)|{_FLAG}=|-(?:=| +)|\?)?(?P<name>{NAME.pattern})(?P<raw>!s)?(?::(?P<spec>[^{{}}]*))?"
)
COUNTED = ("i", "n")  # not parameters, but always known
_TOO_WIDE = re.compile(r"\d{4}")


class Placeholder(NamedTuple):
    """One place of a pattern that a value fills."""

    written: str
    name: str
    spec: str = ""
    is_raw: bool = False
    before: str | None = None  # the flag that comes and goes with the value; None if the value is always present
    place: str = WORD  # what a value is to the shell there

    def __str__(self) -> str:
        """As written, including braces."""
        return f"{{{bare(self.written)}}}"

    def fill(self, value: str) -> str:
        """The text for this value; a UserError says why there is none."""
        try:
            formatted = _format(value, self.spec) if self.spec else value
            return (self.before or "") + (formatted if self.is_raw else quoted(formatted, self.place))
        except ValueError as error:
            raise UserError(f"{self} cannot take the value {shown(value)} of {self.name}: {error}") from None


def _format(value: str, spec: str) -> str:
    if _TOO_WIDE.search(spec):
        raise ValueError("a width may have at most three digits")
    if spec.endswith("c") or "z" in spec or not spec.isprintable():
        raise ValueError(
            f"':{spec.encode('unicode_escape').decode()}' is not supported; use a format such as ':.2f' or ':03d'"
        )
    try:
        return format(int(value) if is_whole(value) else float(value) if is_number(value) else value, spec)
    except (ValueError, OverflowError):
        if spec[-1:] in "bdnoxX" and is_number(value):
            raise ValueError(f"':{spec}' is for whole numbers") from None
        kind = "a whole number" if is_whole(value) else "a number" if is_number(value) else "text"
        raise ValueError(f"':{spec}' cannot format {kind}") from None


def read_placeholder(written: str, known: Collection[str]) -> Placeholder:
    """Parse the text between braces; `known` are the valid names."""
    match = _PLACEHOLDER.fullmatch(written)
    if not match:
        way_out = f"write {{{{{bare(written)}}}}} for braces of the shell"
        if written.strip() in known:
            way_out = f"write {{{written.strip()}}}"
        raise UserError(
            f"{{{bare(written)}}} is not a placeholder such as {{NAME}}, {{NAME:.2f}}, {{NAME!s}} or {{--flag NAME}}; "
            f"{way_out}"
        )
    name = match["name"]
    if name not in known:
        raise UserError(_unknown(written, name, (match["before"] or "")[:1] == "-", known))
    before = "" if match["before"] == "?" else match["before"]
    return Placeholder(written, name, match["spec"] or "", bool(match["raw"]), before)


def _unknown(written: str, name: str, has_flag: bool, known: Collection[str]) -> str:
    flag = " the flag must be followed by a parameter name;" if has_flag else ""
    add = "--repeat N" if name == "seed" else f"-p {name} VALUE..."
    hint = meant(name, [one for one in known if one not in COUNTED])
    return (
        f"the pattern has {{{bare(written)}}}, but there is no parameter of that name;{flag} add {add}, "
        f"or write {{{{{bare(written)}}}}} for braces of the shell{hint}"
    )


_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_BLANK = re.compile(r"\s")
_NOT_IN_NUMBERS = re.compile(r"[^\d.eE+-]")
_DOLLAR = re.compile(r"(?<![\\$])(\\\\)*(\$\$)*\$\Z")
_VARIABLE = re.compile(r"(?<![\\$])(\\\\)*\$(?P<name>[A-Za-z_]\w*)\Z")
_MAY_FOLLOW = (" ", "\t", "\n", ")", ";", "&", "|", "'", '"')


class Pattern(NamedTuple):
    """Alternating texts and placeholders: one text more than placeholders."""

    texts: tuple[str, ...]
    placeholders: tuple[Placeholder, ...]
    end: str = ""  # what a value would be to the shell at the end
    left_open: str = ""  # the quote or bracket that is not closed there

    @property
    def names(self) -> set[str]:
        """The parameters that it uses."""
        return {placeholder.name for placeholder in self.placeholders}

    def always(self) -> str:
        """The part that is always present, with a letter for each value."""
        values = ["x" if placeholder.before is None else "" for placeholder in self.placeholders]
        return "".join(text + value for text, value in zip(self.texts, [*values, ""], strict=True))

    def separate(self, *, are_numbers: bool) -> list[Placeholder]:
        """Those whose neighbours' values cannot make up for another value of theirs: they are alone in a word.

        If all values are numbers, whatever is no part of one separates. Others are quoted, so a blank separates them,
        but not inside of quotes; and a raw one could be several words, so that beside it nothing is sure.
        """
        if not are_numbers and any(placeholder.is_raw for placeholder in self.placeholders):
            return []
        between = _NOT_IN_NUMBERS if are_numbers else _BLANK
        befores = [placeholder.before or "" for placeholder in self.placeholders]
        gaps = [bool(between.search(text + before)) for text, before in zip(self.texts, [*befores, ""], strict=True)]
        gaps[0] = gaps[-1] = True
        ends = zip(self.placeholders, gaps, gaps[1:], strict=False)
        return [one for one, left, right in ends if left and right and (are_numbers or one.place in WORDS)]


def _split(text: str) -> tuple[list[str], list[str]]:
    """The texts, and the contents of the braces between them."""
    texts, written = [""], []
    at = 0
    for match in _BRACES.finditer(text):
        texts[-1] += text[at : match.start()]
        at = match.end()
        if match[1] is not None:
            written.append(match[1])
            texts.append("")
        elif len(match[0]) == 1:
            raise UserError(
                f"the pattern has a '{match[0]}' that belongs to no placeholder, at character {match.start() + 1}; "
                "write {{ and }} for braces of the shell"
            )
        else:
            texts[-1] += match[0][0]
    texts[-1] += text[at:]
    return texts, written


def parse_text(text: str, known: Collection[str]) -> Pattern:
    """The pattern of something that no shell reads, so that values are not quoted."""
    texts, written = _split(text)
    return Pattern(tuple(texts), tuple(read_placeholder(one, known)._replace(is_raw=True) for one in written))


def parse_command(text: str, known: Collection[str]) -> Pattern:
    """The pattern of a command; `known` are the valid names."""
    texts, written = _split(text)
    placeholders = []
    read = ""  # what the shell has seen, with a letter for each value
    for number, one in enumerate(written):
        read += texts[number]
        if one not in known and _DOLLAR.search(read):
            raise UserError(f"${{{bare(one)}}} is the shell's; write ${{{{{bare(one)}}}}}, or ${bare(one)}")
        found = read_placeholder(one, known)
        is_last = number + 1 == len(written)
        following = texts[number + 1] or ("" if is_last else "x")
        found = found._replace(place=place_behind(read + (found.before or ""), following))
        _check_before(read, found)
        _check_behind(texts[number + 1], found, goes_with_blank=texts[number].endswith(" "), is_last=is_last)
        placeholders.append(found)
        if found.before is None or found.place not in COMMANDS:  # else what follows may be the first word
            read += (found.before or "") + "x"
    read += texts[-1]
    return Pattern(*_with_blanks(texts, placeholders), place_behind(read), left_open(read))


def _with_blanks(
    texts: Sequence[str], placeholders: Sequence[Placeholder]
) -> tuple[tuple[str, ...], tuple[Placeholder, ...]]:
    """Make the blanks before an optional placeholder part of it, so that they disappear with it."""
    kept, found = [], []
    for text, placeholder in zip(texts, placeholders, strict=False):
        bare = text if placeholder.before is None else text.rstrip(" ")
        if ENDS_ESCAPED.search(bare):
            bare = text[: len(bare) + 1]
        kept.append(bare)
        before = placeholder.before
        found.append(placeholder._replace(before=None if before is None else text[len(bare) :] + before))
    return (*kept, texts[-1]), tuple(found)


def _check_before(read: str, found: Placeholder) -> None:
    """Refuse text that would change how the shell reads the first character of a value."""
    if found.place in (SINGLE, OPTIONS, COMMENT):
        return
    read = read.replace("\\\n", "")
    if _DOLLAR.search(read):
        raise UserError(f"${found} would be a shell variable; write ${{{found}}} if that is intended")
    if variable := _VARIABLE.search(read):
        name = variable["name"]
        raise UserError(f"the shell would read ${name}{found} as one longer name; write ${{{{{name}}}}}{found}")
    if ENDS_ESCAPED.search(read):
        raise UserError(f"the backslash before {found} would take the first character of its values")


def _check_behind(text: str, found: Placeholder, *, goes_with_blank: bool, is_last: bool) -> None:
    """Refuse text that would be read differently after the value, or without it."""
    if text.startswith("#:") and found.place in WORDS:
        raise UserError(f"put a space between {found} and #:, or the shell reads both as one word")
    if found.before is None or text.startswith(_MAY_FOLLOW) or (is_last and not text):
        return
    if goes_with_blank or text.startswith("#"):
        raise UserError(f"put a space after {found}, since it may be left out together with its space")
