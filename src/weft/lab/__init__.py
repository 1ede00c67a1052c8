"""Do we get the published numbers? One file per row of the catalogue."""

from weft.lab.frame import Outcome, Row, Unmeasured, brief, page, result_in, save, told, verdict
from weft.lab.rows import ALL, PLANNED, ROWS

__all__ = [
    "ALL",
    "PLANNED",
    "ROWS",
    "Outcome",
    "Row",
    "Unmeasured",
    "brief",
    "page",
    "result_in",
    "save",
    "told",
    "verdict",
]
