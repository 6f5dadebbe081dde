"""How embedders and scorers are shown, and the devices that they take."""

from pathlib import Path

import pytest
import torch
from drawn_bundles import TOKENS, P, add_word2vec, write_model
from messages import message_of

from elmo_zh import ElmoEmbedder, LineScorer, Word2Vec
from elmo_zh.config import TextConfig
from elmo_zh.errors import ElmoZhError

WORDS = ("我", "吃", "苹", "果", "。", "今天", "天气")


def test_what_the_interpreter_shows(by_character: Path, tmp_path: Path) -> None:
    folder = by_character
    embedder = ElmoEmbedder.load(folder, "cpu")
    [sentence] = embedder.embed(["我吃"], return_tokens=True)
    assert repr(sentence) == "EmbeddedSentence(tokens=['我', '吃'])"
    assert repr(embedder) == f"<ElmoEmbedder of {folder}: 3 layers, dimension {2 * P}, cpu>"
    model = write_model(tmp_path / "model", TOKENS, words=WORDS, text=TextConfig(), with_softmax=True)
    assert repr(LineScorer.load(model)) == f"<LineScorer of {model}: 3 layers, dimension {2 * P}>"
    word2vec = Word2Vec.load(add_word2vec(model))
    assert repr(word2vec) == f"<Word2Vec of {len(WORDS) + 3} tokens: dimension {word2vec.dimension}>"


def test_a_device_of_torch(by_character: Path) -> None:
    ElmoEmbedder.load(by_character, torch.device("cpu"))  # type: ignore[arg-type]
    for device in ("cuda:0", "gpu", None):
        expected = f"Unknown device {device}. Choose auto, cpu or cuda."
        assert message_of(ElmoZhError, lambda device=device: ElmoEmbedder.load(by_character, device)) == expected


@pytest.mark.parametrize(
    ("build", "reason"), [(None, "torch was built without CUDA"), ("12.9", "torch finds no CUDA device")]
)
def test_no_cuda(by_character: Path, build: str | None, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line for Python too: it names no option of the command line."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", build)
    assert message_of(ElmoZhError, lambda: ElmoEmbedder.load(by_character, "cuda")) == (
        f"device cuda: {reason}. Choose device cpu or auto, or install a CUDA build of torch and NVIDIA's driver."
    )
