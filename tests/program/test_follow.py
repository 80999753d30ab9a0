"""A followed file that other programs write to, or that may not be read."""

import os
import subprocess
import sys

import pytest

from tests.conftest import UNMEASURED, until
from tests.support.followed import ZEROS, append, rotate


class TestEditors:
    def test_lines_added_with_sed_are_all_that_is_new(self, queue, follow) -> None:
        queue.write_bytes(b"one\ntwo\n")
        reader = follow()
        reader.has(b"one\ntwo\n")
        inode = queue.stat().st_ino
        subprocess.run(["sed", "-i", "$ a three", queue], check=True)
        assert queue.stat().st_ino != inode
        reader.has(b"one\ntwo\nthree\n")
        assert reader.pieces[-1].position.inode == queue.stat().st_ino
        append(queue, b"four\n")
        reader.has(b"one\ntwo\nthree\nfour\n")


WRITER = """
import os, sys, time
number = 0
while not os.path.exists(sys.argv[3]):
    for number in range(number, number + 10):
        fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(fd, b"%s %d\\n" % (sys.argv[2].encode(), number))
        os.close(fd)
    number += 1
    time.sleep(0.001)
print(number)
"""


@pytest.mark.parametrize("is_restarted", [False, True])
def test_of_what_two_writers_append_in_10_rotations_each_line_is_read_once(
    queue, follow, is_restarted, tmp_path
) -> None:
    enough = tmp_path / "enough"
    writers = {
        name: subprocess.Popen(
            [sys.executable, "-c", WRITER, str(queue), name, str(enough)], stdout=subprocess.PIPE, text=True
        )
        for name in ("first", "second")
    }
    reader, contents = follow(), b""
    try:
        until(lambda: reader.pieces, "it is at the first file")
        for number in range(10):
            until(lambda: queue.exists() and queue.stat().st_size > 5_000, "the file grows")
            until(lambda file=reader: file.inode == queue.stat().st_ino, "it is being read")
            rotate(queue)
            if is_restarted and number % 5 == 4:
                position = reader.stop()
                contents += b"".join(reader.contents)
                reader = follow(position if position.inode else ZEROS)
    finally:
        enough.touch()
        counts = {name: int(writer.communicate()[0]) for name, writer in writers.items()}
    until(lambda: (contents + b"".join(reader.contents)).count(b"\n") >= sum(counts.values()), "all is read")
    assert all(content.endswith(b"\n") for content in reader.contents[1:])
    lines = (contents + b"".join(reader.contents)).splitlines()
    for name, count in counts.items():
        assert [int(line.split()[1]) for line in lines if line.startswith(name.encode())] == list(range(count))
    assert len(lines) == sum(counts.values())


class TestWhatCannotBeRead:
    @pytest.mark.open_to_others
    @pytest.mark.skipif(os.geteuid() != 0, reason="another user's eyes are needed")
    def test_a_file_that_may_not_be_read_is_an_error(self, queue) -> None:
        queue.write_bytes(b"one\n")
        queue.chmod(0)
        script = (
            "import os, sys; from simple_gpu_scheduler.inputs.follow import FollowedFile; os.setuid(65534)\n"
            "try: FollowedFile(sys.argv[1]).read(10)\n"
            "except OSError as error: print(error.strerror)"
        )
        call = [sys.executable, "-c", script, queue]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=UNMEASURED)
        assert (done.stdout, done.stderr) == ("Permission denied\n", "")
