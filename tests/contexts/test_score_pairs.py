"""Minimal pairs: the costs are those of single lines, and every form of table gives the same."""

import csv
import json
from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from drawn_bundles import SHAPES, write_model

from elmo_zh.config import TextConfig
from elmo_zh.contexts.line_scorer import LineScorer

pytestmark = pytest.mark.usefixtures("empty_folder")

PAIRS = (("我们 吃 苹果", "苹果 吃 我们", "order"), ("齉 很 贵", "很 齉 贵", "unknown"), ("都 贵", "都 贵", "order"))


@pytest.fixture(scope="module")
def scored_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs") / "model"
    return write_model(folder, SHAPES["token"], text=TextConfig(segmenter="whitespace"), with_softmax=True)


def write_pairs(kind: str) -> tuple[Path, str]:
    """Write the pairs, and return the file and how its columns are named."""
    path = Path(f"pairs.{kind}")
    if kind == "jsonl":
        lines = (json.dumps({"good": a, "bad": b, "kind": c}, ensure_ascii=False) for a, b, c in PAIRS)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path, "good,bad,kind"
    rows = PAIRS if kind == "tsv" else (("good", "bad", "kind"), *PAIRS)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t" if kind == "tsv" else ",").writerows(rows)
    return path, "1,2,3" if kind == "tsv" else "good,bad,kind"


@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_costs_are_those_of_the_lines(scored_model: Path, kind: str) -> None:
    path, columns = write_pairs(kind)
    result = elmo_zh(
        "score", path, "--pairs", columns, "--model", scored_model, "--output", "out.jsonl", "--json"
    ).result()
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
    expected = {"pairs": 2, "right": int(right[0]), "right_by_perplexity": int(lower[0])}
    assert result["groups"]["order"] == expected  # equal sentences are not right
    assert result["right_by_perplexity"] == sum(lower)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--pairs", "good"], "has 1 column;"),
        (["--pairs", "good,worse"], "record 1 has no column worse. Columns other than the first sentence: bad, kind"),
        (["--pairs", "good,bad", "--by", "token"], "--pairs cannot be combined with --against, --by token"),
        (["--pairs", "good,bad", "--output", "x.txt"], "the suffix does not name a known format"),
    ],
)
def test_wrong_pairs_are_one_line(scored_model: Path, arguments: list[str], message: str) -> None:
    path, _ = write_pairs("csv")
    answer = elmo_zh("score", path, *arguments, "--model", scored_model)
    assert answer.status != 0
    assert message in "".join(answer.errors)
