"""`explore` without an index: which model and text it takes, the index that it makes, and the browser that it opens."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from contexts.texts import files_of
from contract.command_line import ROOT, SampleRun, changed_json, elmo_zh, succeed
from drawn_bundles import SHAPES, install_model, write_model

from elmo_zh import ContextIndex
from elmo_zh.config import TextConfig
from elmo_zh.explore import server as browser_module
from elmo_zh.explore.server import ExploreServer
from elmo_zh.run.layout import RunDir
from elmo_zh.run.outputs import write_mark

pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
pytest.importorskip("bokeh", reason="bokeh is not installed: pip install 'bokeh>=3.6'")
FEW = ("--num-words", 2, "--max-per-word", 7)


@pytest.fixture
def latest(sample_run: SampleRun, tmp_path: Path) -> RunDir:
    """runs/latest in the current folder, a copy of a finished run, with a copy of its corpus where it was."""
    shutil.copytree(sample_run.path, Path("runs", "mine"))
    Path("runs", "latest").symlink_to("mine")
    shutil.copytree(sample_run.corpus, "corpus")
    return RunDir(Path("runs/latest"))


def page_data(path: Path) -> Any:
    text = path.read_text(encoding="utf-8")
    return json.loads(text.partition('<script type="application/json" id="data">')[2].partition("</script>")[0])


def explored(*typed: str | Path | int) -> tuple[str, Any]:
    made = succeed("explore", "--output", "page.html", "--force", *typed)
    return made.stderr, page_data(Path("page.html"))


def test_the_latest_run_with_its_corpus(latest: RunDir) -> None:
    told, data = explored(*FEW)
    assert "Building the index runs/latest/index from 2 files." in told
    assert (data["index"], data["model"], data["segmented"]) == ("mine/index", "mine/model", False)
    assert set(data["colourings"]["source"]["labels"]) == {"food.txt", "nature.txt"}
    corpus = "".join(path.read_text("utf-8") for path in Path("corpus").iterdir())
    assert all(text in corpus for text, *_ in data["lines"])
    # The second time it uses this index; --force makes the page again.
    before = files_of(latest.index)
    told, again = explored(*FEW)
    assert "Using the index runs/latest/index, built with this model." in told
    assert files_of(latest.index) == before
    assert again == data


def test_a_changed_corpus_gives_way_to_the_segmented_text(latest: RunDir) -> None:
    with Path("corpus/food.txt").open("a", encoding="utf-8") as file:
        file.write("新的一行。\n")
    told, data = explored(*FEW)
    assert "Building the index runs/latest/index from " in told
    assert data["segmented"] is True
    assert all(" " in text for text, *_ in data["lines"])
    assert ContextIndex.load(latest.index).info["counts"]["lines"] == sum(
        len(path.read_text("utf-8").splitlines()) for path in (*latest.train_files(), *latest.heldout_files())
    )


def test_an_index_of_another_model_or_a_damaged_one_is_made_again(latest: RunDir) -> None:
    explored("runs/mine", *FEW)
    with changed_json(latest.index / "index.json") as info:
        info["model"]["model_digest"] = "sha256:other"
    write_mark(latest.index, "index", 3, {})
    told, _ = explored("--model", "runs/mine/model", *FEW)
    assert "Building the index runs/mine/index from 2 files" in told
    (latest.index / "postings.npy").write_bytes(b"")
    told, _ = explored(*FEW)
    assert "Building the index runs/latest/index from 2 files" in told


def test_an_index_that_the_user_made_is_not_replaced(latest: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of another model where explore keeps its own stays as it is, even if its index.json cannot be read."""
    other = write_model(Path("models/big"), SHAPES["token"], text=TextConfig())
    Path("t.txt").write_text("我们去吃苹果。\n我们吃米饭。\n", encoding="utf-8")
    made = succeed("index", "t.txt", "--model", other, "--min-count", 1, "--output", latest.index)
    before = files_of(latest.index)
    told = elmo_zh("explore", "--output", "page.html", *FEW, "--force").only_error()
    assert told.startswith("runs/latest/index is an index that explore did not create")
    assert told.endswith("elmo-zh explore runs/latest --force")
    assert files_of(latest.index) == before
    (latest.index / "index.json").write_bytes(b"[1]")
    told = elmo_zh("explore", "--output", "page.html", *FEW).only_error()
    assert told.startswith("runs/latest/index is an index that explore did not create")
    assert files_of(latest.index) == {**before, "index.json": b"[1]"}
    # The command that the message names does what it says.
    monkeypatch.setattr(ExploreServer, "serve_forever", lambda *_: None)
    made = elmo_zh("explore", "runs/latest", "--force", *FEW, "--port", 0, "--no-browser")
    assert "Building the index runs/latest/index from 2 files" in made.stderr
    assert ContextIndex.load(latest.index).info["settings"]["made_by"] == "explore"


