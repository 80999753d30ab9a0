"""What a run can end with: the exit codes, and the error that a user can mend. Knows no other file."""

from typing import NamedTuple

SUCCEEDED = 0
SOME_DID_NOT_SUCCEED = 1
BAD_INPUT = 2
BUG = 3
BY_SIGNAL = 128


class UserError(Exception):
    """Something the user can mend. Its text says what happened, where, and what to do."""

    code = BAD_INPUT


class Trouble(NamedTuple):
    """A message to the loop: something went wrong beside the jobs, which the exit code is to tell of."""

    sentence: str


class Broken(NamedTuple):
    """A message to the loop: a thread has met an error that is a bug. The loop raises it, so that it is reported."""

    error: BaseException
