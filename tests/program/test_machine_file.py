"""What /etc/simple_gpu_scheduler.toml does to the real programs, on a machine that has one."""

import re

import pytest

from tests.conftest import Program
from tests.support.machine_file import on_machine_with
from tests.support.nvml import GIB, StandIn, a_gpu

pytestmark = [pytest.mark.unmeasured, pytest.mark.usefixtures("idle_gpus")]
FILE = "/etc/simple_gpu_scheduler.toml"


def shown(program: Program, content: str, script: str) -> list[str]:
    return on_machine_with(content, script, program.directory).splitlines()


LIMITS = """
[limits]
gpus = "1-3"
gpus-per-run = 2
jobs-per-gpu = 2
max-used-memory = "1G"
share-with = "me"
ignore-occupancy = false
"""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--ignore-occupancy", "ignore-occupancy is not allowed"),
        ("--max-used-memory 2G", "max-used-memory is at most 1.0 GiB, not 2.0 GiB"),
        ("--share-with daemon", "share-with daemon is not allowed"),
        ("--gpus 0", "GPU 0 may not be used; allowed: 1, 2, 3"),
        ("--gpus 2 GPU-00000000", "GPU GPU-00000000-1111-2222-3333-444444444444 may not be used; allowed: 1, 2, 3"),
    ],
)
def test_a_limit_holds_for_each_command_that_takes_gpus_before_anything_starts(
    program: Program, arguments: str, sentence: str
) -> None:
    script = f"""
        echo 'touch ran' | $SGS {arguments}; echo $?
        $SGS run {arguments} -- touch ran; echo $?
        $SGS gpus {arguments}; echo $?
        SGS_LEASE_DIR=/tmp/other $SGS gpus {arguments}; echo $?
    """
    refusal = f"simple_gpu_scheduler: {FILE}, [limits]: {sentence}"
    assert shown(program, LIMITS, script) == [refusal, "2"] * 4
    assert not (program.directory / "ran").exists()


def test_limits_hold_for_a_run(program: Program) -> None:
    """Nobody holds more GPUs at once than allowed, or others."""
    script = """
        for i in 1 2; do
            echo 'echo gpu=$CUDA_VISIBLE_DEVICES; touch on-$SGS_JOB; while [ "$(ls on-* | wc -l)" -lt 2 ]; do :; done'
        done > jobs
        echo 'touch ran  #: gpus=3' > wide
        $SGS -q jobs; echo $?
        $SGS -q --jobs-per-gpu 3 jobs; echo $?
        $SGS wide; echo $?
        $SGS run -n 3 -- touch ran; echo $?
        for i in 1 2 3 4 5 6; do echo true; done | $SGS --dry-run
    """
    remark = f"3 GPUs, of which this run uses at most 2 at once ({FILE}, gpus-per-run)"
    lines = [line for line in shown(program, LIMITS, script) if line != remark]
    assert sorted(lines[:2]) == ["gpu=1", "gpu=2"]
    assert lines[2:9] == [
        "0",
        f"simple_gpu_scheduler: {FILE}, [limits]: jobs-per-gpu is at most 2, not 3",
        "2",
        "simple_gpu_scheduler: nothing was started; the input has errors:",
        f"  line 1 of wide: gpus=3: a run uses at most 2 at once ({FILE}, gpus-per-run)",
        "2",
        f"simple_gpu_scheduler: 3 GPUs were requested; a run uses at most 2 at once ({FILE}, gpus-per-run)",
    ]
    assert lines[9] == "2"
    assert {line.partition(":")[0] for line in lines[10:]} == {"gpu 1", "gpu 2"}
    assert not (program.directory / "ran").exists()


def test_limits_hold_for_lease(program: Program) -> None:
    code = "from simple_gpu_scheduler import lease\\nwith lease(%s) as gpus: print(*gpus)\\n"
    script = "".join(
        f"printf '{code % arguments}' | ${{SGS% -m *}} -W ignore 2>&1 | tail -1\n"
        for arguments in ("2", "3", "1, gpus=[0]", "1, ignore_occupancy=True")
    )
    lines = shown(program, LIMITS, script)
    assert [line.rpartition("Error: ")[2] for line in lines] == [
        "1 2",
        f"3 GPUs were requested; a run uses at most 2 at once ({FILE}, gpus-per-run)",
        f"{FILE}, [limits]: GPU 0 may not be used; allowed: 1, 2, 3",
        f"{FILE}, [limits]: ignore-occupancy is not allowed",
    ]


DEFAULTS = """
[defaults]
gpus = [2, "3"]
grace = "30s"
max-used-memory = "3G"
retries = 1
"""


