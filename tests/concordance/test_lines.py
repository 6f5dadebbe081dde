"""Concordance lines: their places in the raw text, their order, and what the commands print and write."""

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from concordance.test_query import table_of
from contract.command_line import elmo_zh, succeed
from drawn_bundles import SHAPES, write_model

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.concordance.kwic import Concordance, by_meaning, match_usages
from elmo_zh.concordance.query import Query, TokenTable, find_matches
from elmo_zh.config import TextConfig
from elmo_zh.corpus.input_texts import input_text
from elmo_zh.corpus.sources import find_sources
from elmo_zh.errors import ConfigError, ElmoZhError
from elmo_zh.text.preparation import TextPreparation

ROWS = (
    ("text", "year", "author"),
    ("我们 今天 吃 苹果 。\r\n苹果 很 贵", "2019", "甲"),
    ("苹果 和 苹果 手机 都 贵 ！我们 吃 米饭 。", "2021", "乙"),
    ("齉 ＡＢＣ 我们 吃", "", "<&\"'>"),
    ("吃 苹果", "2020", "甲"),
)


pytestmark = pytest.mark.filterwarnings("ignore:.* are outside the model's vocabulary")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of texts, a model, and the index of both."""
    folder = tmp_path_factory.mktemp("concordance")
    (folder / "blank.txt").write_text("\n \n", encoding="utf-8")
    with (folder / "rows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(ROWS)
    model = write_model(folder / "model", SHAPES["token"], text=TextConfig(segmenter="whitespace"), with_softmax=True)
    embedder = ElmoEmbedder.load(model, "cpu")
    ContextIndex.build(embedder, folder / "rows.csv", folder / "index", min_count=1, split_sentences=True)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> ContextIndex:
    return ContextIndex.load(folder / "index")


def find(table: TokenTable, query: str) -> Concordance:
    return Concordance.of_matches(table, find_matches(table, Query(query)))


def test_an_index_keeps_the_columns_of_records(index: ContextIndex) -> None:
    columns = {name: [each.values[code] for code in each.codes.tolist()] for name, each in index.columns.items()}
    assert list(columns) == ["source", "author", "year"]
    numbers = [index.line(number).number for number in range(len(columns["year"]))]
    assert columns["year"] == [ROWS[number + 1][1] for number in numbers]
    assert columns["author"] == [ROWS[number + 1][2] for number in numbers]
    assert {*columns["source"]} == {index.sources[0]}


def test_orders() -> None:
    lines = [["乙", "吃", "苹果", "丙"], ["苹果"], ["甲", "苹果", "乙", "丁"], ["甲", "苹果", "乙", "丙"]]
    years = [{"year": year} for year in ("10", "", "9", "9")]
    found = find(table_of(lines, years), "苹果")
    orders = {
        "1L": [2, 1, 3, 4],
        "1R,2R": [2, 1, 3, 4],
        "-1R,2R": [3, 4, 1, 2],
        "year": [2, 3, 4, 1],
        "2L": [2, 3, 4, 1],
    }
    for keys, numbers in orders.items():
        ordered = found.sorted_by(keys.split(","))
        expected = sorted(
            range(4), key=lambda place: [_key(lines[place], years[place]["year"], k) for k in keys.split(",")]
        )
        assert ordered.numbers.tolist() == [place + 1 for place in expected] == numbers, keys
    with pytest.raises(ConfigError, match=r"--sort 10R; expected 1L-9L, 1R-9R"):
        found.sorted_by(["10R"])
    with pytest.raises(ConfigError, match=r"--sort: the texts have no column yaer. Their columns are: "):
        found.sorted_by(["yaer"])


def _key(line: Sequence[str], year: str, key: str) -> list[float]:
    """What a line is sorted by, computed from its tokens."""
    sign, key = (-1, key[1:]) if key.startswith("-") else (1, key)
    if key == "year":
        return [sign * float(year or "-inf")]
    place = line.index("苹果") + int(key[0]) * (1 if key[1] == "R" else -1)
    return [sign * (ord(line[place]) if 0 <= place < len(line) else -1)]


def test_the_lines_nearest_in_meaning_come_first(index: ContextIndex) -> None:
    found = find(TokenTable.of_index(index), "吃 苹果")
    ordered = by_meaning(index, found, 2, layer=1).sorted_by(["cosine"])
    means = []
    for line in found:
        own = [
            index.vectors(1)[number].astype(np.float64)
            for number in range(len(index))
            if index.line(index.occurrence(number).line) == line.line
            and line.first_token <= index.occurrence(number).token < line.end_token
        ]
        mean = np.mean([vector / np.linalg.norm(vector) for vector in own], axis=0)
        means.append(mean / np.linalg.norm(mean))
    assert ordered.numbers.tolist() == [2, 1]
    assert ordered.figures["cosine"] == pytest.approx([1, means[0] @ means[1]], abs=1e-6)
    with pytest.raises(ConfigError, match="--like 9; expected "):
        by_meaning(index, found, 9, layer=1)


def test_a_match_without_vectors_has_no_meaning(folder: Path, tmp_path: Path) -> None:
    embedder = ElmoEmbedder.load(folder / "model", "cpu")
    few = ContextIndex.build(embedder, folder / "rows.csv", tmp_path / "few", max_per_word=2, layers=1)
    found = find(TokenTable.of_index(few), "苹果")
    known = np.isin(found.first, few.token_numbers())
    assert (len(found), known.sum()) == (5, 2)
    ordered = by_meaning(few, found, int(found.numbers[known][0]), layer=1).sorted_by(["cosine"])
    assert np.isnan(ordered.figures["cosine"]).tolist() == [False, False, True, True, True]
    with pytest.raises(ElmoZhError, match=r"has no vectors for \S+ \(--like 1\)"):
        by_meaning(few, found, int(found.numbers[~known][0]), layer=1)
    with pytest.raises(ElmoZhError, match="has no vectors for 苹果"):
        match_usages(few, "苹果", found.take(~known), layer=1, seed=1)


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    text = path.read_text(encoding="utf-8-sig" if path.suffix == ".csv" else "utf-8")
    if path.suffix == ".jsonl":
        yield from ({name: str(value) for name, value in json.loads(line).items()} for line in text.splitlines())
    else:
        yield from csv.DictReader(text.splitlines(), delimiter="," if path.suffix == ".csv" else "\t")


def test_every_format_has_the_same_rows(folder: Path, tmp_path: Path) -> None:
    written = {}
    for suffix in ("tsv", "csv", "jsonl"):
        output = tmp_path / f"lines.{suffix}"
        succeed("concordance", "苹果", "--index", folder / "index", "--sort", "-year,1R", "--output", output)
        written[suffix] = [*rows_of(output)]
    assert written["tsv"] == written["csv"] == written["jsonl"]
    assert (tmp_path / "lines.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert [row["year"] for row in written["csv"]] == ["2021", "2021", "2020", "2019", "2019"]
    for row in written["csv"]:
        raw = ROWS[int(row["line"]) + 1][0]
        assert raw[int(row["start"]) : int(row["end"])] == row["node"] == "苹果"


def test_the_vertical_format_is_xml_with_a_token_on_each_line(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "lines.vrt"
    elmo_zh("concordance", "我们", folder / "rows.csv", "--output", output, "--json").result()
    root = ElementTree.fromstring(f"<all>{output.read_text(encoding='utf-8')}</all>")
    assert [node.text for node in root.iter("node")] == ["\n我们\n"] * 3
    assert [each.get("author") for each in root] == ["甲", "乙", "<&\"'>"]
    assert "".join(root[2].itertext()).split() == ["齉", "ABC", "我们", "吃"]


@pytest.fixture(scope="module")
def odd_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose columns have names of ours, names that no format allows, and characters that XML cannot hold."""
    path = tmp_path_factory.mktemp("odd") / "odd.csv"
    rows = [
        ("text", "line", "source", "left", "line_2", "日期", "2nd Name"),
        ("我们 吃 苹果\0 。", "a", "b", "c", "d", "2020/3/7", "e\0f"),
        ("苹果树 和 苹果", "", "", "", "", "2020/10/1", "&"),
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def test_columns_of_the_texts_never_take_the_place_of_ours(odd_table: Path, tmp_path: Path) -> None:
    answer = elmo_zh("concordance", "我们", odd_table, "--output", tmp_path / "lines.csv")
    [row] = rows_of(tmp_path / "lines.csv")
    assert "line -> line_3" in answer.stderr
    assert (row["line"], row["source"], row["left"]) == ("0", str(odd_table), "")
    assert [row[name] for name in ("line_3", "source_2", "left_2", "line_2")] == ["a", "b", "c", "d"]
    answer = elmo_zh("concordance", "我们", odd_table, "--output", tmp_path / "lines.vrt")
    root = ElementTree.fromstring(f"<all>{(tmp_path / 'lines.vrt').read_text(encoding='utf-8')}</all>")
    assert (root[0].attrib["column_6"], root[0].attrib["column_2nd_name"]) == ("2020/3/7", "e\ufffdf")
    assert "日期 -> column_6" in answer.stderr


def test_dates_order_parts_and_longer_words_are_mentioned(odd_table: Path) -> None:
    answer = elmo_zh("frequencies", odd_table, "--word", "苹果", "--by", "日期", "--json")
    assert [row["part"] for row in answer.result()["rows"][1:]] == ["2020/3/7", "2020/10/1"]
    assert "'*苹果*'" in answer.stderr
    assert "日期" in answer.stderr


def test_an_index_keeps_the_lines_that_a_concordance_of_the_file_has(
    folder: Path, odd_table: Path, tmp_path: Path
) -> None:
    built = ContextIndex.build(ElmoEmbedder.load(folder / "model", "cpu"), odd_table, tmp_path / "index", min_count=1)
    config = TextConfig(segmenter="whitespace")
    texts = [input_text(source, config) for source in find_sources([str(odd_table)]).sources]
    ours, files = TokenTable.of_index(built), TokenTable.of_texts(texts, TextPreparation.build(config))
    assert [ours.line(place) for place in range(2)] == [files.line(place) for place in range(2)]
    assert list(ours.columns) == list(files.columns)


def test_both_scripts_are_found_whatever_the_segmentation(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("opencc")
    (tmp_path / "a.txt").write_text("他的頭髮很長。\n看著乾隆皇帝的头发\n", encoding="utf-8")
    for query, count in (("头发", 2), ("頭髮", 2), ("看着", 1), ("乾隆", 1), ("很长", 1)):
        found = elmo_zh("concordance", query, tmp_path / "a.txt", "--fold-script", "--json").result()
        assert found["lines"] == count, query
    near = elmo_zh("collocates", "头发", tmp_path / "a.txt", "--fold-script", "--min-count", "1", "--json").result()
    words = {row["word"] for row in near["rows"]}
    assert "长" in "".join(words)
    assert not {"長", "很長"} & words


def test_columns_from_the_names_of_files(tmp_path: Path) -> None:
    for name in ("1921_鲁迅.txt", "1936_老舍.txt"):
        (tmp_path / name).write_text("我们今天去看花。\n", encoding="utf-8")
    pattern = ("--from-name", "{year}_{author}.txt")
    found = elmo_zh("frequencies", tmp_path, "--word", "今天", "--by", "year", *pattern, "--json").result()
    assert [(row["part"], row["count"]) for row in found["rows"]] == [("all", 2), ("1921", 1), ("1936", 1)]
    # The next command reads the same lines.
    shown = elmo_zh("concordance", "今天", tmp_path, *pattern, "--where", "year > 1930").stdout
    assert shown.endswith(f"collocates 今天 {tmp_path} --from-name '{pattern[1]}' --where 'year > 1930'\n")
    (tmp_path / "other.txt").write_text("花\n", encoding="utf-8")
    message = elmo_zh("concordance", "花", tmp_path, *pattern).only_error()
    assert "other.txt; expected --from-name" in message


def test_the_next_command_repeats_what_was_typed(folder: Path) -> None:
    typed = ("concordance", "苹果", "--containing", "吃", "--sample", "1", "--index", str(folder / "index"))
    line, *_, last = elmo_zh(*typed).stdout.splitlines()
    assert last.endswith(" ".join([*typed, "--like", line.split()[0]]))
    read = (folder / "rows.csv", "--field", "text", "--where", "year>2000")
    assert elmo_zh("concordance", "苹果", *read).stdout.splitlines()[-1].endswith("--field text")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("concordance 香蕉 --index index", "香蕉 does not occur"),
        ("concordance 苹果|米饭 rows.csv", "which may contain the wildcards * and ?"),
        ("concordance 苹果 rows.csv --like 1", "--like needs --index INDEX."),
        ("concordance 苹果 --index index --usage 9", "--usage 9; expected 1<=N<="),
        ("concordance 苹果 rows.csv --containing 鱼", "苹果 does not occur in lines that match '鱼'"),
        ("concordance 苹果 blank.txt", "blank.txt: no text found"),
        ("keywords rows.csv", "Use either --where CONDITION or --against INDEX."),
        ("keywords rows.csv --where source~rows", "One of the two sets of lines contains no tokens"),
    ],
)
def test_wrong_input_is_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch, arguments: str, message: str) -> None:
    monkeypatch.chdir(folder)
    answer = elmo_zh(*arguments.split())
    assert (answer.status != 0, len(answer.errors)) == ((True, 1) if message else (False, 0))
    assert message in "".join(answer.errors)
