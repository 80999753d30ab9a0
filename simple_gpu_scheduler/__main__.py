"""`python -m simple_gpu_scheduler` is the same program as `simple_gpu_scheduler`."""

from simple_gpu_scheduler.cli.main import simple_gpu_scheduler

if __name__ == "__main__":
    simple_gpu_scheduler()
