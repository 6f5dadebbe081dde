"""Which other programs can load a model, as the table of their demands has it."""

from dataclasses import replace

import pytest

from elmo_zh.bundle.compatibility import describe_readers, refusals
from elmo_zh.model.bilm import BiLMShape
from elmo_zh.model.character_cnn import CharacterShape

# What all of them can load: character mode, skip connections, 50 slots, P < D, N > P.
CHARACTERS = CharacterShape(
    num_characters=261, num_slots=50, embedding_dim=5, filters=((1, 3), (2, 8)), num_highways=2, activation="relu"
)
FITTING = BiLMShape(
    num_tokens=41,
    cell_dim=13,
    projection_dim=7,
    num_layers=2,
    cell_clip=3.0,
    projection_clip=3.0,
    skip_connections=True,
    characters=CHARACTERS,
)
TOKENS = replace(FITTING, characters=None)

CHARACTERS_ONLY = "it reads character-mode models only"
NO_SKIP = "it needs skip connections (model.skip_connections)"
ADDS_SKIP = "it always adds skip connections (model.skip_connections), so its vectors would be wrong"
NO_CLIP = "it needs both clips (model.cell_clip, model.projection_clip)"
FEW_FILTERS = "it needs no fewer filters than the projection has numbers (model.character_filters)"
MANY_LAYERS = "it has names for 8 layers (model.num_layers)"
NO_PROJECTION = "it needs a projection narrower than the cell (model.projection_dim below model.cell_dim)"
NO_CNN_PROJECTION = "it needs another number of filters than model.projection_dim, so that there is a CNN_proj"


def slots(number: int) -> str:
    return f"it reads 50 character slots, not {number} (model.character_slots)"


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (FITTING, {}),
        (TOKENS, {"AllenNLP": [CHARACTERS_ONLY], "simple_elmo": [CHARACTERS_ONLY]}),
        (replace(FITTING, skip_connections=False), {"AllenNLP": [NO_SKIP], "pytorch-fast-elmo": [ADDS_SKIP]}),
        (replace(FITTING, characters=replace(CHARACTERS, num_slots=49)), {"AllenNLP": [slots(49)]}),
        (replace(FITTING, characters=replace(CHARACTERS, num_slots=51)), {"AllenNLP": [slots(51)]}),
        (
            replace(FITTING, cell_dim=7),
            {"AllenNLP": [NO_PROJECTION], "pytorch-fast-elmo": [NO_PROJECTION]},
        ),
        (replace(FITTING, cell_dim=8), {}),
        (
            replace(FITTING, projection_dim=11),
            {"AllenNLP": [NO_CNN_PROJECTION], "pytorch-fast-elmo": [NO_CNN_PROJECTION]},
        ),
        (replace(FITTING, projection_dim=12), {"bilm-tf": [FEW_FILTERS], "simple_elmo": [FEW_FILTERS]}),
        (replace(FITTING, num_layers=8), {}),
        (replace(FITTING, num_layers=9), {"bilm-tf": [MANY_LAYERS], "simple_elmo": [MANY_LAYERS]}),
        (replace(FITTING, cell_clip=0.0), {"pytorch-fast-elmo": [NO_CLIP]}),
        (replace(FITTING, projection_clip=0.0), {"pytorch-fast-elmo": [NO_CLIP]}),
        # What AllenNLP has no opinion on.
        (replace(FITTING, num_layers=1), {}),
        (replace(FITTING, characters=replace(CHARACTERS, num_highways=0, activation="tanh")), {}),
        # In token mode the filters do not matter.
        (
            replace(TOKENS, cell_dim=7, skip_connections=False),
            {
                "AllenNLP": [CHARACTERS_ONLY],
                "simple_elmo": [CHARACTERS_ONLY],
                "pytorch-fast-elmo": [NO_PROJECTION, ADDS_SKIP],
            },
        ),
        # All at once.
        (
            replace(
                FITTING,
                cell_dim=11,
                projection_dim=11,
                skip_connections=False,
                characters=replace(CHARACTERS, num_slots=53),
            ),
            {
                "AllenNLP": [NO_PROJECTION, NO_CNN_PROJECTION, NO_SKIP, slots(53)],
                "pytorch-fast-elmo": [NO_PROJECTION, NO_CNN_PROJECTION, ADDS_SKIP],
            },
        ),
    ],
)
def test_each_demand_of_each_program(shape: BiLMShape, expected: dict[str, list[str]]) -> None:
    programs = ("bilm-tf", "AllenNLP", "simple_elmo", "pytorch-fast-elmo")
    assert refusals(shape) == {name: [] for name in programs} | expected


def test_what_is_told_after_an_export() -> None:
    assert describe_readers(FITTING) == ["Also read by: bilm-tf, AllenNLP, simple_elmo, pytorch-fast-elmo."]
    assert describe_readers(replace(TOKENS, cell_dim=7)) == [
        "Also read by: bilm-tf.",
        f"Not read by AllenNLP, simple_elmo: {CHARACTERS_ONLY}.",
        f"Not read by pytorch-fast-elmo: {NO_PROJECTION}.",
    ]
    without_two = replace(FITTING, skip_connections=False, characters=replace(CHARACTERS, num_slots=53))
    assert describe_readers(without_two) == [
        "Also read by: bilm-tf, simple_elmo.",
        f"Not read by AllenNLP: {NO_SKIP}; {slots(53)}.",
        f"Not read by pytorch-fast-elmo: {ADDS_SKIP}.",
    ]
