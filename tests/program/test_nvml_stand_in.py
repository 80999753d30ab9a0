"""The stand-in for NVML, through the real bindings and through the programs that people look at their GPUs with."""

import ctypes
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pynvml
import pytest

from tests.conftest import UNMEASURED
from tests.support.nvml import (
    DRIVER_NOT_LOADED,
    GIB,
    GPU_IS_LOST,
    LIB_RM_VERSION_MISMATCH,
    MIB,
    NO_PERMISSION,
    NOT_SUPPORTED,
    RESET_REQUIRED,
    TIMEOUT,
    UNKNOWN,
    Gpu,
    Process,
    Ramp,
    StandIn,
    Steps,
    a_gpu,
    an_instance,
)

# The oldest bindings were made for a driver with longer entries, and read what any other writes from its second entry
# on as rubbish.
NAME_OF_ENTRY = "c_nvmlProcessInfo_v3_t" if hasattr(pynvml, "c_nvmlProcessInfo_v3_t") else "c_nvmlProcessInfo_t"
READS_PROTECTED_MEMORY = ctypes.sizeof(getattr(pynvml, NAME_OF_ENTRY)) == 32

StandInOf = Callable[..., StandIn]

MOMENT = 1760000000.5
MEMORY_V2 = "nvmlDeviceGetMemoryInfo_v2"
PROCESSES_V3 = ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3")
TEMPERATURE_V = "nvmlDeviceGetTemperatureV"

START = """
import json, sys
from ctypes import c_ulonglong
import pynvml
from pynvml import *
def tell(value):
    print(json.dumps(value), flush=True)
def gpu(index):
    return nvmlDeviceGetHandleByIndex(index)
def failure(function, *args):
    try:
        function(*args)
    except NVMLError as error:
        return [type(error).__name__, error.value]
def listed(processes):
    return [[process.pid, process.usedGpuMemory] for process in processes]
def fields(handle, ids):
    return [[v.fieldId, v.nvmlReturn, v.value.ullVal] for v in nvmlDeviceGetFieldValues(handle, ids)]
def samples(handle, since=0):
    return [[s.pid, s.timeStamp, s.smUtil, s.memUtil, s.encUtil, s.decUtil]
            for s in nvmlDeviceGetProcessUtilization(handle, since)]
def event(events, timeout=0):
    data = nvmlEventSetWait_v2(events, timeout)
    return [nvmlDeviceGetIndex(data.device), data.eventType, data.eventData]
def events_of(*indices):
    events = nvmlEventSetCreate()
    for index in indices:
        nvmlDeviceRegisterEvents(gpu(index), nvmlEventTypeXidCriticalError, events)
    return events
nvmlInit()
"""


def environment(nvml: StandIn) -> dict[str, str]:
    return UNMEASURED | nvml.environment


def run(nvml: StandIn, *command: str) -> str:
    """What a program prints on stdout; it must end well and say nothing on stderr."""
    done = subprocess.run(
        [sys.executable, *command], env=environment(nvml), capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def told(nvml: StandIn, code: str, start: str = START) -> object:
    """What a piece of Python with the real bindings tells."""
    return json.loads(run(nvml, "-c", start + code))


class Talk:
    """A program with the real bindings that answers one expression after the other."""

    def __init__(self, nvml: StandIn) -> None:
        code = START + "for line in sys.stdin: tell(eval(line))"
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], env=environment(nvml), stdin=pipe, stdout=pipe, text=True
        )

    def ask(self, expression: str) -> object:
        self.begin(expression)
        return self.answer()

    def begin(self, expression: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def answer(self) -> object:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def is_busy_for(self, seconds: float) -> bool:
        return select.select([self.process.stdout], [], [], seconds)[0] == []

    def close(self) -> None:
        self.process.communicate(timeout=120)


@pytest.fixture
def talk(nvml: StandIn) -> Iterator[Talk]:
    talk = Talk(nvml)
    yield talk
    talk.close()


@pytest.fixture
def sleepers() -> Iterator[list[int]]:
    """The pids of three living processes."""
    processes = [subprocess.Popen(["sleep", "600"]) for _ in range(3)]
    yield [process.pid for process in processes]
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def fitting(nvml_of: StandInOf) -> StandIn:
    """A driver whose process entries are those that the installed bindings were made for."""
    return nvml_of(protected_memory=READS_PROTECTED_MEMORY)


# ---- Through the bindings


def test_the_gpus_have_their_names_uuids_and_addresses(nvml: StandIn) -> None:
    nvml.show([a_gpu(0), a_gpu(1, name="Tesla T4", bus="00000001:C1:00.0")], driver="550.54.14", cuda=12040)
    code = """
handles = [gpu(index) for index in range(nvmlDeviceGetCount())]
tell([nvmlSystemGetDriverVersion(), nvmlSystemGetCudaDriverVersion(), *(
    [nvmlDeviceGetName(h), nvmlDeviceGetUUID(h), nvmlDeviceGetPciInfo(h).busId, nvmlDeviceGetIndex(h),
     nvmlDeviceGetMinorNumber(h)] for h in handles)])
"""
    assert told(nvml, code) == [
        "550.54.14",
        12040,
        ["NVIDIA A100-SXM4-80GB", a_gpu(0).uuid, "00000000:01:00.0", 0, 0],
        ["Tesla T4", a_gpu(1).uuid, "00000001:C1:00.0", 1, 1],
    ]


def test_a_gpu_is_found_by_its_uuid_and_its_address_and_what_is_not_there_is_not(nvml: StandIn) -> None:
    code = f"""
by_uuid, by_bus = nvmlDeviceGetHandleByUUID("{a_gpu(2).uuid}"), nvmlDeviceGetHandleByPciBusId("0000:03:00.0")
tell([nvmlDeviceGetIndex(by_uuid), nvmlDeviceGetIndex(by_bus), failure(gpu, 4),
      failure(nvmlDeviceGetHandleByUUID, "GPU-none"), failure(nvmlDeviceGetHandleByPciBusId, "0000:77:00.0")])
"""
    lost = ["NVMLError_NotFound", 6]
    assert told(nvml, code) == [2, 2, ["NVMLError_InvalidArgument", 2], lost, lost]


def test_reserved_memory_is_used_in_version_1_and_apart_in_version_2(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, total=80 * GIB, reserved=600 * MIB, used=3 * GIB)])
    code = """
one, two = nvmlDeviceGetMemoryInfo(gpu(0)), nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)
tell([[one.total, one.free, one.used], [two.total, two.reserved, two.free, two.used]])
"""
    free = 77 * GIB - 600 * MIB
    assert told(nvml, code) == [[80 * GIB, free, 3 * GIB + 600 * MIB], [80 * GIB, 600 * MIB, free, 3 * GIB]]


