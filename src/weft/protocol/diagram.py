"""State diagrams drawn from the tables of steps, so that a picture cannot differ from what runs."""

from __future__ import annotations

from weft.protocol.machine import Machine


def mermaid(machine: type[Machine], loops: bool = False) -> str:
    """A machine's table as a mermaid state diagram; steps that stay in their state only where `loops` are asked for."""
    first: str = machine.ROW().state  # type: ignore[call-arg]
    labels: dict[tuple[str, str], list[str]] = {}
    for (state, kind), step in machine.STEPS.items():
        for to in step.to:
            if loops or to != state:
                labels.setdefault((state, to), []).append(kind.__name__)
    lines = [f"    {state} --> {to}: {', '.join(sorted(kinds))}" for (state, to), kinds in sorted(labels.items())]
    return "\n".join(["stateDiagram-v2", f"    [*] --> {first}", *lines]) + "\n"
