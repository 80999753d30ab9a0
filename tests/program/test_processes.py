"""Real processes, started."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from simple_gpu_scheduler.system import processes


def test_a_program_that_is_not_there_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        processes.Starter().start((b"/no/such/program",))


def test_a_started_program_has_its_own_session_no_input_and_no_ignored_signal(tmp_path: Path) -> None:
    show = f"exec >{tmp_path}/out; cat; cut -d' ' -f6 /proc/$$/stat; echo $$; grep SigIgn /proc/$$/status"
    ignored = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    pid = processes.Starter().start((b"/bin/sh", b"-c", show.encode()), [b"PATH=/bin:/usr/bin"])
    signal.signal(signal.SIGTTOU, ignored)
    processes.wait_for_end(pid)
    assert processes.reap(pid) == 0
    session, own, signals = (tmp_path / "out").read_text().splitlines()
    assert session == own == str(pid)
    # 32 and 33 are glibc's own, which its posix_spawn ignores on the way and which no program can handle.
    assert int(signals.split()[1], 16) & ~(0b11 << 31) == 0


def test_a_program_has_the_common_environment_and_its_own(tmp_path: Path) -> None:
    starter = processes.Starter([b"PATH=/bin:/usr/bin", b"COMMON=1"])
    for more in ((), (b"A=x", b"B=y"), (b"A=z",)):
        pid = starter.start((b"/bin/sh", b"-c", f"env > {tmp_path}/out".encode()), more)
        processes.wait_for_end(pid)
        assert processes.reap(pid) == 0
        found = (tmp_path / "out").read_bytes().splitlines()
        assert [line for line in found if line[:1] in b"ABC"] == [b"COMMON=1", *more]


@pytest.mark.parametrize(("limit", "has_tags"), [(0, False), (50, False), (819_200, True)])
def test_there_are_tags_where_there_is_room_for_many(limit: int, has_tags: bool) -> None:
    """Attempts that run at the same time must not have the same."""
    script = "from simple_gpu_scheduler.system import processes as p; print(p.HAS_TAGS, p.tag_of(1), p.tag_of(60))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_MSGQUEUE, (limit, limit)),
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    assert done.stdout.decode().split() == ([str(has_tags), "2", "61"] if has_tags else [str(has_tags), "0", "0"])
