"""A query that keeps state record by record has a session of its own, and disturbs nobody else's."""

from __future__ import annotations

from typing import Any

import pytest

from weft.spark.fragments.real_time import WITH_STATE, session_for_state

pytestmark = pytest.mark.spark
PARTITIONS = "spark.sql.shuffle.partitions"


def test_its_session_is_set_as_that_of_all_but_for_its_store(spark: Any) -> None:
    before = spark.conf.getAll
    spark.conf.set(PARTITIONS, "3")
    try:
        own = session_for_state(spark)
        assert {key: own.conf.get(key) for key in WITH_STATE} == WITH_STATE
        assert own.conf.get(PARTITIONS) == "3"
        assert own.range(3).groupBy("id").count().count() == 3
    finally:
        spark.conf.set(PARTITIONS, before[PARTITIONS])
    assert spark.conf.getAll == before
