"""One line of text -> a job, a refusal with its line number, or nothing (a blank, a comment, a default).

It numbers jobs and remembers the names and defaults of earlier lines. It does not know where lines come from, how they
end, or when their jobs run.
"""

from simple_gpu_scheduler.base.jobs import GpuCap, Job, Place
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.units import show_size
from simple_gpu_scheduler.base.values import Any, Callable, NamedTuple, Sequence
from simple_gpu_scheduler.events import ReadMark

from .options import AUTO, parse_options
from .shell_comments import find_comments

# The kernel's MAX_ARG_STRLEN is 32 pages with the NUL at the end; a longer `sh -c COMMAND` cannot be started.
LONGEST_COMMAND = 131_071

# A line may exceed its command by options and blanks, but not without limit.
LONGEST_LINE = LONGEST_COMMAND + 64 * 1024

_OPTIONS = b"#:"
_TO_NOTICE = frozenset(("stall", "idle"))

_CHOICE = b"CUDA_VISIBLE_DEVICES="
# An assignment, or an argument of `env`, of a GPU's name or of another variable. Hiding all GPUs, as with -1, disturbs
# nobody; a part of what the job was given is its own; and in a container (`-e`), other numbers count.
_CHOOSES = rb"""(?<![^\s;&|()`"'])(?<!-e )(?<!--env )CUDA_VISIBLE_DEVICES=["']?(?:\d|GPU-|MIG-|\$\{?(?!CUDA_VIS)\w)"""


class Refusal(NamedTuple):
    """A line that cannot become a job, and why. It uses up a number, so that fixing it renumbers no other job."""

    number: int
    place: Place
    problem: str
    is_bad_option: bool


