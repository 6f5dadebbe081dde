"""Pairs of questions in plain PyTorch: python questions.py MODEL pairs.csv (columns sentence1, sentence2 and label)."""

import csv
import sys
from pathlib import Path

import torch
from torch import nn

from elmo_zh import ElmoEmbedder, ScalarMix, mix_parameter_groups


class Pairs(nn.Module):
    """ELMo's mix, a BiLSTM, each word beside what it attends to in the other text (after ESIM), and a class."""

    def __init__(self, num_layers: int, dimension: int, num_classes: int) -> None:
        super().__init__()
        self.mix = ScalarMix(num_layers)
        self.lstm = nn.LSTM(dimension, 100, bidirectional=True)
        self.compare = nn.Sequential(nn.Linear(800, 100), nn.ReLU())
        self.output = nn.Sequential(nn.Dropout(0.5), nn.Linear(400, num_classes))

    def forward(self, pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
        """Return the scores of the classes, (B, K), for the layers of both texts of each pair, (L + 1, n, 2P)."""
        return self.output(torch.stack([self.read(first, second) for first, second in pairs]))

    def read(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        """Return the vector of a pair, (400,)."""
        a, b = self.lstm(self.mix(first))[0], self.lstm(self.mix(second))[0]
        products = a @ b.T  # (n, m): how much each word attends to each word of the other text
        pooled = []
        for own, other in ((a, products.softmax(dim=1) @ b), (b, products.softmax(dim=0).T @ a)):
            compared = self.compare(torch.cat([own, other, own - other, own * other], dim=1))
            pooled += [compared.mean(dim=0), compared.amax(dim=0)]
        return torch.cat(pooled)


torch.manual_seed(1)
with Path(sys.argv[2]).open(encoding="utf-8", newline="") as file:
    rows = [row for row in csv.DictReader(file) if row["sentence1"].strip() and row["sentence2"].strip()]
classes = sorted({row["label"] for row in rows})
labels = torch.tensor([classes.index(row["label"]) for row in rows])
embedder = ElmoEmbedder.load(sys.argv[1])
vectors = list(
    map(torch.from_numpy, embedder.embed([row[name] for name in ("sentence1", "sentence2") for row in rows]))
)
pairs = list(zip(vectors[: len(rows)], vectors[len(rows) :], strict=True))
order = torch.randperm(len(rows)).tolist()
test, train = order[: len(rows) // 5], order[len(rows) // 5 :]
model = Pairs(embedder.num_layers, embedder.dimension, len(classes))
optimizer = torch.optim.Adam(mix_parameter_groups(model, 1e-3))
for epoch in range(1, 11):
    model.train()
    for start in range(0, len(train), 16):
        batch = train[start : start + 16]
        loss = nn.functional.cross_entropy(model([pairs[index] for index in batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum(int(model([pairs[index]]).argmax()) == labels[index] for index in test)
    print(f"epoch {epoch}: accuracy {right / len(test):.3f} on {len(test)} pairs")
