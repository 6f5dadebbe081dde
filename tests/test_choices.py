"""Every name that can be chosen has its code, settings and help name the same ones, and other packages can add some."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.command_line import ROOT, run_python
from drawn_bundles import TOKENS, write_model

from elmo_zh.choices import CORPUS_FORMATS, SEGMENTERS
from elmo_zh.config import TextConfig
from elmo_zh.corpus import content
from elmo_zh.errors import ConfigError

PLUG_INS = '''
"""A segmenter of two characters a token, a corpus format of records between %%."""

from elmo_zh.corpus.readers.formats import CorpusFormat, Record


class Pairs:
    TAKES_USER_DICTIONARY = False

    def build(self, config, user_dictionary):
        return lambda sentence: [sentence[start : start + 2] for start in range(0, len(sentence), 2)]

    def describe(self):
        return {"dictionary": "none"}


class Lower(Pairs):
    def build(self, config, user_dictionary):
        return lambda sentence: [sentence.lower()]


def read(text, config, tally):
    for record in "".join(text.chunks()).split("%%"):
        yield from (Record(line, {}) for line in record.strip().splitlines())


RECORDS = CorpusFormat(read=read, suffixes=(".records",), starts=lambda head: head.startswith("%%"))
'''
ENTRY_POINTS = """
[elmo_zh.segmenters]
pairs = toy_plug_ins:PAIRS
lower = toy_plug_ins:LOWER
broken = toy_plug_ins:missing

[elmo_zh.corpus_formats]
records = toy_plug_ins:RECORDS

[elmo_zh.models]
toy = toy_plug_ins:MODEL
starter = toy_plug_ins:MODEL
lost = toy_plug_ins:LOST
"""


@pytest.fixture
def plug_ins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that adds one of each, as pip installs it, for this process and for those that it starts."""
    folder = tmp_path / "site"
    described = folder / "toy_plug_ins-3.5.dist-info"
    described.mkdir(parents=True)
    source = PLUG_INS + "\n\nPAIRS, LOWER = Pairs(), Lower()\n"
    source += f"MODEL = {str(tmp_path / 'packaged')!r}\n"
    (folder / "toy_plug_ins.py").write_text(source, encoding="utf-8")
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-plug-ins\nVersion: 3.5\n", encoding="utf-8")
    (described / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(folder), str(ROOT), known))))
    monkeypatch.syspath_prepend(folder)
    # An earlier test's package, from another folder.
    monkeypatch.delitem(sys.modules, "toy_plug_ins", raising=False)
    content._format_of_suffix.cache_clear()
    yield folder
    content._format_of_suffix.cache_clear()


PAGE = (ROOT / "docs" / "adding.md").read_text(encoding="utf-8")


