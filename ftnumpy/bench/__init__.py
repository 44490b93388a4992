"""Benchmarks before and after each patch, by asv; and stock against patched on one thread, in pairs."""
