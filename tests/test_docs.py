"""The commands and snippets of README and docs, run as they stand there, wherever that is cheap."""

import importlib.util
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import LAYERS, PROJECTION, ROOT, SampleRun
from drawn_bundles import SHAPES, write_model
from test_pages import code_blocks

from elmo_zh import ElmoEmbedder, LineScorer
from elmo_zh.reader.lstm import LSTMState, prepare, run_layer

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
    assert f"({LAYERS + 1}, 4, {WIDTH})" in printed


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


def test_the_page_on_the_reader_computes_what_the_reader_does() -> None:
    code = "\n".join(python_blocks(DOCS / "reader.md"))
    page: dict[str, Any] = {}
    exec(code.replace('"starter"', repr(str(STARTER))), page)
    np.testing.assert_allclose(page["layers"], page["vectors"], rtol=0, atol=1e-6)
    [line] = LineScorer.load(STARTER).score([page["text"]])
    assert page["nats"].sum() == pytest.approx(line.forward_nats, rel=1e-6)
    weights, x = page["parameters"](1, 0), page["x"][:3]
    draw = np.random.default_rng(3)
    h, c = (draw.normal(0, 1, (3, width)).astype(np.float32) for width in (256, 512))
    outputs, state = run_layer(x, None, [3], prepare(*weights), LSTMState(h, c), 3.0, 3.0)
    fast = page["fast_step"](x, h, c.copy(), *page["prepare"](*weights))
    np.testing.assert_allclose(fast[0], outputs, rtol=0, atol=1e-6)
    np.testing.assert_allclose(fast[1], state.cell, rtol=0, atol=1e-6)


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
