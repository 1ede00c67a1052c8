"""Who steers a run? Its scenario, and other terminals: a file for each request, answered beside it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from weft.bodies.live.adding import plain_of
from weft.bodies.live.moves import Asked
from weft.bodies.live.view import RunView
from weft.bodies.live.wanted import Wanted
from weft.model import AddAt, CrashAt, MoveAt, PartitionAt, RemoveAt, RestartAt
from weft.model.wishes import MoveTo, RemoveQuery

PAUSE_KNOWN_S = 10.0
ANSWER = ".answer.json"
UNREADABLE = ".unreadable"


class Steering:
    """Runs due scenario events and answers requests from other terminals."""

    def __init__(self, run: RunView) -> None:
        self.run = run
        self._to_come = sorted(run.deployment.scenario, key=lambda happening: happening.at_s)
        self._requests: dict[str, Asked] = {}

    def resume(self, flowed_s: float) -> None:
        """What happened before an earlier start ended does not happen again."""
        self._to_come = [one for one in self._to_come if one.at_s >= flowed_s]

    def happen(self) -> None:
        """Whatever the scenario has in store by now; rates follow it by themselves."""
        while self._to_come and self._to_come[0].at_s <= self.run.flowed_s():
            match self._to_come.pop(0):
                case MoveAt(move=move, to=to):
                    self.run.ask(MoveTo({move: to}, "scenario", "scenario"))
                case AddAt(queries=queries, anyway=anyway):
                    self.run.add(*plain_of(queries), "scenario", "scenario", anyway)
                case RemoveAt(remove=query):
                    self.run.ask(RemoveQuery(query, "scenario", "scenario"))
                case CrashAt(crash=site) if site not in self.run.crashed:
                    self.run.crash(site)
                case PartitionAt(partition=(one, other), for_s=for_s):
                    self.run.partition(one, other, for_s)
                case RestartAt(restart=site) if site in self.run.crashed:
                    self.run.restart(site)

    def comes_back(self, site: str) -> bool:
        """Whether the scenario still has a restart of a lost site in store."""
        return any(isinstance(happening, RestartAt) and happening.restart == site for happening in self._to_come)

    def answer(self) -> None:
        """Take up requests, and answer those whose end is known."""
        for path in sorted((self.run.state.path / "requests").glob("*.json")):
            if path.name.endswith(ANSWER):
                continue
            key = path.name.removesuffix(".json")
            if key not in self._requests:
                asked = self._asked(path)
                if asked is None:
                    continue
                self._requests[key] = asked
            asked = self._requests[key]
            if asked.state == "refused" or (asked.state == "done" and self._pause_known(asked)):
                self.run.state.tell(f"requests/{key}{ANSWER}", _answer(asked))
                path.unlink(missing_ok=True)

    def _asked(self, path: Path) -> Asked | None:
        """What a request asks for: moves in one change, queries that come, or one that goes.

        What cannot be read is set aside.
        """
        try:
            return self._wished(msgspec.json.decode(path.read_bytes(), type=Wanted))
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            pass
        aside = path.with_suffix(UNREADABLE)
        with suppress(OSError):
            os.replace(path, aside)
        self.run.note(f"a request could not be read and was set aside: {aside}")
        return None

    def _wished(self, asked: Wanted) -> Asked:
        if asked.add is not None:
            return self.run.add(asked.add.plain(), asked.add.names, asked.reason, asked.by, asked.anyway)
        if asked.remove is not None:
            return self.run.ask(RemoveQuery(asked.remove, asked.reason, asked.by))
        return self.run.ask(MoveTo(asked.moves, asked.reason, asked.by))

    def _pause_known(self, asked: Asked) -> bool:
        """A pause is known with the next commit; where none comes, the answer does not wait for it."""
        known = all(move.pause_ms is not None for move in asked.watched)
        return known or self.run.flowed_s() > asked.at_s + PAUSE_KNOWN_S


def _answer(asked: Asked) -> dict[str, Any]:
    """What became of a request: the change, and of a move each operator, too."""
    moves = [move.as_json() for move in asked.moves]
    if not isinstance(asked.wish, MoveTo):
        return asked.as_json()
    return {**moves[0], "state": asked.state, "why": asked.why, "moves": moves, "change": asked.as_json()}
