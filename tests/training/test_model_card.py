"""Every exported bundle has a model card, which says what the run's records say."""

import re
from pathlib import Path

from contract.command_line import SampleRun, record_of, succeed

HEADER = "---\nlanguage: zh\nlibrary_name: elmo-zh\ntags: [elmo, bilm, word-embeddings]\n"


def test_the_card_of_the_sample_run(sample_run: SampleRun) -> None:
    card = (sample_run.model / "model_card.md").read_text(encoding="utf-8")
    segment, train = (record_of(sample_run.path, stage) for stage in ("segment", "train"))
    assert card.startswith(f"{HEADER}---\n\n# Model card: 新闻 1\n")
    for name, found in segment["sources"].items():
        assert f"| `{name}` | {found['kept_characters']:,} | {segment['inputs'][name]['digest']} |" in card
    heldout, bigram = train["counts"]["heldout"], train["counts"]["baselines"]["bigram"]
    assert f"| this model | {heldout['perplexity']:,.1f} | {heldout['bits_per_character']:.3f} |" in card
    assert f"| bigram model | {bigram['perplexity']:,.1f} | {bigram['bits_per_character']:.3f} |" in card
    assert f"{train['counts']['tokens']:,} ({train['counts']['epochs']:.2f} epochs)" in card
    assert f"`batch_size = {train['settings']['train.batch_size']}`" in card
    # A card is made to be passed on: it names no folder of this machine.
    assert str(sample_run.folder) not in card
    assert not re.search(r"init =", card)


def test_the_card_begins_with_what_the_user_has_written(run: Path) -> None:
    (run / "about.md").write_text("---\nlicense: cc0-1.0\n---\nRecipes of my grandmother.\n", encoding="utf-8")
    succeed("export", "--run", run)
    card = (run / "model" / "model_card.md").read_text(encoding="utf-8")
    header = f"{HEADER}license: cc0-1.0\n---\n"
    assert card.startswith(f"{header}\n# Model card: copy\n\nRecipes of my grandmother.\n\n## Model\n")


def test_the_card_of_the_starter_begins_with_its_about_file() -> None:
    starter = Path(__file__).resolve().parents[2] / "data" / "starter"
    about = (starter / "about.md").read_text(encoding="utf-8")
    card = (starter / "elmo_zh_starter" / "model" / "model_card.md").read_text(encoding="utf-8")
    header, text = about.removeprefix("---\n").split("---\n", 1)
    assert card.startswith(f"{HEADER}{header}---\n\n# Model card: starter\n\n{text}\n## Model\n")
