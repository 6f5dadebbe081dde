"""Names in plain PyTorch: python names.py MODEL names.conll (a character, a space and its BIO tag a line)."""

import sys
from pathlib import Path

import torch
from torch import nn

from elmo_zh import ElmoEmbedder, ScalarMix, mix_parameter_groups, pool_spans


def read(path: str) -> list[tuple[str, list[str]]]:
    """Return the texts of a CoNLL file and the tags of their characters."""
    blocks = Path(path).read_text(encoding="utf-8").strip().split("\n\n")
    rows = [[line.split() for line in block.splitlines()] for block in blocks]
    return [("".join(cells[0][0] for cells in block), [cells[1] for cells in block]) for block in rows]


def spans(tags: list[str]) -> set[tuple[int, int, str]]:
    """Return first character, last character and type of each name."""
    found: list[tuple[int, int, str]] = []
    for place, tag in enumerate(tags):
        if tag[0] == "I" and found and found[-1][1:] == (place - 1, tag[2:]):
            found[-1] = (found[-1][0], place, tag[2:])
        elif tag[0] in "BI":
            found.append((place, place, tag[2:]))
    return set(found)


class Names(nn.Module):
    """The learned mix of ELMo's layers at each character, a BiLSTM, and a tag."""

    def __init__(self, num_layers: int, dimension: int, num_tags: int) -> None:
        super().__init__()
        self.mix = ScalarMix(num_layers)
        self.dropout = nn.Dropout(0.5)
        self.lstm = nn.LSTM(dimension, 100, bidirectional=True)
        self.output = nn.Linear(200, num_tags)

    def forward(self, layers: torch.Tensor) -> torch.Tensor:
        """Return the scores of the tags, (n, K), for the layers of a text, (L + 1, n, 2P)."""
        hidden, _ = self.lstm(self.dropout(self.mix(layers)))
        return self.output(self.dropout(hidden))


torch.manual_seed(1)
examples = read(sys.argv[2])
tags = sorted({tag for _, each in examples for tag in each})
embedder = ElmoEmbedder.load(sys.argv[1])
lines = [embedder.prepare(text) for text, _ in examples]  # words, and where they are in the text
vectors = embedder.embed_tokens([line.tokens for line in lines])
inputs = [
    # A word's vector at each of its characters.
    torch.from_numpy(pool_spans(layers, line.offsets, [(place, place + 1) for place in range(len(text))]))
    for layers, line, (text, _) in zip(vectors, lines, examples, strict=True)
]
targets = [torch.tensor([tags.index(tag) for tag in each]) for _, each in examples]
order = torch.randperm(len(examples)).tolist()
test, train = order[: len(order) // 5], order[len(order) // 5 :]
model = Names(embedder.num_layers, embedder.dimension, len(tags))
optimizer = torch.optim.Adam(mix_parameter_groups(model, 1e-3))
for epoch in range(1, 11):
    model.train()
    for start in range(0, len(train), 16):
        batch = train[start : start + 16]
        losses = [nn.functional.cross_entropy(model(inputs[index]), targets[index]) for index in batch]
        optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        found = {index: spans([tags[number] for number in model(inputs[index]).argmax(dim=1)]) for index in test}
    gold = {index: spans(examples[index][1]) for index in test}
    right = sum(len(found[index] & gold[index]) for index in test)
    f1 = 2 * right / max(1, sum(len(found[index]) + len(gold[index]) for index in test))
    print(f"epoch {epoch}: F1 {f1:.3f} of names in {len(test)} texts")
