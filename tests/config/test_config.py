"""Settings: the files as shipped, what changes them, and what is said about mistakes."""

import dataclasses
import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from contract.command_line import elmo_zh
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pages import load_script

from elmo_zh.config import (
    SECTIONS,
    Config,
    Layers,
    TextConfig,
    TrainConfig,
    load_config,
    render_config,
)
from elmo_zh.config import schema as schema_module
from elmo_zh.config.load import settings_schema
from elmo_zh.errors import ConfigError

CONFIGS = Path(__file__).parents[2] / "configs"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def messages_of(path: Path | None, *assignments: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_config(Config(), path, assignments)
    assert all("\n" not in message for message in caught.value.messages)
    return list(caught.value.messages)


@pytest.mark.parametrize("name", SECTIONS)
def test_every_setting_is_declared_with_a_default_that_is_allowed(name: str) -> None:
    section = getattr(Config(), name)
    assert list(SECTIONS[name]) == [f.name for f in dataclasses.fields(section)]
    for value in SECTIONS[name].values():
        assert value.explained(), value.name
        assert value.convert(value.default) == value.default


def test_small_toml_equals_the_defaults() -> None:
    text = (CONFIGS / "small.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text) == json.loads(json.dumps(dataclasses.asdict(Config())))  # with tuples as lists
    assert text == load_script("generate").small_config(), "configs/small.toml is stale. Run: make docs"


PATHS = st.text(st.characters(codec="utf-8"), max_size=13)
FINITE = st.floats(min_value=0, max_value=1e300, allow_nan=False)


@settings(deadline=None, max_examples=31)
@given(dictionary=PATHS, rate=FINITE, clip=FINITE, size=st.integers(4, 2**62), hmm=st.booleans())
def test_rendered_settings_are_read_back_as_they_were(
    dictionary: str, rate: float, clip: float, size: int, hmm: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    config = Config(
        text=TextConfig(user_dictionary=dictionary, jieba_hmm=hmm),
        vocab=schema_module.VocabConfig(size=size),
        model=schema_module.ModelConfig(cell_clip=clip),
        train=TrainConfig(learning_rate=rate),
    )
    path = tmp_path_factory.mktemp("render") / "config.toml"
    path.write_text(render_config(config), encoding="utf-8", newline="\n")
    assert load_config(Config(), path, []) == config


def test_file_changes_the_base_and_assignments_change_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[train]\nbatch_size = 7\nunroll_steps = 11\n[vocab]\nsize = 131\n")
    base = replace(Config(), train=TrainConfig(batch_size=3, seed=17))
    config = load_config(base, path, ["train.unroll_steps=5", "train.unroll_steps=13", "text.segmenter=character"])
    assert config.train == TrainConfig(batch_size=7, unroll_steps=13, seed=17)
    assert config.vocab.size == 131
    assert config.text.segmenter == "character"


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("train.max_tokens=3e6", 3_000_000),
        ("train.epochs=7", 7.0),
        ("train.learning_rate = 1e-3", 0.001),
        ("train.carry_state=true", True),
        ("embed.layers=2", Layers(2)),
        ("embed.layers=2, 1", Layers("2,1")),
        ('embed.layers="average"', Layers("average")),
        ("text.user_dictionary=字典/新 词=1.txt", "字典/新 词=1.txt"),
    ],
)
def test_values_of_assignments(assignment: str, value: object) -> None:
    section, _, key = assignment.partition("=")[0].strip().partition(".")
    result = getattr(getattr(load_config(Config(), None, [assignment]), section), key)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("assignment", "told"),
    [
        ("train.batchsize=3", "Did you mean train.batch_size?"),
        ("trian.epochs=3", "Did you mean train?"),
        ("txet.segmenter=jieba", "Did you mean text?"),
        ("vocab.zzz=3", "Known names: vocab.size, vocab.min_count, "),
        ("model.max_characters_per_token=20", "In elmo-zh it is called model.character_slots."),
        ("train.n_gpus=3", "torchrun --nproc-per-node"),
        ("train.all_clip_norm_val=5", "In elmo-zh it is called train.max_grad_norm."),
        ("train.n_train_tokens=51795", "encode counts the tokens"),
        ("train.batch_size", "expected --set section.key=value"),
        ("batch_size=3", "expected --set section.key=value"),
        ("train.batch_size=2.5", "expected a whole number"),
        ("train.batch_size=true", "expected a whole number"),
        ("train.learning_rate=nan", "expected a number"),
        ("train.max_tokens=inf", "expected a whole number"),
        ("train.carry_state=1", "expected true or false"),
        ("train.softmax=[]", "expected sampled, full"),
        ("text.segmenter=jeiba", "expected jieba, rjieba, whitespace, character, or the name"),
        ("vocab.size=3", "expected a whole number (0, x>=4)"),
        ("train.dropout=1", "expected a number (-1, 0.0<=x<=0.95)"),
        ("embed.layers=bottom", "expected all, average, top, mix, the number of a layer"),
    ],
)
def test_mistakes_are_named(assignment: str, told: str) -> None:
    [message] = messages_of(None, assignment)
    assert assignment.partition(".")[0] in message
    assert told in message


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "vocab = 5\n[train]\nbatchsize = 3\nseed = 'x'\n[modle]\ncell_dim = 7\n")
    told = messages_of(path, "train.dropout=2", "text.heldout_share=-1", "nonsense")
    named = ("vocab", "batchsize", "train.seed", "modle", "nonsense", "train.dropout", "text.heldout_share")
    assert [name for name, message in zip(named, told, strict=True) if name not in message] == []
    assert all(message.startswith(f"{path}: ") for message in told[:4])


def test_settings_that_contradict_each_other() -> None:
    for first, second in (
        ("model.projection_dim=7", "model.cell_dim=5"),
        ("train.max_tokens=0", "train.epochs=0"),
        ("vocab.init=model", "vocab.words=words.txt"),
        ("train.train_embeddings=false", "model.tie_softmax=true"),
    ):
        (message,) = messages_of(None, first, second)
        assert first.partition("=")[0] in message
        assert second.partition("=")[0] in message


def test_the_json_schema_allows_what_the_settings_allow() -> None:
    schema = settings_schema()
    train = schema["$defs"]["train"]
    assert train["properties"]["batch_size"] | {"description": ""} == {
        "description": "", "type": "integer", "minimum": 1, "default": 64,
    }  # fmt: skip
    assert set(train["properties"]["softmax"]["enum"]) == {"sampled", "full"}
    assert "minimum" not in train["properties"]["dropout"]  # -1 is allowed too
    assert not train["additionalProperties"]
    assert json.loads(elmo_zh("--print-schema").stdout) == json.loads(json.dumps(schema))
