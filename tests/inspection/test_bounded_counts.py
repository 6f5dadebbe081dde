"""Counts in bounded memory."""

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from elmo_zh.inspection.segmented_text import BoundedCounts


def test_while_there_is_room_counts_are_exact() -> None:
    counts = BoundedCounts(3)
    counts.update("abcabca")
    assert counts.most_common() == [("a", 3), ("b", 2), ("c", 2)]
    assert counts.most_common(1) == [("a", 3)]


def test_the_rarest_are_dropped_and_reported() -> None:
    gone: Counter[str] = Counter()
    counts = BoundedCounts(2, lambda thing, count: gone.update({thing: count}))
    counts.update("aaabbcd")
    assert not gone
    counts.update("e")
    assert [thing for thing, _ in counts.most_common()] == ["a", "b"]
    assert gone == {"c": 1, "d": 1, "e": 1}


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=2), max_size=200), st.integers(1, 5))
def test_nothing_is_lost_on_the_whole_and_nothing_counted_too_high(things: list[str], most: int) -> None:
    gone: Counter[str] = Counter()
    counts = BoundedCounts(most, lambda thing, count: gone.update({thing: count}))
    for thing in things:
        counts.update([thing])
    kept = dict(counts.most_common())
    truth = Counter(things)
    assert len(kept) <= 2 * most
    assert Counter(kept) + gone == truth
    assert all(count <= truth[thing] for thing, count in kept.items())


def test_the_frequent_stay_exact_among_many() -> None:
    chance = random.Random(5)
    counts = BoundedCounts(100)
    for _ in range(20_000):
        counts.update([f"frequent {chance.randrange(10)}", f"rare {chance.randrange(10**9)}"])
    found = counts.most_common(10)
    assert all(thing.startswith("frequent") for thing, _ in found)
    assert sum(count for _, count in found) == 20_000
