"""What became of a run, put together afterwards: from its journal and its jobs' logs to numbers, a page, a picture.

`spans` (records -> when what ran where), `summary` (the numbers), `parameters` and `results` (what a sweep tried, and
what came of it), `tails` (reads the logs), `building` (all of it, as JSON has it), `figure` and `page` (that as
pictures), `writing` (files).
"""
