"""Which keys say what happens while a deployment runs?"""

from __future__ import annotations

from weft import model
from weft.spec.forms import ByVerb
from weft.spec.shapes import Flag, Text
from weft.spec.tables import ByName, Items, Key, Table
from weft.spec.values import KNOWN_SITE, NOT_NEGATIVE, POSITIVE

_AT = Key("at_s", NOT_NEGATIVE, "seconds since sources began to flow", required=True)
_TARGET = Text("query.operator", r"[^.\s]+\.[^.\s]+", "; join the query's and the operator's name with a dot")

HAPPENING = ByVerb(
    "a happening",
    {
        "move": Table(
            model.MoveAt,
            "a move",
            (
                _AT,
                Key("move", _TARGET, "the operator, as `query.operator`", required=True),
                Key("to", KNOWN_SITE, "the site it goes to", required=True),
            ),
        ),
        "rate": Table(
            model.RateAt,
            "a rate",
            (
                _AT,
                Key("rate", ByName(NOT_NEGATIVE, 1), "times the normal rate, by source", required=True),
            ),
        ),
        "crash": Table(
            model.CrashAt, "a crash", (_AT, Key("crash", KNOWN_SITE, "the site that is lost", required=True))
        ),
        "restart": Table(
            model.RestartAt,
            "a restart",
            (
                _AT,
                Key("restart", KNOWN_SITE, "the site that comes back", required=True),
            ),
        ),
        "partition": Table(
            model.PartitionAt,
            "a partition",
            (
                _AT,
                Key("partition", Items(KNOWN_SITE, 2, at_most=2), "two sites that cannot speak", required=True),
                Key("for_s", POSITIVE, "for how long", required=True),
            ),
        ),
        "add": Table(
            model.AddAt,
            "an addition",
            (
                _AT,
                Key("add", Text("a file's path"), "a file with one or more `queries`, which come", required=True),
                Key("anyway", Flag(), "they come though a promise would break"),
            ),
        ),
        "remove": Table(
            model.RemoveAt,
            "a removal",
            (
                _AT,
                Key("remove", Text("a query's name"), "the query that goes", required=True),
            ),
        ),
    },
)