class LineParser:
    """Turns the lines of one run into jobs, one after another."""

    def __init__(
        self,
        totals: Callable[[], Sequence[float] | None],
        cap: GpuCap | None = None,
        mem: int | str | None = None,
        lack_of: Callable[[str], str] = lambda _option: "",
    ) -> None:
        """`totals` gives the memory of each GPU of the run; it is called only for lines that state their needs.

        None means that it is not known yet, and then the needs are not checked. `mem` is that of lines without one.
        `lack_of` says what the run lacks for `stall` or `idle`.
        """
        self._totals = totals
        self._cap = cap
        self._lack_of = lack_of
        self._of_run: dict[str, Any] = {} if mem is None else {"mem": mem}
        self._input = ""
        self._count = 0
        self._numbers: dict[str, int] = {}
        self._defaults = dict(self._of_run)
        self._bad_default: Place | None = None

    @property
    def defaults(self) -> dict[str, Any]:
        """The defaults for the next line."""
        return self._defaults

    def resume(self, count: int, numbers: dict[str, int]) -> None:
        """Resume after `count` jobs, of which some had names."""
        self._count = count
        self._numbers = numbers

    def begin(self, name: str, mark: ReadMark | None = None, *, all_new: bool = False) -> None:  # noqa: ARG002
        """The next lines come from another file, or from a mark in it: defaults end, names and numbers continue."""
        self._input = name
        self._defaults = self._of_run | (dict(mark.defaults) if mark else {})
        self._bad_default = None

    def parse(self, line: int, text: bytes, size: int) -> Job | Refusal | None:
        """Parse the line that starts at number `line`. It had `size` bytes; `text` may be cut if that is too many."""
        stripped = text.strip()
        if size > len(text) and not _is_comment(stripped):
            return self._refuse(line, f"the line has {size:,} bytes; no command with its options is that long")
        if not stripped:
            return None
        if b"#" not in stripped and not self._of_run:
            return self._job(text, line, self._defaults)
        if stripped.startswith(b"#") and b"\n" not in stripped:
            return None if _is_comment(stripped) else self._default(stripped, line)
        return self._with_options(text, line)

    def _with_options(self, text: bytes, line: int) -> Job | Refusal | None:
        try:
            command, options = split_options(text)
            settings = self._defaults | self._resolved(options)
            self._check_need(settings)
        except ValueError as error:
            return self._refuse(line, str(error), is_bad_option=True)
        if not has_command(command):
            return None
        job = self._job(command, line, settings)
        if isinstance(job, Job) and job.name:
            self._numbers[job.name] = job.number
        return job

    def _default(self, stripped: bytes, line: int) -> Refusal | None:
        self._bad_default = None
        try:
            options = parse_options(stripped[len(_OPTIONS) :], default=True)
            self._check_need(self._defaults | options)
        except ValueError as error:
            self._bad_default = Place(line, self._input)
            return self._refuse(line, str(error), is_bad_option=True)
        self._defaults = self._defaults | options if options else dict(self._of_run)
        return None

    def _resolved(self, options: dict[str, Any]) -> dict[str, Any]:
        """The same options, with the names in `after` replaced by the numbers of those jobs."""
        if "after" not in options:
            return options
        names = options["after"]
        unknown = [name for name in names if name not in self._numbers]
        if unknown:
            raise ValueError(f"after={unknown[0]}: no earlier job has that name")
        return options | {"after": tuple(dict.fromkeys(self._numbers[name] for name in names))}

    def _check_need(self, settings: dict[str, Any]) -> None:
        """Refuse what could never start, or never be noticed."""
        for name in settings.keys() & _TO_NOTICE:
            lack = settings[name].seconds and self._lack_of(name)
            if lack:
                raise ValueError(f"{name}= {lack}")
        gpus, mem = settings.get("gpus", 1), settings.get("mem", 0)
        if mem == AUTO:
            mem = 0
        if gpus <= 1 and not mem:
            return
        if self._cap and gpus > self._cap.gpus:
            raise ValueError(f"gpus={gpus}: a run uses {self._cap}")
        totals = self._totals()
        if totals is None:
            return
        if gpus > len(totals):
            raise ValueError(f"gpus={gpus}: this run has only {len(totals)} GPU{'' if len(totals) == 1 else 's'}")
        large = sum(total >= mem for total in totals)
        if gpus and large < gpus:
            some = f"only {large} of the GPUs {'has' if large == 1 else 'have'} that much"
            most = some if large else f"the largest GPU has {show_size(max(totals))}"
            raise ValueError(f"mem= asks for {show_size(mem)}, but {most}")

    def _job(self, command: bytes, line: int, settings: dict[str, Any]) -> Job | Refusal:
        if len(command) > LONGEST_COMMAND:
            return self._refuse(
                line, f"the command has {len(command):,} bytes; the system accepts at most {LONGEST_COMMAND:,}"
            )
        if b"\0" in command:
            return self._refuse(line, "the command contains a NUL byte, which separates jobs only with --null")
        if self._bad_default:  # without the intended default, what this line needs is unknown
            return self._refuse(line, f"the defaults in {self._bad_default} are invalid", is_bad_option=True)
        if settings.get("mem") == AUTO:
            settings = settings | {"mem": None, "mem_auto": True}
        self._count += 1
        return Job(self._count, command, Place(line, self._input), **settings)

    def _refuse(self, line: int, problem: str, *, is_bad_option: bool = False) -> Refusal:
        self._count += 1
        return Refusal(self._count, Place(line, self._input), problem, is_bad_option)


def _is_comment(stripped: bytes) -> bool:
    return stripped.startswith(b"#") and not stripped.startswith(_OPTIONS) and b"\n" not in stripped


def has_command(text: bytes) -> bool:
    """Whether any line is more than a comment. (For a shell, a carriage return ends no line.)"""
    return not all(part.lstrip().startswith(b"#") for part in text.split(b"\n") if part.strip())


def chooses_gpus(command: bytes) -> bool:
    """Whether it seems to set CUDA_VISIBLE_DEVICES to other GPUs than those that it is given."""
    return _CHOICE in command and re.search(_CHOOSES, command) is not None


def split_options(text: bytes) -> tuple[bytes, dict[str, Any]]:
    """The command without its options, and the options. A ValueError says what is wrong with them."""
    end = len(text.rstrip())
    comments = [at for at in find_comments(text) if text.startswith(_OPTIONS, at)]
    if not comments:
        return text, {}
    last = comments[-1]
    if len(comments) > 1 or b"\n" in text[last:end]:
        raise ValueError("in a multi-line job, options go once, after the last line")
    return _without_blanks(text[:last]), parse_options(text[last + len(_OPTIONS) : end])


def _without_blanks(command: bytes) -> bytes:
    """The command without trailing blanks, except an escaped one."""
    bare = command.rstrip()
    escaped = (len(bare) - len(bare.rstrip(b"\\"))) % 2
    return command[: len(bare) + escaped]
