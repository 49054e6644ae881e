"""Commands of Typer, made from `CommandSpec` when they are called: they report why a command line is not valid."""

from collections.abc import Callable
from inspect import Parameter as SignatureParameter
from inspect import Signature
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup

from orchtrace_corpus.base.commands.declarations import CommandGroup, CommandSpec, Parameter, command_spec
from orchtrace_corpus.base.commands.output import Output
from orchtrace_corpus.base.commands.plain import HELP_OPTIONS, HELP_WIDTH, help_text
from orchtrace_corpus.base.commands.session import Session
from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote, suggestion


class PlainHelp(TyperCommand):
    """A command of Typer that shows the help of its specification, in the same layout for every version of Typer.

    Contexts and formatters are `Any`, because their classes belong to Typer's own copy of Click.
    """

    spec: ClassVar[CommandSpec]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(ctx.find_root().obj.output.renamed(help_text(self.spec, None, HELP_WIDTH)))


class LazyGroup(TyperGroup):
    """A group of commands of Typer. A command is imported when it is asked for."""

    group: ClassVar[CommandGroup]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return self.group.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if it does not exist."""
        command = self.group.find(cmd_name)
        if command is None:
            return None
        target = command.load()
        path = f"{ctx.command_path} {cmd_name}"
        if isinstance(target, CommandGroup):
            return typer.main.get_command(typer_group(target, path))
        root = ctx.find_root().params.get("root") or ""
        return typer_command(command_spec(target, path, root))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command to run, or raise an error that names a similar one."""
        name = args[0]
        if name in self.group.moved:
            raise CommandUseError(f"there is no command {quote(name)}", f"Use: {self.group.moved[name]}")
        names = self.list_commands(ctx)
        if name not in names and not name.startswith("-"):
            message = f"there is no command {quote(name)}{suggestion(name, names)}"
            raise CommandUseError(message, f"See {ctx.command_path} --help.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group."""
        text = help_text(command_spec(self.group.callback, ctx.command_path), self.group, HELP_WIDTH)
        formatter.write(ctx.find_root().obj.output.renamed(text))


def typer_group(group: CommandGroup, path: str, **settings: Any) -> typer.Typer:
    """Make a group of Typer. Its callback puts the session with the global options into the context."""
    typer_app = typer.Typer(
        cls=type("Group", (LazyGroup,), {"group": group}),
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": sorted(HELP_OPTIONS, key=len)},
        **{"add_completion": False, **settings},
    )
    typer_app.callback()(typer_function(command_spec(group.callback, path), is_callback=True))
    return typer_app


def run(group: CommandGroup, words: list[str], output: Output) -> Any:
    """Run a command line with Typer, and return the result of the command; Typer's errors are raised."""
    typer_app = typer_group(group, output.program, add_completion=True, pretty_exceptions_enable=False)
    command = typer.main.get_command(typer_app)
    return command.main(args=words, prog_name=output.program, standalone_mode=False, obj=Session(output, ""))


def typer_command(spec: CommandSpec) -> Any:
    """Make a command of Typer."""
    typer_app = typer.Typer(add_completion=False, rich_markup_mode=None)
    typer_app.command(cls=type("Command", (PlainHelp,), {"spec": spec}))(typer_function(spec))
    return typer.main.get_command(typer_app)


def typer_function(spec: CommandSpec, *, is_callback: bool = False) -> Callable[..., Any]:
    """Make a function with a signature that Typer can read. It calls a command, or the callback of a group."""

    def run(ctx: typer.Context, **values: Any) -> Any:
        result = spec.call(ctx.obj, given_values(values))
        if not is_callback:
            return result
        if result is None:  # --version
            raise typer.Exit
        ctx.obj = result  # the session for the commands of the group
        return None

    first = SignatureParameter("ctx", SignatureParameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__signature__ = Signature([first, *map(_typer_parameter, spec.parameters)])  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def given_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values that were given on the command line. Typer passes None, False or [] for the others."""
    return {name: value for name, value in values.items() if not (value is None or value is False or value == [])}


def _typer_parameter(parameter: Parameter) -> SignatureParameter:
    """Return a parameter of a signature as Typer reads it."""
    kind: Any = parameter.kind
    if parameter.word_count > 1:
        kind = tuple[(kind,) * parameter.word_count]  # type: ignore[misc]
    if parameter.is_many:
        kind = list[kind]
    settings: dict[str, Any] = {
        "metavar": parameter.form if parameter.word_count else None,
        "min": parameter.option.min,
        "max": parameter.option.max,
    }
    declaration = typer.Option(*parameter.names, **settings) if parameter.names else typer.Argument(**settings)
    default: Any = None
    if parameter.is_required:
        default = SignatureParameter.empty
    elif parameter.word_count == 0:
        default = False
    return SignatureParameter(
        parameter.name, SignatureParameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, declaration]
    )
