"""A command -> its template: numbers and quoted values left open, so that the jobs of a sweep share one.

Of the shell it knows only quotes. Templates are compared across runs of different versions: a change here means that
jobs no longer match earlier ones. Pure, and fast enough for a million commands.
"""

from simple_gpu_scheduler.base.jobs import Job
from simple_gpu_scheduler.base.stdlib import re
from simple_gpu_scheduler.base.values import Callable, Mapping

PLACEHOLDER = "…"
# Only the start of a longer command counts, so that one with a file in it costs no more than others.
_LONGEST = 2000
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*')*"""
# With what is glued to it, as in 10k, 3d or a hash; but no file descriptor (2>).
_DIGITS = r"(?:\.[0-9]+)*(?:\.(?!\w))?(?:[eE][-+]?[0-9]+)?[A-Za-z0-9]*(?![<>A-Za-z0-9])"
# All start with one set of characters, which the search can skip to; which one it was is checked after it.
_VARIES = (
    rf"""["'0-9.+\-](?:"""
    rf"""(?<=")(?:[^"\\]|\\.)*"{_QUOTED}"""
    rf"""|(?<=')[^']*'{_QUOTED}"""
    # Not a part of a name: resnet50, python3.11, $1; nor the 1 of >&1.
    rf"""|(?<=[0-9])(?<![A-Za-z0-9.$\\].)(?<!>&.)[0-9]*{_DIGITS}"""
    # A sign counts at the start of a number; after a word it is a hyphen.
    rf"""|(?<=[-+])(?<![\w/)\]}}\-+].)(?:[0-9]+|(?=\.[0-9])){_DIGITS}"""
    rf"""|(?<=\.)(?<![\w./].)[0-9]+{_DIGITS})"""
)


_varies: "list[re.Pattern[str]]" = []  # the one, compiled when it is first used: most runs never ask for a template


def template_of(command: str) -> str:
    """`python train.py --lr … --name …` of `python train.py --lr 0.1 --name 'a b'`."""
    is_cut = len(command) > _LONGEST
    if not _varies:
        _varies.append(re.compile(_VARIES, re.DOTALL))
    text = _varies[0].sub(PLACEHOLDER, command[:_LONGEST] if is_cut else command)
    # Blanks or a newline between two words: the command is the same.
    return " ".join(text.split()) + (f" {PLACEHOLDER}" if is_cut else "")


def template_of_job(job: Job) -> str:
    """What its command shares with others of its kind."""
    return template_of(job.command.decode("utf-8", "surrogateescape"))


LABELS: Mapping[str, Callable[[Job], str]] = {
    "label": lambda job: job.label,
    "source": lambda job: job.place.input,
    "template": template_of_job,
}
