"""`{job="dcgm",cluster=~"a|b"}`: the label matchers that choose among the series of a Prometheus. Pure."""

import re
from collections.abc import Iterable

_MATCHER = re.compile(
    r"""\s*(?P<label>[a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)\s*"""
    r"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)\s*(?P<comma>,|$)"""
)
_EXAMPLE = """--selector 'job="dcgm"'"""
_SPECIAL = re.compile(r"[^\w ,:/-]")  # in a regular expression


def parse_selector(text: str) -> str:
    """The matchers without braces; a ValueError says what is wrong with them.

    They go into each query as they are, so they must be nothing but matchers.
    """
    matchers = text.strip()
    if matchers.startswith("{") and matchers.endswith("}"):
        matchers = matchers[1:-1].strip()
    if not matchers:
        raise ValueError(f"it has no label matcher; such as {_EXAMPLE}")
    at = 0
    is_open = True
    while at < len(matchers):
        found = _MATCHER.match(matchers, at) if is_open else None
        if found is None:
            raise ValueError(_problem(matchers, at))
        if found["label"] == "__name__":
            raise ValueError("the names of the metrics are given; select by other labels")
        at, is_open = found.end(), bool(found["comma"])
    return matchers.rstrip().removesuffix(",")


def _problem(matchers: str, at: int) -> str:
    rest = matchers[at:].strip()
    if re.match(r"[a-zA-Z_]\w*\s*(=~|!~|!=|=)\s*[^\"'`]", rest):
        return f"the value after {rest.split('=')[0].strip(' !')} has no quotes; the shell leaves them in {_EXAMPLE}"
    return f"{rest!r} is no label matcher; such as {_EXAMPLE}"


def among(label: str, values: Iterable[str]) -> str:
    """A matcher: the label has one of these values."""
    pattern = "|".join(_SPECIAL.sub(r"\\\g<0>", value) for value in sorted(values))
    return f'{label}=~"{_quoted(pattern)}"'


def equal(label: str, value: str) -> str:
    """A matcher: the label has this value."""
    return f'{label}="{_quoted(value)}"'


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
