"""What docs/admin.md shows of the machine file is true."""

import json
import os
import re
from pathlib import Path

import pytest

from simple_gpu_scheduler.cli.machine_defaults import MAY_HAVE
from simple_gpu_scheduler.doctor.checks import judge_all
from simple_gpu_scheduler.gpus.machine_file import LIMITS, read_machine_file
from tests.conftest import ROOT, needs
from tests.support.machine_file import on_machine_with
from tests.unit.doctor.test_checks import GOOD

PAGE = (ROOT / "docs" / "admin.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_example_of_the_machines_file_is_one(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("only a file of root is trusted")
    path = tmp_path / "machine.toml"
    [content] = blocks("toml")
    path.write_text(content)
    path.chmod(0o644)
    rules = read_machine_file(str(path))
    assert rules.lease_directory
    assert set(rules.defaults) <= set(MAY_HAVE)
    assert rules.limits.gpus_per_run == 4


def test_the_page_names_each_default_and_each_limit() -> None:
    [defaults] = re.findall(r"`\[defaults\]` takes the long names of these options: (.*?)\.\s", PAGE, re.DOTALL)
    assert re.findall(r"`([\w-]+)`", defaults) == list(MAY_HAVE)
    _, _, limits = PAGE.partition("`[limits]` applies to")
    assert re.findall(r"^\| `([\w-]+) = ", limits, re.MULTILINE) == list(LIMITS)


@pytest.mark.unmeasured
def test_the_lines_for_systemd_make_a_directory_that_doctor_accepts_and_no_clean_up_empties(tmp_path: Path) -> None:
    needs("systemd-tmpfiles")
    [rule] = re.findall(r"^ +(d /run/.*)$", PAGE, re.MULTILINE)
    [content] = re.findall(r"^   (lease-directory = .*)$", PAGE, re.MULTILINE)
    script = f"""
        mount -t tmpfs -o mode=755 tmpfs /run; mkdir -p /etc/tmpfiles.d
        printf '%s\\n' 'd /run 755 root root m:10d' '{rule}' > /etc/tmpfiles.d/it.conf
        systemd-tmpfiles --create /etc/tmpfiles.d/it.conf
        $SGS doctor --json
        directory={rule.split()[1]}
        touch -d '20 days ago' $directory/GPU-1 /run/other; touch -d '20 days ago' $directory
        systemd-tmpfiles --clean /etc/tmpfiles.d/it.conf
        ls /run $directory
    """
    text, _, left = on_machine_with(content, script, tmp_path).rpartition("]\n")
    [found] = [check for check in json.loads(text + "]") if check["check"] == "lease directory"]
    assert (found["grade"], found["advice"]) == ("ok", None)
    assert rule.split()[1] in found["found"]
    assert "GPU-1" in left.split()
    assert "other" not in left.split()


def test_the_table_of_promises_names_checks_that_exist() -> None:
    names = {check.name for check in judge_all(GOOD)}
    _, _, table = PAGE.partition("| promise |")
    rows = [row.split("|")[-2].strip() for row in table.splitlines()[2:] if row.startswith("|")]
    assert {name.strip() for row in rows for name in row.split(",") if name.strip()} <= names
    assert len(rows) >= 8
