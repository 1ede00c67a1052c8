"""Starting and stopping fragments: an agent at each site, and a conductor that wants them to run."""

from weft.protocol.hosting.agent import Agent, AgentLimits
from weft.protocol.hosting.conductor import Conductor, ConductorLimits
from weft.protocol.hosting.words import (
    AllDone,
    AllRunning,
    AllStopped,
    Died,
    Drained,
    EndCleanly,
    Fence,
    FragmentEnded,
    FragmentIsDown,
    FragmentUp,
    GaveUp,
    Halt,
    Halted,
    Launch,
    Launched,
    Refused,
    Remember,
    Unwant,
    Want,
)

__all__ = [
    "Agent", "AgentLimits", "AllDone", "AllRunning", "AllStopped", "Conductor", "ConductorLimits", "Died", "Drained",
    "EndCleanly", "Fence", "FragmentEnded", "FragmentIsDown", "FragmentUp", "GaveUp", "Halt", "Halted", "Launch",
    "Launched", "Refused", "Remember", "Unwant", "Want",
]
