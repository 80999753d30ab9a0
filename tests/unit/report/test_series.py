"""Which series are of which GPU."""

import pytest

from simple_gpu_scheduler.metrics.families import NAMES
from simple_gpu_scheduler.report.prometheus import series
from simple_gpu_scheduler.report.prometheus.series import DCGM, OURS, ExportedGpu, is_same_host, know

UUID = "GPU-aaaaaaaa-0000-0000-0000-000000000000"


def dcgm(gpu: str = "0", host: str = "box", uuid: str = "", name: str = "DCGM_FI_DEV_GPU_UTIL", **more: str) -> dict:
    uuid = uuid or f"GPU-{host}-{gpu}"
    return {"__name__": name, "gpu": gpu, "UUID": uuid, "Hostname": host, "instance": f"10.0.0.1:{gpu}", **more}


def ours(gpu: str = "0", host: str = "box", uuid: str = "", name: str = "sgs_gpu_utilization_ratio") -> dict:
    return {"__name__": name, "gpu": gpu, "uuid": uuid or f"GPU-{host}-{gpu}", "instance": f"{host}:9836"}


def found(*labels: dict, gpu: str = "0", host: str = "box", is_selected: bool = False) -> list[tuple[str, str]]:
    return [(each.exporter.name, each.uuid) for each in know(labels).find(gpu, host, is_selected=is_selected)]


def test_an_index_is_that_of_the_host_and_a_uuid_that_of_any() -> None:
    labels = [dcgm(), dcgm("1"), dcgm(host="other"), dcgm("1", "other", UUID)]
    assert found(*labels) == [("dcgm-exporter", "GPU-box-0")]
    assert found(*labels, host="box.example.org") == [("dcgm-exporter", "GPU-box-0")]
    assert found(*labels, gpu=UUID) == found(*labels, gpu=UUID.upper().replace("GPU-", "GPU-", 1)) != []
    assert found(*labels, host="third") == found(*labels, gpu="2") == found(*labels, gpu="GPU-none") == []


def test_the_names_of_our_own_exporter_are_those_that_it_has() -> None:
    labels = {each.name: each.labels for each in NAMES}
    for metric in OURS.metrics.values():
        assert {"gpu", OURS.uuid} <= {*labels[metric.name]}


def test_of_two_exporters_dcgm_is_taken_unless_it_knows_no_utilisation() -> None:
    assert found(ours(), dcgm()) == [("dcgm-exporter", "GPU-box-0")]
    assert found(ours(), dcgm(name="DCGM_FI_DEV_GPU_TEMP")) == [("simple_gpu_scheduler metrics", "GPU-box-0")]
    assert found(dcgm(name="DCGM_FI_DEV_GPU_TEMP")) == [("dcgm-exporter", "GPU-box-0")]


def test_a_pod_that_was_started_anew_is_the_same_gpu() -> None:
    assert len(found(dcgm(), dcgm(instance="10.0.0.2:9400"), dcgm(pod="a"), dcgm(pod="b"))) == 2


def test_instances_of_mig_are_not_the_whole_gpu() -> None:
    assert found(dcgm(GPU_I_ID="3"), dcgm(GPU_I_ID="4")) == []
    assert found(ours("0:1", uuid="MIG-1"), gpu="MIG-1") == [("simple_gpu_scheduler metrics", "MIG-1")]


def test_of_several_machines_none_is_guessed() -> None:
    two = [dcgm(host="box.a"), dcgm(host="box.b")]
    with pytest.raises(ValueError, match=r"gpu 0 of box may be any of these: \{gpu=.*box\.a.*\{.*box\.b"):
        found(*two)
    assert found(*two, host="box.a") == [("dcgm-exporter", "GPU-box.a-0")]


def test_selected_series_of_one_machine_need_not_have_its_name() -> None:
    one = [ours(host="localhost"), ours("1", "localhost")]
    assert found(*one) == []
    assert found(*one, is_selected=True) == [("simple_gpu_scheduler metrics", "GPU-localhost-0")]
    assert found(*one, ours(host="another"), is_selected=True) == []
    assert found(*one, ours(), is_selected=True) == [("simple_gpu_scheduler metrics", "GPU-box-0")]


def test_other_series_are_no_gpus() -> None:
    assert know([{"__name__": "up"}, {}, {"__name__": "sgs_jobs"}]).gpus == {}


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("box", "box", True), ("Box", "bOX", True), ("box", "box.a.org", True), ("box.a.org", "box", True),
        ("box.a", "box.b", False), ("10.0.0.1", "10.0.0.2", False), ("box", "box2", False), ("box", "", False),
    ],
)  # fmt: skip
def test_a_host_may_be_without_its_domain(one: str, other: str, *, is_same: bool) -> None:
    assert is_same_host(one, other) is is_same


@pytest.mark.parametrize(
    ("instance", "hosts"), [("a:9400", ("a",)), ("a", ("a",)), ("[::1]:9400", ("::1",)), ("", ()), ("a:b", ("a:b",))]
)
def test_the_host_is_in_the_instance(instance: str, hosts: tuple[str, ...]) -> None:
    assert ExportedGpu(OURS, "0", "", "", instance).hosts == hosts


def test_a_query_asks_for_some_gpus_only() -> None:
    gpu = ExportedGpu(DCGM, "0", "GPU-a", "box", "box:9400")
    by = "gpu, UUID, uuid, Hostname, instance, GPU_I_ID"
    assert series.query(DCGM, "power", [gpu, gpu._replace(uuid="GPU-b")], 'job="x"', "avg_over_time(%s[999ms])") == (
        f'max by ({by}) (avg_over_time(DCGM_FI_DEV_POWER_USAGE{{UUID=~"GPU-a|GPU-b",job="x"}}[999ms]))'
    )
    assert series.query(DCGM, "power", [gpu._replace(uuid="")], "", "rate(%s[1m])") == (
        f'max by ({by}) (rate(DCGM_FI_DEV_POWER_USAGE{{gpu=~"0",instance=~"box:9400"}}[1m]))'
    )
    text = series.all_series('job="x"')
    assert text.startswith('{__name__=~"DCGM_FI_DEV_FB_FREE|')
    assert text.endswith('|sgs_gpu_utilization_ratio",job="x"}')
