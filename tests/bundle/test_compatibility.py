"""Which other programs can load a model, and which settings keep them from it (docs/interop.md has the table)."""

import re
from dataclasses import replace

import drawn_bundles
import pytest

from elmo_zh.bundle.compatibility import describe_readers, refusals
from elmo_zh.reader.shape import BiLMShape

# What all of them can load: character mode, skip connections, 50 slots, P < D, N > P.
SHAPE = replace(drawn_bundles.SHAPES["character"], projection_dim=7, cell_clip=3.0, projection_clip=3.0)
CHARACTERS = replace(drawn_bundles.CHARACTERS, filters=((1, 3), (2, 8)))
FITTING = replace(SHAPE, characters=CHARACTERS)
TOKENS = replace(SHAPE, characters=None)

PROGRAMS = ("bilm-tf", "AllenNLP", "simple_elmo", "pytorch-fast-elmo")
# The settings that keep a program from loading a model; the mode itself, which cannot be changed, is told in words.
MODE = "character-mode"
SLOTS, FILTERS = "model.character_slots", "model.character_filters"
SKIP, NUM_LAYERS = "model.skip_connections", "model.num_layers"
PROJECTION, CELL = "model.projection_dim", "model.cell_dim"
CLIPS = {"model.cell_clip", "model.projection_clip"}


def named_causes(reasons: list[str]) -> set[str]:
    """The settings that reasons name, and the mode."""
    return {cause for reason in reasons for cause in re.findall(rf"model\.\w+|{MODE}", reason)}


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (FITTING, {}),
        (TOKENS, {"AllenNLP": {MODE}, "simple_elmo": {MODE}}),
        (replace(FITTING, skip_connections=False), {"AllenNLP": {SKIP}, "pytorch-fast-elmo": {SKIP}}),
        (replace(FITTING, characters=replace(CHARACTERS, num_slots=49)), {"AllenNLP": {SLOTS}}),
        (replace(FITTING, characters=replace(CHARACTERS, num_slots=51)), {"AllenNLP": {SLOTS}}),
        (replace(FITTING, cell_dim=7), {"AllenNLP": {PROJECTION, CELL}, "pytorch-fast-elmo": {PROJECTION, CELL}}),
        (replace(FITTING, cell_dim=8), {}),
        (replace(FITTING, projection_dim=11), {"AllenNLP": {PROJECTION}, "pytorch-fast-elmo": {PROJECTION}}),
        (replace(FITTING, projection_dim=12), {"bilm-tf": {FILTERS, PROJECTION}, "simple_elmo": {FILTERS, PROJECTION}}),
        (replace(FITTING, num_layers=8), {}),
        (replace(FITTING, num_layers=9), {"bilm-tf": {NUM_LAYERS}, "simple_elmo": {NUM_LAYERS}}),
        (replace(FITTING, cell_clip=0.0), {"pytorch-fast-elmo": CLIPS}),
        (replace(FITTING, projection_clip=0.0), {"pytorch-fast-elmo": CLIPS}),
        # No program minds these.
        (replace(FITTING, num_layers=1), {}),
        (replace(FITTING, characters=replace(CHARACTERS, num_highways=0, activation="tanh")), {}),
        # In token mode the filters do not matter.
        (
            replace(TOKENS, cell_dim=7, skip_connections=False),
            {"AllenNLP": {MODE}, "simple_elmo": {MODE}, "pytorch-fast-elmo": {PROJECTION, CELL, SKIP}},
        ),
    ],
)
def test_a_refusal_names_the_settings_that_cause_it(shape: BiLMShape, expected: dict[str, set[str]]) -> None:
    found = {name: named_causes(reasons) for name, reasons in refusals(shape).items() if reasons}
    assert found == expected
    assert tuple(refusals(shape)) == PROGRAMS


def test_programs_with_equal_reasons_share_a_line() -> None:
    assert describe_readers(FITTING) == ["Also read by: bilm-tf, AllenNLP, simple_elmo, pytorch-fast-elmo."]
    able, *unable = describe_readers(replace(TOKENS, cell_dim=7))
    assert able == "Also read by: bilm-tf."
    assert [line.partition(":")[0] for line in unable] == [
        "Cannot be read by AllenNLP, simple_elmo",
        "Cannot be read by pytorch-fast-elmo",
    ]
    assert [named_causes([line]) for line in unable] == [{MODE}, {PROJECTION, CELL}]
