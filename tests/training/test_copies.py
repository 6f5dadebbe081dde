"""Held-out text that is not new: how much of it is, and what the verdict says."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from training.test_baselines import encoded, held_out
from training.test_verdict import GOOD, STOPPED

from elmo_zh.id_store.encoded_sentences import IdStore
from elmo_zh.training import evaluation
from elmo_zh.training.evaluation import share_of_copies
from elmo_zh.training.verdict import judge
from elmo_zh.vocabulary.lexicon import Lexicon
from elmo_zh.vocabulary.vocabulary import SPECIALS, Vocabulary


def store_of(train: Sequence[Sequence[int]], heldout: Sequence[Sequence[int]]) -> IdStore:
    return IdStore(encoded(train), held_out(heldout), Lexicon(Vocabulary(SPECIALS), None))


RUN = list(range(10, 18))


@pytest.mark.parametrize("sentences_read", [1, 50_000])
def test_sentences_that_share_a_run_of_eight_are_counted(monkeypatch: pytest.MonkeyPatch, sentences_read: int) -> None:
    monkeypatch.setattr(evaluation, "_SENTENCES_READ", sentences_read)
    train = [[3, *RUN, 4], list(range(30, 50)), [5] * 7, RUN[:4], RUN[4:]]
    not_trained = [
        [*RUN, 60],  # a run
        [60, 61, *range(42, 50)],  # a run at the end
        [*RUN[:7], 60, 61],  # only seven
        RUN[::-1],
        [5] * 7,  # too short to count
    ]
    assert share_of_copies(store_of(train, not_trained)) == 2 / 4


def test_runs_do_not_cross_sentences_and_without_long_ones_nothing_is_known() -> None:
    assert share_of_copies(store_of([RUN[:4], RUN[4:]], [RUN])) == 0
    assert share_of_copies(store_of([RUN], [[10, 11], []])) == 0


@pytest.mark.parametrize(
    ("changes", "flattered"),
    [
        ({"share_of_copies": 0.41}, "41% of the held-out sentences share a sequence of 8 tokens with the training"),
        ({"perplexity": 3.0}, "A perplexity this low means that the text repeats a few patterns, so its held-out part"),
    ],
)
def test_no_praise_for_text_that_is_not_new(changes: dict[str, float], flattered: str) -> None:
    verdict = judge(replace(GOOD, **changes))
    assert verdict.findings[1].startswith(flattered)
    assert verdict.findings[2:] == (STOPPED,)
    assert verdict.findings[0].endswith(" the bigram model's 200.0.")
    assert verdict.advice == "Measure the model on text that it has not seen"
    assert verdict.command == "{program} evaluate other.txt --model {run}/model"


def test_the_verdict_counts_near_copies() -> None:
    assert judge(replace(GOOD, share_of_copies=0.26)) == judge(GOOD)  # a few formulas
    kept_apart = judge(replace(GOOD, near_copies_trained=7))
    assert kept_apart.findings == (
        judge(GOOD).findings[0],
        "The held-out text has no near copies in the training text, because text with near copies (7 paragraphs) was"
        " not held out.",
        STOPPED,
    )
    assert kept_apart.command == judge(GOOD).command
    flattered = judge(replace(GOOD, near_copies_trained=7, near_copies_heldout=5))
    assert flattered.findings[1:] == (
        "The training text contains near copies of 5 paragraphs in the held-out text, so this perplexity flatters the"
        " model: on other text, the perplexity will be higher.",
        STOPPED,
    )
    assert flattered.command == "{program} evaluate other.txt --model {run}/model"
