"""What a lease is called: by the GPU's UUID wherever anybody can tell it, so that all names of a GPU are one lease."""

import pytest

from tests.conftest import Program, until
from tests.support.nvml import StandIn, a_gpu
from tests.support.sharing import held, in_line, leases, lonely, mount_namespace, unmeasured, were_alone

pytestmark = pytest.mark.unmeasured  # what its programs run is measured elsewhere

UUIDS = [a_gpu(index).uuid for index in range(4)]


@pytest.mark.parametrize("name", ["0", UUIDS[0], UUIDS[0][:12]])
@pytest.mark.usefixtures("idle_gpus")
def test_every_name_of_a_gpu_is_the_same_lease(program: Program, name: str) -> None:
    with held(UUIDS[0]):
        process = program.start("--gpus", name, env=unmeasured())
        program.feed(process, "touch ran\n")
        until(lambda: in_line(UUIDS[0]) == 1)
        assert not (program.directory / "ran").exists()
    process.communicate(timeout=120)
    assert process.returncode == 0


def test_an_index_and_a_uuid_exclude_each_other(program: Program, idle_gpus: StandIn) -> None:
    assert idle_gpus
    job = lonely(program.directory).replace("sh ", "CUDA_VISIBLE_DEVICES=one sh ", 1)
    processes = [program.start("--gpus", name) for name in ("0", UUIDS[0])]
    for process in processes:
        program.feed(process, f"{job}\n" * 30)
    for process in processes:
        process.communicate(timeout=120)
        assert process.returncode == 0
    assert were_alone(program.directory)


def test_without_nvml_and_driver_it_is_the_index(program: Program) -> None:
    assert program.run("--gpus", "3", "--ignore-occupancy", stdin="true\n").returncode == 0
    assert {path.name for path in leases().iterdir()} == {"index-3", "index-3.next"}


def test_without_nvml_the_drivers_files_tell_the_uuid(program: Program) -> None:
    script = """
mount -t tmpfs tmpfs /proc/driver || exit 77
for at in 1 2; do
    mkdir -p /proc/driver/nvidia/gpus/0000:0$at:00.0
    printf 'Model: \\t\\t NVIDIA A100\\nGPU UUID: \\t GPU-0000000'$at'-1111-2222-3333-444444444444\\n' \
        > /proc/driver/nvidia/gpus/0000:0$at:00.0/information
done
echo 'echo ran on $CUDA_VISIBLE_DEVICES' | $SGS --gpus 1 --ignore-occupancy --quiet
echo 'echo ran on $CUDA_VISIBLE_DEVICES' | $SGS --gpus 2 --ignore-occupancy --quiet; echo $?
"""
    lines = mount_namespace(script, program.directory).splitlines()
    assert lines[0] == "ran on 1", lines
    assert lines[-1] == "2"
    assert "there is no GPU 2" in lines[1]
    uuid = "GPU-00000002-1111-2222-3333-444444444444"
    assert {path.name for path in leases().iterdir()} == {uuid, f"{uuid}.next"}
