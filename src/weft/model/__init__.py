"""What exists? Frozen values: query, operator, stream, site, link, placement, promise."""

from weft.model.arrivals import Arrivals, Constant, OnOff, Poisson, Sine, Trace, Walk
from weft.model.control import Advise, Balance, Control, Place, Scale, Serve, Share, Weights
from weft.model.dataflow import Dataflow, LateOutlet, Node, Outlet, dataflow, late_outlets, sink_name
from weft.model.deployment import Deployment
from weft.model.observed import (
    Observed,
    ObservedOperator,
    ObservedQuery,
    ObservedSite,
    ObservedSource,
    Quantiles,
    observed_from_json,
    observed_of,
)
from weft.model.placement import Placement
from weft.model.queries import (
    Column,
    Cost,
    JoinWindow,
    Late,
    Operator,
    Order,
    Promise,
    Query,
    Queue,
    Sink,
    Source,
    Watermark,
)
from weft.model.running import Spark, Store
from weft.model.scenario import CrashAt, Happening, MoveAt, PartitionAt, RateAt, RestartAt
from weft.model.sharing import Sharing
from weft.model.sites import Batch, Link, Site

__all__ = [
    "Advise",
    "Arrivals",
    "Balance",
    "Batch",
    "Column",
    "Constant",
    "Control",
    "Cost",
    "CrashAt",
    "Dataflow",
    "Deployment",
    "Happening",
    "JoinWindow",
    "Late",
    "LateOutlet",
    "Link",
    "MoveAt",
    "Node",
    "Observed",
    "ObservedOperator",
    "ObservedQuery",
    "ObservedSite",
    "ObservedSource",
    "OnOff",
    "Operator",
    "Order",
    "Outlet",
    "PartitionAt",
    "Place",
    "Placement",
    "Poisson",
    "Promise",
    "Quantiles",
    "Query",
    "Queue",
    "RateAt",
    "RestartAt",
    "Scale",
    "Serve",
    "Share",
    "Sharing",
    "Sine",
    "Sink",
    "Site",
    "Source",
    "Spark",
    "Store",
    "Trace",
    "Walk",
    "Watermark",
    "Weights",
    "dataflow",
    "late_outlets",
    "observed_from_json",
    "observed_of",
    "sink_name",
]
