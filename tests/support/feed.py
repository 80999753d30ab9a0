"""A feed, read."""

from simple_gpu_scheduler.inputs.feeds import Feed


def read(feed: Feed, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = feed.read()
        assert piece.data
        data += piece.data
    return data
