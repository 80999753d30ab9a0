"""What each check says of a machine where something is wrong; and that each of them can."""

import pytest

from simple_gpu_scheduler.doctor import Check, checks
from simple_gpu_scheduler.doctor.checks import judge_all
from simple_gpu_scheduler.doctor.driver import DriverFacts, GpuFacts
from simple_gpu_scheduler.doctor.facts import (
    Facts,
    LeaseFacts,
    LimitFacts,
    ProcFacts,
    RulesFacts,
    ShellFacts,
    StateFacts,
    Versions,
)
from simple_gpu_scheduler.gpus.machine_file import MachineFile, MachineLimits

LIBRARIES = {"click": "8.2", "rich": "14.0"}
GOOD = Facts(
    Versions("1.0", "3.11.7", LIBRARIES, {"click": "8.1", "rich": "13.0"}),
    DriverFacts("", "570.1", (GpuFacts("GPU 0"), GpuFacts("GPU 1"))),
    RulesFacts("/etc/it.toml"),
    LeaseFacts("/var/lib/sgs"),
    ProcFacts(),
    subreaper="",
    has_inotify=True,
    limits=LimitFacts(1024, 4096, 10),
    state=StateFacts("/home/ada/.local/state/simple_gpu_scheduler/runs"),
    kills_at_logout="",
    shell=ShellFacts("bash", "/home/ada/.bashrc", completes=True),
)
LEASES, DRIVER = GOOD.leases, GOOD.driver
BAD = [
    ("versions", "FAIL", {"versions": GOOD.versions._replace(libraries={"click": "8.2"})}, "rich is missing"),
    ("versions", "FAIL", {"versions": GOOD.versions._replace(needs={"click": "8.10"})}, "click is too old"),
    ("driver", "FAIL", {"driver": DriverFacts("NVML was not found")}, "NVML was not found; nvidia-smi must work"),
    ("driver", "FAIL", {"driver": DriverFacts("did not answer", is_hung=True)}, "did not answer; see dmesg"),
    ("GPUs", "FAIL", {"driver": DRIVER._replace(gpus=())}, "NVML lists none"),
    ("GPUs", "FAIL", {"driver": DRIVER._replace(gpus=(GpuFacts("GPU 3", "it is lost"),))}, "GPU 3: it is lost; see"),
    (
        "GPUs",
        "warn",
        {"driver": DRIVER._replace(gpus=(GpuFacts("GPU 3", tells_processes=False),))},
        "NVML does not report which processes use GPU 3",
    ),
    ("lease directory", "FAIL", {"leases": LEASES._replace(problem="it is a link; remove it")}, "it is a link"),
    ("lease directory", "FAIL", {"leases": LEASES._replace(problem="no", exists=False)}, "root can create it"),
    ("lease directory", "FAIL", {"leases": LEASES._replace(is_private=True)}, "PrivateTmp"),
    ("lease directory", "FAIL", {"leases": LEASES._replace(has_locks=False)}, "has no flock"),
    ("lease directory", "FAIL", {"leases": LEASES._replace(bad_files=("a is bad", "b"))}, "a is bad (and 1 more)"),
    ("lease directory", "warn", {"leases": LEASES._replace(exists=False)}, "does not exist yet"),
    ("lease directory", "warn", {"leases": LEASES._replace(is_remote=True)}, "network file system"),
    ("lease directory", "warn", {"leases": LEASES._replace(is_of_root=False, owner="bob")}, "belongs to bob"),
    ("lease directory", "warn", {"leases": LEASES._replace(mode=0o1755)}, "has mode 1755, so not every user"),
    ("lease directory", "warn", {"leases": LEASES._replace(cleaned_by="tmpwatch")}, "deleted by tmpwatch"),
    ("machine file", "FAIL", {"rules": RulesFacts("/etc/it.toml", "/etc/it.toml: no")}, "/etc/it.toml: no"),
    ("process IDs", "warn", {"proc": ProcFacts(is_container=True)}, "--pid=host"),
    (
        "process IDs",
        "warn",
        {"driver": DRIVER._replace(gpus=(GpuFacts("GPU 0", unseen=2),))},
        "names 2 processes that do not",
    ),
    ("/proc", "warn", {"proc": ProcFacts("2", is_hidden=True)}, "hidepid=2"),
    ("leftovers of jobs", "FAIL", {"subreaper": "this system cannot"}, "this system cannot; use a newer kernel"),
    ("inotify", "warn", {"has_inotify": False}, "fs.inotify.max_user_instances"),
    ("open files", "warn", {"limits": LimitFacts(64)}, "at most 64 per process"),
    ("processes", "warn", {"limits": LimitFacts(1024, 200, 150)}, "150 of at most 200"),
    ("state directory", "FAIL", {"state": StateFacts("/x", "read-only")}, "/x: read-only; set XDG_STATE_HOME"),
    ("state directory", "FAIL", {"state": StateFacts("/x", free=1 << 20)}, "only 1 MiB free"),
    ("state directory", "warn", {"state": StateFacts("/x", is_remote=True)}, "network file system"),
    ("logout", "warn", {"kills_at_logout": "/etc/logind.conf"}, "KillUserProcesses in /etc/logind.conf"),
    ("shell completion", "warn", {"shell": ShellFacts("zsh", "/h/.zshrc")}, "add to /h/.zshrc: eval"),
]


