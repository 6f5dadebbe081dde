"""Compile the catalogue of Chinese messages on every build and installation; pyproject.toml says everything else."""

from setuptools import setup
from setuptools.command.build import build


class BuildWithMessages(build):
    """A build that starts with Babel's command `compile_catalog`, which writes messages.mo beside messages.po."""

    sub_commands = [("compile_catalog", None), *build.sub_commands]  # noqa: RUF012  # setuptools declares a list


setup(
    cmdclass={"build": BuildWithMessages},
    options={"compile_catalog": {"directory": "elmo_zh/locale", "domain": "messages", "use_fuzzy": True}},
)
