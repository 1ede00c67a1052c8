"""Which keys say how a deployment is steered?"""

from __future__ import annotations

from weft import model
from weft.spec.forms import ADVISE_FORM, PROJECT_FORM, RELIEF_FORM, OrderForm, ShareForm
from weft.spec.shapes import Choice, Flag
from weft.spec.tables import ByName, Key, Table
from weft.spec.values import NOT_NEGATIVE, POSITIVE, SHARE, USE

AVAILABLE_POLICIES = (
    "near",
    "greedy",
    "dp",
    "xzh",
    "cuckoo",
    "refine",
    "random",
    "latency",
    "partition",
    "tree",
    "collocated",
    "exact",
)

PLACE = Table(
    model.Place,
    "place",
    (
        Key("policy", Choice(AVAILABLE_POLICIES), "which planner decides where operators run"),
        Key("objective", Choice(("latency", "potential")), "what it minimises"),
        Key(
            "weights",
            Table(
                model.Weights,
                "weights",
                (
                    Key("load", NOT_NEGATIVE, "weight of the load potential"),
                    Key("correlation", NOT_NEGATIVE, "weight of the correlation potential"),
                    Key("network", NOT_NEGATIVE, "weight of the network potential"),
                ),
            ),
            "how much each potential counts",
        ),
        Key("overload_penalty", NOT_NEGATIVE, "what a site over its quota costs"),
        Key("keep", SHARE, "the share of operators, the lightest, that stay where they run"),
        Key(
            "hop_ms",
            NOT_NEGATIVE,
            "what a stream between sites costs beside its links; absent: as `weft calibrate` measured it",
        ),
        Key("terms", ByName(NOT_NEGATIVE), "weights of further terms to minimise: traffic, risk, or registered ones"),
        Key("series", Flag(), "plan by how source rates change over time: traces, or what the last run measured"),
    ),
)

BALANCE = Table(
    model.Balance,
    "balance",
    (
        Key("kind", Choice(("tree",)), "how sites balance"),
        Key("measure", Choice(("cpu", "memory", "both")), "what counts as utilisation"),
        Key("low", USE, "takes operators below this utilisation"),
        Key("target", USE, "the utilisation aimed at"),
        Key("high", USE, "gives operators away above this utilisation"),
        Key("period_s", POSITIVE, "the time between two looks"),
    ),
)

SCALE = Table(
    model.Scale,
    "scale",
    (
        Key("target", USE, "the utilisation aimed at"),
        Key("high", USE, "adds an instance above this utilisation"),
        Key("low", USE, "removes an instance below this utilisation"),
        Key("period_s", POSITIVE, "the time between two looks"),
        Key("safe", Flag(), "aim lower where rounding by chance could leave too few instances"),
    ),
)

SERVE = Table(
    model.Serve,
    "serve",
    (
        Key("discipline", Choice(("fcfs", "deadline", "slack")), "whose turn is next on a site of the twin"),
        Key("drop_late", Flag(), "the twin drops records past their promise, as far as the promise allows loss"),
    ),
)

CONTROL = Table(
    model.Control,
    "control",
    (
        Key("place", PLACE, "where operators run"),
        Key("balance", BALANCE, "moves operators from busy sites; absent: off"),
        Key("scale", SCALE, "changes the number of instances, in the twin; absent: off"),
        Key("order", OrderForm(), "puts late records in order; absent: off"),
        Key("serve", SERVE, "in which order the twin serves records; absent: as they come"),
        Key("share", ShareForm(), "makes once what several queries ask alike; absent: off"),
        Key("advise", ADVISE_FORM, "rules say what they would move, and move nothing; absent: off"),
        Key("project", PROJECT_FORM, "projects bursty streams segment by segment; absent: by mean rates"),
        Key("relief", RELIEF_FORM, "operators leave a site before a promise breaks; absent: off"),
    ),
)
