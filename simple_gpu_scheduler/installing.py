"""How to get a library that only some need, as the end of a sentence."""

import sys


def install(library: str, extra: str) -> str:
    """Which words get it; `extra` is the name of those dependencies of ours."""
    from importlib.util import find_spec  # noqa: PLC0415 - only an error needs it

    python = sys.executable
    pip = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"install it with {pip} {library}, or this program with its extra [{extra}]"
