"""What is said to whom a query is refused: what would break, by how much, where, and what could be kept instead."""

from __future__ import annotations

from weft.plan.composing.values import Broken


def why_refused(request: str, broken: Broken, promised_us: int, nearest_us: int) -> str:
    """A refusal in one sentence or two."""
    return f"{_what(request, broken)}; {_nearest(promised_us, nearest_us)}"


def _what(request: str, broken: Broken) -> str:
    at = f" at {broken.site}" if broken.site else ""
    match broken.what:
        case "latency":
            return (
                f"latency of {request} would be above the {_ms(broken.limit)} that it may take by {_ms(broken.by)} "
                f"when it comes to {broken.piece}{at}"
            )
        case "promise":
            return (
                f"{broken.piece}{at} would break the promise of {broken.of}, whose operator there may take "
                f"{_ms(broken.limit)}, by {_ms(broken.by)}"
            )
        case "capacity":
            return f"{broken.piece}{at} asks {broken.by / 1e6:.3g} more capacity than there is free"
        case "bandwidth":
            return f"{broken.piece}{at} asks {broken.by} kbps more than the way from {broken.of} has left"
        case "gone":
            return f"what {broken.piece} needs{at} is not there any more"
    return f"no answer{at}" + (f" about {broken.piece}" if broken.piece else "")


def _nearest(promised_us: int, nearest_us: int) -> str:
    if not nearest_us:
        return "no promise of latency could be kept now" if promised_us else "it cannot run now"
    if nearest_us <= promised_us:
        return f"{_ms(nearest_us)} could be kept as it is now: ask again"
    return f"latency_ms: {-(-nearest_us // 1_000)} could be kept"


def _ms(us: int) -> str:
    return f"{us / 1_000:.1f} ms"
