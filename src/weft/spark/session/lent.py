"""How does a run use a Spark that a program has already? In a session beside its own, and leaves all as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from weft.spark.session.settings import settings, with_conf
from weft.spec import is_kept

_Asked = tuple[str, tuple[tuple[str, str], ...]]
_free: dict[_Asked, list[SparkSession]] = {}
_taken: dict[int, _Asked] = {}


@dataclass(frozen=True, slots=True)
class Lent:
    """A program's own Spark as it was before a run took it: to be given back the same."""

    context: SparkContext
    active: SparkSession | None
    active_in_java: Any
    environment: dict[str, str]

    @staticmethod
    def now() -> Lent | None:
        """What is lent when a run starts now; None where there is no Spark yet."""
        context = SparkContext._active_spark_context
        if context is None:
            return None
        java = _sessions_in_java(context).getActiveSession()
        return Lent(context, SparkSession._activeSession, java, dict(context.environment))

    def give_back(self) -> None:
        """Leave everything as it was found."""
        self.context.environment.clear()
        self.context.environment.update(self.environment)
        SparkSession._activeSession = self.active
        if self.active_in_java.isDefined():
            _sessions_in_java(self.context).setActiveSession(self.active_in_java.get())
        else:
            _sessions_in_java(self.context).clearActiveSession()


def let_go(session: SparkSession, lent: Lent | None) -> None:
    """Stop a Spark of our own; give back one that was lent, and keep the session beside it for the next run."""
    if lent is None:
        session.stop()
        return
    lent.give_back()
    settings_of = _taken.pop(id(session), None)
    if settings_of is not None:
        _free.setdefault(settings_of, []).append(session)


@contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """While it lasts Java looks names up in this session: it asks the active one, whichever it is told of."""
    lent = Lent.now()
    assert lent is not None, "a session has a context"
    _sessions_in_java(session.sparkContext).setActiveSession(session._jsparkSession)
    try:
        yield
    finally:
        lent.give_back()


def _sessions_in_java(context: SparkContext) -> Any:
    return SparkSession._get_j_spark_session_class(context._jvm)


def beside(context: SparkContext, conf: Mapping[str, str]) -> SparkSession:
    """A session beside those of a program that has a Spark: its settings are ours, theirs stay as they are.

    One that an earlier run has let go is taken again: Spark starts Python processes anew for each of its sessions.
    """
    asked = (context.applicationId, tuple(sorted(conf.items())))
    held = _free.get(asked)
    session = held.pop() if held else _new_beside(context, conf)
    _taken[id(session)] = asked
    return session


def _new_beside(context: SparkContext, conf: Mapping[str, str]) -> SparkSession:
    session = (SparkSession.getActiveSession() or SparkSession(context)).newSession()
    for key in session.conf.getAll:
        if is_kept(key) and session.conf.isModifiable(key):
            session.conf.unset(key)
    for key, value in with_conf(settings(None, None), conf).items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    # Only a context has Hadoop's settings, but a session's own are handed on to whoever writes a file.
    session.conf.set("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
    return session
