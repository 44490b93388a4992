"""Upstream's own test suites before and after: what fails, crashes, hangs or is missing on patched and not on stock."""
