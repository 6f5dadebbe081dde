"""The commands and snippets of README and docs, run as they stand there, wherever that is cheap."""

import importlib.util
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import LAYERS, PROJECTION, ROOT, SampleRun, run_python
from drawn_bundles import SHAPES, write_model
from test_pages import code_blocks

from elmo_zh import ElmoEmbedder

WIDTH = 2 * PROJECTION
LINES = ("今天天气很好。", "", "苹果很甜。")
DOCS = ROOT / "docs"
STARTER = ROOT / "data" / "starter" / "elmo_zh_starter" / "model"


def examples() -> dict[str, str]:
    """The Python blocks of each section of docs/python.md, joined."""
    page = (DOCS / "python.md").read_text(encoding="utf-8")
    sections = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return {
        title: "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
        for title, text in zip(sections[::2], sections[1::2], strict=True)
    }


def python_blocks(page: Path) -> list[str]:
    return [code for language, code in code_blocks(page) if language == "python"]


@pytest.fixture
def folder(sample_run: SampleRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs").mkdir()
    for name in ("latest", "sample"):
        (tmp_path / "runs" / name).symlink_to(sample_run.path)
    for name in ("corpus.txt", "file.txt", "other.txt"):
        (tmp_path / name).write_text("\n".join(LINES), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder: Path, code: str) -> dict[str, Any]:
    script = folder / "example.py"
    script.write_text(code, encoding="utf-8")
    return runpy.run_path(str(script), run_name="__main__")


def test_sentences_and_streams(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run(folder, examples()["Sentences"] + examples()["A stream of sentences"])
    assert found["vectors"][0].shape == (LAYERS + 1, 4, WIDTH)
    assert found["average"].shape == found["top"].shape == (4, WIDTH)
    printed = capsys.readouterr().out.splitlines()
    assert "".join(line.split(" ")[0] for line in printed) == "我在北京大学吃苹果"
    assert found["num_tokens"] == sum(len(found["embedder"].tokens(line)) for line in LINES)


def test_in_a_data_loader(folder: Path) -> None:
    """As a script, since workers may import it."""
    script = folder / "example.py"
    script.write_text(examples()["In a data loader"], encoding="utf-8")
    answer = run_python("-W", "ignore::UserWarning", script, cwd=folder)
    assert answer.status == 0, answer.stderr
    batches = [re.findall(r"\d+", line) for line in answer.stdout.splitlines()]
    assert [len(numbers) for numbers in batches] == [7, 7, 5]
    for B, longest, width, *rest in (map(int, numbers) for numbers in batches):
        assert (width, len(rest)) == (WIDTH, 2 * B)
        assert max(rest[:B]) == longest
    assert [numbers[3 + int(numbers[0]) :] for numbers in batches] == [["1", "1"], ["0", "0"], ["0"]]


def test_scikit_learn(folder: Path) -> None:
    if importlib.util.find_spec("sklearn") is None:
        pytest.skip("scikit-learn is not installed: pip install 'scikit-learn>=1.6'")
    found = run(folder, examples()["scikit-learn"])
    assert (found["features"].shape, found["features"].dtype) == ((6, WIDTH), np.dtype("float32"))
    assert found["classifier"].score(found["texts"], found["labels"]) > 0.5
    assert len(found["search"].cv_results_["params"]) == 9


def test_spacy(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'spacy>=3.8'")
    importlib.import_module("elmo_zh.spacy")  # registers the component, where this checkout is not installed
    run(folder, examples()["spaCy"])
    printed = capsys.readouterr().out
    assert f"(14, {WIDTH})" in printed
    assert f"(4, {WIDTH})" in printed
    assert printed.count(f"({LAYERS + 1}, {WIDTH})") == 2


def test_the_starter_as_in_the_readme(capsys: pytest.CaptureFixture[str]) -> None:
    """The cosines and the substitutes that README shows are those of the starter in this checkout."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [code] = python_blocks(ROOT / "README.md")
    exec(code.replace('"starter"', repr(str(STARTER))), {})
    [shown] = [block for language, block in code_blocks(ROOT / "README.md") if language == "text"]
    found, expected = (re.findall(r"\d\.\d*", text) for text in (capsys.readouterr().out, shown))
    np.testing.assert_allclose([float(each) for each in found], [float(each) for each in expected], rtol=0, atol=0.011)
    rows = re.findall(r"^\| (\S*\[(\S+)\]\S*) \| ([^|]+) \|$", readme, re.MULTILINE)
    assert len(rows) == 2
    embedder = ElmoEmbedder.load(STARTER)
    for sentence, word, substitutes in rows:
        tokens = embedder.tokens(re.sub(r"[\[\]]", "", sentence))
        assert embedder.substitutes(tokens, tokens.index(word), top=8).words == substitutes.split()


def test_the_modules_of_the_page_on_pytorch(folder: Path) -> None:
    bundle = write_model(folder / "characters", SHAPES["character"])
    for name in ("options.json", "weights.hdf5"):
        shutil.copy(bundle / name, folder / name)
    published, own, raw = python_blocks(DOCS / "pytorch.md")
    found = run(folder, published)
    assert found["vectors"].shape[:2] == found["mask"].shape == (2, 4)
    assert run(folder, own)["output"]["elmo_representations"][0].shape == (2, 4, WIDTH)
    found = run(folder, raw)
    lengths = [len(found["embedder"].tokens(text)) for text in ("今天天气很好", "苹果很甜")]
    assert found["output"]["mask"].sum(dim=1).tolist() == lengths
    assert python_blocks(DOCS / "zh" / "pytorch.md")[1:] == [own, raw]


def skeleton(line: str) -> str:
    """A line of a transcript without what differs from run to run: numbers, durations, paths, choices."""
    line = re.sub(r"SET=\"[^\"]*\"", "SETTINGS", line)
    line = re.sub(r", or \S+ for make train", "", line)  # said in the folder of the project
    line = re.sub(r"'?runs/(sample|新闻 1)(/model)?'?", r"RUN\2", line)
    line = re.sub(r"^\s*\S+( -m elmo_zh)? (embed|explore) ", r"\2 ", line)
    line = re.sub(r"^(word2vec: .*), torch\.$", r"\1.", line)  # without gensim
    line = re.sub(r"\s+", " ", re.sub(r"\d[\d,.]*(e[-+]\d+)?", "#", line))
    return re.sub(r"# (s|min|h)\b", "# s", line).replace("bfloat", "float")


def transcript(page: Path, command: str) -> list[str]:
    [block] = [code for _, code in code_blocks(page) if code.startswith(f"$ {command}\n") and code.count("\n") > 1]
    return block.splitlines()[1:]
