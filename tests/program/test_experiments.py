"""Long simulations: what was published comes out again, and real traces are simulated whole."""

from statistics import fmean, quantiles

import pytest

from simple_gpu_scheduler.scheduling.policies.names import parse_policy
from simple_gpu_scheduler.simulation.compare import Site, compare
from simple_gpu_scheduler.simulation.workloads.rows import arrivals
from simple_gpu_scheduler.simulation.workloads.synthetic import generate, parse_synthetic
from tests.conftest import ROOT


@pytest.mark.unmeasured
def test_the_published_experiment_comes_out_as_published() -> None:
    words = parse_synthetic("jobs=20 gap=25 time=10-1000")
    workloads = [arrivals(generate(words, 2, seed), 2, "exact")[0] for seed in range(2000)]
    published = {"fifo": (686, 564), "sjf": (334, 252), "aged": (367, 289)}
    policies = [parse_policy(name, str) for name in published]
    for result in compare(workloads, policies, Site(2)):
        mean, single = published[result.policy]
        means = [fmean(each.waits()) for each in result.simulated]
        assert fmean(means) == pytest.approx(mean, rel=0.03)
        quarter, half, _ = quantiles(means, n=4)
        assert quarter < single < half


@pytest.mark.parametrize("name", ["philly.csv", "gaia.csv"])
def test_real_traces_are_simulated_whole(name: str) -> None:
    path = ROOT.parent / "shared" / "traces" / name
    if not path.exists():
        pytest.skip("the trace is not there")
    from simple_gpu_scheduler.simulation.workloads.csv import read_csv  # noqa: PLC0415 - only here

    workload, _ = arrivals(read_csv(path.read_text())[0][:3000], 64, "exact")
    for result in compare([workload], [parse_policy(policy, str) for policy in ("fifo", "hrrn")], Site(64)):
        [simulated] = result.simulated
        assert all(0 <= wait < float("inf") for wait in simulated.waits())