def test_an_installed_model_and_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--model: " in elmo_zh("explore").only_error()
    install_model(tmp_path, "starter", monkeypatch)
    told, _ = explored("--word", "我们")
    assert f"from {ROOT / 'elmo_zh' / 'sample'}." in told
    shutil.rmtree("runs")
    Path("data/sample").mkdir(parents=True)
    shutil.copy(ROOT / "data/sample/food.txt", "data/sample")
    told, data = explored("--word", "我们")
    [place] = Path("runs").glob("*.index")
    assert f"Building the index {place} from data/sample." in told
    assert data["index"] == place.name
    # The folder of the same model has the name that it is installed by, and another model its own.
    told, _ = explored("--model", "starter", "--word", "我们")
    assert f"Using the index {place}, built with this model." in told
    explored("--model", write_model(Path("model"), SHAPES["token"], text=TextConfig()), "--word", "我们")
    assert len(list(Path("runs").glob("*.index"))) == 2


def test_the_server_opens_the_browser(latest: RunDir, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    monkeypatch.setattr(ExploreServer, "serve_forever", lambda *_: None)
    monkeypatch.setattr(browser_module, "open_in_browser", lambda address: not opened.append(address))
    answer = elmo_zh("explore", *FEW, "--port", 0)
    [address] = opened
    assert address in answer.stdout.splitlines()[0]
    assert elmo_zh("explore", "runs/mine", "--model", "runs/mine/model").status == 2


def test_the_sample_text_has_the_senses_that_are_marked_in_it(latest: RunDir) -> None:
    """Words and colours are those of data/senses.tsv if nothing else is asked for; here of a part of the sample."""
    shutil.copytree("corpus", Path("data", "sample"))
    for text, name in (("data/sample/food.txt", "part.index"), ("corpus/food.txt", "other.index")):
        assert elmo_zh("index", text, "--model", latest.model, "--output", name).status == 0
    index = ContextIndex.load("part.index")
    unmarked, rare, common = sorted(index.words, key=index.count)[-3:]
    table = Path("data", "senses.tsv")
    rows = ["file\tline\tstart\tword\tsense", f"nature.txt\t0\t0\t{unmarked}\tunseen"]
    for word in (rare, common):
        for occurrence in map(index.occurrence, index.occurrences(word).tolist()):
            line = index.line(occurrence.line)
            rows.append(f"food.txt\t{line.number}\t{line.start + occurrence.start}\t{word}\tmarked")
    table.write_text("\n".join(rows), encoding="utf-8")
    told, data = explored("part.index", "--max-per-word", 7)
    assert {word for word, *_ in data["words"]} == {common, rare}
    assert data["colourings"]["label:sense"]["labels"] == ["marked"]
    # In a table that the user names, places in other texts are counted.
    made = succeed("explore", "part.index", "--output", "other.html", "--labels", table, "--word", unmarked)
    assert "1 of 1 labelled places" in made.stderr
    # Another text has no such senses.
    told, data = explored("other.index", "--word", common)
    assert "Labels:" not in told
    assert list(data["colourings"]) == ["usage", "source"]
