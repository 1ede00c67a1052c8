"""Which operators want their records in order, and by which column?"""

from __future__ import annotations

from dataclasses import replace

from weft.model import Deployment, Operator, Order, Watermark
from weft.spec.ddl import is_timestamp
from weft.spec.facts import is_stateful
from weft.spec.problems import did_you_mean, listed
from weft.spec.step import Step
from weft.spec.streams import event_time_of

AT_ONCE = "0 seconds"


def order_of(deployment: Deployment, operator: Operator) -> Order | None:
    """How an operator wants its records ordered: as it says, else as `control` says of all that keep state."""
    if operator.order is not None or deployment.control.order is None:
        return operator.order
    return deployment.control.order if is_stateful(operator) else None


def with_ordered_time(operator: Operator, order: Order) -> Operator:
    """Ordering replaces the fixed watermark: what reads records in order need not wait for any of them."""
    return operator if operator.watermarks else replace(operator, watermarks=(Watermark(AT_ONCE, order.time),))


def check_order(step: Step) -> Step:
    """Reports an order by what is no time; the step goes on with the watermark that ordering gives."""
    order = order_of(step.deployment, step.operator)
    if order is None:
        return step
    own = step.operator.order is not None
    for name in step.operator.from_:
        column = order.time or event_time_of(step.deployment, step.query, name, step.inputs)
        if column is None:
            if own and step.clean:
                step.error("order", f"`{name}` has no known event time; name its column: {{time: ...}}")
            return step
        columns = step.inputs.get(name)
        found = next((one for one in columns or () if one.name.lower() == column.lower()), None)
        if own and columns is not None and found is None:
            names = [one.name for one in columns]
            says = f"`{name}` has no column `{column}`; it has: {listed(names)}{did_you_mean(column, names)}"
            step.error("order.time", says)
            order = replace(order, time=None)
        elif own and found is not None and found.type is not None and not is_timestamp(found.type):
            step.error("order.time", f"`{column}` is {found.type}; records are ordered by a TIMESTAMP column")
            order = replace(order, time=None)
    if not is_stateful(step.operator):
        return step
    return replace(step, followed=replace(step.followed, operator=with_ordered_time(step.operator, order)))