def line(check: Check) -> str:
    return f"{check.found}; {check.advice}" if check.advice else check.found


def test_a_good_machine_has_nothing_to_say() -> None:
    assert {check.grade for check in judge_all(GOOD)} == {"ok"}
    assert not any(check.advice for check in judge_all(GOOD))


@pytest.mark.parametrize(("name", "grade", "changes", "words"), BAD)
def test_what_is_wrong_is_said_by_its_check_alone(
    name: str, grade: str, changes: dict[str, object], words: str
) -> None:
    found = [check for check in judge_all(GOOD._replace(**changes)) if check.grade != "ok"]
    assert [(check.name, check.grade) for check in found] == [(name, grade)]
    assert words in line(found[0])
    assert "\n" not in line(found[0])


def test_a_single_bad_file_is_all_that_is_named() -> None:
    assert checks.judge_leases(LEASES._replace(bad_files=("a is bad",))).found == "a is bad"


def test_each_check_can_fail_or_warn() -> None:
    assert {check.name for check in judge_all(GOOD)} == {name for name, *_ in BAD}
    judges = [name for name in vars(checks) if name.startswith("judge_") and name != "judge_all"]
    assert len(judges) == len(judge_all(GOOD))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rules": RulesFacts("/etc/it.toml", rules=MachineFile("/etc/it.toml"))}, "(limits: none)"),
        (
            {
                "rules": RulesFacts(
                    "/etc/it.toml",
                    rules=MachineFile("/etc/it.toml", limits=MachineLimits(("0",), ignore_occupancy=False)),
                )
            },
            "(limits: gpus, ignore-occupancy)",
        ),
        ({"proc": ProcFacts("2")}, "hidepid=2, but this user sees all"),
        ({"limits": LimitFacts(1024)}, "no limit for this user"),
        ({"versions": GOOD.versions._replace(needs=LIBRARIES)}, "click 8.2, rich 14.0"),
        ({"shell": ShellFacts("tcsh")}, "none for tcsh"),
        ({"shell": ShellFacts("")}, "none for an unknown shell"),
        ({"driver": DRIVER._replace(version="")}, "driver of unknown version answers"),
    ],
)
def test_what_is_unusual_and_good_is_ok(changes: dict[str, object], words: str) -> None:
    found = judge_all(GOOD._replace(**changes))
    assert {check.grade for check in found} == {"ok"}
    assert any(words in line(check) for check in found)
