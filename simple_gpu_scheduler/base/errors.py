"""Exit codes, and the error that a user can fix. Imports no other file."""

from simple_gpu_scheduler.base.values import NamedTuple

SUCCEEDED = 0
SOME_DID_NOT_SUCCEED = 1
BAD_INPUT = 2
BUG = 3
BY_SIGNAL = 128


class UserError(Exception):
    """Something the user can fix. Its text says what happened, where, and what to do."""

    code = BAD_INPUT


class Broken(NamedTuple):
    """A message to the loop: a thread hit a bug. The loop raises the error, so that it is reported."""

    error: BaseException
