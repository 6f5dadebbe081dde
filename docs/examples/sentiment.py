"""Sentiment in plain PyTorch: python sentiment.py MODEL reviews.csv (columns label and text)."""

import csv
import sys
from pathlib import Path

import torch
from torch import nn

from elmo_zh import ElmoEmbedder, ScalarMix, mix_parameter_groups


class Sentiment(nn.Module):
    """The learned mix of ELMo's layers, a BiLSTM, the maximum over the words, and a class."""

    def __init__(self, num_layers: int, dimension: int, num_classes: int) -> None:
        super().__init__()
        self.mix = ScalarMix(num_layers)
        self.lstm = nn.LSTM(dimension, 100, bidirectional=True)
        self.output = nn.Linear(200, num_classes)

    def forward(self, texts: list[torch.Tensor]) -> torch.Tensor:
        """Return the scores of the classes, (B, K), for the layers of each text, (L + 1, n, 2P)."""
        return self.output(torch.stack([self.lstm(self.mix(text))[0].amax(dim=0) for text in texts]))


torch.manual_seed(1)
with Path(sys.argv[2]).open(encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["text"].strip()]
classes = sorted({row["label"] for row in rows})
labels = torch.tensor([classes.index(row["label"]) for row in rows])
embedder = ElmoEmbedder.load(sys.argv[1])
vectors = list(
    map(torch.from_numpy, embedder.embed([row["text"] for row in rows]))
)  # computed once, used in each epoch
order = torch.randperm(len(rows)).tolist()
test, train = order[: len(rows) // 5], order[len(rows) // 5 :]
model = Sentiment(embedder.num_layers, embedder.dimension, len(classes))
optimizer = torch.optim.Adam(mix_parameter_groups(model, 1e-3))
for epoch in range(1, 11):
    for start in range(0, len(train), 16):
        batch = train[start : start + 16]
        loss = nn.functional.cross_entropy(model([vectors[index] for index in batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        right = sum(int(model([vectors[index]]).argmax()) == labels[index] for index in test)
    print(f"epoch {epoch}: accuracy {right / len(test):.3f} on {len(test)} reviews")
