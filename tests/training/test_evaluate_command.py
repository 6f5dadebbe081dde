"""`elmo-zh evaluate`: exact figures of text."""

from pathlib import Path

import pytest
from contract.command_line import SampleRun, elmo_zh, metrics_lines

from elmo_zh import ElmoEmbedder

KEYS = [
    *("perplexity", "forward_perplexity", "backward_perplexity"),
    *("bits_per_character", "oov_rate", "num_predictions"),
]


def figures(*arguments: str | Path) -> dict[str, float]:
    result = elmo_zh("evaluate", *arguments, "--json").result()
    del result["model"]
    return dict(result)


def test_the_heldout_text_again_gives_the_figures_of_training(sample_run: SampleRun) -> None:
    result = figures(sample_run.heldout, "--segmented", "--model", sample_run.model)
    assert list(result) == KEYS
    full = next(line for line in metrics_lines(sample_run.path) if line.get("heldout_set") == "full")
    for name in KEYS[:-1]:
        assert result[name] == pytest.approx(full[f"heldout_{name}"], rel=1e-6)
    lines = sample_run.heldout.read_text(encoding="utf-8").splitlines()
    assert result["num_predictions"] == sum(len(line.split(" ")) + 1 for line in lines)


def test_raw_text_is_split_and_segmented_as_in_training(sample_run: SampleRun, tmp_path: Path) -> None:
    """And then is the same text as its segmented sentences, in however many files."""
    raw, segmented = tmp_path / "raw", tmp_path / "segmented.txt"
    raw.mkdir()
    (raw / "a.txt").write_text("我喜欢吃苹果。春天来了！\n\n", encoding="utf-8")
    (raw / "b.txt").write_text("　山上的花开了……\n", encoding="utf-8")
    embedder = ElmoEmbedder.load(sample_run.model)
    sentences = [embedder.tokens(sentence) for sentence in ("我喜欢吃苹果。", "春天来了！", "山上的花开了……")]
    segmented.write_text("".join(f"{' '.join(tokens)}\n" for tokens in sentences), encoding="utf-8")
    of_raw = figures(raw, "--model", sample_run.model)
    assert of_raw["num_predictions"] == sum(len(tokens) + 1 for tokens in sentences)
    of_segmented = figures(segmented, "--segmented", "--model", sample_run.model)
    assert of_raw == pytest.approx(of_segmented, rel=1e-6)
