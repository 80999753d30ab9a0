"""The keeper: a second process that keeps what must not be lost when the scheduler is killed.

It is the parent of the jobs, so that their exit codes are not lost, and it reads the pipes, so that their contents get
to disk. While the scheduler is running, it only passes messages on. Once the scheduler is gone, it records in the
journal what is still running and how that ends, empties the pipes, and exits.

`messages` are what the two send each other, `process` and `intake` are the keeper's side, `client` the scheduler's.
"""
