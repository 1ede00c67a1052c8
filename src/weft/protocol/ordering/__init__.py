"""Late records in order: the ordering unit of a stream, which learns by itself how long to hold records back."""

from weft.protocol.ordering.machine import Left, Ordering

__all__ = ["Left", "Ordering"]
