"""The options that say which workload is simulated."""

from simple_gpu_scheduler.cli.options.workload import take_scenario
from simple_gpu_scheduler.simulation.workloads.synthetic import parse_synthetic

KNOWN = {"estimates": None, "fair_by": None}


class TestEachKindOfWorkload:
    def test_another_seed_shares_no_workload(self) -> None:
        options = {"trace": None, "synthetic": parse_synthetic("jobs=3"), "gpus": 2, "repeat": 50}
        drawn = [
            {
                each.length
                for workload in take_scenario({**options, "seed": seed, **KNOWN}).workloads
                for each in workload
            }
            for seed in (1, 2, 3)
        ]
        assert len(set.union(*drawn)) == 3 * 50 * 3