def test_a_call_with_a_structure_of_another_version_is_refused(nvml: StandIn) -> None:
    code = "tell(failure(nvmlDeviceGetMemoryInfo, gpu(0), 0x03000028))"
    assert told(nvml, code) == ["NVMLError_ArgumentVersionMismatch", 25]


def test_load_and_sensors_are_read_and_what_a_gpu_lacks_is_not_supported(nvml: StandIn) -> None:
    nvml.show(
        [
            a_gpu(0, utilization=97, temperature=71, power=250_500, power_limit=300_000, fan=40, compute_mode=3),
            a_gpu(1, utilization=None, temperature=None, power=None, power_limit=None, total=None, compute_mode=None),
        ]
    )
    code = """
readers = [lambda h: nvmlDeviceGetUtilizationRates(h).gpu, lambda h: nvmlDeviceGetTemperature(h, NVML_TEMPERATURE_GPU),
           nvmlDeviceGetPowerUsage, nvmlDeviceGetEnforcedPowerLimit, nvmlDeviceGetPowerManagementLimit,
           nvmlDeviceGetFanSpeed, nvmlDeviceGetComputeMode]
tell([[read(gpu(0)) for read in readers],
      [failure(read, gpu(1)) for read in [*readers, nvmlDeviceGetMemoryInfo, nvmlDeviceGetPerformanceState]]])
"""
    not_supported = ["NVMLError_NotSupported", NOT_SUPPORTED]
    assert told(nvml, code) == [[97, 71, 250_500, 300_000, 300_000, 40, 3], [not_supported] * 9]


MORE_READERS = """
clocks = [lambda h, kind=kind: nvmlDeviceGetClockInfo(h, kind) for kind in range(3)]
reasons = [nvmlDeviceGetCurrentClocksEventReasons, nvmlDeviceGetCurrentClocksThrottleReasons,
           nvmlDeviceGetSupportedClocksEventReasons, nvmlDeviceGetSupportedClocksThrottleReasons]
pcie = [lambda h, counter=counter: nvmlDeviceGetPcieThroughput(h, counter) for counter in range(2)]
readers = [nvmlDeviceGetTotalEnergyConsumption, *clocks, *reasons, *pcie]
"""


def test_more_is_read_where_it_is_shown(nvml: StandIn) -> None:
    shown = a_gpu(0, energy=2**40 + 1, clock=1410, memory_clock=1593, throttle=0x24, pcie_tx=12_000, pcie_rx=700)
    nvml.show([shown, a_gpu(1)])
    code = f"""{MORE_READERS}
tell([[read(gpu(0)) for read in readers], [failure(read, gpu(1)) for read in readers],
      [failure(nvmlDeviceGetClockInfo, gpu(0), kind) for kind in (3, 4)],
      failure(nvmlDeviceGetPcieThroughput, gpu(0), 2)])
"""
    not_supported, invalid = ["NVMLError_NotSupported", NOT_SUPPORTED], ["NVMLError_InvalidArgument", 2]
    assert told(nvml, code) == [
        [2**40 + 1, 1410, 1410, 1593, 0x24, 0x24, 0x1FF, 0x1FF, 12_000, 700],
        [not_supported] * 10,
        [not_supported, invalid],
        invalid,
    ]


def test_the_memorys_utilization_is_told_with_the_gpus(nvml: StandIn) -> None:
    nvml.show(
        [
            a_gpu(0, utilization=90, memory_utilization=45),
            a_gpu(1, utilization=90),
            a_gpu(2, utilization=None, memory_utilization=45),
        ]
    )
    code = """
rates = [nvmlDeviceGetUtilizationRates(gpu(index)) for index in range(2)]
tell([*([each.gpu, each.memory] for each in rates), failure(nvmlDeviceGetUtilizationRates, gpu(2))])
"""
    assert told(nvml, code) == [[90, 45], [90, 0], ["NVMLError_NotSupported", NOT_SUPPORTED]]


def test_fields_are_read_together_and_each_fails_alone(nvml: StandIn) -> None:
    counters = {"pcie_tx_bytes": 2**35, "pcie_rx_bytes": 7, "nvlink_tx_kib": 2**33, "nvlink_rx_kib": 8}
    nvml.show([a_gpu(0, energy=2**40, **counters), a_gpu(1, energy=9)], now=MOMENT)
    code = """
links = 0xFFFFFFFF
ids = [83, 197, 198, (138, links), (139, links), (138, 0), 139, 90]
values = nvmlDeviceGetFieldValues(gpu(0), ids)
tell([fields(gpu(0), ids[:5]), [v.nvmlReturn for v in values],
      [[v.scopeId, v.timestamp, v.latencyUsec, v.valueType] for v in values[3:6]],
      [v.nvmlReturn for v in nvmlDeviceGetFieldValues(gpu(1), ids)], fields(gpu(1), [83])])
"""
    links, at, longs = 0xFFFFFFFF, int(MOMENT * 10**6), 3
    assert told(nvml, code) == [
        [[83, 0, 2**40], [197, 0, 2**35], [198, 0, 7], [138, 0, 2**33], [139, 0, 8]],
        [0] * 5 + [NOT_SUPPORTED] * 3,
        [[links, at, 0, longs], [links, at, 0, longs], [0, at, 0, longs]],
        [0] + [NOT_SUPPORTED] * 7,
        [[83, 0, 9]],
    ]


def test_what_processes_use_is_told_of_those_that_are_busy(nvml: StandIn) -> None:
    working = [Process(7, GIB, 60), Process(8, None, 25), Process(9, GIB, 0), Process(10, GIB)]
    nvml.show(
        [
            a_gpu(0, processes=working, graphics=[Process(11, 0, 3)], mps=[Process(12, 0, Steps(0, [(4, None)]))]),
            a_gpu(1, processes=[Process(7, GIB, 0)]),
            a_gpu(2),
            a_gpu(3, processes=[Process(7, GIB)]),
            a_gpu(4, mig=True, instances=[an_instance(4, 0, processes=[Process(7, GIB, 50)])]),
        ],
        now=MOMENT,
    )
    code = f"""
at = {int(MOMENT * 10**6)}
tell([samples(gpu(0)), samples(gpu(0), at - 1), failure(samples, gpu(0), at),
      [failure(samples, gpu(index)) for index in range(1, 5)]])
"""
    at = int(MOMENT * 10**6)
    busy = [[pid, at, sm, 0, 0, 0] for pid, sm in ((7, 60), (8, 25), (11, 3), (12, 4))]
    none, not_supported = ["NVMLError_NotFound", 6], ["NVMLError_NotSupported", NOT_SUPPORTED]
    assert told(nvml, code) == [busy, busy, none, [none, none, not_supported, not_supported]]


def test_the_use_of_a_process_leaves_its_memory_as_it_is(fitting: StandIn) -> None:
    fitting.show([a_gpu(0, processes=[Process(7, GIB, 60), Process(8, None, Ramp(1, 1, MOMENT)), Process(9, 5)])])
    assert told(fitting, "tell(listed(nvmlDeviceGetComputeRunningProcesses(gpu(0))))") == [[7, GIB], [8, None], [9, 5]]


