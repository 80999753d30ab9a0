"""The README's recipes for notifications, each with stand-ins for what it uses."""

import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ROOT, Program

HEADING = "## Recipes\n"
HOSTILE = """echo 'out of memory: <b>'; false 'a & b' "<!channel>" '$(touch owned)' `true`"""
FAILED = "job 2 (line 2 of gpu_commands.txt) failed with exit code 1 after "

needs_jq_and_curl = pytest.mark.skipif(
    not (shutil.which("jq") and shutil.which("curl")), reason="jq and curl are not installed"
)
pytestmark = [pytest.mark.usefixtures("idle_gpus"), pytest.mark.unmeasured, needs_jq_and_curl]


def recipes() -> dict[str, str]:
    """The scripts of that part of the README, by the word that they begin with."""
    _, _, part = (ROOT / "docs" / "notify.md").read_text().partition(HEADING)
    part = re.split(r"^#{2,3} ", part, maxsplit=1, flags=re.MULTILINE)[0]
    scripts = re.findall(r"```sh\n# (\w[\w-]*): (.*?)```", part, re.DOTALL)
    return {name: f"# {script}" for name, script in scripts}


class Web:
    """A server that keeps what it was sent, as (path, headers, body)."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 200
        web = self

        class Keep(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                web.requests.append((self.path, dict(self.headers), body))
                self.send_response(web.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Keep)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.server.shutdown()
    web.server.server_close()


class Teller:
    """A run that tells by a recipe."""

    def __init__(self, program: Program, directory: Path, web: Web) -> None:
        self.program = program
        self.directory = directory
        self.web = web
        self.path = f"{directory / 'bin'}:{os.environ['PATH']}"
        (directory / "bin").mkdir()

    def stand_in(self, name: str) -> None:
        """A program of that name that keeps its arguments and what it reads."""
        program = self.directory / "bin" / name
        program.write_text(
            f"#!/bin/sh\nprintf '%s\\0' \"$@\" > {self.directory}/arguments\ncat > {self.directory}/body\n"
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)

    def run(self, name: str, lines: str, *args: str) -> str:
        """What it says; the jobs have logs."""
        script = re.sub(r"https://[^/\s\"']+", self.web.address, recipes()[name])
        (self.directory / "tell.sh").write_text(script)
        (self.directory / "gpu_commands.txt").write_text(lines)
        environment = {**os.environ, "PATH": self.path, "no_proxy": "127.0.0.1"}
        done = self.program.run(
            "--gpus", "0", "--logs", "out", "--notify", "sh tell.sh", *args, "gpu_commands.txt", env=environment
        )
        assert not (self.directory / "owned").exists()
        return done.stderr.decode()

    @property
    def arguments(self) -> list[str]:
        return (self.directory / "arguments").read_text().split("\0")[:-1]

    @property
    def body(self) -> str:
        return (self.directory / "body").read_text()


@pytest.fixture
def teller(program: Program, tmp_path: Path, web: Web) -> Teller:
    return Teller(program, tmp_path, web)


def test_there_is_one_for_each_that_people_asked_for() -> None:
    assert list(recipes()) == ["mail", "sendmail", "Slack", "ntfy", "notify-send"]


def test_mail(teller: Teller) -> None:
    teller.stand_in("mail")
    said = teller.run("mail", f"true\n{HOSTILE}\n")
    assert "notifier" not in said
    option, subject, address = teller.arguments
    assert (option, address) == ("-s", "you@example.org")
    assert subject.startswith("1 succeeded, 1 failed, 0 timed out, 0 not started in ")
    assert teller.body.splitlines() == [subject, "", f"job 2: {HOSTILE}", "out of memory: <b>"]


def test_sendmail(teller: Teller) -> None:
    teller.stand_in("sendmail")
    said = teller.run("sendmail", f"true\n{HOSTILE}\n", "--notify-on", "fail")
    assert "notifier" not in said
    assert teller.arguments == ["-t", "-i"]
    header, _, body = teller.body.partition("\n\n")
    to, subject = header.splitlines()
    assert to == "To: you@example.org"
    assert subject.startswith(f"Subject: {FAILED}")
    assert body.splitlines() == [f"job 2: {HOSTILE}", "out of memory: <b>", ""]


def test_a_header_of_a_mail_has_one_line_whatever_the_command(teller: Teller) -> None:
    teller.stand_in("sendmail")
    teller.run("sendmail", "false \\\n   a\r\x1b\\\nBcc: all@example.org\n", "--notify-on", "fail")
    assert len(teller.body.partition("\n\n")[0].splitlines()) == 2


def test_slack(teller: Teller) -> None:
    said = teller.run("Slack", f"true\n{HOSTILE}\n", "--notify-on", "fail")
    assert "notifier" not in said
    [(path, headers, body)] = teller.web.requests
    assert path.startswith("/services/")
    assert headers["Content-Type"] == "application/json"
    text = json.loads(body)["text"]
    assert text.startswith(FAILED)
    assert text.endswith(HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))


def test_ntfy(teller: Teller) -> None:
    said = teller.run("ntfy", f"true\n{HOSTILE}\n", "--notify-on", "fail")
    assert "notifier" not in said
    [(path, headers, body)] = teller.web.requests
    assert path == "/my-topic"
    assert body.decode().startswith(FAILED)
    assert body.decode().endswith(f": {HOSTILE}")
    assert re.fullmatch(rf"\d{{8}}-\d{{6}}-[0-9a-f]{{6}} on {os.uname().nodename}", headers["Title"])


def test_a_server_that_refuses_is_reported(teller: Teller) -> None:
    teller.web.status = 404
    said = teller.run("ntfy", "true\n")
    assert re.search(r"the notifier failed with exit code 22: curl: \(22\) .*404", said)


def test_notify_send(teller: Teller) -> None:
    teller.stand_in("notify-send")
    said = teller.run("notify-send", f"true\n{HOSTILE}\n", "--notify-on", "fail")
    assert "notifier" not in said
    [summary] = teller.arguments
    assert summary.startswith(FAILED)
    assert summary.endswith(f": {HOSTILE}")
