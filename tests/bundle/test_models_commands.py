"""`elmo-zh info` of a model, and `convert`: what a model is, and paths that lead to none."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.command_line import CELL, LAYERS, PROJECTION, SampleRun, elmo_zh, succeed
from drawn_bundles import CHARACTERS, TOKENS, write_model

KEYS = [
    *("kind", "path", "digest", "mode", "origin", "sizes", "characters", "parameters", "softmax", "tied_softmax"),
    *("vocabulary", "segmenter", "text", "carry_state", "warm_state", "training", "history", "digests"),
    "next",
]


def test_info_of_a_trained_model(sample_run: SampleRun) -> None:
    result = elmo_zh("info", sample_run.model, "--json").result()
    assert list(result) == KEYS
    info = json.loads((sample_run.model / "bundle.json").read_text(encoding="utf-8"))
    rows = len((sample_run.model / "vocab.data").read_text(encoding="utf-8").splitlines())
    for name in ("mode", "origin", "segmenter", "text", "carry_state", "training", "digests"):
        assert result[name] == info[name], name
    assert result["path"] == str(sample_run.model)
    assert (result["mode"], result["vocabulary"], result["characters"]) == ("token", rows, None)
    assert (result["softmax"], result["warm_state"]) == (True, False)
    assert result["sizes"] == {
        "num_tokens": rows,
        "cell_dim": CELL,
        "projection_dim": PROJECTION,
        "num_layers": LAYERS,
        "cell_clip": 3.0,
        "projection_clip": 3.0,
        "skip_connections": True,
    }
    # 2 directions of layers, the embedding, which a tied softmax shares, and the biases of the softmax.
    layer = 2 * PROJECTION * 4 * CELL + 4 * CELL + CELL * PROJECTION
    assert result["parameters"] == 2 * LAYERS * layer + rows * PROJECTION + rows


SHAPE = replace(
    TOKENS,
    projection_dim=7,
    cell_clip=0.0,
    projection_clip=2.5,
    skip_connections=False,
    characters=replace(CHARACTERS, activation="tanh"),
)


def write_converted(folder: Path, **drawn: Any) -> Path:
    origin = {"program": "bilm-tf", "files": {"lm.hdf5": "sha256:12"}}
    return write_model(folder, SHAPE, carry_state=True, origin=origin, **drawn)


def test_info_of_a_converted_model(tmp_path: Path) -> None:
    model = write_converted(tmp_path / "model", words=None)
    result = elmo_zh("info", model, "--json").result()
    assert list(result) == KEYS
    assert result["mode"] == "character"
    assert result["vocabulary"] is result["segmenter"] is result["text"] is None
    assert (result["softmax"], result["carry_state"], result["warm_state"]) == (False, True, False)
    assert "num_tokens" not in result["sizes"]
    assert result["characters"]["filters"] == [[1, 2], [2, 17]]
    layer = 2 * 7 * 4 * 13 + 4 * 13 + 13 * 7
    cnn = 261 * 3 + (1 * 3 * 2 + 2) + (2 * 3 * 17 + 17) + 2 * (19 * 19 + 19) + 19 * 7 + 7
    assert result["parameters"] == 2 * 2 * layer + cnn
    told = succeed("info", model).stdout
    assert "lm.hdf5 sha256:12" in told
    assert " --segmented" in told
    assert "--warm-on" in told


def test_convert_of_a_run(sample_run: SampleRun, tmp_path: Path) -> None:
    """A likely mistake: the folder of the run in place of its model."""
    told = elmo_zh("convert", sample_run.path, "--output", "new").only_error()
    assert told.endswith(f"elmo-zh embed file.txt --model '{sample_run.model}'")
    assert list(tmp_path.iterdir()) == []
