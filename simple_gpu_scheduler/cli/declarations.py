"""What a command is: its options and arguments, as plain values.

`reader` reads a plain command line by them. click, which reads every other and explains what is wrong with it, gets its
command from the same values (`click_extras`). So loading a command does not load click.
"""

from simple_gpu_scheduler.base.errors import UserError
from simple_gpu_scheduler.base.values import Any, Callable, Mapping, NamedTuple, Sequence


class UsageError(UserError):
    """What was typed does not go together; the message names the command's --help."""


class Whole(NamedTuple):
    """A whole number from `least` to `most`, if there is a most."""

    least: int
    most: int | None = None

    def parse(self, text: str) -> int:
        """The number; a ValueError says why it is none of these."""
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"{text!r} is not a whole number") from None
        if number < self.least or (self.most is not None and number > self.most):
            these = f"x>={self.least}" if self.most is None else f"{self.least}<=x<={self.most}"
            raise ValueError(f"{number} is not in the range {these}")
        return number


class OneOf(NamedTuple):
    """One of some words."""

    words: Sequence[str]

    def parse(self, text: str) -> str:
        """The word; a ValueError if it is none of these."""
        if text not in self.words:
            raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")
        return text


class Parsed(NamedTuple):
    """A value that a function reads; its ValueError is the message."""

    name: str
    parse: Callable[[str], object]


class Option(NamedTuple):
    """An option: its names as they are typed and, if it is not the first long one, the name of its value.

    With `takes`, it takes the words that look like its values: if it is `multiple`, all that follow (the value is a
    tuple of them for each time that it was given), else the next or none (the value is empty).

    Without a `kind`, the value is text. `then` gets the value, or all of them, and may raise a UsageError. A default
    that is text is read like what is typed; `envvar` has a default that goes before it. `complete` gets the words
    before, and the start of this one.
    """

    names: Sequence[str]
    help: str
    kind: Whole | OneOf | Parsed | None = None
    metavar: str | None = None
    default: Any = None
    is_flag: bool = False
    multiple: bool = False
    nargs: int = 1
    takes: Callable[[str], bool] | None = None
    example: str = ""
    envvar: str = ""
    then: Callable[[Any], Any] | None = None
    complete: Callable[[Sequence[str], str], Sequence[str]] | None = None

    @property
    def typed_names(self) -> list[str]:
        """As they are typed."""
        return [name for name in self.names if name.startswith("-")]

    @property
    def key(self) -> str:
        """The name of its value."""
        for name in self.names:
            if not name.startswith("-"):
                return name
        return next(name for name in self.names if name.startswith("--"))[2:].replace("-", "_")


class Argument(NamedTuple):
    """The words that belong to no option: one of them or, if `is_many`, any number."""

    key: str
    metavar: str | None = None
    is_many: bool = True
    is_required: bool = False
    complete: Callable[[Sequence[str], str], Sequence[str]] | None = None


class Section(NamedTuple):
    """A section of a command's help: its heading, and its options."""

    heading: str
    options: Sequence[Option]


class Command(NamedTuple):
    """A command. `others` are options in no section; `commands` are listed in its help.

    `callback` gets the values by their names; if `is_run`, it gets the whole `CommandLine` and the keeper instead.
    `is_for_program`: from the first word on, all words belong to another program.

    `if_unknown`: what to say of an option that is none and is like none. `hint_at`: what to say, if anything, instead
    of naming an unknown option, given the words from the first that is no option. `if_extra`: what to add, if anything,
    when there is a word too many, given that word.
    """

    name: str
    callback: Callable[..., object]
    help: str
    examples: str
    argument: Argument | None = None
    others: Sequence[Option] = ()
    sections: Sequence[Section] = ()
    commands: Sequence[tuple[str, str]] = ()
    version: str = ""
    if_unknown: str = ""
    hint_at: Callable[[Sequence[str]], str] | None = None
    if_extra: Callable[[str], str] | None = None
    has_machine_defaults: bool = False
    is_for_program: bool = False
    is_run: bool = False

    @property
    def options(self) -> list[Option]:
        """All of them, in the order of the help."""
        return [*(option for section in self.sections for option in section.options), *self.others]


class CommandLine(NamedTuple):
    """What was typed: the values by their names, which of the options were typed, and the words themselves."""

    values: dict[str, Any]
    typed: frozenset[str]
    argv: tuple[str, ...]


class Defaults(NamedTuple):
    """Defaults for options: what is given for each, by the name of its value, and the file that says so."""

    given: Mapping[str, Sequence[Any]] = {}
    said_by: str = ""
