"""What is called a comment is one to a real shell."""

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from simple_gpu_scheduler.jobfile.shell_comments import find_comments

PIECES = ["'", '"', "\\", "$(", ")", "(", "`", "${x:-", "}", " #: ", "#", " # ", "a", " ", "$((1", "))", ";", "echo b"]
PIECES += ["\n", "<<E\n", "\nE\n", "|cat", "$#", "<<<"]


def shell_says(text: bytes) -> tuple[int, bytes, bytes]:
    done = subprocess.run(["sh", "-c", text], capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=2, max_size=9).map(lambda pieces: "".join(pieces).encode()))
def test_what_is_called_a_comment_never_reaches_the_command(tail: bytes) -> None:
    text = b"printf '[%s]' x" + tail
    for at in find_comments(text):
        end = text.find(b"\n", at)
        rest = b"" if end < 0 else text[end:]
        assert shell_says(text[:at] + rest) == shell_says(text)
