"""The content and the HTML of the page of `explore`, beside plain products."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contexts.explored import MARKUP
from contexts.texts import LINES, indexed, model_of_words, write_text
from contract.command_line import elmo_zh, succeed
from messages import Heard

from elmo_zh import ElmoEmbedder, LineScorer
from elmo_zh.contexts import PageChoice
from elmo_zh.contexts.index import ContextIndex
from elmo_zh.contexts.index_files import Occurrence
from elmo_zh.contexts.senses import ClusterChoice, Clusters
from elmo_zh.errors import CorpusError
from elmo_zh.explore import points
from elmo_zh.explore.page import build_page, short_names
from elmo_zh.explore.points import (
    SCALE,
    PointLabels,
    WordPoints,
    agreements,
    choose_points,
    compute_maps,
    point_neighbours,
)
from elmo_zh.run.reporter import SilentReporter

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'bokeh>=3.6'")


@pytest.fixture
def folder(page: tuple[Path, dict[str, Any]]) -> Path:
    return page[0]


@pytest.fixture
def data(page: tuple[Path, dict[str, Any]]) -> dict[str, Any]:
    return page[1]


def test_the_words_and_their_points(data: dict[str, Any]) -> None:
    assert [word for word, *_ in data["words"]] == ["苹果", "𠮷野"]
    # The line that is repeated is one point.
    assert data["words"] == [["苹果", 10, 0, 9], ["𠮷野", 3, 9, 12]]
    for word, _, first, end in data["words"]:
        for line, start, stop in data["points"][first:end]:
            assert data["lines"][line][0][start:stop] == word
    assert len(data["points"]) == 12
    labels, numbers = data["colourings"]["source"]["labels"], data["colourings"]["source"]["points"]
    assert [labels[number] for number in numbers] == [data["lines"][line][1] for line, *_ in data["points"]]
    assert set(MARKUP) <= {text for text, *_ in data["lines"]}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["/home/me/a.txt"], ["a.txt"]),
        (["/home/me/a.txt", "/home/me/b/c.txt"], ["a.txt", "b/c.txt"]),
        (["/home/me/a.txt", "/home/you/a.txt", "-"], ["/home/me/a.txt", "/home/you/a.txt", "-"]),
        (["news/a.txt", "news2/a.txt"], ["news/a.txt", "news2/a.txt"]),
    ],
)
def test_names_lose_the_folders_that_all_share(names: list[str], expected: list[str]) -> None:
    assert list(short_names(names).values()) == expected


def test_tokens_and_substitutes_are_those_of_the_model(data: dict[str, Any], folder: Path) -> None:
    def of_points(name: str) -> list[Any]:
        return [each for part in data["parts"] for each in part[name]]

    scorer = LineScorer.load(folder / "model", by_token=True)
    embedder = ElmoEmbedder.load(folder / "model", "cpu")
    for (line, start, _), tokens, own in zip(data["points"], *map(of_points, ("tokens", "substitutes")), strict=True):
        [score] = scorer.score([data["lines"][line][0]])
        for token, (first, end, forward, backward, is_unknown) in zip(score.tokens, tokens, strict=True):
            assert (first, end, bool(is_unknown)) == (token.start, token.end, token.is_unknown)
            assert (forward, backward) == pytest.approx((token.forward_nats, token.backward_nats), abs=0.0051)
        prepared = embedder.prepare(data["lines"][line][0])
        found = embedder.substitutes(prepared.tokens, prepared.offsets[:, 0].tolist().index(start))
        assert [word for word, _ in own] == found.words
        assert found.word not in found.words


@pytest.mark.parametrize("block", [512, 3])
def test_neighbours_are_those_of_a_plain_product(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One point of each other line."""
    monkeypatch.setattr(points, "_BLOCK", block)
    vectors, lines = np.random.default_rng(3).standard_normal((29, 7)), [number % 11 for number in range(29)]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for point, own in enumerate(point_neighbours(vectors, lines, 5)):
        cosines, best = vectors @ vectors[point], dict[int, int]()
        for other in np.argsort(-cosines).tolist():
            if lines[other] != lines[point]:
                best.setdefault(lines[other], other)
        expected = [(other, pytest.approx(1000 * cosines[other], abs=0.51)) for other in [*best.values()][:5]]
        assert [tuple(each) for each in own] == expected
    assert point_neighbours(vectors[:3], [1, 1, 1], 5) == [[], [], []]


