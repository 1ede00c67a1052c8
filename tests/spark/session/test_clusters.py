"""A site on a standalone cluster: code travels to its executors, and results are those of one process."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.spark.session.clusters import Cluster
from weft.spark.session.code import NAME, TooMuchCode, packed_code

RULES = """
import os
import helpers.sums

def marked(df):
    from pyspark.sql.functions import udf
    driver = os.getpid()
    return df.withColumn("v", udf(helpers.sums.twice, "bigint")("v")).withColumn(
        "elsewhere", udf(lambda v: os.getpid() != driver, "boolean")("v"))
"""
FILE = """
weft: 1
sites: [{{name: edge}}, {{name: core}}]
links: [{{from: edge, to: core, delay_ms: 1}}]
spark: {{master: "{master}", conf: {{spark.cores.max: "2"}}}}
sources:
  - {{name: played, site: edge, format: replay, path: played.csv, schema: "ts TIMESTAMP, k STRING, v BIGINT",
     event_time: ts, arrivals: {{kind: constant, rate_per_s: 100}}}}
queries:
  - name: q
    operators:
      - {{name: marked, from: [played], call: "rules:marked", site: edge}}
      - {{name: total, from: [marked], sql: "SELECT window(ts, '10 seconds') w, k, sum(v) v, bool_and(elsewhere) e
         FROM marked GROUP BY 1, 2", watermark: 5 seconds, site: core}}
    sink: {{from: total, format: json, path: out/total}}
"""
RUN_S_MAX = 600.0


def written(folder: Path) -> None:
    (folder / "rules.py").write_text(RULES)
    (folder / "helpers").mkdir()
    (folder / "helpers" / "__init__.py").write_text("")
    (folder / "helpers" / "sums.py").write_text("def twice(v):\n    return 2 * v\n")


def test_the_code_that_travels_is_weft_and_what_lies_beside_the_file(folder: Path) -> None:
    written(folder)
    (folder / "data").mkdir()
    (folder / "data" / "big.py").write_text("")
    (folder / ".hidden.csv").write_text("")
    (folder / "to").mkdir()
    packed = packed_code(folder / "to", [str(folder)])
    names = set(zipfile.ZipFile(packed).namelist())
    assert packed.name == NAME
    assert {"rules.py", "helpers/__init__.py", "helpers/sums.py", "weft/spark/channels/reader.py"} <= names
    assert not any(name.startswith(("data/", "to/", ".")) for name in names)


def test_a_folder_with_too_much_code_is_refused_by_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("weft.spark.session.code.FILES_MAX", 3)
    with pytest.raises(TooMuchCode, match="give it a folder of its own"):
        packed_code(folder, [str(folder)])


@pytest.mark.long
@pytest.mark.spark
def test_a_deployment_runs_on_a_cluster_with_its_python_files(folder: Path) -> None:
    written(folder)
    wanted: dict[tuple[int, str], int] = {}
    with open(folder / "played.csv", "w", encoding="utf-8") as lines:
        for i in range(300):
            lines.write(f"2024-01-01T00:00:{i // 10:02d}Z,k{i % 3},{i}\n")
            wanted[i // 100, f"k{i % 3}"] = wanted.get((i // 100, f"k{i % 3}"), 0) + 2 * i
    file = folder / "weft.yaml"
    with Cluster(folder / "cluster") as cluster:
        file.write_text(FILE.format(master=cluster.master))
        command = [sys.executable, "-m", "weft", "run", str(file), "--until-done", "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]
    texts = [path.read_text() for path in (folder / "out/total").glob("*.json")]
    rows = [json.loads(line) for text in texts for line in text.splitlines()]
    assert {(int(row["w"]["start"][17:19]) // 10, row["k"]): row["v"] for row in rows} == wanted
    assert len(rows) == len(wanted)
    assert all(row["e"] for row in rows), "functions ran in other processes than this one"
