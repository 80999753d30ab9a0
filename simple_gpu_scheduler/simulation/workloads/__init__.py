"""Workloads for the simulator: recorded elsewhere, from our own journals, or generated.

`jobs` has their common form, and turns it into arrivals; `csv` and `swf` read traces, `synthetic` generates, `cells`
parses the numbers in traces. All take text and return values; files and journals are read elsewhere.
"""