def test_an_array_of_samples_that_is_too_small_gets_the_size_that_it_needs(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, processes=[Process(7, 0, 1), Process(8, 0, 2), Process(9, 0, 3)])])
    code = """
import ctypes, pynvml
function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetProcessUtilization")
handle, answers = gpu(0), []
for room, array in ((9, None), (2, ctypes.create_string_buffer(32 * 5)), (5, ctypes.create_string_buffer(32 * 5))):
    count = ctypes.c_uint(room)
    code = function(handle, array, ctypes.byref(count), ctypes.c_ulonglong(0))
    answers.append([code, count.value, array and array.raw[64:].count(0) == 96])
tell(answers)
"""
    assert told(nvml, code) == [[7, 3, None], [7, 3, True], [0, 3, False]]


@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_all_processes_are_listed_however_many(fitting: StandIn, count: int) -> None:
    computing = [Process(100 + number, number * MIB) for number in range(count)]
    drawing = [Process(500 + number, number * GIB) for number in range(count)]
    fitting.show([a_gpu(0, processes=computing, graphics=drawing), a_gpu(1)])
    code = """
tell([listed(f(gpu(i))) for i in range(2)
      for f in (nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses)])
"""
    assert told(fitting, code) == [
        [[process.pid, process.memory] for process in computing],
        [[process.pid, process.memory] for process in drawing],
        [],
        [],
    ]


def test_the_memory_of_a_process_may_be_unknown(fitting: StandIn) -> None:
    fitting.show([a_gpu(0, processes=[Process(7, None), Process(8, 1)])])
    assert told(fitting, "tell(listed(nvmlDeviceGetComputeRunningProcesses(gpu(0))))") == [[7, None], [8, 1]]


def test_an_array_that_is_too_small_gets_the_size_that_it_needs(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, processes=[Process(7), Process(8), Process(9)])])
    code = """
import ctypes, pynvml
function = pynvml._nvmlGetFunctionPointer("nvmlDeviceGetComputeRunningProcesses_v2")
handle, answers = gpu(0), []
for room in (0, 2, 3, 5):
    count = ctypes.c_uint(room)
    answers.append([function(handle, ctypes.byref(count), ctypes.create_string_buffer(24 * 5)), count.value])
tell(answers)
"""
    assert told(nvml, code) == [[7, 3], [7, 3], [0, 3], [0, 3]]


def test_bindings_that_are_made_for_another_layout_read_the_second_process_wrong(nvml_of: StandInOf) -> None:
    nvml = nvml_of(protected_memory=not READS_PROTECTED_MEMORY)
    nvml.show([a_gpu(0, processes=[Process(7, GIB), Process(8, GIB)])])
    first, second = told(nvml, "tell(listed(nvmlDeviceGetComputeRunningProcesses(gpu(0))))")
    assert (first, second == [8, GIB]) == ([7, GIB], False)


def test_a_mig_instance_is_a_device_of_its_own(fitting: StandIn) -> None:
    instances = [
        an_instance(0, 0, used=GIB, processes=[Process(7, GIB)]),
        an_instance(0, 1, used=2 * GIB, processes=[Process(8, None)], compute_instance=1),
    ]
    fitting.show([a_gpu(0, mig=True, reserved=MIB, instances=instances), a_gpu(1), a_gpu(2, mig=None)])
    code = f"""
def about(h):
    memory = nvmlDeviceGetMemoryInfo(h, version=nvmlMemory_v2)
    return [nvmlDeviceGetUUID(h), nvmlDeviceIsMigDeviceHandle(h).value, nvmlDeviceGetIndex(h), memory.total,
            memory.used, listed(nvmlDeviceGetComputeRunningProcesses(h)), failure(nvmlDeviceGetUtilizationRates, h)]
count = nvmlDeviceGetMaxMigDeviceCount(gpu(0))
migs = [nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), index) for index in range(2)]
tell([count, nvmlDeviceGetMigMode(gpu(0)), about(gpu(0)), *map(about, migs),
      [[nvmlDeviceGetGpuInstanceId(h), nvmlDeviceGetComputeInstanceId(h)] for h in migs],
      nvmlDeviceGetUUID(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(migs[1])),
      nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID("{instances[1].uuid}")),
      nvmlDeviceGetAttributes(migs[0]).memorySizeMB,
      failure(nvmlDeviceGetMigDeviceHandleByIndex, gpu(0), 2),
      nvmlDeviceGetMaxMigDeviceCount(gpu(1)), nvmlDeviceGetMigMode(gpu(1)), failure(nvmlDeviceGetMigMode, gpu(2))])
"""
    not_supported = ["NVMLError_NotSupported", NOT_SUPPORTED]
    assert told(fitting, code) == [
        7,
        [1, 1],
        [a_gpu(0).uuid, 0, 0, 80 * GIB, 3 * GIB, [[7, GIB], [8, None]], not_supported],
        [instances[0].uuid, 1, 0, 10 * GIB, GIB, [[7, GIB]], not_supported],
        [instances[1].uuid, 1, 1, 10 * GIB, 2 * GIB, [[8, None]], not_supported],
        [[7, 0], [8, 1]],
        a_gpu(0).uuid,
        1,
        10 * 1024,
        ["NVMLError_NotFound", 6],
        0,
        [0, 0],
        not_supported,
    ]


# ---- Events

NO_EVENT = ["NVMLError_Timeout", TIMEOUT]


def test_events_are_told_one_by_one_to_each_set(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={79: 5}), a_gpu(1, xids={})])
    talk.ask("globals().update(both=events_of(0, 1), one=events_of(1), none=nvmlEventSetCreate())")
    assert [talk.ask(f"failure(event, {name})") for name in ("both", "one", "none")] == [NO_EVENT] * 3
    nvml.show([a_gpu(0, xids={79: 7, 31: 1}), a_gpu(1, xids={13: 1})])
    assert [talk.ask("event(both)") for _ in range(4)] == [[0, 8, 79], [0, 8, 79], [0, 8, 31], [1, 8, 13]]
    assert [talk.ask("failure(event, both)"), talk.ask("failure(event, none)")] == [NO_EVENT] * 2
    assert [talk.ask("event(one)"), talk.ask("failure(event, one)")] == [[1, 8, 13], NO_EVENT]
    nvml.show([a_gpu(0, xids={79: 8, 31: 1}), a_gpu(1, xids={13: 1})])
    assert [talk.ask("event(both)"), talk.ask("failure(event, both)")] == [[0, 8, 79], NO_EVENT]


