"""The fuzzed readers on their seeds, on some changed seeds, and on what was found. `make fuzz` looks for more."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fuzz_targets import TARGETS, attempt, mutated

_CHANGED = 4


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_are_read_and_changed_ones_do_no_harm(name: str, tmp_path: Path) -> None:
    target, random = TARGETS[name], np.random.default_rng(7)
    seeds = target.seeds()
    num_read = sum(attempt(target, seed, tmp_path) for seed in seeds)
    assert num_read > 0
    for number in range(_CHANGED):
        attempt(target, mutated(seeds[number % len(seeds)], random), tmp_path)


# Bytes that were no known problem of one line, once.
FOUND = [
    ("settings", b"[text]\nsegmenter = " + b"[" * 3000),
    ("task", b"\0" + b"[" * 100_000),
    # A file without a name in an archive.
    ("published-zip", b"\0PK\1\2" + bytes(42) + b"PK\5\6" + bytes(4) + b"\1\0\1\0\x2e\0\0\0" + bytes(6)),
    ("index", bytes.fromhex("0c0074000000000000000a0000000000000000000000")),  # words with line feeds in a suggestion
]


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found(name: str, data: bytes, tmp_path: Path) -> None:
    attempt(TARGETS[name], data, tmp_path)


WRONG = (None, [], {}, "", "好", -1, 0, 1.5, 2**63, float("nan"), True, [[]], {"a": 1}, "\ud800")


def places_in(value: object, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The keys that lead to each value of a JSON object."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*place, key)
            yield from places_in(inner, (*place, key))


@pytest.mark.parametrize("name", ["task", "index", "bundle", "published-of-characters", "manylangs"])
def test_each_value_of_the_description_wrong(name: str, tmp_path: Path) -> None:
    """JSON that fuzzers seldom make: whole, but with one value of another type."""
    target = TARGETS[name]
    seed = next(seed for seed in target.seeds() if seed[1:2] == b"{")
    described = json.loads(seed[1:])
    for number, place in enumerate(places_in(described)):
        for wrong in WRONG[number % 7 :: 7]:
            changed = json.loads(seed[1:])
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = wrong
            attempt(target, seed[:1] + json.dumps(changed).encode(), tmp_path)
