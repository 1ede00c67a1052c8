"""Who steers a run? Its scenario, and other terminals: a file for each request, answered beside it."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from weft.bodies.live.changes import Move
from weft.model import CrashAt, MoveAt, RestartAt
from weft.plan.dataflow.ordering import guards_of

if TYPE_CHECKING:
    from weft.bodies.live.run import Run

PAUSE_KNOWN_S = 10.0
ANSWER = ".answer.json"
UNREADABLE = ".unreadable"


class Steering:
    """Lets happen what is in store, and answers what is asked."""

    def __init__(self, run: Run) -> None:
        self.run = run
        to_come = [one for one in run.deployment.scenario if not (isinstance(one, MoveAt) and self._goes_along(one))]
        self._to_come = sorted(to_come, key=lambda happening: happening.at_s)
        self._requests: dict[str, Move] = {}

    def _goes_along(self, move: MoveAt) -> bool:
        """Whether an ordering operator moves with the one it stands in front of, so that it need not be asked for."""
        query_name, _, guard = move.move.partition(".")
        query = self.run.deployment.query(query_name)
        guarded = {f"{query_name}.{one.name}" for one in query.operators if guard in guards_of(query, one.name)}
        return any(
            isinstance(one, MoveAt) and one.move in guarded and (one.at_s, one.to) == (move.at_s, move.to)
            for one in self.run.deployment.scenario
        )

    def resume(self, flowed_s: float) -> None:
        """What happened before an earlier start ended does not happen again."""
        self._to_come = [one for one in self._to_come if one.at_s >= flowed_s]

    def happen(self) -> None:
        """Whatever the scenario has in store by now; rates follow it by themselves."""
        while self._to_come and self._to_come[0].at_s <= self.run.flowed_s():
            match self._to_come.pop(0):
                case MoveAt(move=move, to=to):
                    query, _, operator = move.partition(".")
                    self.run.move(query, operator, to, "scenario")
                case CrashAt(crash=site) if site not in self.run.crashed:
                    self.run.crash(site)
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
                self._requests[key] = self.run.move(*asked)
            move = self._requests[key]
            if move.state == "refused" or (move.state == "done" and self._pause_known(move)):
                answer = {**move.as_json(), "state": move.state, "why": move.why}
                self.run.state.tell(f"requests/{key}{ANSWER}", answer)
                path.unlink(missing_ok=True)

    def _asked(self, path: Path) -> tuple[str, str, str] | None:
        """Query, operator and site of a request; one that cannot be read is set aside and told of."""
        try:
            asked = json.loads(path.read_bytes())
            words = (asked["query"], asked["operator"], asked["to"])
            if all(isinstance(word, str) for word in words):
                return words
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            pass
        aside = path.with_suffix(UNREADABLE)
        with suppress(OSError):
            os.replace(path, aside)
        self.run.note(f"a request could not be read and was set aside: {aside}")
        return None

    def _pause_known(self, move: Move) -> bool:
        """A pause is known with the next commit; where none comes, the answer does not wait for it."""
        return move.pause_ms is not None or self.run.flowed_s() > move.at_s + PAUSE_KNOWN_S
