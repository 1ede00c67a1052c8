"""What is in a state folder besides files? A room for each kind of thing."""

STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, CONSOLE, LOGS = (
    "streams", "recordings", "fragments", "heads", "late", "console", "logs",
)  # fmt: skip
ROOMS = (STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, CONSOLE, LOGS)
