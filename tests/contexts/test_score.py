"""Scores of lines and tokens: against the NumPy oracle and `evaluate`, and the command from its text to its output."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, write_model
from packed import zip_of
from parity import numpy_oracle

from elmo_zh import LineScorer
from elmo_zh.config import TextConfig
from elmo_zh.contexts.line_scorer import LineScore
from elmo_zh.contexts.score_lines import LineScores, iter_scored
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import Source, find_sources
from elmo_zh.run.reporter import SilentReporter

pytestmark = pytest.mark.usefixtures("empty_folder")

LINES = ("我们 今天 吃 苹果 。", "", "苹果", "梨 今天", "我们 今天 吃 苹果 。", "今天 " * 29 + "。")
RAW = ("今天１吃苹果。我们吃！", "", "苹果", "　我们\t今天 吃", "苹果")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "drawn"
    return write_model(
        folder, SHAPES["token"], text=TextConfig(segmenter="character"), with_softmax=True, words=tuple("我今吃苹果。")
    )


def source_of(path: str) -> Source:
    [source] = find_sources([path]).sources
    return source


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.mark.parametrize("mode", ["token", "character"])
@pytest.mark.parametrize("batch_tokens", [7, 2048])
def test_each_prediction_is_that_of_the_oracle(
    tmp_path: Path, mode: str, batch_tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elmo_zh.scoring.exact.BATCH_TOKENS", batch_tokens)
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


def test_sentences_of_lines_sum_to_what_evaluate_gives(bundle: Path) -> None:
    Path("raw.txt").write_text("\n".join(RAW), encoding="utf-8")
    expected = elmo_zh("evaluate", "raw.txt", "--model", bundle, "--json").result()
    by_line = elmo_zh("score", "raw.txt", "--model", bundle, "--split-sentences", "--output", "a", "--json").result()
    for name in ("perplexity", "bits_per_character"):
        assert by_line[name] == pytest.approx(expected[name], rel=1e-6)
    for name in ("forward", "backward"):
        total = sum(float(line[f"{name}_nats"]) for line in rows(Path("a").read_text(encoding="utf-8")))
        assert total == pytest.approx(by_line[f"{name}_nats"], rel=1e-6)
        assert total == pytest.approx(math.log(expected[f"{name}_perplexity"]) * expected["num_predictions"], rel=1e-6)
    assert (by_line["lines"], by_line["empty_lines"], by_line["sentences"]) == (5, 1, 5)
    one = elmo_zh("score", "raw.txt", "--model", bundle, "--output", "b", "--json").result()
    assert one["sentences"] == 4


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
    assert answer.stderr.splitlines()[-1].startswith("4 lines (1 empty), 6 tokens (1 unknown), perplexity ")


@pytest.mark.parametrize("others", [(), ("b.txt",)])
def test_a_row_of_an_archive_names_its_member(bundle: Path, others: tuple[str, ...]) -> None:
    Path("b.txt").write_text("我\n", encoding="utf-8")
    zip_of(Path("a.zip"), {"一/a.txt": "苹果\n\n", "一/b.txt": "今天吃"})
    expected = [("a.zip/一/a.txt", "0", "2"), ("a.zip/一/a.txt", "1", "0"), ("a.zip/一/b.txt", "0", "3")]
    expected += [(name, "0", "1") for name in others]
    for output in ([], ["--output", "out.tsv"]):
        answer = elmo_zh("score", "a.zip", *others, "--model", bundle, *output)
        found = rows(Path("out.tsv").read_text(encoding="utf-8") if output else answer.stdout)
        assert [(row["file"], row["line"], row["tokens"]) for row in found] == expected


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
    """In order, byte for byte, of equal lines the first; a last line without its end gets one."""
    lines = ["苹果苹果\r\n", "\r\n", "今天吃苹果。\n", "我\n", "苹果苹果\r\n", "我吃。\n", "果"]
    raw = "".join(lines).encode("gb18030")
    Path("a.txt").write_bytes(raw)
    lines[-1] += "\n"
    options = ("a.txt", "--encoding", "gb18030", "--model", bundle)
    bits = [row["bits_per_character"] for row in rows(elmo_zh("score", *options).stdout)]
    ranked = sorted((float(cost), number) for number, cost in enumerate(bits) if cost)
    for share, count in (("0", 0), ("0.25", 2), ("0.5", 3), ("0.8", 5), ("1", 6)):
        kept = succeed("score", *options, "--keep-share", share, "--output", "kept.txt", "--force")
        told = "Next, train on the kept lines: elmo-zh pipeline kept.txt --run runs/NAME\n"
        assert (told in kept.stdout) == bool(count)
        chosen = sorted(number for _, number in ranked[:count])
        assert Path("kept.txt").read_bytes() == b"".join(lines[number].encode("gb18030") for number in chosen)
    limit = f"{(ranked[2][0] + ranked[3][0]) / 2:.9f}"
    result = elmo_zh("score", *options, "--keep-below", limit, "--output", "below.txt", "--json").result()
    below = sorted(number for cost, number in ranked if cost < float(limit))
    assert Path("below.txt").read_bytes() == b"".join(lines[number].encode("gb18030") for number in below)
    assert result["kept"] == len(below)


def test_kept_records_become_lines_of_utf_8(bundle: Path) -> None:
    Path("a.csv").write_bytes('id,text\n1,"今天\n吃"\n2,\n3,我\n'.encode("gb18030"))
    assert elmo_zh("score", "a.csv", "--model", bundle, "--keep-share", "1").stdout == "今天 吃\n我\n"


def test_kept_lines_of_several_texts(bundle: Path) -> None:
    """A last line without its end stays a line, a mark goes, and texts of two encodings become one."""
    kept = ("--model", bundle, "--keep-share", "1")
    Path("a.txt").write_bytes("我\n今天".encode("utf-8-sig"))
    Path("b.txt").write_bytes("吃\r\n苹果".encode("utf-8-sig"))
    succeed("score", "a.txt", "b.txt", *kept, "--output", "one.txt")
    assert Path("one.txt").read_bytes() == "我\n今天\n吃\r\n苹果\n".encode()
    Path("c.txt").write_bytes("我们今天吃苹果。\n".encode("gb18030") * 20)
    for others, encoding in ((["a.txt"], "utf-8"), ([], "gb18030")):
        succeed("score", "c.txt", *others, *kept, "--output", "two.txt", "--force")
        assert Path("two.txt").read_bytes().decode(encoding).count("我们今天吃苹果。\n") == 20


def test_equal_lines_of_a_part_are_scored_once(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    score_distinct, scored = LineScorer._score_distinct, []

    def listed(scorer: LineScorer, lines: list[str]) -> list[LineScore]:
        scored.append(lines)
        return score_distinct(scorer, lines)

    monkeypatch.setattr(LineScorer, "_score_distinct", listed)
    Path("a.txt").write_text("我\n我\n吃\n我\n吃\n果\n", encoding="utf-8")
    scores, texts = LineScores(LineScorer.load(bundle), None), [input_text(source_of("a.txt"), TextConfig())]
    assert len(list(iter_scored(scores, texts, SilentReporter(), most_lines=2))) == 6
    assert scored == [["我"], ["吃", "我"], ["吃", "果"]]


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_text_without_a_sentence_is_no_error(bundle: Path, text: str) -> None:
    Path("a.txt").write_text(text, encoding="utf-8")
    assert len(rows(elmo_zh("score", "a.txt", "--model", bundle).stdout)) == text.count("\n")
    answer = elmo_zh("score", "a.txt", "--model", bundle, "--keep-share", "0.5")
    assert (answer.status, answer.stdout) == (0, "")


def test_wrong_usage_and_models_without_probabilities(bundle: Path, tmp_path: Path) -> None:
    Path("a.txt").write_text("我\n", encoding="utf-8")
    for options, told in (
        (["--json"], "Write the scores to a file: --output FILE"),
        (["--keep-below", "3", "--keep-share", "0.5"], "Give only one of them."),
        (["--keep-below", "3", "--format", "tsv"], "Leave out --format and --by token."),
        (["--against", str(bundle), "--by", "token"], "Leave out --by token."),
        (["--segmented", "--split-sentences"], "Leave out --split-sentences."),
        (["--keep-share", "1.5"], "1.5 is not in the range"),
        (["--keep-share", "nan"], "'--keep-share': 'nan' is not a finite number."),
        (["--keep-below", "nan"], "--keep-below must be a finite number."),
    ):
        answer = elmo_zh("score", "a.txt", "--model", bundle, *options)
        assert answer.status == 2
        assert told in " ".join(answer.stderr.split())
    without = write_model(tmp_path / "without", SHAPES["token"], text=TextConfig(segmenter="character"))
    told = elmo_zh("score", "a.txt", "--model", without).only_error()
    assert told.startswith(f"{without} has no softmax, so the model gives vectors but no probabilities,")
