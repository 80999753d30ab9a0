"""A user who may start only so many processes."""

import re

import pytest

from tests.conftest import Program
from tests.support.sharing import ALONE, as_user, needs_users, unmeasured

pytestmark = [pytest.mark.unmeasured, pytest.mark.open_to_others]
UID = 45454  # of nobody else: the limit counts all processes of a user


@pytest.mark.parametrize("most", [16, 13])
def test_a_limit_on_processes_is_waited_out(program: Program, most: int) -> None:
    needs_users()
    program.directory.chmod(0o777)
    done = program.run(
        *("--gpus", "0-7", *ALONE[2:], "--logs", "logs"),
        stdin="exec sleep 0.02\n" * 60,
        before=["prlimit", f"--nproc={most}", *as_user(UID)],
        env=unmeasured() | {"XDG_STATE_HOME": str(program.directory / "state")},
    )
    stderr = done.stderr.decode()
    assert "60 succeeded, 0 failed, 0 timed out, 0 not started" in stderr
    said = (
        rf"^waiting: the system allows no new process \(limit {most} for this user, ulimit -u\); jobs start as soon as"
    )
    assert len(re.findall(said, stderr, re.MULTILINE)) == 1
    for log in (program.directory / "logs").iterdir():
        assert log.read_bytes().count(b"attempt 1") == log.read_bytes().count(b"ended ") == 1
