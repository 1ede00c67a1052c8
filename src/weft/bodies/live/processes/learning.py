"""Which queries does a site's process know, and what does it do about a graph of the desk's that it has not?

It tries such a graph on its Spark beside what runs, and knows it from then on, or refuses it and says why. A site that
somebody started by hand runs the queries of its file, and others only where that was allowed (`takes`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from weft.bodies.live.facts import facts_of, meanings
from weft.bodies.live.processes.graph import Graph, Packed, graph_in
from weft.model import Deployment
from weft.plan.dataflow.event_times import carried_times
from weft.protocol.words import Parcel
from weft.spark.engine import SparkEngine
from weft.spark.fragments.operators import BadOperator
from weft.spark.process import SparkProcess

ONLY_ITS_FILE = "takes only the queries of its file; see `weft agent --takes-queries`"


class Learning:
    """What one site's process knows; `learned` is told of a deployment that it knows from now on."""

    def __init__(self, takes: bool, learned: Callable[[Deployment], None]) -> None:
        self.takes = takes
        self.knows = ""
        self.refuses = ""
        self.why = ""
        self._learned = learned
        self._file: Deployment | None = None
        self._deployment: Deployment | None = None
        self._spark: SparkProcess | None = None
        self._engine: SparkEngine | None = None
        self._thread: threading.Thread | None = None

    def begin(self, own: Deployment, file: Deployment, digest: str, whole: Parcel) -> Deployment | None:
        """What a process that starts is to run, by what it found and by its file; None where the desk runs others."""
        graph = graph_in(whole)
        if Packed(own).digest == digest:
            found, is_of_file = own, {query.name for query in own.queries} <= {query.name for query in file.queries}
        elif graph is not None:
            found, is_of_file = graph.of(own), graph.is_in(file)
        else:
            return None
        if not (self.takes or is_of_file):
            return None
        self.knows, self._file = digest, file
        return found

    def run(self, deployment: Deployment, spark: SparkProcess, engine: SparkEngine) -> None:
        """From now on more queries are tried here, beside what runs."""
        self._deployment, self._spark, self._engine = deployment, spark, engine

    def hear(self, digest: str, whole: Parcel) -> None:
        """The desk has this graph: begin to learn it where it is another, unless one is being learned."""
        if digest == self.knows:
            self.refuses = ""  # what the desk has dropped since may be asked for again
        graph = graph_in(whole)
        if digest in (self.knows, self.refuses) or graph is None:
            return
        if self._thread is not None and self._thread.is_alive():
            return
        if not self.takes and (self._file is None or not graph.is_in(self._file)):
            self.why, self.refuses = ONLY_ITS_FILE, digest
            return
        self._thread = threading.Thread(target=self._learn, args=(digest, graph), name="learn", daemon=True)
        self._thread.start()

    def _learn(self, digest: str, graph: Graph) -> None:
        assert self._deployment is not None
        assert self._spark is not None
        assert self._engine is not None
        try:
            deployment = graph.of(self._deployment)
            analysis = self._spark.tried(deployment)
            times = carried_times(deployment, *meanings(deployment, facts_of(analysis)))
            self._spark.learn(deployment, analysis, times)
            self._engine.learn(deployment, analysis.schemas, times)
            self._learned(deployment)
            self._deployment, self.knows = deployment, digest
        except Exception as error:  # whatever it is, the desk is to hear of it
            self.why = str(error) if isinstance(error, BadOperator) else f"{type(error).__name__}: {error}"
            self.refuses = digest
