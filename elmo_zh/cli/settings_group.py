"""--print-config: a group whose commands print their settings with it, and need nothing else."""

from copy import copy
from pathlib import Path
from typing import Any

import click

from elmo_zh.cli.options import Common
from elmo_zh.config import render_config
from elmo_zh.run.layout import RunDir


class SettingsGroup(click.Group):
    """A click group whose commands with --print-config print their settings and need nothing else, not even a run."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the name of the command that is called, the command, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        is_whole = command is not None and not isinstance(command, click.Group)
        if command is not None and is_whole and "--print-config" in rest and "--help" not in rest:
            command = settings_command(command)
        return name, command, rest


def settings_command(command: click.Command) -> click.Command:
    """Return a command that takes the options of another one, needs none of them, and prints the settings."""
    params = [copy(param) for param in command.params]
    for param in params:
        param.required = False

    @click.pass_context
    def print_settings(context: click.Context, /, run_path: Path | None = None, **_: Any) -> None:
        config = context.ensure_object(Common).resolve(RunDir(run_path) if run_path else None)
        click.echo(render_config(config), nl=False)

    return click.Command(command.name, params=params, callback=print_settings, help=command.help)
