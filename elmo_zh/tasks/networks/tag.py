"""Tagging of characters or words: BiLSTM-CRF (Lample et al. 2016), with ELMo at the input, the output or both."""

from collections.abc import Sequence

from torch import Tensor, nn

from elmo_zh.tasks.networks.crf import CRF
from elmo_zh.tasks.networks.encoders import build_encoder
from elmo_zh.tasks.networks.inputs import Batch, Dropout, InputLayer, OutputElmo
from elmo_zh.tasks.networks.settings import HeadSettings, Sizes


class Tagger(nn.Module):
    """[x; ELMo] -> BiLSTM -> [h; ELMo] -> a score for each tag of each unit -> CRF.

    Over characters, x is the vector of the character, its place in the word and the word's vectors, which reach all
    characters of the word by the exact offsets.
    """

    def __init__(self, settings: HeadSettings, sizes: Sizes, tags: Sequence[str], *, marks_spans: bool) -> None:
        super().__init__()
        self.inputs = InputLayer(settings, sizes)
        self.encoder = build_encoder(self.inputs.dimension, settings)
        self.dropout = Dropout(settings.dropout)
        self.output_elmo = OutputElmo(settings, sizes)
        self.emissions = nn.Linear(self.encoder.dimension + self.output_elmo.dimension, sizes.num_outputs)
        self.crf = CRF(tags, marks_spans=marks_spans)

    def forward(self, texts: Sequence[Batch]) -> Tensor:
        """Return the score of each tag for each unit, float32, shape (B, T, num_outputs)."""
        [batch] = texts
        hidden = self.dropout(self.encoder(self.inputs(batch), batch.mask))
        emissions: Tensor = self.emissions(self.output_elmo(hidden, batch))
        return emissions
