"""Curves and figures of attempts from a Prometheus: which of its series are of which GPU, and what they say."""
