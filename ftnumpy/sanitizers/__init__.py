"""The patched stack under ThreadSanitizer and AddressSanitizer: what they report, held against a kept list."""
