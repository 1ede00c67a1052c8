"""Do the streams of a query lead from sources to a sink, and does each operator fit what it reads?"""

from __future__ import annotations

from collections.abc import Mapping

from weft.model import Deployment, Operator, Query, Sink
from weft.spec.calls import call_problem
from weft.spec.comparing import check_numbers
from weft.spec.functions import unknown_functions
from weft.spec.modes import check_append, check_late, check_statement, check_update, check_watermarks
from weft.spec.names import check_site
from weft.spec.nested import nested_in, says_nested
from weft.spec.ordering import check_order
from weft.spec.problems import Problems, did_you_mean, listed, unknown
from weft.spec.reads import after_what_they_read, called_alike, reads_between, rounds, stream_problem, streams_of
from weft.spec.resolve import Found
from weft.spec.sql import SqlError, parsed
from weft.spec.step import Step
from weft.spec.streams import Columns, in_order


def check_queries(deployment: Deployment, problems: Problems, blocks: frozenset[str]) -> None:
    """Reports what is wrong within each query."""
    made, between = streams_of(deployment.queries), reads_between(deployment.queries)
    read: set[str] = set()
    streams: dict[str, Columns] = {}
    troubles = {one.name for at, one in enumerate(deployment.sources) if problems.has(f"sources[{at}]")}
    troubles |= _check_rounds(deployment, problems)
    for at in after_what_they_read(deployment.queries):
        query, path = deployment.queries[at], f"queries[{at}]"
        cyclic = _check_graph(deployment, query, path, problems, made, between)
        known: dict[str, Columns] = {}
        troubled = cyclic | troubles | {one.name for one in query.operators if f"{query.name}.{one.name}" in troubles}
        for followed in in_order(deployment, query, streams):
            operator = followed.operator
            where = f"{path}.operators[{next(place for place, one in enumerate(query.operators) if one is operator)}]"
            clean = not troubled & {*operator.from_, operator.name}
            step = Step(deployment, query, followed, where, problems, blocks, clean)
            known[operator.name] = streams[f"{query.name}.{operator.name}"] = _check_operator(step)
            if not clean or problems.has(where):
                troubled.add(operator.name)
                troubles.add(f"{query.name}.{operator.name}")
        _check_sinks(deployment, query, known, path, problems, made, between)
        read |= {name for operator in query.operators for name in operator.from_}
    for index, source in enumerate(deployment.sources):
        if source.name and source.name not in read and deployment.queries:
            problems.warn(f"sources[{index}]", f"no query reads `{source.name}`")


def _check_rounds(deployment: Deployment, problems: Problems) -> set[str]:
    """Reports queries that read each other in a circle; gives the streams that do."""
    places = {
        f"{query.name}.{operator.name}": f"queries[{at}].operators[{index}].from"
        for at, query in enumerate(deployment.queries)
        for index, operator in enumerate(query.operators)
    }
    found = rounds(deployment.queries)
    for round_ in found:
        says = f"the operators go round: {' -> '.join(round_)}; an operator cannot read what comes of its own records"
        problems.error(places[round_[0]], says)
    return {stream for round_ in found for stream in round_}


def _check_graph(
    deployment: Deployment,
    query: Query,
    path: str,
    problems: Problems,
    made: Mapping[str, Query],
    between: Mapping[str, list[str]],
) -> set[str]:
    """Reports unknown streams, cycles and ways that end nowhere; gives the operators that are in a cycle."""
    operators = {operator.name: operator for operator in query.operators}
    for index, operator in enumerate(query.operators):
        for place, name in enumerate(operator.from_):
            listed_ = len(operator.from_) > 1 or f"{path}.operators[{index}].from[0]" in problems.lines
            field = f"{path}.operators[{index}].from" + (f"[{place}]" if listed_ else "")
            says = stream_problem(name, query, deployment, made, operator.name)
            if says is not None:
                problems.error(field, says)
            elif name in operator.from_[:place]:
                problems.error(field, f"`{name}` stands twice in `from`; keep one; another operator may hand it on")
    cyclic = _check_cycles(query, operators, path, problems)
    wanted = [one.name for one in query.operators if f"{query.name}.{one.name}" in between]
    reached = _reaching([*wanted, *(sink.from_ for sink in query.sinks)], operators)
    for index, operator in enumerate(query.operators):
        sinks_known = any(sink.from_ in operators for sink in query.sinks)
        # What only leads to such an operator is not told again.
        unread = not query.consumers(operator.name)
        if unread and operator.name not in reached and operator.name not in cyclic and sinks_known:
            says = f"`{operator.name}` has no way to the sink; let an operator or a sink read it, or leave it out"
            problems.error(f"{path}.operators[{index}].name", says)
    return cyclic


def _check_cycles(query: Query, operators: Mapping[str, Operator], path: str, problems: Problems) -> set[str]:
    done: set[str] = set()
    cyclic: set[str] = set()
    for index, start in enumerate(query.operators):
        # Each way upstream is followed with its own trail, so that the cycle can be named.
        todo: list[tuple[str, tuple[str, ...]]] = [(start.name, ())]
        while todo:
            name, trail = todo.pop()
            if name in trail:
                cycle = trail[trail.index(name) :]
                if not cyclic & set(cycle):
                    down = list(reversed(cycle))
                    first = down.index(next(one.name for one in query.operators if one.name in cycle))
                    round_ = " -> ".join([*down[first:], *down[:first], down[first]])
                    says = f"the operators go round: {round_}; an operator cannot read what comes of its own records"
                    at = next(place for place, one in enumerate(query.operators) if one.name in cycle)
                    problems.error(f"{path}.operators[{at}].from", says)
                cyclic |= set(cycle)
            elif name in operators and name not in done:
                todo += [(above, (*trail, name)) for above in operators[name].from_]
        done.add(query.operators[index].name)
    return cyclic


