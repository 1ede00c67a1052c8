"""Which waters are these? A Python function that the deployment file names in `call`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# South, north, west, east; where two overlap the first counts.
ZONES = {
    "Sound": (55.3, 56.2, 12.2, 13.1),
    "Kattegat": (56.0, 57.8, 10.5, 12.9),
    "Skagerrak": (57.0, 58.6, 7.5, 10.8),
    "North Sea": (54.8, 57.2, 6.0, 8.7),
    "Belts": (54.6, 56.0, 9.4, 11.4),
    "Baltic": (54.2, 55.6, 11.4, 16.5),
}
# Latitude, longitude: boats that lie in port do not fish.
PORTS = {
    "Skagen": (57.719, 10.587), "Hirtshals": (57.594, 9.963), "Hanstholm": (57.122, 8.596),
    "Thyboron": (56.697, 8.214), "Hvide Sande": (56.002, 8.125), "Esbjerg": (55.463, 8.440),
    "Strandby": (57.491, 10.501), "Grenaa": (56.411, 10.926), "Gilleleje": (56.128, 12.311),
    "Ronne": (55.100, 14.693), "Nexo": (55.061, 15.137),
}  # fmt: skip
PORT_KM = 2.5
KM_EAST, KM_NORTH = 62.0, 111.3  # per degree at 56 degrees north


def in_zone(messages: DataFrame) -> DataFrame:
    """Messages of ships in a zone, but not in a port."""
    zone = F.lit(None).cast("string")
    for name, (south, north, west, east) in reversed(ZONES.items()):
        inside = F.col("latitude").between(south, north) & F.col("longitude").between(west, east)
        zone = F.when(inside, name).otherwise(zone)
    placed = messages.filter(~_in_port()).select("ts", "mmsi", "fishes", zone.alias("zone"))
    return placed.filter(F.col("zone").isNotNull())


def _in_port() -> Column:
    found = F.lit(False)
    for latitude, longitude in PORTS.values():
        north_km = (F.col("latitude") - latitude) * KM_NORTH
        east_km = (F.col("longitude") - longitude) * KM_EAST
        found |= north_km * north_km + east_km * east_km < PORT_KM**2
    return found
