"""State diagrams drawn from the tables of steps, so that a picture cannot differ from what runs."""

from __future__ import annotations

from collections.abc import Mapping

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


def page(machines: Mapping[str, type[Machine]]) -> str:
    """A page with the diagram of each machine below the first line of what it says of itself."""
    parts = ["# State diagrams", "", "Drawn from the tables of the machines that run; a test holds them together."]
    for title, machine in machines.items():
        said = (machine.__doc__ or "").strip().splitlines()[0]
        parts += ["", f"## {title}", "", said, "", "```mermaid", mermaid(machine).rstrip(), "```"]
    return "\n".join(parts) + "\n"
