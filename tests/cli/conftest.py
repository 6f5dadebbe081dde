"""What tests of several commands share: a model, and a task and an index that name it."""

from dataclasses import replace
from pathlib import Path

import pytest
from drawn_bundles import TOKENS, add_word2vec, write_model
from tasks.labelled import quick_job, written

from elmo_zh import ContextIndex, ElmoEmbedder
from elmo_zh.config import TextConfig
from elmo_zh.config.task_settings import DataFiles
from elmo_zh.tasks.fit import fit_task

TEXTS = ["我们吃苹果。", "今天吃苹果。"] * 4


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, and with a task and an index that name it."""
    text = TextConfig(segmenter="character")
    words = ("我", "们", "吃", "苹", "果", "苹果", "。")
    for name in ("model", "other"):
        add_word2vec(write_model(tmp_path / name, TOKENS, words=words, text=text, with_softmax=True))
    for name, content in {
        "t.txt": "\n".join(TEXTS), "w.txt": "果\n", "v.txt": "1 1\n果 1\n", "c.toml": "",
        "t.tsv": "text\n今天吃苹果。\n", "mix.json": '{"scalar_parameters": [0, 0, 0], "gamma": 1}',
    }.items():  # fmt: skip
        Path(name).write_text(content, encoding="utf-8")
    embedder = ElmoEmbedder.load("model", "cpu")
    ContextIndex.build(embedder, "t.txt", "index", min_count=1)
    rows = (f"{text},{'有' if '我' in text else '无'}\n" for text in TEXTS)
    data = written(Path(), "d.csv", "text,label\n" + "".join(rows))
    job = quick_job(data, head="bilstm", inputs=("word2vec",))
    monkeypatch.setattr("elmo_zh.tasks.fit.save_picture", lambda *_: None)
    fit_task(replace(job, files=DataFiles(data=data, dev=data)), embedder, Path("task"))
    return tmp_path
