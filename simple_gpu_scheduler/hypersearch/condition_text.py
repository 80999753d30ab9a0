"""The text of a condition around Python's parser, which has keywords of its own and knows no `-` in a name."""

import keyword
import re
from collections.abc import Collection

_OUR_KEYWORDS = {"and", "or", "not", "in", "is"}
_STAND_IN = "_parameter"
_OF_OTHER_LANGUAGES = (
    ("&&", "and for &&"),
    (r"\|\|", "or for ||"),
    (r"!(?!=)", "not for !"),
    (r"(?<![=!<>])=(?!=)", "== for ="),
    (r"\$", "names without $"),
)


def without_keywords(text: str, names: Collection[str]) -> str:
    """The same with Python's keywords that are names of parameters, such as lambda, made names for Python too."""
    words = [name for name in names if keyword.iskeyword(name) and name not in _OUR_KEYWORDS]
    if not words:
        return text
    pattern = rf"\"[^\"]*\"|'[^']*'|\b({'|'.join(words)})\b"
    return re.sub(pattern, lambda match: f"{match[1]}{_STAND_IN}" if match[1] else match[0], text)


def _normal(name: str) -> str:
    """As Python's parser gives it back."""
    if keyword.iskeyword(name):
        return f"{name}{_STAND_IN}"
    if name.isascii():
        return name
    from unicodedata import normalize  # noqa: PLC0415 - few names need it

    return normalize("NFKC", name)


def meant_by(written: str, names: Collection[str]) -> list[str]:
    """The parameters that may be meant by a name; `-` and `.` are written `_` where that is no other parameter."""
    exactly = [name for name in names if _normal(name) == written]
    return exactly or [name for name in names if _normal(re.sub(r"[-.]", "_", name)) == written]


def habits(text: str) -> str:
    """How here is written what is written otherwise in other languages."""
    return "".join(f"; write {way}" for pattern, way in _OF_OTHER_LANGUAGES if re.search(pattern, text))
