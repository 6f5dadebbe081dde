"""Scores of lines and tokens: against the NumPy oracle and `evaluate`, and the command from its text to its output."""

import csv
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, write_model
from parity import numpy_oracle

from elmo_zh import LineScorer
from elmo_zh.config import TextConfig

LINES = ("我们 今天 吃 苹果 。", "", "苹果", "梨 今天", "我们 今天 吃 苹果 。", "今天 " * 29 + "。")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "drawn"
    return write_model(
        folder, SHAPES["token"], text=TextConfig(segmenter="character"), with_softmax=True, words=tuple("我今吃苹果。")
    )


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("mode", ["token", "character"])
@pytest.mark.parametrize("batch_tokens", [7, 2048])
def test_each_prediction_is_that_of_the_oracle(
    tmp_path: Path, mode: str, batch_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_zh.scoring.BATCH_TOKENS", batch_tokens)
    path = write_model(tmp_path / "model", SHAPES[mode], with_softmax=True)
    oracle = numpy_oracle.load_bundle(path)
    scorer = LineScorer.load(path, segmented=True, by_token=True)
    for line, score in zip(LINES, scorer.score(LINES), strict=True):
        tokens = line.split()
        forward, backward = numpy_oracle.sentence_nats(oracle, tokens) if tokens else ([], [])
        assert [token.token for token in score.tokens] == tokens
        np.testing.assert_allclose([token.forward_nats for token in score.tokens], forward[:-1], rtol=1e-5)
        np.testing.assert_allclose([token.backward_nats for token in score.tokens], backward[-2::-1], rtol=1e-5)
        assert [token.is_unknown for token in score.tokens] == [token == "梨" for token in tokens]
        assert (score.forward_nats, score.backward_nats) == pytest.approx((sum(forward), sum(backward)), rel=1e-6)
        if not tokens:
            assert (score.num_characters, score.bits_per_character, score.perplexity) == (0, None, None)
            continue
        expected = numpy_oracle.evaluate(oracle, [tokens])
        assert score.bits_per_character == pytest.approx(expected["bits_per_character"], rel=1e-6)
        assert score.perplexity == pytest.approx(expected["perplexity"], rel=1e-6)


def test_the_table_has_a_row_for_every_line_of_every_file(bundle: Path) -> None:
    Path("a.txt").write_text("苹果\n\n", encoding="utf-8")
    Path("b.csv").write_text('id,text\n1,"今天\n吃"\n2,我\n', encoding="utf-8")
    answer = elmo_zh("score", "a.txt", "b.csv", "--model", bundle)
    found = rows(answer.stdout)
    assert [(row["file"], row["line"], row["tokens"]) for row in found] == [
        ("a.txt", "0", "2"), ("a.txt", "1", "0"), ("b.csv", "0", "3"), ("b.csv", "1", "1"),
    ]  # fmt: skip
    assert found[1]["bits_per_character"] == found[1]["perplexity"] == ""
    assert found[1]["forward_nats"] == "0.000000"
    told = dict(line.split(":", 1) for line in answer.stderr.splitlines())
    assert [int(told[name]) for name in ("lines", "empty_lines", "tokens", "unknown")] == [4, 1, 6, 1]


def test_a_difference_of_two_models(bundle: Path, tmp_path: Path) -> None:
    other = write_model(
        tmp_path / "other", SHAPES["token"], text=TextConfig(segmenter="character"), with_softmax=True, seed=5
    )
    text = "苹果\n\n我吃\n今天吃。\n"
    Path("a.txt").write_text(text, encoding="utf-8")
    own, others = (rows(elmo_zh("score", "a.txt", "--model", model).stdout) for model in (bundle, other))
    found = rows(elmo_zh("score", "a.txt", "--model", bundle, "--against", other).stdout)
    expected = {}
    for number, (left, right, row) in enumerate(zip(own, others, found, strict=True)):
        if number == 1:
            assert row["difference"] == ""
            continue
        expected[number] = float(left["bits_per_character"]) - float(right["bits_per_character"])
        assert float(row["difference"]) == pytest.approx(expected[number], abs=2e-6)
    ranked = sorted(expected, key=lambda number: expected[number])
    limit = (expected[ranked[0]] + expected[ranked[1]]) / 2
    kept = elmo_zh("score", "a.txt", "--model", bundle, "--against", other, "--keep-below", str(limit))
    assert kept.stdout == text.splitlines(keepends=True)[ranked[0]]


def test_the_lines_kept_are_those_with_the_fewest_bits(bundle: Path) -> None:
    """In order, of equal lines the first; whatever the text's encoding and line ends, UTF-8 and LF."""
    lines = ["苹果苹果\r\n", "\r\n", "今天吃苹果。\n", "我\n", "苹果苹果\r\n", "我吃。\n", "果"]
    Path("a.txt").write_bytes("".join(lines).encode("gb18030"))
    lines = [f"{line.strip()}\n" for line in lines]
    options = ("a.txt", "--encoding", "gb18030", "--model", bundle)
    bits = [row["bits_per_character"] for row in rows(elmo_zh("score", *options).stdout)]
    ranked = sorted((float(cost), number) for number, cost in enumerate(bits) if cost)
    for share, count in (("0", 0), ("0.25", 2), ("0.5", 3), ("0.8", 5), ("1", 6)):
        kept = succeed("score", *options, "--keep-share", share, "--output", "kept.txt", "--force")
        told = "Next: elmo-zh pipeline kept.txt --run runs/NAME\n"
        assert (told in kept.stdout) == bool(count)
        chosen = sorted(number for _, number in ranked[:count])
        assert Path("kept.txt").read_bytes() == "".join(lines[number] for number in chosen).encode()
    limit = f"{(ranked[2][0] + ranked[3][0]) / 2:.9f}"
    result = elmo_zh("score", *options, "--keep-below", limit, "--output", "below.txt", "--json").result()
    below = sorted(number for cost, number in ranked if cost < float(limit))
    assert Path("below.txt").read_bytes() == "".join(lines[number] for number in below).encode()
    assert result["kept"] == len(below)


def test_kept_lines_of_several_texts(bundle: Path) -> None:
    """Records are lines, a last line without its end stays one, and a byte order mark goes."""
    Path("a.csv").write_bytes('id,text\n1,"今天\n吃"\n2,\n3,我\n'.encode("gb18030"))
    Path("b.txt").write_bytes("我\r\n今天".encode("utf-8-sig"))
    assert (
        elmo_zh("score", "a.csv", "b.txt", "--model", bundle, "--keep-share", "1").stdout == "今天 吃\n我\n我\n今天\n"
    )


def test_wrong_usage_and_models_without_probabilities(bundle: Path, tmp_path: Path) -> None:
    Path("a.txt").write_text("我\n", encoding="utf-8")
    for options, told in (
        (["--json"], "--output FILE"),
        (["--keep-below", "3", "--keep-share", "0.5"], "--keep-below and --keep-share cannot be combined"),
        (["--keep-share", "nan"], "nan; expected a number (0<=x<=1)"),
    ):
        answer = elmo_zh("score", "a.txt", "--model", bundle, *options)
        assert answer.status == 2
        assert told in " ".join(answer.stderr.split())
    without = write_model(tmp_path / "without", SHAPES["token"], text=TextConfig(segmenter="character"))
    assert elmo_zh("score", "a.txt", "--model", without).only_error().startswith(f"{without} has no softmax")


def test_a_cell_that_is_too_long_to_score_is_named(bundle: Path) -> None:
    Path("long.csv").write_text(f"text,year\n我,1\n{'好' * (2**18 + 1)},2\n", encoding="utf-8")
    for command in ("score", "evaluate"):
        told = elmo_zh(command, "long.csv", "--model", bundle).errors
        assert told[-1].startswith("Error: long.csv: line 2 is longer than 262,144 characters.")
