"""Which GPUs people mean: names, ranges, UUIDs and what an inherited variable says."""

import pytest

from simple_gpu_scheduler.gpus import Device, Gpu
from simple_gpu_scheduler.gpus.discover import read_devices
from simple_gpu_scheduler.gpus.names import choose, choose_all, choose_unlisted, looks_like_gpus, parse_gpus, visible

ZERO, ONE, TWO = (Device(str(n), f"GPU-{n}a{n}b0000-1111", f"A100 {n}", 80.0) for n in range(3))
SLICES = (Device("3:0", "MIG-aaaa", "A100 1g", 10.0), Device("3:1", "MIG-abbb", "A100 1g", 10.0))
THREE = Device("3", "GPU-3a3b0000-1111", "A100 3", 80.0, SLICES, has_mig=True)
DEVICES = (ZERO, ONE, TWO, THREE)
WHOLE = "GPU-12345678-1234-1234-1234-123456789abc"


def ids(names: list[str], **settings: bool) -> list[str]:
    return [gpu.id for gpu in choose(parse_gpus(names), DEVICES, **settings)]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["2", "0"], ["2", "0"]),
        (["0-2"], ["0", "1", "2"]),
        (["GPU-1a"], [ONE.uuid]),
        (["0", "GPU-1a"], [ZERO.uuid, ONE.uuid]),
        (["3"], ["MIG-aaaa", "MIG-abbb"]),
        (["3:1"], ["MIG-abbb"]),
        (["MIG-aa"], ["MIG-aaaa"]),
        (["0", "3:0"], [ZERO.uuid, "MIG-aaaa"]),
        (["GPU-3a"], ["MIG-aaaa", "MIG-abbb"]),
    ],
)
def test_names_find_gpus_and_one_uuid_makes_all_of_them_uuids(names: list[str], found: list[str]) -> None:
    assert ids(names) == found


def test_gpus_are_named_to_cuda_by_uuid_where_it_counts_otherwise() -> None:
    assert ids(["0", "1"], by_uuid=True) == [ZERO.uuid, ONE.uuid]
    assert [gpu.id for gpu in choose_all((ZERO, ONE))] == ["0", "1"]


def test_all_gpus_are_those_that_can_be_used() -> None:
    empty = Device("4", "GPU-4", has_mig=True)
    assert [gpu.id for gpu in choose_all((*DEVICES, empty))] == [ZERO.uuid, ONE.uuid, TWO.uuid, "MIG-aaaa", "MIG-abbb"]
    with pytest.raises(ValueError, match="GPU 4 is in MIG mode and has no instances"):
        choose(("4",), (empty,))


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["7"], r"there is no GPU 7; there are 0 \(A100 0, GPU-0a0b0000-1111\), 1 \("),
        (["GPU-9"], "there is no GPU GPU-9; there are"),
        (["GPU-"], "'GPU-' is not a GPU"),
        (["MIG-a"], "MIG-a is ambiguous: MIG-aaaa, MIG-abbb; use a longer prefix"),
        (["0:0"], "there is no GPU 0:0"),
        (["0", "GPU-0a"], r"GPU 0 \(GPU-0a0b0000-1111\) is given twice"),
        (["3", "3:1"], r"GPU 3:1 \(MIG-abbb\) is given twice"),
        (["all", "0"], "'all' means every GPU"),
        (["x"], r"use an index \(0\), a range \(0-3\), a UUID \(GPU-...\), a MIG instance \(0:1\) or all"),
    ],
)
def test_what_names_no_gpu_or_several_is_an_error_that_helps(names: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        ids(names)


def test_the_error_where_there_is_no_gpu_or_just_one_is_good_english() -> None:
    with pytest.raises(ValueError, match="there is no GPU 0; none was found"):
        choose(("0",), ())
    with pytest.raises(ValueError, match="there is no GPU 1; there is 0"):
        choose(("1",), (ZERO,))


@pytest.mark.parametrize(
    ("variable", "names"),
    [
        ("1,0", ("1", "0")),
        ("GPU-1a,2", ("GPU-1a", "2")),
        ("0,-1,2", ("0",)),
        ("-1", ()),
        ("", ()),
        ("NoDevFiles", ()),
        ("1,1", ("1",)),
    ],
)
def test_an_inherited_variable_is_read_as_cuda_reads_it(variable: str, names: tuple[str, ...]) -> None:
    assert visible(variable, DEVICES) == names


def test_an_inherited_variable_that_names_no_gpu_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no GPU 9"):
        visible("9", DEVICES)


def test_where_gpus_cannot_be_listed_indexes_and_whole_uuids_are_believed() -> None:
    assert choose_unlisted(("1", WHOLE)) == (Gpu("1"), Gpu(WHOLE, WHOLE))
    for name in ("GPU-12", "0:1"):
        with pytest.raises(ValueError, match=f"{name} cannot be looked up without NVML"):
            choose_unlisted((name,))


def test_everybody_calls_the_lease_of_a_gpu_the_same() -> None:
    assert Gpu("1").lease_name == "index-1"
    assert Gpu("1", WHOLE).lease_name == Gpu(WHOLE, WHOLE).lease_name == WHOLE
    assert Gpu("x", "MIG-GPU-1/2/0").lease_name == "MIG-GPU-1_2_0"


def test_the_drivers_files_tell_uuids_in_the_order_of_the_bus(tmp_path) -> None:
    for bus, uuid in (("0000:81:00.0", "GPU-b"), ("0000:01:00.0", "GPU-a")):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "information").write_text(f"Model: \t\t NVIDIA A100\nIRQ:   80\nGPU UUID: \t {uuid}\n")
    assert [(device.number, device.uuid, device.model) for device in read_devices(str(tmp_path))] == [
        ("0", "GPU-a", "NVIDIA A100"),
        ("1", "GPU-b", "NVIDIA A100"),
    ]


@pytest.mark.parametrize("uuid", ["GPU-????????-????", ""])
def test_the_drivers_files_are_not_used_when_they_do_not_tell(tmp_path, uuid: str) -> None:
    assert read_devices(str(tmp_path / "none")) == ()
    (tmp_path / "0000:01:00.0").mkdir()
    (tmp_path / "0000:01:00.0" / "information").write_text(f"GPU UUID: {uuid}\n")
    assert read_devices(str(tmp_path)) == ()


@pytest.mark.parametrize(
    "word", ["0", "12", "0,1", "0-3", "0,2-4", "GPU-1a2b-3c", "MIG-1a2b", "0 1 2", "MIG-GPU-1a/1/0", "0:1", "all"]
)
def test_what_names_gpus_looks_like_it(word: str) -> None:
    assert looks_like_gpus(word)


@pytest.mark.parametrize("word", ["", "-v", "cmds.txt", "0.txt", "fifo", "0a", "./0", "gpu0", "--", ",", "99999"])
def test_what_does_not_name_gpus_does_not(word: str) -> None:
    assert not looks_like_gpus(word)


def test_gpus_are_expanded_in_their_order() -> None:
    assert parse_gpus(["3", "0-1", "GPU-12ab,7"]) == ("3", "0", "1", "GPU-12ab", "7")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["0", "0-2"], "GPU 0 is given twice"),
        (["3-1"], "'3-1' is backwards; write 1-3"),
        (["x"], "'x' is not a GPU; use an index"),
    ],
)
def test_wrong_gpus_are_an_error(words: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        parse_gpus(words)
