"""Reports on a run, from its journal and the logs of its jobs: numbers, a page, a picture.

`timeline` (records -> when what ran where), `numbers` (the figures), `parameters` and `metric` (what a sweep tried, and
its results), `log_tails` (reads the logs), `build` (all of it, as JSON), `figure`, `page` and `text` (ways to show it).
"""
