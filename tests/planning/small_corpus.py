"""A small corpus of several kinds of files, and what is typed so that its plan and its stages are quick."""

import gzip
from pathlib import Path

FAST = ("--set", "text.segmenter=character", "--set", "text.num_workers=1", "--set", "word2vec.epochs=1")
PLAN_FAST = (*FAST, "--no-training")
WIDTH = ("--set", "model.projection_dim=7", "--set", "model.cell_dim=13")


def write_corpus() -> Path:
    folder = Path("corpus")
    folder.mkdir()
    for name, sign in (("a", "山"), ("b", "水")):
        lines = [f"第{number}天我看见{sign}边有{number % 7}只鸟。" for number in range(200)]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "c.jsonl.gz").write_bytes(gzip.compress('{"text": "苹果很甜。"}\n'.encode() * 40))
    return folder
