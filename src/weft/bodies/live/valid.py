"""Can a deployment run as it was built? What the checks of files find is told of one built in Python, too."""

from __future__ import annotations

from weft.model import Deployment
from weft.plan.dataflow.ordering import is_ordering
from weft.spec import SpecError, validate, with_named_reads

BUILT = "deployment"


def valid(deployment: Deployment, data: bool = True) -> Deployment:
    """The deployment, its SQL as if read from a file; SpecError tells everything that is wrong with it at once.

    Without `data` the files that sources read need not be here.
    """
    errors, _ = validate(deployment, data)
    wrong = [error for error in errors if error.field not in _written_out(deployment)]
    if wrong:
        raise SpecError(BUILT, wrong)
    return with_named_reads(deployment)


def _written_out(deployment: Deployment) -> set[str]:
    """The fields of ordering operators, which no file holds: they stand for what one asks for."""
    try:
        return {
            f"queries[{at}].operators[{number}]"
            for at, query in enumerate(deployment.queries)
            for number, operator in enumerate(query.operators)
            if is_ordering(operator)
        }
    except (AttributeError, TypeError):  # not even of the right shape
        return set()
