"""Which options of Spark's readers and writers may a file give? Not those that lose, double or misplace records."""

from __future__ import annotations

from weft.model import Deployment
from weft.spec.problems import Problems

_PLACE = "the place is `path`"
_BAD = "what becomes of records that cannot be read is said by `bad_records: fail | skip | keep`"
_SEEN = "whole files would be passed over without a word"
_HADOOP = "it changes how files of this machine are written and found"

# By the option in small letters, since Spark does not tell case apart: a value that is harmless, and why no other is.
_READ: dict[str, tuple[str | None, str]] = {
    "path": (None, _PLACE),
    "paths": (None, _PLACE),
    "mode": (None, _BAD),
    "columnnameofcorruptrecord": (None, f"{_BAD}, and Weft tells them apart by that column"),
    "badrecordspath": (None, _BAD),
    "columnpruning": ("false", "whether a record is bad would depend on which of its columns are read"),
    "cleansource": ("off", "the source's files would be deleted or moved, and a run that starts over misses them"),
    "sourcearchivedir": (None, "the source's files would be moved, and a run that starts over misses them"),
    "latestfirst": ("false", "Spark then passes over old files, and event time would run backwards"),
    "maxfileage": (None, _SEEN),
    "filenameonly": ("false", "of two files with one name in two folders only one would be read"),
    "ignorecorruptfiles": ("false", _SEEN),
    "ignoremissingfiles": ("false", _SEEN),
    "ignoreinvalidpartitionpaths": ("false", _SEEN),
    "ignoredpathsegmentregex": (None, _SEEN),
    "archivepathfilter": (None, _SEEN),
    "modifiedbefore": (None, f"{_SEEN}; name the files with a glob in `path`"),
    "modifiedafter": (None, f"{_SEEN}; name the files with a glob in `path`"),
}
_WRITTEN: dict[str, tuple[str | None, str]] = {
    "path": (None, _PLACE),
    "mode": (None, "how records are kept is said by the sink's own `mode: append | update`"),
    "savemode": (None, "how records are kept is said by the sink's own `mode: append | update`"),
    "outputmode": (None, "how records are kept is said by the sink's own `mode: append | update`"),
    "partitionoverwritemode": (None, "a sink never overwrites; see its `mode: append | update`"),
    "checkpointlocation": (None, "checkpoints lie in the `store`"),
    "extension": (None, "result files end in their format's name, so that anyone finds them"),
}
_BEGINNINGS = ("fs.", "mapreduce.", "mapred.", "spark.")


def check_options(deployment: Deployment, problems: Problems) -> None:
    """Reports options by which a run could not keep what it promises."""
    for index, source in enumerate(deployment.sources):
        if not source.facts.made_up:
            _check(source.options, _READ, f"sources[{index}].options", problems)
    for at, query in enumerate(deployment.queries):
        for index, sink in enumerate(query.sinks):
            field = f"queries[{at}].sink" + (f"[{index}]" if len(query.sinks) > 1 else "")
            _check(sink.options, _WRITTEN, f"{field}.options", problems)
        for index, operator in enumerate(query.operators):
            if operator.late is not None:
                _check(operator.late.options, _WRITTEN, f"queries[{at}].operators[{index}].late.options", problems)


def _check(options: dict[str, str], refused: dict[str, tuple[str | None, str]], field: str, problems: Problems) -> None:
    for name, value in options.items():
        small = name.strip().lower()
        harmless, why = refused.get(small, (None, ""))
        if not why and small.startswith(_BEGINNINGS):
            why = _HADOOP
        if why and (harmless is None or value.strip().lower() != harmless):
            instead = f'; leave it out, or say "{harmless}"' if harmless else "; leave it out"
            problems.error(f"{field}.{name}", f"cannot be given: {why}{instead}")
