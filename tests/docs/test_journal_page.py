"""docs/journal.md tells of every event, and its examples are true."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from simple_gpu_scheduler.journal.fields import is_sound
from tests.conftest import ROOT
from tests.support.journal import golden, kinds, records

DOCUMENT = ROOT / "docs" / "journal.md"


class TestTheDocument:
    def sections(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for part in re.split(r"^### ", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]:
            heading, _, body = part.partition("\n")
            body = body.partition("\n## ")[0]
            found |= dict.fromkeys(re.findall("`(.+?)`", heading), body)
        return found

    def test_tells_of_every_event_and_of_each_of_its_fields(self) -> None:
        sections = self.sections()
        assert set(sections) == kinds(golden())
        for each in records(golden()):
            for name in each.keys() - {"event", "at"}:
                assert f"`{name}`" in sections[each["event"]], (each["event"], name)

    def test_tells_of_no_field_that_is_never_written(self) -> None:
        written: dict[str, set[str]] = {}
        for each in records(golden()):
            written.setdefault(each["event"], set()).update(each)
        for event, body in self.sections().items():
            for row in re.findall(r"^\| (`.+?) \|", body, re.MULTILINE):
                assert set(re.findall("`(.+?)`", row)) <= written[event], event

    def test_has_an_example_of_each_event_that_is_read(self) -> None:
        for event, body in self.sections().items():
            shown = re.findall(r"^\{.*\}$", body, re.MULTILINE)
            found = [each for each in map(json.loads, shown) if each["event"] == event]
            assert found, event
            for each in found:
                assert is_sound(each)
                assert each.keys() <= {name for known in records(golden()) if known["event"] == event for name in known}

    @pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq")
    def test_shows_what_jq_prints(self, tmp_path: Path) -> None:
        (tmp_path / "journal.jsonl").write_bytes(golden())
        blocks = re.findall(r"```console\n\$ (.+?)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
        assert len(blocks) == 3
        for command, output in blocks:
            done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=True)
            assert done.stdout == output, command


@pytest.mark.skipif(not shutil.which("jq"), reason="there is no jq")
def test_every_line_is_json_for_others_too() -> None:
    done = subprocess.run(["jq", "-r", ".event"], input=golden(), capture_output=True, check=True)
    assert done.stdout.decode().splitlines() == [each["event"] for each in records(golden())]
