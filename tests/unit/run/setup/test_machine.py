"""Waiting for the driver at the start of a run: what is handed to the loop."""

from queue import Empty
from typing import Any

import pytest

from simple_gpu_scheduler.run.setup.machine import DriverNews, wait_for_driver
from simple_gpu_scheduler.system.inbox import SystemInbox
from simple_gpu_scheduler.system.signals import Signalled


class Known:
    """GPUs that have just become known."""

    problem = ""
    is_waited_for = False

    def tell(self, _tell: object) -> None:
        pass

    def give_up(self) -> None:
        pass


def test_the_loop_gets_all_that_came_but_news_of_the_driver() -> None:
    inbox = SystemInbox()
    for message in (DriverNews(), Signalled(10), DriverNews()):
        inbox.put(message)
    machine: Any = Known()
    assert wait_for_driver(machine, (), inbox, lambda _event: None) == [Signalled(10)]
    with pytest.raises(Empty):
        inbox.get(block=False)
