"""Many threads, hard: no crash, no hang, no wrong result, and nothing that only grows."""