def test_defaults_are_shown_by_help_used_and_replaced_by_what_is_typed(program: Program, idle_gpus: StandIn) -> None:
    idle_gpus.show([a_gpu(n, used=2 * GIB) for n in range(4)])
    script = """
        for command in '' run gpus; do $SGS $command --help; done
        echo ---
        echo 'echo gpu=$CUDA_VISIBLE_DEVICES' | $SGS -q
        echo 'echo gpu=$CUDA_VISIBLE_DEVICES' | $SGS -q --gpus 1
        $SGS run --gpus 0 --no-wait -- sh -c 'echo gpu=$CUDA_VISIBLE_DEVICES'
        $SGS run --gpus 0 --no-wait --max-used-memory 1G -- touch ran; echo $?
        echo 'echo try; exit 1' | $SGS -q; echo 'echo try; exit 1' | $SGS -q --retries 0
    """
    text, _, rest = on_machine_with(DEFAULTS, script, program.directory).partition("---\n")
    text = re.sub(r"\s+", " ", text)
    told = re.findall(r"\[default: ([^\]]*), from\s+([^\]\s]*)\]", text)
    assert sorted(told) == sorted([("2 3", FILE), ("3G", FILE)] * 3 + [("30s", FILE), ("1", FILE)])
    assert text.count("[default: 10s]") == 3, "--free-for keeps it, --grace does not"
    lines = rest.splitlines()
    assert lines[:3] == ["gpu=2", "gpu=1", "gpu=0"]
    assert lines[3].startswith("no GPU is free: gpu 0: 2.0 GiB used by others")
    assert lines[4] == "75"
    assert lines.count("try") == 3


@pytest.mark.parametrize(
    ("default", "sentence"),
    [
        ("journal = 'x'", "journal: cannot have a default here; these can: gpus, "),
        ("ignore-occupancy = true", "ignore-occupancy: cannot have a default here"),
        ("grace = 'soon'", "grace: 'soon' is not a duration; write 90, 90s, 5m, 1h30m or 2d"),
        ("grace = ['1s', '2s']", "grace: takes one value"),
        ("grace = true", "grace: must be text in quotes, a number, or an array of these"),
        ("retries = -1", "retries: -1 is not in the range x>=0"),
        ("gpus = ['0', '0']", "gpus: --gpus: GPU 0 is given twice"),
        ("policy = 'best'", "policy: --policy: "),
        ("share-with = 'nobody here'", "share-with: there is no user 'nobody here'"),
    ],
)
def test_a_bad_default_is_refused_with_its_file_and_name(program: Program, default: str, sentence: str) -> None:
    lines = shown(program, f"[defaults]\n{default}", "echo 'touch ran' | $SGS; echo $?")
    assert lines[0].startswith(f"simple_gpu_scheduler: {FILE}, [defaults]: {sentence}")
    assert lines[1:] == ["2"]
    assert not (program.directory / "ran").exists()


def test_a_file_that_cannot_be_trusted_or_understood_starts_nothing(program: Program) -> None:
    script = f"""
        chmod 646 {FILE}; echo 'touch ran' | $SGS; echo $?
        chmod 644 {FILE}; echo 'limit = 3' > {FILE}; echo 'touch ran' | $SGS; echo $?
        $SGS run -- touch ran; echo $?
    """
    lines = shown(program, "", script)
    assert lines[0] == (
        f"simple_gpu_scheduler: {FILE}: it has mode 646, so not only root may write to it; run: chmod go-w {FILE}"
    )
    unknown = f"simple_gpu_scheduler: {FILE}: limit: unknown key; the keys are lease-directory, defaults, limits"
    assert lines[1:] == ["2", unknown, "2", unknown, "2"]
    assert not (program.directory / "ran").exists()


def test_the_lease_directory_is_the_machines_and_no_variable_may_name_another(program: Program) -> None:
    leases = program.directory / "of machine"
    script = f"""
        echo true | $SGS -q --gpus 1; echo $?
        ls -d '{leases}'/*1111-2222-3333-444444444444
        echo 'touch ran' | SGS_LEASE_DIR={program.directory}/own $SGS -q --gpus 1; echo $?
        ln -s '{leases}' same; echo true | SGS_LEASE_DIR=$PWD/same $SGS -q --gpus 1; echo $?
        rmdir '{leases}' 2>/dev/null; rm -r '{leases}'; touch '{leases}'; echo 'touch ran' | $SGS -q --gpus 1; echo $?
    """
    lines = shown(program, f'lease-directory = "{leases}"', script)
    assert lines[:2] == ["0", f"{leases}/{a_gpu(1).uuid}"]
    assert lines[2] == (
        f"simple_gpu_scheduler: SGS_LEASE_DIR={program.directory}/own, "
        f"but the schedulers of this machine share {leases} ({FILE}); unset SGS_LEASE_DIR"
    )
    assert lines[3:5] == ["2", "0"]
    assert f"the lease directory {leases} is not a directory" in lines[5]
    assert lines[5].endswith(f"or change lease-directory in {FILE}")
    assert lines[6] == "2"
    assert not (program.directory / "ran").exists()


@pytest.mark.open_to_others
def test_in_a_user_namespace_the_file_of_the_root_outside_is_trusted(program: Program) -> None:
    """As in a container of another user: root outside has no number there."""
    user = "setpriv --reuid=1234 --regid=1234 --clear-groups unshare -U"
    script = f"{user} true || exit 0; {user} $SGS gpus --ignore-occupancy --gpus 1; echo $?"
    lines = shown(program, LIMITS, script)
    if not lines or "ermission denied" in lines[0]:
        pytest.skip("other users may not make user namespaces here, or not read this Python")
    assert lines[0] == f"simple_gpu_scheduler: {FILE}, [limits]: ignore-occupancy is not allowed"
