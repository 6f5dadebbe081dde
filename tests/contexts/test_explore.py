"""The content and the HTML of the page of `explore`, beside plain products."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
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
from elmo_zh.contexts.index import ContextIndex, IndexedLine
from elmo_zh.errors import CorpusError
from elmo_zh.explore import points
from elmo_zh.explore.page import build_page, short_names
from elmo_zh.explore.points import (
    SCALE,
    PointLabels,
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


def test_words_whose_usages_have_different_names_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of_words(tmp_path / "model")
    embedder = ElmoEmbedder.load(model, "cpu")
    # 吃 has one character, 今天 and 我们 are function words.
    lines = [f"苹果 {'。 ' * number}" for number in range(1, 12)]
    lines += [f"{'我们 ' * number}苹果 贵 今天 米饭 吃" for number in range(1, 22)]
    index = indexed(embedder, [write_text(tmp_path / "a.txt", lines)], tmp_path / "index")
    found = choose_points(index, PageChoice(), SilentReporter())
    assert {each.word for each in found} == {"苹果", "米饭"}

    def chosen(**names: Sequence[Sequence[str]]) -> list[tuple[str, int]]:
        def told(_: Any, words: Any, *__: Any) -> Any:
            return [[names[word][min(usage, 1)] for usage in range(len(centres))] for word, centres in words]

        monkeypatch.setattr(points, "_NUM_NAMES", 2)
        monkeypatch.setattr(points, "telling_words", told)
        return [(each.word, each.num_usages) for each in choose_points(index, PageChoice(), SilentReporter())]

    alike, other = [["贵", "吃"], ["吃", "贵"]], [["贵", "吃"], ["我们", "今天"]]
    # Usages with nearly the same name are one.
    assert chosen(苹果=alike, 米饭=other) == [("米饭", 2), ("苹果", 1)]
    assert chosen(苹果=other, 米饭=alike) == [("苹果", 2), ("米饭", 1)]
    few = choose_points(index, PageChoice(words=("吃", "吃"), max_per_word=7), SilentReporter())
    assert [(each.word, len(each.occurrences)) for each in few] == [("吃", 7)]
    # The words of labels are taken before content words, and sorted as these are.
    labelled = choose_points(index, PageChoice(), SilentReporter(), {"米饭", "苹果", "手机"})
    assert [each.word for each in labelled] == ["苹果", "米饭"]


TEXTS = ("/home/me/a.txt", "/home/me/b/c.txt", "/home/me/b/a.txt")


def labels_of(path: Path, *rows: str) -> PointLabels:
    return PointLabels.load(write_text(path, rows), TEXTS)


def test_labels_of_the_user(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    first, second = IndexedLine("苹果", TEXTS[1], 3), IndexedLine("苹果", TEXTS[0], 3)
    rows = ("c.txt\t3\t0\t苹果\tfruit\tnews", "c.txt\t3\t5\t苹果\tfirm\tnews", "")
    found = labels_of(path, "file\tline\tstart\tword\tsense\tgenre", *rows)
    assert found.names == ("sense", "genre")
    assert (found.label("sense", first, 0, "苹果"), found.label("genre", first, 0, "苹果")) == ("fruit", "news")
    assert [found.label("sense", second, 0, "苹果"), found.label("sense", first, 0, "手机")] == [None, None]
    # The second one in the same line has another sense, and no row is about a third.
    assert [found.label("sense", first, start, "苹果") for start in (5, 9)] == ["firm", None]
    # Rows that disagree about the same occurrences give no label.
    found = labels_of(path, "file\tline\tsense\tgenre", "c.txt\t3\tfruit\tnews", "c.txt\t3\tfirm\tnews")
    assert (found.label("sense", first, 0, "苹果"), found.label("genre", first, 0, "苹果")) == (None, "news")
    whole = labels_of(path, "year\tfile", "1999\tme/a.txt", f"2005\t{TEXTS[1]}")
    assert [whole.label("year", line, 0, "手机") for line in (first, second)] == ["2005", "1999"]
    assert labels_of(path, "word\tkind", "苹果\tn").label("kind", first, 0, "苹果") == "n"
    named = labels_of(path, "line\tkind_zh\tkind\tyear_zh", "3\t果\tfruit\t九九", "4\t\tfirm\t九九")
    assert named.kinds == ("kind", "year_zh")
    assert named.chinese("kind", ["firm", "fruit"]) == ("firm", "果")
    assert named.chinese("year_zh", ["九九"]) == ()


def test_labelled_places_without_an_occurrence_are_counted(index: ContextIndex, tmp_path: Path) -> None:
    occurrence = index.occurrence(int(index.occurrences("苹果")[0]))
    line = index.line(occurrence.line)
    place = f"{line.source}\t{line.number}\t{line.start + occurrence.start}\t苹果\tfruit"
    other = f"{line.source}\t{line.number}\t{line.start + occurrence.start + 1}\t苹果\tfruit"
    rows = ("file\tline\tstart\tword\tsense", place, other, other.replace("苹果", "手机"))
    labels, heard = PointLabels.load(write_text(tmp_path / "labels.tsv", rows), index.sources), Heard()
    labels.report_missing(index, ["苹果"], heard)
    (warning,) = heard.warnings
    assert "1 of 2 labelled places" in warning


def test_labels_of_archives_and_their_members(tmp_path: Path) -> None:
    members = ("x.zip/一/a.txt", "x.zip/b.txt", "y.txt")
    lines = [IndexedLine("苹果", name, 3, archive="x.zip" if name.startswith("x") else "") for name in members]

    def years(*rows: str) -> list[str | None]:
        labels = PointLabels.load(write_text(tmp_path / "labels.tsv", rows), members, archives=["x.zip"])
        return [labels.label("year", line, 0, "苹果") for line in lines]

    assert years("file\tyear", "x.zip\t1999", "y.txt\t2005") == ["1999", "1999", "2005"]
    assert years("file\tyear", "x.zip\t1999", "b.txt\t2005") == ["1999", "2005", None]
    assert years("file\tline\tyear", "一/a.txt\t3\t1999", "b.txt\t4\t2005") == ["1999", None, None]
    with pytest.raises(CorpusError, match=r"line 2: x\.zip does not name one text of the index"):
        years("file\tline\tyear", "x.zip\t3\t1999")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((), "line 1: ; expected file"),
        (("file\tstart",), "line 1: file, start; expected"),
        (("file\tsense\tsense",), "line 1: file, sense, sense; expected"),
        (("file\tsense", "c.txt"), "line 2: c.txt; expected file, sense."),
        (("file\tsense", "d.txt\tx"), "line 2: d.txt does not name one text of the index"),
        (("file\tsense", "b/a.txt\tx", "a.txt\tx"), "line 3: a.txt does not name one text of the index"),
        (("line\tsense", "-1\tx"), "line 2: line = -1"),
    ],
)
def test_wrong_labels(tmp_path: Path, rows: tuple[str, ...], message: str) -> None:
    with pytest.raises(CorpusError, match=re.escape(f"labels.tsv: {message}")):
        labels_of(tmp_path / "labels.tsv", *rows)


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
        (("a.index", "--word", "苹"), "苹 is not in a.index. Give a word"),
        (("a.index",), "a.index: no content word of two or more characters occurs at least 20 times"),
        (("a.index", "--output", "page.pdf"), "--output page.pdf; expected *.html, *.htm."),
        (("none",), "none/index.json is missing. Create it with:"),
    ):
        assert elmo_zh("explore", "--output", "new.html", *wrong).only_error().startswith(message)
    assert not Path("new.html").exists()