def test_an_event_has_all_that_the_bindings_read_and_no_more_for_the_old_call(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={})])
    talk.ask(CALLS)
    talk.ask("globals().update(events=events_of(0))")
    nvml.show([a_gpu(0, xids={79: 2})])
    data = "(lambda d: [d.eventType, d.eventData, d.gpuInstanceId, d.computeInstanceId])"
    assert talk.ask(f"{data}(nvmlEventSetWait(events, 0))") == [8, 79, 0xFFFFFFFF, 0xFFFFFFFF]
    assert talk.ask("[old_wait(events, c_data, 0), *c_data[1:]]") == [0, 8, 79, 0]


def test_a_gpu_is_added_once_and_a_new_set_knows_nothing_of_an_old_one(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={})])
    talk.ask("globals().update(events=events_of(0))")
    nvml.show([a_gpu(0, xids={79: 2})])
    assert talk.ask("nvmlDeviceRegisterEvents(gpu(0), 8, events)") is None
    assert [talk.ask("event(events)") for _ in range(2)] == [[0, 8, 79]] * 2
    assert talk.ask("[failure(event, events), nvmlEventSetFree(events)]") == [NO_EVENT, None]
    invalid = ["NVMLError_InvalidArgument", 2]
    uses = ("event, events", "nvmlEventSetFree, events", "nvmlDeviceRegisterEvents, gpu(0), 8, events")
    assert [talk.ask(f"failure({use})") for use in uses] == [invalid] * 3
    nvml.show([a_gpu(0, xids={79: 3})])
    assert talk.ask("[failure(event, nvmlEventSetCreate()) for _ in range(3)]") == [NO_EVENT] * 3
    assert talk.ask("[nvmlEventSetFree(nvmlEventSetCreate()) for _ in range(200)]") == [None] * 200


def test_a_gpu_tells_of_the_events_that_it_supports(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, xids={}), a_gpu(1), a_gpu(2, xids={}, mig=True, instances=[an_instance(2, 0)])])
    code = """
events = nvmlEventSetCreate()
mig = nvmlDeviceGetMigDeviceHandleByIndex(gpu(2), 0)
handles = [*map(gpu, range(3)), mig]
tell([nvmlDeviceGetSupportedEventTypes(gpu(0)), [failure(nvmlDeviceGetSupportedEventTypes, h) for h in handles],
      [failure(nvmlDeviceRegisterEvents, h, 8, events) for h in handles],
      [failure(nvmlDeviceRegisterEvents, gpu(0), types, events) for types in (0, 1 << 40, 8 | 2)]])
"""
    not_supported, invalid = ["NVMLError_NotSupported", NOT_SUPPORTED], ["NVMLError_InvalidArgument", 2]
    each = [None, not_supported, None, not_supported]
    assert told(nvml, code) == [8, each, each, [None, invalid, not_supported]]


def test_a_set_does_not_tell_of_types_that_nobody_asked_for(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={})])
    talk.ask("globals().update(events=nvmlEventSetCreate())")
    talk.ask("nvmlDeviceRegisterEvents(gpu(0), 0, events)")
    nvml.show([a_gpu(0, xids={79: 1})])
    assert talk.ask("failure(event, events)") == NO_EVENT


def test_who_waits_is_told_when_it_happens_or_when_the_time_is_over(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={})])
    timed = "(lambda start, answer: [answer, __import__('time').monotonic() - start])"
    waited = "(__import__('time').monotonic(), failure(event, events, 300) or 'told')"
    talk.ask("globals().update(events=events_of(0))")
    answer, seconds = talk.ask(timed + waited)  # type: ignore[misc]
    assert (answer, 0.3 <= seconds < 30) == (NO_EVENT, True)
    calls = nvml.calls("nvmlEventSetWait_v2")
    moment = time.time() + 0.4
    nvml.show([a_gpu(0, xids={79: Steps(moment, ((0, 0.0), (1, None)))})])
    assert (talk.ask("event(events, 60_000)"), time.time() >= moment) == ([0, 8, 79], True)
    talk.begin("event(events, 0xFFFFFFFF)")
    assert talk.is_busy_for(0.2)
    nvml.show([a_gpu(0, xids={79: 1, 13: 1})])
    assert talk.answer() == [0, 8, 13]
    assert (calls, nvml.calls("nvmlEventSetWait_v2")) == (1, 3)


def test_who_waits_hears_of_failures_too(nvml: StandIn, talk: Talk) -> None:
    gpus = [a_gpu(index, xids={}) for index in range(3)]
    lost = {"errors": {"*": GPU_IS_LOST}}
    failures: list[tuple[list[Gpu], dict[str, Mapping[str, int]], str, int]] = [
        ([gpus[0], a_gpu(1, xids={}, **lost), gpus[2]], {}, "GpuIsLost", GPU_IS_LOST),
        ([gpus[0], gpus[2]], {}, "GpuIsLost", GPU_IS_LOST),
        (gpus, {"errors": {"nvmlEventSetWait_v2": UNKNOWN}}, "Unknown", UNKNOWN),
    ]
    nvml.show(gpus)
    talk.ask("globals().update(events=events_of(0, 1), none=nvmlEventSetCreate())")
    for shown, settings, name, code in failures:
        nvml.show(gpus)
        talk.begin(f"failure(event, {'none' if settings else 'events'}, 60_000)")
        assert talk.is_busy_for(0.1)
        nvml.show(shown, **settings)  # type: ignore[arg-type]
        assert talk.answer() == [f"NVMLError_{name}", code]
    nvml.show([*gpus[:2], a_gpu(2, xids={}, **lost)])
    assert talk.ask("failure(event, events)") == NO_EVENT


def test_the_error_that_a_gpu_is_lost_by_is_told_before_it_is_lost(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={}), a_gpu(1, xids={})])
    talk.ask("globals().update(events=events_of(0, 1), number=lambda: nvmlEventSetWait_v2(events, 0).eventData)")
    nvml.show([a_gpu(0, xids={79: 1}, errors={"*": GPU_IS_LOST}), a_gpu(1, xids={13: 1})])
    assert [talk.ask("number()"), talk.ask("number()")] == [79, 13]
    assert talk.ask("failure(number)") == ["NVMLError_GpuIsLost", GPU_IS_LOST]


def test_an_error_that_cannot_be_read_is_a_mistake(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={})])
    talk.ask("globals().update(events=events_of(0))")
    state = Path(nvml.environment["NVML_STAND_IN_STATE"])
    text = state.read_text()
    for line in ("xid", "xid 79", "xid 79 x", "xid x 1"):
        state.write_text(f"{text}{line}\n")
        asked = "[failure(event, events), failure(nvmlDeviceRegisterEvents, gpu(0), 8, nvmlEventSetCreate())]"
        assert talk.ask(asked) == [["NVMLError_Unknown", UNKNOWN]] * 2, line


