"""Puts logs of a network into data/: flows seen at two edges, and lookups at a resolver, in the order they are written.

They are those of flows.csv and dns.csv where WEFT_DATA names their folder, else made up: few pairs that send much and
many that send little, clients that ask the same name again and again, records written late. The same ones every time.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
EDGES = 2
START = np.datetime64("2018-12-21T15:00:00", "us")
FLOWS_SPAN_S = 3 * 3600
FLOW_LATE_S_MAX = 290  # within the five minutes that `heavy` waits
DNS_SPAN_S = 250
DNS_LATE_S_MAX = 115  # within the two minutes that `lookups` waits
HOSTS, SERVERS, CLIENTS, NAMES = 10, 30, 58, 560
FLOW_COLUMNS = {
    "ts": "ts", "id.orig_h": "src", "id.orig_p": "sport", "id.resp_h": "dst", "id.resp_p": "dport", "proto": "proto",
    "conn_state": "state", "orig_ip_bytes": "sent_bytes", "resp_ip_bytes": "received_bytes",
}  # fmt: skip
DNS_COLUMNS = {
    "ts": "ts", "id.orig_h": "client", "id.resp_h": "server", "query": "name", "qtype_name": "kind",
    "rcode_name": "outcome",
}  # fmt: skip


def recorded() -> Path | None:
    """The folder of the recorded logs, None where there are none."""
    data = os.environ.get("WEFT_DATA")
    folder = Path(data) if data else None
    there = folder is not None and all((folder / name).is_file() for name in ("flows.csv", "dns.csv"))
    return folder if there else None


def fill(folder: Path, records: int = 12_000, seed: int = 7, made_up: bool = False) -> str:
    """Write the flows of each edge and the lookups, up to so many of either; says where they are from."""
    folder.mkdir(parents=True, exist_ok=True)
    source = None if made_up else recorded()
    if source is None:
        flows, lookups, origin = made_flows(records, seed), made_lookups(records, seed + 1), f"made up with seed {seed}"
    else:
        flows, lookups, origin = _recorded_flows(source, records), _recorded_lookups(source, records), f"from {source}"
    edge = flows["dst"].map(lambda address: sum(map(int, address.split("."))) % EDGES)
    for number in range(EDGES):
        flows[edge == number].to_csv(folder / f"flows-{number + 1}.csv", index=False, lineterminator="\n")
    lookups.to_csv(folder / "dns.csv", index=False, lineterminator="\n")
    return f"{len(flows):,} flows and {len(lookups):,} lookups, {origin}"


def _recorded_flows(source: Path, records: int) -> pd.DataFrame:
    """Recorded flows with the moment they ended: their log is in that order, not in that of their beginnings."""
    table = pd.read_csv(source / "flows.csv", nrows=records)
    ended_s = table["ts"] + table["duration"].fillna(0)
    return table.assign(ts=_moments(ended_s))[list(FLOW_COLUMNS)].rename(columns=FLOW_COLUMNS)


def _recorded_lookups(source: Path, records: int) -> pd.DataFrame:
    table = pd.read_csv(source / "dns.csv", nrows=records).sort_values("arrival_seq")
    return table.assign(ts=_moments(table["ts"]))[list(DNS_COLUMNS)].rename(columns=DNS_COLUMNS)


def made_flows(records: int, seed: int) -> pd.DataFrame:
    """Flows of some hosts with some servers, both as uneven as they are in life."""
    rng = np.random.default_rng(seed)
    ended_s = np.sort(rng.uniform(0, FLOWS_SPAN_S, records))
    host, server = _uneven(rng, HOSTS, records), _uneven(rng, SERVERS, records)
    silent = rng.random(records) < 0.4
    sent = np.where(silent, 0, rng.pareto(1.1, records) * 120 + 40).astype(np.int64)
    received = np.where(silent, 0, rng.pareto(1.1, records) * 400 + 40).astype(np.int64)
    table = pd.DataFrame({
        "ts": _moments(ended_s, START),
        "src": np.char.add("10.47.1.", (host + 10).astype(str)),
        "sport": rng.integers(1024, 65_535, records),
        "dst": np.char.add("203.0.113.", (server + 1).astype(str)),
        "dport": rng.choice([80, 443, 53, 123, 6667], size=records, p=[0.3, 0.4, 0.1, 0.1, 0.1]),
        "proto": np.where(rng.random(records) < 0.85, "tcp", "udp"),
        "state": np.where(silent, "S0", "SF"),
        "sent_bytes": sent,
        "received_bytes": received,
    })  # fmt: skip
    return _as_written(rng, table, ended_s, 0.18, FLOW_LATE_S_MAX)


def made_lookups(records: int, seed: int) -> pd.DataFrame:
    """Lookups in bursts: a client asks a name several times within a moment. Some names do not exist."""
    rng = np.random.default_rng(seed)
    bursts = max(1, records // 4)
    burst = rng.integers(0, bursts, records)
    began_s = rng.uniform(0, DNS_SPAN_S, bursts)[burst]
    asked_s = began_s + rng.exponential(0.3, records)
    client, name = _uneven(rng, CLIENTS, bursts)[burst], _uneven(rng, NAMES, bursts)[burst]
    kinds = rng.choice(["A", "AAAA", "PTR"], size=bursts, p=[0.7, 0.26, 0.04])[burst]
    table = pd.DataFrame({
        "ts": _moments(asked_s, START),
        "client": np.char.add("10.47.3.", (client + 10).astype(str)),
        "server": "10.0.0.100",
        "name": np.char.add("name-", name.astype(str)),
        "kind": kinds,
        "outcome": np.where(name % 11 == 5, "NXDOMAIN", np.where(rng.random(records) < 0.1, "", "NOERROR")),
    })  # fmt: skip
    return _as_written(rng, table, asked_s, 0.2, DNS_LATE_S_MAX)


def _uneven(rng: np.random.Generator, choices: int, count: int) -> np.ndarray:
    weights = 1 / np.arange(1, choices + 1)
    return rng.choice(choices, size=count, p=weights / weights.sum())


def _as_written(
    rng: np.random.Generator, table: pd.DataFrame, moments_s: np.ndarray, late_share: float, late_s_max: float
) -> pd.DataFrame:
    """The records in the order of their log, which some of them reach late."""
    late_s = np.where(rng.random(len(table)) < late_share, rng.uniform(0, late_s_max, len(table)), 0)
    return table.iloc[np.argsort(moments_s + late_s, kind="stable")]


def _moments(seconds: np.ndarray | pd.Series, start: np.datetime64 | None = None) -> pd.Series:
    since = np.datetime64(0, "us") if start is None else start
    whole = np.round(np.asarray(seconds) * 1e6).astype(np.int64)
    return pd.Series(since + whole.astype("timedelta64[us]")).dt.strftime("%Y-%m-%d %H:%M:%S.%f").to_numpy()


def main() -> None:
    """Fill data/ beside this file."""
    parser = argparse.ArgumentParser(description="Make the logs that deployment.yaml reads.")
    parser.add_argument("--records", type=int, default=12_000, help="flows and lookups, so many each at most")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--made-up", action="store_true", help="make logs up even where WEFT_DATA has recorded ones")
    asked = parser.parse_args()
    print(f"{HERE / 'data'}: {fill(HERE / 'data', asked.records, asked.seed, asked.made_up)}")


if __name__ == "__main__":
    main()
