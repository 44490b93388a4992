"""How NumPy's work scales with workers: threads of each variant beside processes, on twelve classes of real work."""