def test_threads_that_wait_at_the_same_time_share_the_events(nvml: StandIn, talk: Talk) -> None:
    nvml.show([a_gpu(0, xids={}), a_gpu(1, xids={})])
    talk.ask("globals().update(events=events_of(0, 1), threading=__import__('threading'), seen=[])")
    told_all = "[seen.append(event(events, 60_000)) for _ in range(50)]"
    talk.ask(f"globals().update(threads=[threading.Thread(target=lambda: {told_all}) for _ in range(4)])")
    talk.ask("[thread.start() for thread in threads]")
    for number in range(1, 51):
        nvml.show([a_gpu(0, xids={13: number, 79: number}), a_gpu(1, xids={13: 2 * number})])
    assert talk.ask("[thread.join() for thread in threads]") == [None] * 4
    assert talk.ask("sorted(seen)") == [[0, 8, 13]] * 50 + [[0, 8, 79]] * 50 + [[1, 8, 13]] * 100
    assert talk.ask("failure(event, events)") == NO_EVENT


# ---- With time


def shown_at(nvml: StandIn, now: float, **changes: object) -> None:
    nvml.show([a_gpu(0, **changes)], now=now)


@pytest.mark.parametrize(
    ("now", "power", "temperature"),
    [
        (0, 5000, 100),
        (MOMENT, 5000, 100),
        # Not a microjoule is lost in what a double cannot hold.
        (MOMENT + 0.1, 30_000, 99),
        (1760000000.500004, 5001, 99),
        (1760000000.500007, 5001, 99),
        (MOMENT + 2, 505_000, 95),
        (MOMENT + 60, 15_005_000, 0),
        (MOMENT + 600, 150_005_000, 0),
    ],
)
def test_a_reading_grows_and_falls_with_the_clock(nvml: StandIn, now: float, power: int, temperature: int) -> None:
    shown_at(nvml, now, power=Ramp(5000, 250_000, MOMENT), temperature=Ramp(100, -2.5, MOMENT))
    code = "tell([nvmlDeviceGetPowerUsage(gpu(0)), nvmlDeviceGetTemperature(gpu(0), NVML_TEMPERATURE_GPU)])"
    assert told(nvml, code) == [power, temperature]


def test_a_reading_that_grows_slowly_or_fast_is_exact(nvml: StandIn) -> None:
    shown_at(nvml, MOMENT + 10**8, power=Ramp(7, 1e-07, MOMENT), used=Ramp(1, 12.5, 0), total=Ramp(0, 64e9, MOMENT))
    code = (
        "memory = nvmlDeviceGetMemoryInfo(gpu(0)); tell([nvmlDeviceGetPowerUsage(gpu(0)), memory.used, memory.total])"
    )
    assert told(nvml, code) == [17, 1 + 12.5 * (MOMENT + 10**8) // 1, 64 * 10**17]


def test_a_reading_goes_through_its_steps(nvml: StandIn, talk: Talk) -> None:
    answers = []
    for passed in (-5, 0, 9.999999, 10, 34.999999, 35, 35.25, 10**6):
        now = MOMENT + passed
        shown_at(nvml, now, utilization=Steps(MOMENT, ((3, 10), (80, 25.0), (97, 0.25), (0, None))))
        answers.append(talk.ask("nvmlDeviceGetUtilizationRates(gpu(0)).gpu"))
    assert answers == [3, 3, 3, 80, 80, 97, 0, 0]
    shown_at(nvml, 0, utilization=Steps(MOMENT, [(40, None)]))
    assert talk.ask("nvmlDeviceGetUtilizationRates(gpu(0)).gpu") == 40


def test_many_steps_are_taken(nvml: StandIn) -> None:
    steps = [(number, 0.5) for number in range(400)]
    shown_at(nvml, MOMENT + 199.9, utilization=Steps(MOMENT, [*steps, (0, None)]))
    assert told(nvml, "tell(nvmlDeviceGetUtilizationRates(gpu(0)).gpu)") == 399


def test_memory_changes_with_time_in_instances_too(nvml: StandIn) -> None:
    instances = [an_instance(0, index, used=Ramp(index, 10, MOMENT)) for index in range(2)]
    shown_at(nvml, MOMENT + 3, mig=True, used=Steps(MOMENT, ((0, 1), (500, None))), instances=instances)
    code = """
migs = [nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), index) for index in range(2)]
tell([nvmlDeviceGetMemoryInfo(handle).used for handle in (gpu(0), *migs)])
"""
    assert told(nvml, code) == [561, 30, 31]


def test_without_another_clock_it_is_the_machines(nvml: StandIn, talk: Talk) -> None:
    since = time.time()
    nvml.show([a_gpu(0, used=Ramp(0, 10**6, since))])
    for _ in range(3):
        before = time.time()
        used = talk.ask("nvmlDeviceGetMemoryInfo(gpu(0)).used")
        assert isinstance(used, int)
        assert before - since - 0.001 <= used / 10**6 <= time.time() - since + 0.001


NO_READINGS = [
    *("5 + 3 / s", "5 + 3 / s since", "5 + x / s since 7", "5 + 3 / s since 7s", "5 + 3 / s since 7 8", "7s", "5 + 3"),
    *("5 + 1e3 / s since 7", "x + 3 / s since 7", "5 3 / s since 7", "5 + 3 / s since 7.5.5", "5 + . / s since 7"),
    "5 + 0 / s since " + "9" * 60,
    *(
        "at",
        "at 7",
        "at 7 1 2",
        "at 7 1 -2 3",
        "at x 1",
        "at 7 1 x 3",
        "at 7 x",
        "on 7 1",
        "at 7 " + "1 1 " * 1100 + "1",
    ),
    *("5 + 99999999999999999999999999999 / s since 7", "5 + 99999999999 / s since 0", "5 + 20000000000 / s since 0"),
]


def test_a_reading_that_is_none_is_a_mistake(nvml: StandIn, talk: Talk) -> None:
    answers = {}
    for reading in NO_READINGS:
        nvml.show([a_gpu(0, power=None)])
        with Path(nvml.environment["NVML_STAND_IN_STATE"]).open("a") as state:
            state.write(f"power {reading}\n")
        answers[reading] = talk.ask("failure(nvmlDeviceGetPowerUsage, gpu(0))[1]")
    assert answers == dict.fromkeys(NO_READINGS, UNKNOWN)


def test_counters_grow_with_the_clock_wherever_they_are_read(nvml: StandIn) -> None:
    ramp = Ramp(5000, 250_000, MOMENT)
    busy = [Process(7, 0, Steps(MOMENT, ((40, 3), (90, None))))]
    shown_at(nvml, MOMENT + 4, energy=ramp, pcie_tx_bytes=Ramp(0, 31.5e9, MOMENT), throttle=ramp, processes=busy)
    code = """
tell([nvmlDeviceGetTotalEnergyConsumption(gpu(0)), nvmlDeviceGetCurrentClocksEventReasons(gpu(0)),
      fields(gpu(0), [83, 197]), samples(gpu(0))[0][2]])
"""
    energy = 5000 + 4 * 250_000
    assert told(nvml, code) == [energy, energy, [[83, 0, energy], [197, 0, 126 * 10**9]], 90]


@pytest.mark.parametrize("values", [[(1, 2.0), (3, 4.0)], [(1, None), (3, None)]], ids=["an end", "no end before"])
def test_only_the_last_step_has_no_end(nvml: StandIn, values: list[tuple[int, float | None]]) -> None:
    with pytest.raises(ValueError, match="last step"):
        nvml.show([a_gpu(0, power=Steps(MOMENT, values))])


# ---- What goes wrong


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (NOT_SUPPORTED, "NotSupported"),
        (NO_PERMISSION, "NoPermission"),
        (GPU_IS_LOST, "GpuIsLost"),
        (RESET_REQUIRED, "ResetRequired"),
        (UNKNOWN, "Unknown"),
    ],
)
def test_a_function_fails_as_it_is_set_to_for_one_gpu_only(nvml: StandIn, code: int, name: str) -> None:
    nvml.show([a_gpu(0, errors={MEMORY_V2: code}), a_gpu(1)])
    asked = "tell([failure(nvmlDeviceGetMemoryInfo, gpu(i), v) for i in range(2) for v in (None, nvmlMemory_v2)])"
    assert told(nvml, asked) == [None, [f"NVMLError_{name}", code], None, None]


