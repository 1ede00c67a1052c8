"""Which keys has a deployment file? The one table behind reading, writing back and the JSON Schema."""

from __future__ import annotations

from typing import Any

from weft.model import Deployment
from weft.spec.addresses import ADDRESS
from weft.spec.control_keys import CONTROL
from weft.spec.network_keys import CHANNELS, LINK, SITE, SPARK
from weft.spec.query_keys import QUERY, SOURCE
from weft.spec.scenario_keys import HAPPENING
from weft.spec.shapes import Text
from weft.spec.store import StoreForm
from weft.spec.tables import Items, Key, Table

VERSION = 1

DEPLOYMENT = Table(
    Deployment,
    "a deployment",
    (
        Key("sites", Items(SITE, 1), "places with capacity", required=True),
        Key("links", Items(LINK), "ways between sites; both ways unless `oneway: true`"),
        Key("sources", Items(SOURCE, 1), "streams that enter", required=True),
        Key("queries", Items(QUERY, 1), "what is computed", required=True),
        Key("control", CONTROL, "how it is steered (docs/control.md); parts that are absent are off, except place"),
        Key("scenario", Items(HAPPENING), "what happens to it while it runs"),
        Key("store", StoreForm(), "where streams, checkpoints and logs lie; absent: .weft beside this file"),
        Key("channels", CHANNELS, "in which kind of channel streams lie; absent: in folders of the store"),
        Key("spark", SPARK, "the Spark that all sites of a process share; it wins over what sites say"),
        Key("desk", ADDRESS, "where the desk listens, as `host:port`; absent: on loopback, wherever is room"),
        Key("keys", Text("a folder"), "the keys that `weft keys` made, from this file's folder; absent: in the state"),
    ),
)


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a deployment file."""
    body = DEPLOYMENT.schema()
    version = {"description": "the version of the file's form", "const": VERSION}
    body["properties"] = {"weft": version, **body["properties"]}
    body["required"] = ["weft", *body["required"]]
    body["patternProperties"] = {"^x-": {"description": "anything of your own, for YAML's anchors; it is not read"}}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Weft deployment", **body}
