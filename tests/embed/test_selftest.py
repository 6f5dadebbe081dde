"""`elmo-zh info --check` of a bundle: a sound model passes, and each fault is found by its check."""

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import drawn_bundles
import h5py
import numpy as np
import pytest
from contract.command_line import Answer, SampleRun, changed_json, elmo_zh
from drawn_bundles import D, L, P, draw_source

from elmo_zh.bundle.read import BundleContent
from elmo_zh.bundle.write import write_bundle
from elmo_zh.reader.bilm import BiLMReader, BiLMShape, LayerState
from elmo_zh.reader.lstm import Floats

TOKENS = "raw text is segmented into the recorded tokens"
STORED = "the stored vectors are reproduced"
COMPANY = "vectors do not depend on the other sentences of a batch"
ALL = [TOKENS, STORED, COMPANY]


@pytest.fixture
def model(sample_run: SampleRun, tmp_path: Path) -> Path:
    return Path(shutil.copytree(sample_run.model, tmp_path / "model"))


def sign(bundle: Path) -> None:
    """Write into bundle.json the digests that the files have now, as someone would who changes a bundle by hand."""
    with changed_json(bundle / "bundle.json") as info:
        for name in info["digests"]:
            info["digests"][name] = f"sha256:{hashlib.sha256((bundle / name).read_bytes()).hexdigest()}"


def check_lines(answer: Answer) -> list[str]:
    return [line for line in answer.stdout.splitlines() if line.startswith(("FAILED ", "ok     ", "skip   "))]


def failed_checks(answer: Answer) -> list[str]:
    """Return the names of the checks that failed, each on a line of its own and all of them in the error."""
    lines = check_lines(answer)
    assert [line[7:].split(":")[0] for line in lines] == ALL
    failed = [line[7:].split(":")[0] for line in lines if line.startswith("FAILED ")]
    assert answer.status == (1 if failed else 0)
    if failed:
        (error,) = answer.errors
        assert f" is damaged ({'; '.join(f'FAILED: {name}' for name in failed)}). " in error
    return failed


def test_the_trained_model_passes(sample_run: SampleRun) -> None:
    answer = elmo_zh("info", sample_run.model, "--check")
    assert failed_checks(answer) == []
    lines = check_lines(answer)
    assert lines[0] == f"ok     {TOKENS}: jieba"
    assert lines[1].startswith(f"ok     {STORED}: largest difference ")
    result = elmo_zh("info", sample_run.model, "--json", "--device", "cpu", "--check").result()
    assert result["passed"] is True
    assert [(*check,) for check in result["checks"]] == [("name", "passed", "found")] * len(ALL)
    assert [(check["name"], check["passed"]) for check in result["checks"]] == [(name, True) for name in ALL]


def change_stored_vectors(model: Path, amount: float, line: int = 2) -> None:
    with h5py.File(model / "golden.hdf5", "a") as file:
        file[str(line)][1, -1, 3] += amount
    sign(model)


@pytest.mark.parametrize(
    ("amount", "line", "failed"),
    [(0.000002, 2, []), (-0.003, 1, [STORED])],
)
def test_stored_vectors_that_were_altered(model: Path, amount: float, line: int, failed: list[str]) -> None:
    change_stored_vectors(model, amount, line)
    answer = elmo_zh("info", model, "--check")
    assert failed_checks(answer) == failed
    # Where numbers are above 1, a share of the largest.
    with h5py.File(model / "golden.hdf5") as file:
        share = 0.003 / max(1, np.abs(file["1"][()]).max())
    assert check_lines(answer)[1].endswith(f"largest difference {share:.1e}") == (amount == -0.003)


def test_text_that_becomes_other_tokens(model: Path) -> None:
    with h5py.File(model / "golden.hdf5", "a") as file:
        del file["texts/0"]
        file["texts/0"] = "今天天气很好，我们去公园玩。"
    sign(model)
    assert failed_checks(elmo_zh("info", model, "--check")) == [TOKENS]


# Faults of this machine or of the code: the files are as they should be.


def test_vectors_that_depend_on_their_company(sample_run: SampleRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the three sentences are read together, the vectors of the last and shortest are no numbers."""
    whole = BiLMReader.read

    def read(self: BiLMReader, vectors: Floats, sentences: Sequence[Any], state: Any) -> tuple[Floats, Any]:
        layers, after = whole(self, vectors, sentences, state)
        layers[:, -1] = np.nan if len(sentences) == 3 else layers[:, -1]
        return layers, after

    monkeypatch.setattr(BiLMReader, "read", read)
    assert failed_checks(elmo_zh("info", sample_run.model, "--check")) == [STORED, COMPANY]


# Models of other kinds

WORDS = ("今", "天", "气", "我", "们", "，", "。")
# Clips beyond reach, so that each word has its part in what comes after it.
SHAPES = {mode: replace(shape, cell_clip=3.0, projection_clip=3.0) for mode, shape in drawn_bundles.SHAPES.items()}


def draw(shape: BiLMShape, **drawn: Any) -> BundleContent:
    return draw_source(shape, **{"words": WORDS, "seed": 19, "carry_state": True, **drawn})


def test_a_model_without_vocabulary_and_known_text(tmp_path: Path) -> None:
    write_bundle(tmp_path / "model", draw(SHAPES["character"], words=None))
    answer = elmo_zh("info", tmp_path / "model", "--check")
    assert failed_checks(answer) == []
    lines = check_lines(answer)
    assert lines[0].startswith(f"skip   {TOKENS}: {tmp_path / 'model'} does not say how its training text was ")
    result = elmo_zh("info", tmp_path / "model", "--json", "--check").result()
    assert result["passed"] is True
    assert [check["name"] for check in result["checks"] if check["passed"] is None] == [TOKENS]


def test_a_model_with_a_warm_state(tmp_path: Path) -> None:
    source = draw(SHAPES["token"])
    warm = LayerState(np.full((2, 1, P), 0.3, np.float32), np.full((2, 1, D), -0.7, np.float32))
    write_bundle(tmp_path / "model", replace(source, weights=replace(source.weights, warm_state=[warm] * L)))
    assert failed_checks(elmo_zh("info", tmp_path / "model", "--check")) == []
    # It belongs to the model: without it other vectors come out.
    with h5py.File(tmp_path / "model" / "warm_state.hdf5", "a") as file:
        file["cell"][...] = 0.0
    sign(tmp_path / "model")
    assert failed_checks(elmo_zh("info", tmp_path / "model", "--check")) == [STORED]