def _reaching(names: list[str], operators: Mapping[str, Operator]) -> set[str]:
    reached: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in operators and name not in reached:
            reached.add(name)
            todo += operators[name].from_
    return reached


def _check_operator(step: Step) -> Columns:
    """Checks one operator over its inputs' columns, and gives its own."""
    step = check_order(step)
    operator = step.operator
    check_site(operator.site, f"{step.path}.site", step.deployment, step.problems)
    if operator.window is not None and (operator.window.records is None) == (operator.window.seconds is None):
        step.error("window", "must be {records: 5} or {seconds: 10}, one of them")
    if (operator.sql is None) == (operator.call is None):
        says = "has both `sql` and `call`; keep one" if operator.sql else "has neither `sql` nor `call`; give one"
        step.problems.error(step.path, says)
        return None
    if "-" in operator.name and step.query.consumers(operator.name):
        step.warn("name", f"SQL must write a name with `-` in backticks: `{operator.name}`")
    marked = check_watermarks(step)
    check_late(step)
    if operator.call is not None:
        found = call_problem(operator, step.deployment.folder)
        if found is not None:
            step.error(*found)
        return operator.schema
    return _check_sql(step, marked)


def _check_sql(step: Step, marked: dict[str, str]) -> Columns:
    operator = step.operator
    if operator.args:
        step.error("args", "belong to a `call`; SQL takes none")
    if operator.stateful is not None:
        step.error("stateful", "belongs to a `call`; of SQL it is known")
    if operator.pure:
        step.error("pure", "belongs to a `call`; of SQL it is known")
    try:
        tree = parsed(operator.sql or "")
        if step.followed.found is None:
            raise RecursionError
        _check_reads(step, step.followed.found)
        for message, line in unknown_functions(operator.sql or "", tree, step.deployment):
            step.error("sql", message, line)
        check_statement(step, tree)
        check_numbers(step, tree)
        if not any(sink.from_ == operator.name and sink.mode == "update" for sink in step.query.sinks):
            check_append(step, tree, marked)
    except SqlError as error:
        step.error("sql", str(error), error.line)
        return None
    except RecursionError:
        step.error("sql", "is nested too deep to be read; split it into several operators")
        return None
    return step.followed.columns


def _check_reads(step: Step, found: Found) -> None:
    for message, line in found.problems:
        step.error("sql", message, line)
    unread = [name for name in step.operator.from_ if name.lower() not in found.used]
    if unread and not found.problems:
        step.error("sql", f"never reads its input {listed(unread)}; read it, or take it out of `from`")
    alike = called_alike(step.operator)
    if alike is not None:
        step.error("sql", f"calls both `{alike[0]}` and `{alike[1]}` by one name; give them names of their own with AS")
    declared = [column.name for column in step.operator.schema or ()]
    if declared and found.names is not None and [one.lower() for one in found.names] != [d.lower() for d in declared]:
        step.error("schema", f"says {listed(declared)}, the SQL gives {listed(found.names)}; make them the same")
    for text in found.unnamed:
        step.warn("sql", f"`{text}` has no name of its own; add `AS name`, so that others can ask for it")


def _check_sinks(
    deployment: Deployment,
    query: Query,
    known: Mapping[str, Columns],
    path: str,
    problems: Problems,
    made: Mapping[str, Query],
    between: Mapping[str, list[str]],
) -> None:
    operators = {operator.name: operator for operator in query.operators}
    for index, sink in enumerate(query.sinks):
        field = f"{path}.sink" + (f"[{index}]" if len(query.sinks) > 1 else "")
        check_site(sink.site, f"{field}.site", deployment, problems)
        if sink.from_ not in operators:
            of_another = sink.from_ in made
            if of_another or any(source.name == sink.from_ for source in deployment.sources):
                what = "of another query" if of_another else "a source"
                says = f"`{sink.from_}` is {what}; put an operator between, as SELECT * FROM {sink.from_}"
            else:
                says = unknown("operator of this query", sink.from_, operators)
            problems.error(f"{field}.from", says)
            continue
        _check_mode(query, sink, operators[sink.from_], field, problems, between.get(f"{query.name}.{sink.from_}", []))
        columns = known.get(sink.from_)
        nested = nested_in(columns, operators[sink.from_]) if sink.facts.flat else {}
        if nested:
            problems.error(f"{field}.format", says_nested(nested, sink.from_, sink.format))
        names = [column.name for column in columns or ()]
        for place, key in enumerate(sink.key):
            if columns is not None and key.lower() not in (name.lower() for name in names):
                says = f"`{sink.from_}` has no column `{key}`; it has: {listed(names)}{did_you_mean(key, names)}"
                problems.error(f"{field}.key" + (f"[{place}]" if len(sink.key) > 1 else ""), says)


def _check_mode(
    query: Query, sink: Sink, operator: Operator, field: str, problems: Problems, elsewhere: list[str]
) -> None:
    if sink.mode == "append":
        if sink.key and not sink.facts.has_topic:
            problems.error(f"{field}.key", "belongs to `mode: update`; append keeps every record")
        return
    readers = [*(one.name for one in query.consumers(operator.name)), *elsewhere]
    if readers:
        says = f"`{operator.name}` in update mode may feed only a sink, but `{readers[0]}` reads it"
        problems.error(f"{field}.mode", f"{says}; use `mode: append`")
    if any(other.from_ == operator.name and other.mode == "append" for other in query.sinks):
        says = f"`{operator.name}` also feeds a sink in append mode; give all its sinks one mode"
        problems.error(f"{field}.mode", says)
    check_update(operator, sink.key, f"{field}.mode", problems)
