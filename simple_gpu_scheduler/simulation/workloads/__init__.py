"""Workloads for the simulator: recorded by others, kept in our own journals, or invented.

`rows` has what all of them come to, and turns that into arrivals; `csv_trace`, `swf` and `past_runs` read, `synthetic`
invents, `cells` are the numbers in traces. All is text, bytes or records in and values out: who reads files is the
command line.
"""
