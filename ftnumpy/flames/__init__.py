"""Flame graphs of a workload on the variants: where its threads spend their time, Python frames and C frames alike."""
