"""What is wrong with a trip, and where in New York is it? Python functions that the deployment file names in `call`."""

from __future__ import annotations

import math

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

# The city with its airports, generously.
LONGITUDE, LATITUDE = (-74.3, -73.6), (40.4, 41.0)
# Manhattan's streets are turned by 29 degrees. From the Battery, kilometres uptown and kilometres east of Fifth Avenue.
BATTERY = (-74.0170, 40.7033)
KM_EAST, KM_NORTH = 84.3, 111.2  # per degree at this latitude
TURN = math.radians(29)
# Zone: uptown from, to (14th, 34th, 59th and 96th Street are the borders); east of Fifth Avenue from, to.
ZONES = {
    "Downtown": (0.0, 4.25, -1.3, 2.6),
    "Midtown South": (4.25, 5.67, -2.2, 1.7),
    "Midtown": (5.67, 7.74, -2.2, 1.7),
    "Upper East Side": (7.74, 10.71, 0.0, 1.8),
    "Upper West Side": (7.74, 10.71, -2.0, 0.0),
    "Harlem": (10.71, 14.5, -2.0, 1.8),
}
AIRPORTS = {"JFK": (-73.83, -73.74, 40.62, 40.67), "LaGuardia": (-73.89, -73.85, 40.765, 40.785)}


def judged(trips: DataFrame) -> DataFrame:
    """Trips with the first thing that is wrong with them, null where nothing is."""
    outside = F.lit(False)
    for end in ("pickup", "dropoff"):
        outside |= ~F.col(f"{end}_longitude").between(*LONGITUDE) | ~F.col(f"{end}_latitude").between(*LATITUDE)
    fault = (
        F.when((F.col("dropoff_datetime") <= F.col("pickup_datetime")) | (F.col("trip_time_in_secs") <= 0), "time")
        .when(outside, "place")
        .when(F.col("trip_distance") <= 0, "distance")
        .when((F.col("fare_amount") <= 0) | (F.col("total_amount") < F.col("fare_amount")), "money")
    )
    return trips.withColumn("fault", fault)


def in_zone(trips: DataFrame) -> DataFrame:
    """The trips that begin or end in a zone of Manhattan, with both zones and what was paid."""
    placed = trips.select(
        F.col("dropoff_datetime").alias("ended"),
        "medallion",
        _zone("pickup").alias("from_zone"),
        _zone("dropoff").alias("to_zone"),
        (F.col("fare_amount") + F.col("tip_amount")).alias("paid"),
    )
    return placed.filter(F.col("from_zone").isNotNull() | F.col("to_zone").isNotNull())


def at_airport(trips: DataFrame) -> DataFrame:
    """The trips that end at an airport."""
    airport = F.lit(None).cast("string")
    for name, (west, east, south, north) in AIRPORTS.items():
        inside = F.col("dropoff_longitude").between(west, east) & F.col("dropoff_latitude").between(south, north)
        airport = F.when(inside, name).otherwise(airport)
    there = trips.select("dropoff_datetime", "medallion", airport.alias("airport"))
    return there.filter(F.col("airport").isNotNull())


def _zone(end: str) -> Column:
    east = (F.col(f"{end}_longitude") - BATTERY[0]) * KM_EAST
    north = (F.col(f"{end}_latitude") - BATTERY[1]) * KM_NORTH
    uptown = north * math.cos(TURN) + east * math.sin(TURN)
    of_fifth = east * math.cos(TURN) - north * math.sin(TURN)
    zone = F.lit(None).cast("string")
    for name, (low, high, west, far) in ZONES.items():
        inside = (uptown >= low) & (uptown < high) & (of_fifth >= west) & (of_fifth < far)
        zone = F.when(inside, name).otherwise(zone)
    return zone
