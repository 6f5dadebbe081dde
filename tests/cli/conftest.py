"""What tests of several commands share: a model, and a task and an index that name it."""

from pathlib import Path

import pytest
from drawn_bundles import TOKENS, add_word2vec, write_model

from elmo_zh import ContextIndex, ElmoClassifier, ElmoEmbedder
from elmo_zh.config import TextConfig

TEXTS = ["我们吃苹果。", "今天吃苹果。"] * 4


@pytest.fixture
def used(tmp_path: Path) -> Path:
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
    ContextIndex.build(ElmoEmbedder.load("model", "cpu"), "t.txt", "index", min_count=1)
    classifier = ElmoClassifier("model", hidden_dim=3, epochs=1, device="cpu")
    classifier.fit(TEXTS, ["有" if "我" in each else "无" for each in TEXTS]).save("task")
    return tmp_path
