"""A real terminal with a shell in it, which tests type into and read the screen of: tmux."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from tests.conftest import needs, until


class Terminal:
    """A screen of so many columns and lines; `simple_gpu_scheduler` runs the program under test."""

    def __init__(self, directory: Path, environment: Mapping[str, str], columns: int = 100, lines: int = 30) -> None:
        needs("tmux")
        self._socket = str(directory / "tmux")
        self.directory = directory
        setup = directory / "setup.sh"
        variables = {name: value for name, value in environment.items() if not name.startswith("TMUX")} | {"PS1": "$ "}
        quoted = "".join(
            f"export {name}={shlex.quote(value)}\n" for name, value in variables.items() if name.isidentifier()
        )
        setup.write_text(
            f'unset CI\n{quoted}simple_gpu_scheduler() {{ {sys.executable} -m simple_gpu_scheduler "$@"; }}\nset -m\n'
        )
        size = ["-x", str(columns), "-y", str(lines)]
        self._tmux("new-session", "-d", *size, f"bash --noprofile --rcfile {setup} -i")
        until(lambda: self.screen().endswith("$"), "the shell is there")

    def _tmux(self, *args: str) -> str:
        argv = ["tmux", "-f", "/dev/null", "-S", self._socket, *args]
        environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        done = subprocess.run(argv, capture_output=True, check=True, cwd=self.directory, env=environment)
        return done.stdout.decode()

    def type(self, text: str) -> None:
        """Type a line."""
        self._tmux("send-keys", "-l", text)
        self.press("Enter")

    def press(self, key: str) -> None:
        """Press a key, as `C-c`."""
        self._tmux("send-keys", key)

    def resize(self, columns: int, lines: int) -> None:
        """Make it another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def screen(self, *, styled: bool = False, history: bool = False) -> str:
        """What is seen, without blanks at the ends."""
        args = [*(["-e"] if styled else []), *(["-S", "-"] if history else [])]
        lines = self._tmux("capture-pane", "-p", *args).split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip()

    def shows(self, text: str) -> None:
        """Wait until this can be seen."""
        try:
            until(lambda: text in self.screen())
        except AssertionError:
            raise AssertionError(f"{text!r} is not to be seen:\n{self.screen()}") from None

    def shows_no_more(self, text: str) -> None:
        """Wait until this can no more be seen."""
        until(lambda: text not in self.screen(), f"{text} goes away")

    def close(self) -> None:
        """End all that runs in it."""
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False)
        for process in Path("/proc").iterdir():  # a run continues when its terminal has gone
            with suppress(OSError):
                if process.name.isdigit() and os.readlink(process / "cwd") == str(self.directory):
                    os.kill(int(process.name), signal.SIGKILL)