def test_maps() -> None:
    generator = np.random.default_rng(5)
    groups = generator.standard_normal((2, 11))
    vectors = np.concatenate([group + 0.05 * generator.standard_normal((17, 11)) for group in groups])
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    maps = compute_maps(vectors, 1)
    for places in maps.values():
        assert places.shape == (34, 2)
        assert np.abs(places).max() == SCALE
        first, second = places[:17], places[17:]
        inside = max(np.ptp(first, axis=0).max(), np.ptp(second, axis=0).max())
        assert np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)) > inside
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T.astype(np.float64) @ centred)
    expected = centred @ axes[:, [-1, -2]]
    correlations = np.corrcoef(expected.T, maps["pca"].T)
    assert abs(correlations[0, 2]) > 0.9999
    assert abs(correlations[1, 3]) > 0.9999
    again = compute_maps(vectors, 1)
    assert all((one == other).all() for one, other in zip(maps.values(), again.values(), strict=True))


def test_the_words_with_the_clearest_usages_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = ElmoEmbedder.load(model_of_words(tmp_path / "model"), "cpu")
    # 吃 has one character, 今天 and 我们 are function words.
    lines = [f"苹果 {'。 ' * number}" for number in range(1, 12)]
    lines += [f"{'我们 ' * number}苹果 贵 今天 米饭 吃" for number in range(1, 22)]
    index = indexed(embedder, [write_text(tmp_path / "a.txt", lines)], tmp_path / "index")
    few = choose_points(index, PageChoice(words=("吃", "吃"), max_per_word=7), SilentReporter())
    assert [(each.word, len(each.occurrences)) for each in few] == [("吃", 7)]
    # The words of labels are taken before content words.
    for labelled, words in (((), {"苹果", "米饭"}), (("贵", "米饭", "手机"), {"贵", "米饭"})):
        assert {each.word for each in choose_points(index, PageChoice(), SilentReporter(), labelled)} == words

    silhouettes = {32: 0.3}

    def found_clusters(vectors: np.ndarray, seed: int) -> Clusters:
        choice = ClusterChoice(2, silhouettes.get(len(vectors), 0.4), 9.0)
        return Clusters(np.arange(len(vectors)) % 2, vectors, vectors[:2], choice)

    monkeypatch.setattr(points, "find_clusters", found_clusters)
    for silhouettes[32], first in ((0.3, "米饭"), (0.9, "苹果")):
        shown = choose_points(index, PageChoice(num_words=1), SilentReporter())
        assert [(each.word, len(each.names)) for each in shown] == [(first, 2)]


TEXTS = ("/home/me/a.txt", "x.zip/b/c.txt", "/home/me/b/a.txt")
PLACE = "file\tline\tstart\tword"


def test_labels_of_a_table(index: ContextIndex, tmp_path: Path) -> None:
    occurrences = [index.occurrence(number) for number in index.occurrences("苹果").tolist()]
    numbers = [index.line(each.line).number for each in occurrences]
    rows = [f"a.txt\t{number}\t{each.start}" for number, each in zip(numbers, occurrences, strict=True)]
    wrong = [f"a.txt\t9\t{occurrences[0].start}\t苹果\tfruit\t果", "a.txt\t9\t9\t手机\tx\t", "b.txt\t0\t0\t苹果\tx\t"]
    table = [f"{PLACE}\tend\tsense\tsense_zh", f"{rows[0]}\t苹果\t9\tfruit\t果", "", f"{rows[2]}\t苹果\t9\tfirm\t"]
    table += [row.replace("苹果", "苹果\t9").replace("手机", "手机\t9") for row in wrong]
    labels, heard = PointLabels.load(write_text(tmp_path / "labels.tsv", table), index.sources), Heard()
    assert (labels.kinds, labels.words) == (("sense",), {"苹果", "手机"})
    [(name, colouring)] = labels.colourings(index, occurrences[:4], heard).items()
    assert (name, colouring["points"]) == ("label:sense", [1, None, 0, None])
    assert (colouring["labels"], colouring["labels_zh"]) == (["firm", "fruit"], ["firm", "果"])
    labels.report_missing(index, ["苹果"], heard)
    labels.colourings(index, occurrences[1:2], heard)
    missing, none = heard.warnings
    assert "2 of 4 labelled places" in missing
    assert none.endswith("no occurrence on the page has a label in column sense.")


