"""What a finished run holds, as other programs rely on it."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contract.command_line import (
    NUM_STEPS,
    STAGES,
    STEP_TOKENS,
    SampleRun,
    checkpoint_steps,
    metrics_lines,
    training_lines,
)

BUNDLE_FILES = (
    *("options.json", "weights.hdf5", "vocab.data", "vocab_embedding.hdf5", "word2vec.hdf5", "character_counts.tsv"),
    *("golden.hdf5", "bundle.json", "history.json", "model_card.md"),
)
TRAINING_KEYS = [
    *("step", "tokens", "train_loss", "learning_rate", "grad_norm", "tokens_per_second", "elapsed_seconds"),
]
HELDOUT_FIGURES = ("perplexity", "forward_perplexity", "backward_perplexity", "bits_per_character", "oov_rate")
HELDOUT_KEYS = ["step", "tokens", "heldout_set", *(f"heldout_{name}" for name in HELDOUT_FIGURES)]


def digest(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_artefact_is_there_and_nothing_unfinished(sample_run: SampleRun) -> None:
    files = [path for path in sample_run.path.rglob("*") if path.is_file() and path.name != ".lock"]
    assert {path.name for path in files} >= {"training.png", "character_counts.tsv", "store.json"}
    assert [path for path in files if not path.stat().st_size] == []
    assert sorted(path.name for path in sample_run.model.iterdir()) == sorted(BUNDLE_FILES)
    assert not [path for path in sample_run.folder.rglob("*") if "unfinished" in path.name]
    assert (sample_run.path.parent / "latest").readlink() == Path(sample_run.path.name)
    assert not sample_run.model.is_symlink()


@pytest.mark.parametrize("stage", STAGES)
def test_stage_records_hold_settings_digests_counts_and_seconds(sample_run: SampleRun, stage: str) -> None:
    path = sample_run.path / "stages" / f"{stage}.json"
    record = read_json(path)
    assert record["stage"] == stage
    assert record["finished"] is True
    assert record["seconds"] >= 0
    assert record["counts"]
    assert record["inputs"]
    for name, entry in record["outputs"].items():
        assert entry["digest"] == digest(sample_run.path / name), name
    # A record names nothing outside the run, so that the run can be moved.
    assert str(sample_run.folder) not in path.read_text(encoding="utf-8")


def test_training_lines_of_the_metrics(sample_run: SampleRun) -> None:
    lines = training_lines(sample_run.path)
    assert [line["step"] for line in lines] == list(range(1, NUM_STEPS + 1))
    for line in lines:
        assert list(line) == TRAINING_KEYS
        assert line["tokens"] == line["step"] * STEP_TOKENS
        assert all(np.isfinite(value) for value in line.values())
    assert [line["elapsed_seconds"] for line in lines] == sorted(line["elapsed_seconds"] for line in lines)
    assert lines[-1]["train_loss"] < lines[0]["train_loss"]


def test_evaluation_lines_of_the_metrics(sample_run: SampleRun) -> None:
    lines = [line for line in metrics_lines(sample_run.path) if "train_loss" not in line]
    assert all(list(line) == HELDOUT_KEYS for line in lines)
    assert [(line["step"], line["heldout_set"]) for line in lines] == [
        *((step, "sample") for step in (0, 20, 40, 60, 80, 100)),
        (100, "full"),
    ]
    for line in lines:
        forward, backward = line["heldout_forward_perplexity"], line["heldout_backward_perplexity"]
        assert line["heldout_perplexity"] == pytest.approx((forward * backward) ** 0.5)
        assert line["tokens"] == line["step"] * STEP_TOKENS
    perplexities = [line["heldout_perplexity"] for line in lines]
    assert perplexities[4] < perplexities[0]


def test_the_last_two_checkpoints_are_kept_and_the_best(sample_run: SampleRun) -> None:
    rated = {line["heldout_perplexity"]: line["step"] for line in metrics_lines(sample_run.path) if len(line) == 8}
    assert checkpoint_steps(sample_run.path) == sorted({90, 100, rated[min(rated)]})


def test_the_bundle_says_what_it_is(sample_run: SampleRun) -> None:
    info = read_json(sample_run.model / "bundle.json")
    assert (info["format"], info["mode"], info["carry_state"]) == (1, "token", False)
    assert info["segmenter"]["name"] == "jieba"
    assert info["segmenter"]["dictionary"].startswith("sha256:")
    assert info["text"]["unicode_form"] == "NFC"
    assert info["vocabulary_digest"] == digest(sample_run.model / "vocab.data")
    assert info["digests"] == {name: digest(sample_run.model / name) for name in BUNDLE_FILES[:-3]}
    training = info["training"]
    assert (training["tokens"], training["step"]) == (NUM_STEPS * STEP_TOKENS, NUM_STEPS)
    figures = next(line for line in metrics_lines(sample_run.path) if line.get("heldout_set") == "full")
    for name in ("perplexity", "bits_per_character", "oov_rate"):
        assert training["heldout"][name] == figures[f"heldout_{name}"]
