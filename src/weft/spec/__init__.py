"""What did the user write? Files and the Python API, to model; every error names file, line and field."""

from weft.spec.added import Added, as_plain_queries, check_added, plain_added
from weft.spec.addresses import desk_of
from weft.spec.canonical import meaning_of
from weft.spec.code import fingerprint, said_to
from weft.spec.conf import is_kept
from weft.spec.control_keys import AVAILABLE_POLICIES
from weft.spec.ddl import ddl
from weft.spec.facts import (
    DISTINCT,
    JOIN,
    changes_count,
    gathers,
    is_ordering,
    is_stateful,
    keys_of,
    kind_of_state,
    names_asked,
    only_filters,
    sole_filter,
    window_column_of,
)
from weft.spec.keys import schema
from weft.spec.lengths import interval_us
from weft.spec.lineage import passes_through
from weft.spec.ordering import AT_ONCE, order_of, with_ordered_time
from weft.spec.paths import absolute, beside_state
from weft.spec.problems import Problem, Report, SpecError
from weft.spec.reading import as_plain, check, load, validate
from weft.spec.reads import after_what_they_read, with_named_reads
from weft.spec.relations import Relation, origin
from weft.spec.sql import same_but_filter, with_reads_from
from weft.spec.store import store_of
from weft.spec.streams import columns, event_time_of

__all__ = [
    "AT_ONCE",
    "AVAILABLE_POLICIES",
    "DISTINCT",
    "JOIN",
    "Added",
    "Problem",
    "Relation",
    "Report",
    "SpecError",
    "absolute",
    "after_what_they_read",
    "as_plain",
    "as_plain_queries",
    "beside_state",
    "changes_count",
    "check",
    "check_added",
    "columns",
    "ddl",
    "desk_of",
    "event_time_of",
    "fingerprint",
    "gathers",
    "interval_us",
    "is_kept",
    "is_ordering",
    "is_stateful",
    "keys_of",
    "kind_of_state",
    "load",
    "meaning_of",
    "names_asked",
    "only_filters",
    "order_of",
    "origin",
    "passes_through",
    "plain_added",
    "said_to",
    "same_but_filter",
    "schema",
    "sole_filter",
    "store_of",
    "validate",
    "window_column_of",
    "with_named_reads",
    "with_ordered_time",
    "with_reads_from",
]
