"""How does a desk know what was measured? Sites tell it, in reports that may be lost or come twice."""

from weft.protocol.reporting.inbox import Inbox
from weft.protocol.reporting.outbox import Outbox, OutboxLimits
from weft.protocol.reporting.words import (
    AskReport,
    BatchDone,
    BatchWeighed,
    Committed,
    Event,
    FragmentNow,
    Measured,
    Report,
    Reported,
    SettleSinks,
    SinksSettled,
    SiteNow,
    SourcesEnd,
    SourcesMayEnd,
    Waiting,
)

__all__ = [
    "AskReport",
    "BatchDone",
    "BatchWeighed",
    "Committed",
    "Event",
    "FragmentNow",
    "Inbox",
    "Measured",
    "Outbox",
    "OutboxLimits",
    "Report",
    "Reported",
    "SettleSinks",
    "SinksSettled",
    "SiteNow",
    "SourcesEnd",
    "SourcesMayEnd",
    "Waiting",
]
