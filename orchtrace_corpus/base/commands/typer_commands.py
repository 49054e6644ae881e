"""Commands of Typer, made from declarations when they are called: they write the errors of invalid invocations."""

from collections.abc import Callable
from inspect import Parameter as Declared
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
    """A command with the help of its specification, in the same layout for every version of Typer.

    Contexts and formatters are `Any`: their classes belong to Typer's own Click.
    """

    spec: ClassVar[CommandSpec]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        formatter.write(ctx.find_root().obj.output.renamed(help_text(self.spec, None, HELP_WIDTH)))


class LazyGroup(TyperGroup):
    """A group of commands, each imported when it is asked for."""

    declared: ClassVar[CommandGroup]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        del ctx
        return self.declared.names()

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command; None if it does not exist."""
        command = self.declared.find(cmd_name)
        if command is None:
            return None
        target, path = command.find(), f"{ctx.command_path} {cmd_name}"
        program = ctx.find_root()
        if isinstance(target, CommandGroup):
            return typer.main.get_command(typer_group(target, path))
        return typer_command(command_spec(target, path, program.params.get("root") or ""))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command to run, or raise an error that names the nearest."""
        names = self.list_commands(ctx)
        if args[0] in self.declared.moved:
            raise CommandUseError(f"there is no command {quote(args[0])}", f"Use: {self.declared.moved[args[0]]}")
        if args[0] not in names and not args[0].startswith("-"):
            message = f"there is no command {quote(args[0])}{suggestion(args[0], names)}"
            raise CommandUseError(message, f"See {ctx.command_path} --help.")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of the group."""
        text = help_text(command_spec(self.declared.callback, ctx.command_path), self.declared, HELP_WIDTH)
        formatter.write(ctx.find_root().obj.output.renamed(text))


def typer_group(declared: CommandGroup, path: str, **settings: Any) -> typer.Typer:
    """Make a group of Typer; its callback replaces the session by that of the given options."""
    made = typer.Typer(
        cls=type("Group", (LazyGroup,), {"declared": declared}),
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": sorted(HELP_OPTIONS, key=len)},
        **{"add_completion": False, **settings},
    )
    made.callback()(typer_function(command_spec(declared.callback, path), is_callback=True))
    return made


def run(declared: CommandGroup, words: list[str], output: Output) -> Any:
    """Run an invocation by Typer, and return what it returns; its errors are raised."""
    made = typer_group(declared, output.program, add_completion=True, pretty_exceptions_enable=False)
    command = typer.main.get_command(made)
    return command.main(args=words, prog_name=output.program, standalone_mode=False, obj=Session(output, ""))


def typer_command(spec: CommandSpec) -> Any:
    """Make a command of Typer."""
    made = typer.Typer(add_completion=False, rich_markup_mode=None)
    made.command(cls=type("Command", (PlainHelp,), {"spec": spec}))(typer_function(spec))
    return typer.main.get_command(made)


def typer_function(spec: CommandSpec, *, is_callback: bool = False) -> Callable[..., Any]:
    """Make a function with the signature that Typer reads, which calls a command, or the callback of a group."""

    def run(ctx: typer.Context, **values: Any) -> Any:
        outcome = spec.call(ctx.obj, given(values))
        if not is_callback:
            return outcome
        if outcome is None:  # --version
            raise typer.Exit
        ctx.obj = outcome  # the session of the commands below
        return None

    first = Declared("ctx", Declared.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__signature__ = Signature([first, *map(_declared, spec.parameters)])  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of given parameters: Typer's function has no defaults of its own."""
    return {name: value for name, value in values.items() if not (value is None or value is False or value == [])}


def _declared(parameter: Parameter) -> Declared:
    """Return a parameter as Typer declares it."""
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
    made = typer.Option(*parameter.names, **settings) if parameter.names else typer.Argument(**settings)
    default = False if parameter.word_count == 0 else None
    return Declared(
        parameter.name,
        Declared.KEYWORD_ONLY,
        default=Declared.empty if parameter.is_required else default,
        annotation=Annotated[kind, made],
    )
