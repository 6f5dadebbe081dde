"""The fuzzed readers on their seeds, on some changed seeds, and on what was found. `make fuzz` looks for more."""

from pathlib import Path

import numpy as np
import pytest
from fuzz_targets import TARGETS, attempt, mutated

_CHANGED = 8


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_and_changed_ones_do_no_harm(name: str, tmp_path: Path) -> None:
    target, random = TARGETS[name], np.random.default_rng(7)
    seeds = target.seeds()
    num_read = sum(attempt(target, seed, tmp_path) for seed in seeds)
    assert num_read > 0
    for number in range(_CHANGED):
        attempt(target, mutated(seeds[number % len(seeds)], random), tmp_path)


# Bytes that were no known problem of one line, once.
FOUND: list[tuple[str, bytes]] = []


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found(name: str, data: bytes, tmp_path: Path) -> None:
    attempt(TARGETS[name], data, tmp_path)
