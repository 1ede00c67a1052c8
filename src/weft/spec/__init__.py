"""What did the user write? Files and the Python API, to model; every error names file, line and field."""

from weft.spec.ddl import ddl
from weft.spec.keys import AVAILABLE_POLICIES, schema
from weft.spec.problems import Problem, Report, SpecError
from weft.spec.reading import as_plain, check, load, validate

__all__ = ["AVAILABLE_POLICIES", "Problem", "Report", "SpecError", "as_plain", "check", "ddl", "load", "schema", "validate"]
