"""Do we get the published numbers? One file per row of the catalogue."""

from weft.lab.frame import Outcome, Row, page, save
from weft.lab.rows import PLANNED, ROWS

__all__ = ["PLANNED", "ROWS", "Outcome", "Row", "page", "save"]
