"""Minimal pairs: the costs are those of single lines, and every form of table gives the same."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import elmo_zh
from drawn_bundles import SHAPES, write_model

from elmo_zh.config import TextConfig
from elmo_zh.contexts.line_scorer import LineScore, LineScorer

PAIRS = (("我们 吃 苹果", "苹果 吃 我们", "order"), ("齉 很 贵", "很 齉 贵", "unknown"), ("都 贵", "都 贵", "order"))


@pytest.fixture(scope="module")
def scored_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs") / "model"
    return write_model(folder, SHAPES["token"], text=TextConfig(segmenter="whitespace"), with_softmax=True)


def write_pairs() -> Path:
    path = Path("pairs.csv")
    path.write_text("".join(f"{','.join(row)}\n" for row in (("good", "bad", "kind"), *PAIRS)), encoding="utf-8")
    return path


def test_costs_are_those_of_the_lines(scored_model: Path) -> None:
    options = ("--pairs", "good,bad,kind", "--model", scored_model, "--output", "out.jsonl", "--json")
    result = elmo_zh("score", write_pairs(), *options).result()
    scorer = LineScorer.load(scored_model)
    costs = [[s.mean_nats + s.spelling_nats for s in scorer.score(list(pair[:2]))] for pair in PAIRS]
    rows = [json.loads(line) for line in Path("out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [[row["first_nats"], row["second_nats"]] for row in rows] == [
        pytest.approx(cost, rel=1e-5) for cost in costs
    ]
    right = [first < second for first, second in costs]
    assert [bool(row["is_right"]) for row in rows] == right
    assert (result["pairs"], result["right"]) == (3, sum(right))
    perplexities = [[s.perplexity or 0 for s in scorer.score(list(pair[:2]))] for pair in PAIRS]
    lower = [first < second for first, second in perplexities]
    # Each sentence has its tokens and one mark to predict.
    lengths = [[len(sentence.split()) + 1 for sentence in pair[:2]] for pair in PAIRS]
    scaled = -np.array(costs) / np.sqrt(lengths)
    np.testing.assert_allclose([[row["first_slln_lp"], row["second_slln_lp"]] for row in rows], scaled, rtol=1e-5)
    higher = [first > second for first, second in scaled]
    expected = {
        "pairs": 2,
        "right": int(right[0]),
        "right_by_perplexity": int(lower[0]),
        "right_by_slln_lp": int(higher[0]),
    }
    assert result["groups"]["order"] == expected  # equal sentences are not right
    assert (result["right_by_perplexity"], result["right_by_slln_lp"]) == (sum(lower), sum(higher))


def test_the_measures_differ_where_lengths_do() -> None:
    """By hand: 36 nats for 9 predictions and 30 for 4 are 12 and 15 by the square root, 4 and 7.5 by the length."""

    def line(nats: float, num_predictions: int, spelling_nats: float) -> LineScore:
        return LineScore(
            num_sentences=1,
            num_tokens=num_predictions - 1,
            num_characters=num_predictions,
            forward_nats=nats - 1,
            backward_nats=nats + 1,
            spelling_nats=spelling_nats,
        )

    long, short = line(33.0, 9, 3.0), line(30.0, 4, 0.0)
    assert (long.slln_lp, short.slln_lp) == (-12, -15)
    assert long.mean_nats + long.spelling_nats > short.mean_nats + short.spelling_nats
    assert long.perplexity == pytest.approx(math.exp(33 / 9))
    assert replace(long, num_sentences=0).slln_lp is None


@pytest.mark.parametrize("mode", ["token", "character"])
@pytest.mark.parametrize("batch_tokens", [11, 2048])
def test_shared_contexts_change_no_cost(
    tmp_path: Path, mode: str, batch_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sentences that begin and end alike, scored together, cost what each costs alone."""
    words = ("我们", "今天", "吃", "苹果", "。", "梨", "齉")
    drawn = np.random.default_rng(7)
    middles = [" ".join(drawn.choice(words, size)) for size in (1, 2, 2, 3, 5, 13)]
    lines = [
        f"{begin} {middle} {end}" for begin in ("我们 今天", "我们") for end in ("。", "苹果 。") for middle in middles
    ]
    scorer = LineScorer.load(
        write_model(tmp_path / "model", SHAPES[mode], with_softmax=True), segmented=True, by_token=True
    )
    alone = [scorer.score([line])[0] for line in lines]
    monkeypatch.setattr("elmo_zh.scoring.BATCH_TOKENS", batch_tokens)
    for one, other in zip(alone, scorer.score(lines), strict=True):
        assert (other.forward_nats, other.backward_nats) == pytest.approx(
            (one.forward_nats, one.backward_nats), rel=1e-6
        )
        costs = [[[token.forward_nats, token.backward_nats] for token in score.tokens or ()] for score in (one, other)]
        np.testing.assert_allclose(costs[1], costs[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "good"], "--pairs 'good'"),
        (["--pairs", "good,bad", "--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], "--pairs and --engine"),
        (
            ["--pairs", "good,worse"],
            "record 1 has no column or field worse; besides the first sentence it has: bad, kind",
        ),
    ],
)
def test_wrong_pairs_are_one_line(scored_model: Path, arguments: list[str], message: str) -> None:
    answer = elmo_zh("score", write_pairs(), *arguments, "--model", scored_model)
    assert answer.status != 0
    assert message in "".join(answer.errors)