# How each of the newer functions is called.
NEWER = {
    "nvmlDeviceGetTotalEnergyConsumption": "nvmlDeviceGetTotalEnergyConsumption(h)",
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksEventReasons(h)",
    "nvmlDeviceGetCurrentClocksThrottleReasons": "nvmlDeviceGetCurrentClocksThrottleReasons(h)",
    "nvmlDeviceGetSupportedClocksEventReasons": "nvmlDeviceGetSupportedClocksEventReasons(h)",
    "nvmlDeviceGetSupportedClocksThrottleReasons": "nvmlDeviceGetSupportedClocksThrottleReasons(h)",
    "nvmlDeviceGetClockInfo": "nvmlDeviceGetClockInfo(h, 0)",
    "nvmlDeviceGetPcieThroughput": "nvmlDeviceGetPcieThroughput(h, 0)",
    "nvmlDeviceGetFieldValues": "nvmlDeviceGetFieldValues(h, [83])",
    "nvmlDeviceGetProcessUtilization": "nvmlDeviceGetProcessUtilization(h, 0)",
    "nvmlDeviceGetSupportedEventTypes": "nvmlDeviceGetSupportedEventTypes(h)",
    "nvmlDeviceRegisterEvents": "nvmlDeviceRegisterEvents(h, 8, events)",
}
NEWER_OF_THE_MACHINE = {
    "nvmlEventSetCreate": "nvmlEventSetCreate()",
    "nvmlEventSetWait": "_nvmlCheckReturn(old_wait(events, c_data, 0))",
    "nvmlEventSetWait_v2": "nvmlEventSetWait_v2(events, 0)",
    "nvmlEventSetFree": "nvmlEventSetFree(nvmlEventSetCreate())",
}
CALLS = (
    "globals().update(time=__import__('time'), events=nvmlEventSetCreate(), c_data=(c_ulonglong * 4)(), "
    "old_wait=pynvml._nvmlGetFunctionPointer('nvmlEventSetWait'), _nvmlCheckReturn=pynvml._nvmlCheckReturn)"
)
ALL_READINGS = {"energy": 1, "clock": 1, "throttle": 1, "pcie_tx": 1, "processes": [Process(7, 0, 50)], "xids": {}}


def begin_call(talk: Talk, call: str, index: int = 0) -> None:
    """Has it answer with the failure and whether it took 50 ms."""
    started = f"(lambda h, start: [failure(lambda: {call}), time.monotonic() - start >= 0.05])"
    talk.begin(f"{started}(gpu({index}), time.monotonic())")


@pytest.mark.parametrize("name", NEWER)
def test_newer_functions_are_slow_and_fail_as_they_are_set_to(nvml: StandIn, talk: Talk, name: str) -> None:
    first, second = a_gpu(0, **ALL_READINGS), a_gpu(1, **ALL_READINGS)
    talk.ask(CALLS)
    nvml.show([first._replace(errors={name: GPU_IS_LOST}), second._replace(delays={name: 50_000})])
    begin_call(talk, NEWER[name], 0)
    failure, _ = talk.answer()  # type: ignore[misc]
    begin_call(talk, NEWER[name], 1)
    assert (failure, talk.answer()) == (["NVMLError_GpuIsLost", GPU_IS_LOST], [None, True])
    nvml.show([first, second._replace(hangs=[name])])
    begin_call(talk, NEWER[name], 1)
    assert talk.is_busy_for(0.2)
    nvml.show([first, second])
    assert talk.answer() == [None, True]


@pytest.mark.parametrize("name", NEWER_OF_THE_MACHINE)
def test_functions_of_event_sets_are_slow_and_fail_as_they_are_set_to(nvml: StandIn, talk: Talk, name: str) -> None:
    ends_well = ["NVMLError_Timeout", TIMEOUT] if "Wait" in name else None
    talk.ask(CALLS)
    nvml.show([a_gpu(0)], errors={name: UNKNOWN})
    begin_call(talk, NEWER_OF_THE_MACHINE[name])
    failure, _ = talk.answer()  # type: ignore[misc]
    nvml.show([a_gpu(0)], delays={name: 50_000})
    begin_call(talk, NEWER_OF_THE_MACHINE[name])
    assert (failure, talk.answer()) == (["NVMLError_Unknown", UNKNOWN], [ends_well, True])
    nvml.show([a_gpu(0)], hangs=[name])
    begin_call(talk, NEWER_OF_THE_MACHINE[name])
    assert talk.is_busy_for(0.2)
    nvml.show([a_gpu(0)])
    assert talk.answer() == [ends_well, True]


def test_a_lost_gpu_fails_in_everything_with_its_instances_and_others_do_not(nvml: StandIn, talk: Talk) -> None:
    instances = [an_instance(0, 0)]
    nvml.show([a_gpu(0, mig=True, instances=instances), a_gpu(1)])
    handles = f"""[gpu(0), nvmlDeviceGetHandleByUUID("{instances[0].uuid}"), gpu(1)]"""
    assert talk.ask(f"globals().update(handles={handles})") is None
    names = "[failure(nvmlDeviceGetName, h) for h in handles] + [failure(gpu, i) for i in range(2)]"
    assert talk.ask(names) == [None] * 5
    nvml.show([a_gpu(0, mig=True, instances=instances, errors={"*": GPU_IS_LOST}), a_gpu(1)])
    lost = ["NVMLError_GpuIsLost", GPU_IS_LOST]
    assert talk.ask(names) == [lost, lost, None, lost, None]
    assert talk.ask("nvmlDeviceGetCount()") == 2


