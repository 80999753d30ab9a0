"""The last number in a text after a name: `loss 0.5`, `loss: 0.5`, `loss=5e-3`, `"loss": 0.5`. Pure.

The name must match exactly: `train_loss` and `val/loss` are not `loss`.
"""

import re

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_BETWEEN = r"""["']?(?:[ \t]*(?::=|=>|->|[:=|])[ \t]*|[ \t]+)["']?"""
_AROUND = r"(?:[A-Za-z_][A-Za-z0-9_.]{0,30}\()?"  # tensor(0.5), np.float64(0.5)
_NUMBER = r"[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf(?:inity)?)(?![\w]|\.\d)"
_VALUE = re.compile(f"{_BETWEEN}{_AROUND}({_NUMBER})")
_OF_A_NAME = re.compile(r"[\w./\-]")


def last_number(text: str, name: str) -> float | None:
    """The number, which may be nan or inf; None if there is none."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    at = text.rfind(name)
    while at >= 0:
        if not (at and _OF_A_NAME.match(text, at - 1)):
            match = _VALUE.match(text, at + len(name))
            if match:
                return float(match[1])
        # A name may overlap itself, so skip only its last letter.
        at = text.rfind(name, 0, at + len(name) - 1)
    return None
