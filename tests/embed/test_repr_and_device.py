"""How embedders and scorers are shown, and the devices that they take."""

from pathlib import Path

import pytest
import torch
from messages import message_of

from elmo_zh import ElmoEmbedder
from elmo_zh.errors import ElmoZhError

WORDS = ("我", "吃", "苹", "果", "。", "今天", "天气")


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