def test_what_a_mig_gpu_refuses_its_instances_may_answer(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, mig=True, instances=[an_instance(0, 0)], errors={"nvmlDeviceGetMemoryInfo": NO_PERMISSION})])
    code = """
tell([failure(nvmlDeviceGetMemoryInfo, gpu(0)),
      failure(nvmlDeviceGetMemoryInfo, nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 0))])
"""
    assert told(nvml, code) == [["NVMLError_NoPermission", NO_PERMISSION], None]


@pytest.mark.parametrize("code", [DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH])
def test_a_driver_that_is_not_well_fails_at_the_start(nvml: StandIn, code: int) -> None:
    nvml.show([a_gpu(0)], init_error=code)
    without_init = START.replace("\nnvmlInit()\n", "\n")
    uninitialized = ["NVMLError_Uninitialized", 1]
    answer = told(nvml, "tell([failure(nvmlInit), failure(nvmlDeviceGetCount)])", without_init)
    assert isinstance(answer, list)
    assert (answer[0][1], answer[1]) == (code, uninitialized)


def test_a_driver_that_is_unloaded_is_missed(nvml: StandIn, talk: Talk) -> None:
    assert talk.ask("nvmlDeviceGetCount()") == 4
    nvml.unload()
    assert talk.ask("failure(nvmlDeviceGetCount)") == ["NVMLError_DriverNotLoaded", DRIVER_NOT_LOADED]
    assert talk.ask("failure(nvmlInit)") == ["NVMLError_DriverNotLoaded", DRIVER_NOT_LOADED]


def test_functions_of_the_machine_fail_too(nvml: StandIn) -> None:
    nvml.show([a_gpu(0)], errors={"nvmlDeviceGetCount_v2": UNKNOWN, "nvmlDeviceGetHandleByIndex_v2": GPU_IS_LOST})
    code = "tell([failure(nvmlDeviceGetCount), failure(gpu, 0), failure(nvmlSystemGetDriverVersion)])"
    assert told(nvml, code) == [["NVMLError_Unknown", UNKNOWN], ["NVMLError_GpuIsLost", GPU_IS_LOST], None]


def test_every_init_needs_its_shutdown(nvml: StandIn) -> None:
    code = """
nvmlInit()
tell([failure(nvmlShutdown), failure(nvmlDeviceGetCount), failure(nvmlShutdown), failure(nvmlDeviceGetCount),
      failure(nvmlShutdown)])
"""
    uninitialized = ["NVMLError_Uninitialized", 1]
    assert told(nvml, code) == [None, None, None, uninitialized, uninitialized]


def test_an_old_driver_does_not_have_the_newer_functions(nvml_of: StandInOf) -> None:
    nvml = nvml_of(without=[MEMORY_V2, *PROCESSES_V3])
    nvml.show([a_gpu(0)])
    code = """
tell([failure(nvmlDeviceGetMemoryInfo, gpu(0)), failure(nvmlDeviceGetMemoryInfo, gpu(0), nvmlMemory_v2)])
"""
    assert told(nvml, code) == [None, ["NVMLError_FunctionNotFound", 13]]


# ---- While programs run


def test_a_change_shows_at_the_next_call(nvml: StandIn, talk: Talk) -> None:
    used = "nvmlDeviceGetMemoryInfo(gpu(1)).used"
    assert talk.ask(used) == 0
    nvml.show([a_gpu(0), a_gpu(1, used=5 * GIB)])
    assert (talk.ask(used), talk.ask("nvmlDeviceGetCount()")) == (5 * GIB, 2)


def test_a_handle_stays_with_its_gpu_when_another_goes(nvml: StandIn, talk: Talk) -> None:
    talk.ask("globals().update(first=gpu(0), second=gpu(1))")
    nvml.show([a_gpu(1)])
    assert talk.ask("nvmlDeviceGetUUID(second)") == a_gpu(1).uuid
    assert talk.ask("nvmlDeviceGetIndex(second)") == 0
    assert talk.ask("failure(nvmlDeviceGetUUID, first)") == ["NVMLError_GpuIsLost", GPU_IS_LOST]


def test_the_calls_of_all_programs_are_counted(nvml: StandIn) -> None:
    assert (nvml.initialisations, nvml.calls("nvmlDeviceGetCount_v2")) == (0, 0)
    for _ in range(2):
        told(nvml, "tell([nvmlDeviceGetCount() for _ in range(3)])")
    assert (nvml.initialisations, nvml.calls("nvmlDeviceGetCount_v2"), nvml.calls("nvmlShutdown")) == (2, 6, 0)


def test_a_call_takes_as_long_as_it_is_set_to(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, delays={"nvmlDeviceGetName": 200_000}), a_gpu(1)])
    code = """
import time
def seconds(handle):
    start = time.monotonic()
    nvmlDeviceGetName(handle)
    return time.monotonic() - start
tell([seconds(gpu(0)) >= 0.2, min(seconds(gpu(1)) for _ in range(20)) < 0.2])
"""
    assert told(nvml, code) == [True, True]


def test_threads_read_at_the_same_time_what_is_shown_whole(nvml: StandIn) -> None:
    code = """
import threading
seen, last = set(), threading.Event()
def read():
    while not last.is_set():
        handle = gpu(1)
        memory = nvmlDeviceGetMemoryInfo(handle)
        seen.add((nvmlDeviceGetCount(), memory.total == memory.used + memory.free))
threads = [threading.Thread(target=read) for _ in range(8)]
for thread in threads: thread.start()
print("reading", flush=True)
sys.stdin.readline()
last.set()
for thread in threads: thread.join()
tell(sorted(seen))
"""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", START + code], env=environment(nvml), stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "reading\n"
        for number in range(300):
            nvml.show([a_gpu(index, used=number * MIB) for index in range(4)])
        out, _ = process.communicate("\n", timeout=120)
    assert (process.returncode, json.loads(out)) == (0, [[4, True]])


def test_programs_of_other_users_can_use_it(nvml: StandIn) -> None:
    told(nvml, "tell(nvmlDeviceGetCount())")
    given = nvml.environment
    library = Path(given["LD_LIBRARY_PATH"].split(":")[0]) / "libnvidia-ml.so.1"
    modes = {Path(given["NVML_STAND_IN_STATE"]): 0o4, Path(given["NVML_STAND_IN_LOG"]): 0o6, library: 0o5}
    for path, wanted in modes.items():
        assert path.stat().st_mode & wanted == wanted
        assert path.parent.stat().st_mode & 0o5 == 0o5


