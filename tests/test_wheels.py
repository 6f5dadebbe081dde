"""The wheels of elmo-zh and its starter hold all that the program needs: it works in a folder without the project."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_zh.config.load import SHIPPED_NAMES

ROOT = Path(__file__).parents[1]
STARTER = ROOT / "data" / "starter"
NOT_SOURCES = shutil.ignore_patterns(".*", "runs", "build", "dist", "*.egg-info", "__pycache__")
Run = Callable[..., str]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheels of the program and of the starter, built from a copy, as building writes into the folder."""
    folder = tmp_path_factory.mktemp("wheels")
    built = []
    for project in (ROOT, STARTER):
        copy = folder / f"copy-of-{project.name}"
        shutil.copytree(project, copy, symlinks=True, ignore=NOT_SOURCES)
        pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
        subprocess.run([*pip, "-w", copy / "dist", copy], check=True, capture_output=True)
        built += (copy / "dist").glob("*.whl")
    return built[0], built[1]


@pytest.fixture(scope="module")
def installed(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The command `elmo-zh` of a fresh environment, which has the packages of this one but not the project."""
    folder = tmp_path_factory.mktemp("elsewhere")
    venv.create(folder / "env")
    python = folder / "env" / "bin" / "python"
    packages = next((folder / "env" / "lib").glob("python*/site-packages"))
    # Its .pth files do not count, so an editable installation of the project is not there.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (packages / "others.pth").write_text("\n".join(others), encoding="utf-8")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index")
    subprocess.run([*pip, "--force-reinstall", *wheels], check=True, capture_output=True)
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ELMO_ZH_MODEL")}

    def run(*arguments: str) -> str:
        command = [folder / "env" / "bin" / "elmo-zh", *arguments]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    lines = (ROOT / "data/sample/food.txt").read_text("utf-8").splitlines()
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    rows = (f"{line.replace(',', '，')},{'long' if len(line) > 90 else 'short'}\n" for line in lines[:60])
    (folder / "reviews.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    return run


def test_wheels_hold_the_data_of_the_program(wheels: tuple[Path, Path]) -> None:
    program, starter = (set(zipfile.ZipFile(wheel).namelist()) for wheel in wheels)
    sample = {f"elmo_zh/sample/{path.name}" for path in (ROOT / "data" / "sample").iterdir()}
    configs = {f"elmo_zh/configs/{name}.toml" for name in SHIPPED_NAMES}
    others = {"elmo_zh/py.typed", "elmo_zh/senses.tsv", "elmo_zh/locale/zh/LC_MESSAGES/messages.mo"}
    assert sample | configs | others <= program
    assert {"elmo_zh_starter/model/weights.hdf5", "elmo_zh_starter/model/vocab.data"} <= starter


def test_the_installed_command_finds_the_starter_and_a_configuration(installed: Run) -> None:
    assert "starter" in installed("info", "starter")
    assert "properties" in installed("--print-schema")


@pytest.mark.slow
def test_the_installed_command_embeds_explores_trains_and_fits(installed: Run) -> None:
    assert "vectors.hdf5" in installed("embed", "text.txt", "--output", "vectors.hdf5")
    assert "page.html" in installed("explore", "--word", "苹果", "--output", "page.html")
    trained = installed("pipeline", "text.txt", "--run", "run", "--config", "tiny", "--set", "train.epochs=1")
    assert "run/model" in trained
    assert "reviews" in installed("task", "fit", "classify", "reviews.csv", "--output", "task", "--model", "run/model")
