"""`doctor`: checks this machine and says what to do, a line for each check."""

from simple_gpu_scheduler.base.errors import SOME_DID_NOT_SUCCEED, SUCCEEDED
from simple_gpu_scheduler.base.stdlib import json
from simple_gpu_scheduler.base.text import safe
from simple_gpu_scheduler.cli.declarations import Command, Option, Section
from simple_gpu_scheduler.display import table
from simple_gpu_scheduler.doctor import Check
from simple_gpu_scheduler.doctor.checks import judge_all
from simple_gpu_scheduler.doctor.facts import gather

_COLOURS = {"ok": "32", "warn": "33", "FAIL": "31"}
_EXAMPLES = r"""
simple_gpu_scheduler doctor
simple_gpu_scheduler doctor --json | jq '.[] | select(.grade != "ok")'
"""
_HELP = """Check this machine, and say what to do about each problem.

FAIL: a promise of the program does not hold here. warn: something works less well than it could. Some answers depend on
who runs it and where: run it as the user who will start the runs, and in the same shell, service or container.

The exit code is 1 if a check failed.

\b
--json: an array of
  check, grade (ok, warn or FAIL), found, advice
"""


def _doctor(as_json: bool) -> int:
    checks = judge_all(gather())
    if as_json:
        print(json.dumps([_to_json(check) for check in checks], indent=2))
    else:
        rows = [(f"{check.grade:4}", check.name, safe(_sentence(check))) for check in checks]
        table.show(table.aligned(rows), colours=[_COLOURS[check.grade] for check in checks])
    return SOME_DID_NOT_SUCCEED if any(check.grade == "FAIL" for check in checks) else SUCCEEDED


def _sentence(check: Check) -> str:
    return f"{check.found}; {check.advice}" if check.advice else check.found


def _to_json(check: Check) -> dict[str, str | None]:
    return {"check": check.name, "grade": check.grade, "found": check.found, "advice": check.advice or None}


doctor_command = Command(
    "doctor",
    callback=_doctor,
    help=_HELP,
    sections=(Section("Display", (Option(["--json", "as_json"], is_flag=True, help="Print a JSON array."),)),),
    examples=_EXAMPLES,
)
