"""How well does one series follow others, some periods behind them? All lags and all others at once."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LIKE_NOTHING = 1e-12
"""What varies by no more than such a share of its size is constant but for rounding."""


def correlations(own: Floats, others: Floats, lags: int) -> Floats:
    """The correlation (Synergy eq. 3.7) of a series with each of some others by lag: a row for each, from lag 1 on.

    It is of those samples only that lie side by side; 0 where one of the two is constant there.
    """
    at, beside, counts = _beside(len(own), lags)
    # Samples that lie side by side with nothing count as 0, once the mean of the others is taken away.
    one = own[at] * beside
    one -= (one.sum(axis=1) / counts)[:, None]
    one *= beside
    ahead = others[:, None, :-1] - (others.cumsum(axis=1)[:, -2 : -2 - lags : -1] / counts)[:, :, None]
    ahead *= beside
    size = np.einsum("kln,kln->kl", ahead, ahead)
    size *= (one * one).sum(axis=1)
    np.sqrt(size, out=size)
    greatest = np.maximum.accumulate(np.abs(others), axis=1)[:, -2 : -2 - lags : -1]
    own_greatest = np.maximum.accumulate(np.abs(own[::-1]))[-2 : -2 - lags : -1]
    varies = size > LIKE_NOTHING * np.maximum(1.0, greatest * own_greatest)
    found = np.zeros(size.shape)
    np.divide(np.einsum("kln,ln->kl", ahead, one), size, out=found, where=varies)
    return found


@lru_cache(maxsize=256)
def _beside(count: int, lags: int) -> tuple[NDArray[np.intp], Floats, Floats]:
    """For every lag: which own samples lie beside the first, second, ... of another, whether any does, and how many."""
    moments, behind = np.arange(count - 1), np.arange(1, lags + 1)[:, None]
    at = moments[None, :] + behind
    beside = at < count
    return np.where(beside, at, 0), beside.astype(float), beside.sum(axis=1).astype(float)
