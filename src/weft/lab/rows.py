"""All lab rows of the catalogue, and the files that measure them so far."""

from __future__ import annotations

from weft.lab import (
    d_lab1,
    d_lab2,
    d_lab4,
    d_lab5,
    n_lab1,
    n_lab2,
    o_lab1,
    o_lab2,
    o_lab3,
    o_logs,
    p_lab1,
    p_lab2,
    p_lab3,
    p_lab4,
    p_lab5,
    s_lab1,
    s_lab2,
    s_lab3,
    s_lab4,
    s_lab5,
    s_lab6,
)
from weft.lab.frame import Row, Unmeasured

_FILES = (
    n_lab1, n_lab2, p_lab1, p_lab2, p_lab3, p_lab4, p_lab5, d_lab1, d_lab2, d_lab4, d_lab5, o_lab1, o_logs, o_lab2,
    o_lab3, s_lab1, s_lab2, s_lab3, s_lab4, s_lab5, s_lab6,
)  # fmt: skip
ROWS: dict[str, Row] = {file.ROW.id: file.ROW for file in _FILES}

PLANNED: dict[str, str] = {
    "N-lab1": "tree balancing: total overload, overloaded sites, deviation",
    "N-lab2": "tree balancing: 15 runs of similar settings",
    "P-lab1": "potential against latency, schemes 2 and 5",
    "P-lab2": "greedy, dynamic programming and original over chain length",
    "P-lab3": "weights: latency against w_l and w_n",
    "P-lab4": "theta from 0 to 1; loads follow quotas",
    "P-lab5": "against XZH in scheme 6",
    "D-lab1": "five operators follow a Brownian load",
    "D-lab2": "sinusoid with and without safe mode; messages",
    "D-lab3": "taxi pipeline",
    "D-lab4": "messages of 2-FGME, RA1, RA2",
    "D-lab5": "occupancy and latency of 2-FGME",
    "O-lab1": "ordering: misses and detection latency",
    "O-logs": "ordering of real disordered logs against every fixed hold",
    "O-lab2": "migration of an operator with four inputs",
    "O-lab3": "online optimisation of 8 operators on 2 sites",
    "S-lab1": "composition against Random and Composition",
    "S-lab2": "composition at 500 sites",
    "S-lab3": "accuracy of projected impact on regular and bursty streams; selectivity on real traffic",
    "S-lab4": "prediction of rates and execution times on 34 sites",
    "S-lab5": "misses and delay with and without relief of hot spots; moves and load updates",
    "S-lab6": "replicas and availability against four rivals; exact enumeration",
}

UNMEASURED: dict[str, Unmeasured] = {
    "D-lab3": Unmeasured(
        "the taxi pipeline follows its rate",
        "Belkhiria 2021, section 4.3, figures 4.6 and 4.8",
        {
            "instances": "of inZone follow the rate: 200 records/s, 500 from 300 s, low from 600 s",
            "capacity over threads": "linear up to the cores, then flat",
        },
        "it needs several instances of an operator in a live run; `control: {scale: ...}` acts in the twin only. "
        "`examples/taxi` runs the pipeline with one instance of each operator",
    )
}
ALL: dict[str, Row | Unmeasured] = {name: ROWS.get(name) or UNMEASURED[name] for name in PLANNED}
