"""Instances that decide by themselves how many they are, and keep records from getting lost while they change."""

from weft.protocol.scaling.any_instance import Place
from weft.protocol.scaling.core import CoreInstance
from weft.protocol.scaling.decision import ScaleRule, copies, ds2_instances, leader_copies
from weft.protocol.scaling.instance import Instance
from weft.protocol.scaling.sizing import Sizing
from weft.protocol.scaling.words import (
    Activated,
    Bye,
    Create,
    Drain,
    Drained,
    Ended,
    Grow,
    Heard,
    Leaving,
    NewInstances,
    Retire,
    Retired,
    Shrink,
    StartInstance,
)

__all__ = [
    "Activated",
    "Bye",
    "CoreInstance",
    "Create",
    "Drain",
    "Drained",
    "Ended",
    "Grow",
    "Heard",
    "Instance",
    "Leaving",
    "NewInstances",
    "Place",
    "Retire",
    "Retired",
    "ScaleRule",
    "Shrink",
    "Sizing",
    "StartInstance",
    "copies",
    "ds2_instances",
    "leader_copies",
]
