# SPDX-License-Identifier: Apache-2.0
"""When a build is not slower than another: the statistics of run.py --against.

A pair is two processes, one of each build, one right after the other: what disturbs the machine for longer than that meets both. The
ratio of a pair is new / old; the median of the ratios counts. A figure above its limit may be an accident and is measured again with
three times as many pairs, of which the figures then stand.
"""

import statistics
from typing import NamedTuple

TIME_LIMIT, MEMORY_LIMIT = 1.02, 1.01
AGAIN = 3  # times as many pairs


class Ratios(NamedTuple):
    time: float  # median over the pairs of the ratio of their median steps
    least: float  # the least step of all processes of a build, for information
    memory: float  # median over the pairs of the ratio of their peaks
    n_pairs: int


def ratios(pairs):
    """Of a list of (new, old), each {"ms": median step, "least": least step, "peak": memory}."""
    return Ratios(time=statistics.median(new["ms"] / old["ms"] for new, old in pairs),
                  least=min(new["least"] for new, _ in pairs) / min(old["least"] for _, old in pairs),
                  memory=statistics.median(new["peak"] / old["peak"] for new, old in pairs),
                  n_pairs=len(pairs))


def above(result):
    """What of the result is above its limit: some of "time" and "memory"."""
    limits = {"time": (result.time, TIME_LIMIT), "memory": (result.memory, MEMORY_LIMIT)}
    return [what for what, (figure, limit) in limits.items() if figure > limit]


def new_goes_first(i_pair):
    """The order alternates: whatever the second process finds changed by the first cancels out."""
    return i_pair % 2 == 0


def decide(measure, n_pairs):
    """The pairs that count, and their ratios. `measure(n)` gives n new pairs."""
    pairs = measure(n_pairs)
    if above(ratios(pairs)):
        pairs = measure(AGAIN * n_pairs)
    return pairs, ratios(pairs)
