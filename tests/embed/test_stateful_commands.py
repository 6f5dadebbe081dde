"""`--stateful` of embed and evaluate."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from contract.command_line import PROJECTION, SampleRun, changed_json, elmo_zh, succeed
from contract.dumps import SEGMENTED_TOKENS, assert_all_close, embed, read_dump, write_lines
from parity import numpy_oracle as oracle
from parity.numpy_bilm import BilmState, run_bilm

from elmo_zh import ElmoEmbedder


@pytest.mark.parametrize("command", ["embed", "evaluate"])
def test_a_model_trained_with_carried_state_is_warned_of_once(
    sample_run: SampleRun, tmp_path: Path, command: str
) -> None:
    model = shutil.copytree(sample_run.model, tmp_path / "model")
    with changed_json(model / "bundle.json") as info:
        info["carry_state"] = True
    source = write_lines(tmp_path / "file.txt", ["我 吃 苹果", "我 吃 花"])
    force = ["--force"] if command == "embed" else []
    answer = succeed(command, source, "--segmented", "--model", model, "--quiet")
    assert "--stateful" in answer.stderr
    assert answer.stderr.count("\n") == 1
    answer = elmo_zh(command, source, "--segmented", "--stateful", "--model", model, "--quiet", *force)
    assert (answer.status, answer.stderr) == (0, "")


def test_stateful_carries_the_state_from_line_to_line(
    sample_run: SampleRun, embedder: ElmoEmbedder, source: Path
) -> None:
    answer = embed(sample_run, source, "--segmented", "--stateful", "--json")
    assert (answer.result()["lines"], answer.result()["empty_lines"]) == (7, 1)
    vectors, tokens, attributes = read_dump(source.with_name("file.txt.hdf5"))
    assert tokens == list(SEGMENTED_TOKENS)
    assert attributes["stateful"]
    stateful = ElmoEmbedder.load(sample_run.model, "cpu", stateful=True)
    assert_all_close(vectors, stateful.embed_tokens(SEGMENTED_TOKENS))
    # Equal lines have other vectors now.
    assert np.abs(vectors[3] - vectors[0]).max() > 1e-3


def stateful_figures(model: Path, files: Sequence[Sequence[Sequence[str]]]) -> dict[str, float]:
    """The oracle's perplexities; each file starts from zeros, and the mark that is predicted last is not read."""
    reference = oracle.load_bundle(model)
    forward, backward = [], []
    for sentences in files:
        state: BilmState | None = None
        for words in sentences:
            ids, vectors = oracle.token_ids(reference, words), oracle.token_vectors(reference, words)
            forward_layers, (forward_state, _) = run_bilm(reference.bilm, vectors[:-1], state)
            backward_layers, (_, backward_state) = run_bilm(reference.bilm, vectors[1:], state)
            state = [forward_state, backward_state]
            tops = zip(forward_layers[-1][:, :PROJECTION], backward_layers[-1][:, PROJECTION:], strict=True)
            for place, (forward_top, backward_top) in enumerate(tops):
                forward.append(oracle.prediction_nats(reference, forward_top, ids[place + 1]))
                backward.append(oracle.prediction_nats(reference, backward_top, ids[place]))
    return {
        "forward_perplexity": float(np.exp(np.mean(forward))),
        "backward_perplexity": float(np.exp(np.mean(backward))),
        "perplexity": float(np.exp(np.mean([forward, backward]))),
        "num_predictions": len(forward),
    }


def test_evaluate_with_carried_state(sample_run: SampleRun, tmp_path: Path) -> None:
    lines = sample_run.heldout.read_text(encoding="utf-8").splitlines()
    texts = [["我 喜欢 吃 苹果 。", "", "春天 的 花 开 了", "吃"], lines[:29]]
    files = [write_lines(tmp_path / f"{number}.txt", text) for number, text in enumerate(texts)]
    arguments = ("evaluate", *files, "--segmented", "--model", sample_run.model, "--json")
    expected = stateful_figures(sample_run.model, [[line.split(" ") for line in text if line] for text in texts])
    found = elmo_zh(*arguments, "--stateful").result()
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)
    from_zeros = elmo_zh(*arguments).result()
    for name in ("forward_perplexity", "backward_perplexity"):
        assert abs(from_zeros[name] / found[name] - 1) > 3e-4
    assert from_zeros["num_predictions"] == found["num_predictions"]
