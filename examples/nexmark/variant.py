"""Writes a variant of deployment.yaml beside it: all operators on one site, or without pins, or only some queries.

    python examples/nexmark/variant.py one-site
    python examples/nexmark/variant.py free q3 q7
    weft run examples/nexmark/one-site.yaml --until-done --fresh

Results do not depend on where operators run, so every variant gives the same rows.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
FILE = HERE / "deployment.yaml"
KINDS = {
    "one-site": "every source, operator and sink on one site",
    "free": "no operator pinned: the planner chooses",
    "spread": "pinned as in deployment.yaml; for a choice of queries",
}


def variant(kind: str, queries: tuple[str, ...] = ()) -> dict[str, Any]:
    """The deployment with other pins, and with the named queries only where some are named."""
    plain: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    names = [query["name"] for query in plain["queries"]]
    unknown = sorted(set(queries) - set(names))
    if unknown:
        raise SystemExit(f"no query {', '.join(unknown)} in {FILE.name}; there are: {', '.join(names)}")
    plain["queries"] = [query for query in plain["queries"] if not queries or query["name"] in queries]
    for query in plain["queries"]:
        for operator in query["operators"]:
            if kind != "spread":
                del operator["site"]
    read = {name for query in plain["queries"] for one in query["operators"] for name in _listed(one["from"])}
    plain["sources"] = [source for source in plain["sources"] if source["name"] in read]
    if kind == "one-site":
        plain["sites"] = [{"name": "market", "capacity": 2.0}]
        plain["links"] = []
        for source in plain["sources"]:
            source["site"] = "market"
    return plain


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def main() -> None:
    """Write the variant and say how to run it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=KINDS, help="; ".join(f"{kind}: {what}" for kind, what in KINDS.items()))
    parser.add_argument("queries", nargs="*", help="only these (default all)")
    asked = parser.parse_args()
    path = HERE / f"{'-'.join([asked.kind, *asked.queries])}.yaml"
    written = yaml.safe_dump(variant(asked.kind, tuple(asked.queries)), sort_keys=False, width=110)
    path.write_text(f"# Written by variant.py from {FILE.name}: {KINDS[asked.kind]}.\n{written}", encoding="utf-8")
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
