"""What the stack's users pay: cost on one thread, time under several, memory, import time."""