@pytest.mark.parametrize(
    ("name", "words"), [("c.txt", {"果"}), ("b/a.txt", {"果"}), ("a.txt", set()), ("d.txt", set())]
)
def test_a_file_is_named_by_the_end_of_one_name(tmp_path: Path, name: str, words: set[str]) -> None:
    table = write_text(tmp_path / "labels.tsv", [f"{PLACE}\tsense", f"{name}\t3\t0\t果\tfruit"])
    assert PointLabels.load(table, TEXTS).words == words


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "line 1: ; expected file, line, start, word, LABEL"),
        (("file\tline\tword\tsense",), "line 1: file, line, word, sense; expected"),
        ((f"{PLACE}\tsense\tsense",), "line 1: file, line, start, word, sense, sense; expected"),
        ((f"{PLACE}\tsense", "c.txt"), "line 2: c.txt; expected file, line, start, word, sense."),
        ((f"{PLACE}\tsense", *(f"c.txt\t1\t0\t果\t{label}" for label in "aab")), "line 4 labels the same place"),
    ],
)
def test_wrong_labels(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    with pytest.raises(CorpusError, match=re.escape(f"labels.tsv: {message}")):
        PointLabels.load(write_text(tmp_path / "labels.tsv", rows), TEXTS)


def test_agreement_of_usages_and_labels() -> None:
    """Of Hubert and Arabie, worked by hand: usages 0 0 1 1, labels 0 0 0 1; a single label agrees with nothing."""
    occurrence = Occurrence(0, "果", 0, 0, 0, 1)
    word = WordPoints("果", (occurrence,) * 5, np.array([0, 0, 1, 1, 1]), 0.5)
    colourings = {"usage": {"points": []}, "label:a": {"points": [0, 0, 0, 1, None, *[2] * 5]}}
    # Pairs together in both 1, in usages 2, in labels 3, of 6: (1 - 1) / (2.5 - 1).
    assert agreements(colourings, [word, word]) == {"label:a": [[0.0, 4], None]}


def test_the_page_is_one_sound_file(data: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_ZH_LANG", "zh_CN")
    page = build_page(data)
    content, *scripts = re.findall("<script[^>]*>(.*?)</script>", page, re.DOTALL)
    markup = re.sub("(<script[^>]*>).*?</script>", r"\1", page, flags=re.DOTALL)
    assert not re.search(r"<(img|iframe|link|object|embed)\b|\s(src|href|on\w+)=", markup)
    assert "<" not in content
    assert json.loads(content) == {**json.loads(json.dumps(data)), "live": False, "language": "zh"}
    # The browser runs exactly these scripts.
    [policy] = re.findall('<meta http-equiv="Content-Security-Policy" content="([^"]*)"', markup)
    digests = [base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in scripts]
    assert re.findall(r"'sha256-([^']+)'", policy) == digests
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
    assert "\r" not in "".join(scripts)
    own = "".join(scripts[-2:])
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|https?://", own)


def test_the_command(tmp_path: Path) -> None:
    model = model_of_words(tmp_path / "model", with_softmax=True)
    text = write_text(tmp_path / "a.txt", LINES)
    assert elmo_zh("index", text, "--model", model, "--output", "a.index").status == 0
    arguments = ("explore", "a.index", "--output", "page.html", "--word", "苹果")
    made = succeed(*arguments)
    assert made.stdout.splitlines()[-1] == f"Open {Path('page.html').resolve().as_uri()} in a browser."
    first = Path("page.html").read_bytes()
    result = elmo_zh(*arguments, "--force", "--json").result()
    assert (result["words"], result["occurrences"], result["bytes"]) == (["苹果"], 4, len(first))
    assert Path("page.html").read_bytes() == first
    for wrong, message in (
        (("a.index", "--word", "苹"), "苹 is not in a.index. Use a word"),
        (("a.index",), "a.index: no Chinese content word of two or more characters has 20 or more"),
        (("a.index", "--output", "page.pdf"), "--output page.pdf; expected *.html, *.htm."),
        (("none",), "none/index.json is missing. Create it with:"),
    ):
        assert elmo_zh("explore", "--output", "new.html", *wrong).only_error().startswith(message)
    assert not Path("new.html").exists()
