"""What is in a state folder besides files? A room for each kind of thing."""

STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, LEFT_OUT, CONSOLE, TOPICS, LOGS, SITES = (
    "streams", "recordings", "fragments", "heads", "late", "left-out", "console", "topics", "logs", "sites",
)  # fmt: skip
ROOMS = (STREAMS, RECORDINGS, FRAGMENTS, HEADS, LATE, LEFT_OUT, CONSOLE, TOPICS, LOGS, SITES)