def test_what_was_on_the_library_path_stays_on_it(nvml: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    alone = nvml.environment["LD_LIBRARY_PATH"]
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    assert nvml.environment["LD_LIBRARY_PATH"] == f"{alone}{os.pathsep}/somewhere"


# ---- What people look at their GPUs with


def gpustat(nvml: StandIn) -> list[dict[str, object]]:
    return json.loads(run(nvml, "-m", "gpustat", "--json"))["gpus"]


ASK_NVITOP = """
import json
from nvitop import Device, NA
def known(value):
    return None if value is NA else value
def about(device):
    processes = {pid: known(p.gpu_memory()) for pid, p in device.processes().items()}
    return {name: known(getattr(device, name)()) for name in
            ("uuid", "name", "memory_total", "memory_used", "gpu_utilization", "temperature", "power_usage")
           } | {"processes": processes, "migs": [about(mig) for mig in device.mig_devices()]}
print(json.dumps([about(device) for device in Device.all()]))
"""


def nvitop(nvml: StandIn) -> list[dict[str, object]]:
    answer = told(nvml, "", ASK_NVITOP)
    assert isinstance(answer, list)
    return answer


def chosen(row: Mapping[str, object], *names: str) -> tuple[object, ...]:
    return tuple(row[name] for name in names)


def a_busy_machine(nvml: StandIn, pids: list[int]) -> None:
    nvml.show(
        [
            a_gpu(
                0,
                reserved=500 * MIB,
                used=30 * GIB,
                utilization=93,
                temperature=66,
                power=312_000,
                fan=55,
                processes=[Process(pids[0], 20 * GIB), Process(pids[1], 10 * GIB)],
            ),
            a_gpu(1, name="Tesla T4", total=16 * GIB, used=GIB, graphics=[Process(pids[2], GIB)]),
            a_gpu(2, utilization=None, power=None),
        ]
    )


def test_gpustat_shows_what_is_shown(fitting: StandIn, sleepers: list[int]) -> None:
    a_busy_machine(fitting, sleepers)
    names = ("uuid", "name", "memory.total", "memory.used", "utilization.gpu", "temperature.gpu", "power.draw")
    rows = gpustat(fitting)
    assert [chosen(row, *names) for row in rows] == [
        (a_gpu(0).uuid, "NVIDIA A100-SXM4-80GB", 80 * 1024, 30 * 1024, 93, 66, 312),
        (a_gpu(1).uuid, "Tesla T4", 16 * 1024, 1024, 0, 30, 60),
        (a_gpu(2).uuid, "NVIDIA A100-SXM4-80GB", 80 * 1024, 0, None, 30, None),
    ]
    processes = [[(each["pid"], each["gpu_memory_usage"]) for each in row["processes"]] for row in rows]
    assert processes == [[(sleepers[0], 20 * 1024), (sleepers[1], 10 * 1024)], [(sleepers[2], 1024)], []]


def test_gpustat_shows_a_gpu_in_mig_mode_as_one(fitting: StandIn, sleepers: list[int]) -> None:
    instances = [an_instance(0, index, used=GIB, processes=[Process(sleepers[index], GIB)]) for index in range(2)]
    fitting.show([a_gpu(0, mig=True, instances=instances)])
    (row,) = gpustat(fitting)
    assert chosen(row, "memory.used", "utilization.gpu") == (2 * 1024, None)
    assert [each["pid"] for each in row["processes"]] == sleepers[:2]


def test_gpustat_works_beside_a_lost_gpu(nvml: StandIn) -> None:
    nvml.show([a_gpu(0, errors={"*": GPU_IS_LOST}), a_gpu(1)])
    assert [row["name"] for row in gpustat(nvml)] == ["((GPU is lost))", "NVIDIA A100-SXM4-80GB"]


def test_nvitop_shows_what_is_shown(fitting: StandIn, sleepers: list[int]) -> None:
    a_busy_machine(fitting, sleepers)
    names = ("uuid", "name", "memory_total", "memory_used", "gpu_utilization", "temperature", "power_usage")
    rows = nvitop(fitting)
    assert [chosen(row, *names, "processes") for row in rows] == [
        (
            *(a_gpu(0).uuid, "NVIDIA A100-SXM4-80GB", 80 * GIB, 30 * GIB, 93, 66, 312_000),
            {str(sleepers[0]): 20 * GIB, str(sleepers[1]): 10 * GIB},
        ),
        (a_gpu(1).uuid, "Tesla T4", 16 * GIB, GIB, 0, 30, 60_000, {str(sleepers[2]): GIB}),
        (a_gpu(2).uuid, "NVIDIA A100-SXM4-80GB", 80 * GIB, 0, None, 30, None, {}),
    ]


def test_nvitop_shows_mig_instances(fitting: StandIn, sleepers: list[int]) -> None:
    instances = [an_instance(0, index, used=GIB, processes=[Process(sleepers[index], GIB)]) for index in range(2)]
    fitting.show([a_gpu(0, mig=True, instances=instances), a_gpu(1)])
    rows = nvitop(fitting)
    assert [chosen(row, "memory_used", "gpu_utilization") for row in rows] == [(2 * GIB, None), (0, 0)]
    migs = rows[0]["migs"]
    assert isinstance(migs, list)
    assert [chosen(mig, "uuid", "memory_total", "memory_used", "gpu_utilization", "processes") for mig in migs] == [
        (instances[index].uuid, 10 * GIB, GIB, None, {str(sleepers[index]): GIB}) for index in range(2)
    ]


@pytest.mark.parametrize("protected_memory", [False, True], ids=["short entries", "long entries"])
def test_nvitop_tells_the_layouts_of_processes_apart(
    nvml_of: StandInOf,
    sleepers: list[int],
    protected_memory: bool,
) -> None:
    nvml = nvml_of(protected_memory=protected_memory)
    nvml.show([a_gpu(0, processes=[Process(pid, GIB) for pid in sleepers])])
    assert nvitop(nvml)[0]["processes"] == {str(pid): GIB for pid in sleepers}


def test_gpustat_and_nvitop_do_with_an_old_driver(
    nvml_of: StandInOf,
    sleepers: list[int],
) -> None:
    nvml = nvml_of(without=[MEMORY_V2, TEMPERATURE_V, *PROCESSES_V3])
    nvml.show([a_gpu(0, reserved=GIB, used=GIB, temperature=50, processes=[Process(sleepers[0], GIB)])])
    (row,) = gpustat(nvml)
    assert chosen(row, "memory.used", "temperature.gpu") == (2 * 1024, 50)
    assert [each["pid"] for each in row["processes"]] == sleepers[:1]
    (row,) = nvitop(nvml)
    assert chosen(row, "memory_used", "temperature", "processes") == (2 * GIB, 50, {str(sleepers[0]): GIB})


def test_nvitop_draws_its_picture(fitting: StandIn, sleepers: list[int]) -> None:
    a_busy_machine(fitting, sleepers)
    picture = run(fitting, "-m", "nvitop", "--once", "--ascii")
    assert "570.86.15" in picture
    assert all(str(pid) in picture for pid in sleepers)
