"""Compile the catalogue of Chinese messages on every build and installation; pyproject.toml says everything else."""

from babel.messages import checkers
from setuptools import setup
from setuptools.command.build import build

# Messages are filled by str.format, but Babel would check "5% of" as a printf format.
checkers.checkers.remove(checkers.python_format)


class BuildWithMessages(build):
    """A build that starts with Babel's command `compile_catalog`, which writes messages.mo beside messages.po."""

    sub_commands = [("compile_catalog", None), *build.sub_commands]  # noqa: RUF012  # setuptools declares a list


setup(
    cmdclass={"build": BuildWithMessages},
    options={"compile_catalog": {"directory": "elmo_zh/locale", "domain": "messages", "use_fuzzy": True}},
)
