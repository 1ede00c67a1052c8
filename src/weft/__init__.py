"""Weft: continuous queries over many sites on Apache Spark, that keep their promises by themselves."""

__version__ = "0.1.0"
