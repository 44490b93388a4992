"""Makes and proves a patched fork of free-threaded CPython and NumPy."""