def test_what_the_page_adds_needs_the_files_that_it_names_and_no_others(tmp_path: Path) -> None:
    """Its segmenter, formats and setting, with the code as it stands there, in a copy of the package."""
    shutil.copytree(ROOT / "elmo_zh", tmp_path / "elmo_zh", ignore=shutil.ignore_patterns("__pycache__"))
    for name, code in re.findall(r"```python\n# (elmo_zh/\S+)\n(.*?)```", PAGE, re.DOTALL):
        path = tmp_path / name
        if path.exists():  # the setting
            text, first = path.read_text(encoding="utf-8"), "    segmenter: str = declare("
            assert first in text
            code = text.replace(first, code + first)
        path.write_text(code, encoding="utf-8")
    choices = tmp_path / "elmo_zh" / "choices.py"
    text = choices.read_text(encoding="utf-8")
    registries = {"text": "SEGMENTERS", "corpus": "CORPUS_FORMATS", "embed": "OUTPUT_FORMATS"}
    for line, package in re.findall(r'`("\w+": "elmo_zh\.(\w+)\.[^`]+)`', PAGE):
        start = re.search(rf"{registries[package]} = Registry\(.*?\{{\n", text, re.DOTALL)
        assert start
        text = text.replace(start[0], f"{start[0]}        {line}\n")
    choices.write_text(text, encoding="utf-8")
    model = write_model(tmp_path / "model", TOKENS, text=TextConfig(segmenter="character"))
    (tmp_path / "a.poems").write_text("今天天气很好\n\n我们吃苹果\n", encoding="utf-8")

    def run(*words: str) -> str:
        answer = run_python("-m", "elmo_zh", *words, cwd=tmp_path)
        return answer.stdout + answer.stderr

    settings = ("--set", "text.heldout_share=0", "--set", "text.heldout_min_sentences=0", "--set", "text.num_workers=1")
    pairs = ("--set", "text.segmenter=pairs", "--set", "text.pair_size")
    run("segment", "a.poems", "--run", "run", *settings, *pairs[:-1], f"{pairs[-1]}=3")
    [segmented] = (tmp_path / "run" / "segmented").glob("train-*.txt")
    assert segmented.read_text(encoding="utf-8") == "今天天 气很好\n我们吃 苹果\n"
    assert run("segment", "a", "--run", "other", *pairs[:-1], f"{pairs[-1]}=0").startswith(
        "Error: --set: text.pair_size = 0; expected a whole number (x>=1)."
    )
    run("embed", "a.poems", "--model", str(model), "--format", "counts", "--layers", "2,1")
    assert (tmp_path / "a.poems.counts").read_text() == "0 6 (2, 6, 10)\n1 5 (2, 5, 10)\n"
    schema = json.loads(run("--print-schema"))["$defs"]
    assert schema["text"]["properties"]["pair_size"]["minimum"] == 1
    assert {"pairs"} < set(schema["text"]["properties"]["segmenter"]["enum"])
    assert "poems" in run("segment", "--help")


def test_other_packages_add_names(plug_ins: Path) -> None:
    assert SEGMENTERS.names() == ("jieba", "rjieba", "whitespace", "character", "broken", "lower", "pairs")
    assert next(iter(CORPUS_FORMATS)) == "auto"
    assert list(CORPUS_FORMATS)[-1] == "records"
    assert SEGMENTERS.package_of("pairs") == ("toy-plug-ins", "3.5")
    assert SEGMENTERS.package_of("jieba") is SEGMENTERS.package_of("pkuseg") is None
    assert content.format_of_name("a.records.gz") == "records"
    with pytest.raises(ConfigError, match="The segmenter broken of the package toy-plug-ins cannot be loaded"):
        SEGMENTERS.load("broken")
    with pytest.raises(ConfigError, match=r"segmenter 'pkuseg'; expected jieba, .*\(docs/adding.md\)"):
        SEGMENTERS.load("pkuseg")


def test_a_corpus_in_a_format_of_another_package_cut_by_its_segmenter(plug_ins: Path, tmp_path: Path) -> None:
    """In worker processes: the corpus is read and cut by them."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.records").write_text("我们今天吃苹果。\n%%\n今天下雨\n", encoding="utf-8")
    (corpus / "b").write_text("%%\n风大\n", encoding="utf-8")
    arguments = ("--set", "text.segmenter=pairs", "--set", "text.num_workers=2", "--set", "text.heldout_share=0")
    arguments += ("--set", "text.heldout_min_sentences=0")
    answer = run_python("-m", "elmo_zh", "segment", corpus, "--run", tmp_path / "run", *arguments, cwd=tmp_path)
    assert answer.status == 0, answer.stderr
    segmented = (tmp_path / "run" / "segmented").glob("train-*.txt")
    lines = [line for path in sorted(segmented) for line in path.read_text(encoding="utf-8").splitlines()]
    assert lines == ["我们 今天 吃苹 果。", "今天 下雨", "风大"]
    record = json.loads((tmp_path / "run" / "stages" / "segment.json").read_text(encoding="utf-8"))
    assert record["settings"]["text.segmenter_version"] == {
        "name": "pairs",
        "version": "3.5",
        "package": "toy-plug-ins",
        "dictionary": "none",
    }
    formats = [form["format"] for source in record["sources"].values() for form in source["read_as"]]
    assert formats == ["records", "records"]
