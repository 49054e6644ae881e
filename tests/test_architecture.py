"""What `docs/architecture.md` promises of the code, asked of its syntax trees.

import-linter holds which folder may import which; here stands what it cannot say: no circles, counting imports inside
functions and those for type checkers only; and no decision by the words of a message.
"""

import ast
import gc
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

PACKAGE = "orchtrace_corpus"

PROSE = frozenset(["message", "problems", "what", "why", "reason"])
"""What a sentence for a reader is called, whether a variable or an attribute."""

SENTENCES_ARE_MADE_IN = frozenset(["render", "text"])
"""The folders that turn values into sentences, and may look at both."""

Imports = Mapping[str, Set[str]]


def python_files() -> list[Path]:
    """The files of the package."""
    return sorted((ROOT / PACKAGE).rglob("*.py"))


def module_name(path: Path) -> str:
    """The dotted name of a file's module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SYNTAX = (ast.Import, ast.ImportFrom, ast.ExceptHandler, ast.Compare, ast.Call, ast.Match)
"""The nodes that are looked at here, among some hundred thousand."""


def nodes_of(tree: ast.Module) -> list[Any]:
    """Every node of a syntax tree that is looked at, without the slow generators of `ast.walk`."""
    found: list[ast.AST] = [tree]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += [child for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return [node for node in found if isinstance(node, SYNTAX)]


@cache
def read_nodes() -> dict[str, list[Any]]:
    """The nodes of each module that are looked at."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return {module_name(path): nodes_of(ast.parse(path.read_bytes(), str(path))) for path in python_files()}
    finally:
        if was_on:
            gc.enable()


def folder(module: str, packages: Set[str]) -> str:
    """The package whose direct module this is; a package is its own."""
    return module if module in packages else module.rpartition(".")[0]


def imported(nodes: Iterable[Any], module: str, modules: Set[str], packages: Set[str]) -> Iterator[str]:
    """The modules of the package that a module imports, wherever in it."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in modules:
                    yield alias.name
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parts = folder(module, packages).split(".")
                source = ".".join(parts[: len(parts) - node.level + 1] + ([node.module] if node.module else []))
            for alias in node.names:
                name = f"{source}.{alias.name}"
                if name in modules or source in modules:
                    yield name if name in modules else source


@cache
def module_imports() -> Imports:
    """Which modules each module imports."""
    read = read_nodes()
    packages = {module_name(path) for path in python_files() if path.name == "__init__.py"}
    return {name: set(imported(nodes, name, read.keys(), packages)) - {name} for name, nodes in read.items()}


def folder_imports(imports: Imports) -> Imports:
    """Which folders the direct modules of each folder import."""
    packages = {module_name(path) for path in python_files() if path.name == "__init__.py"}
    edges: dict[str, set[str]] = defaultdict(set)
    for module, others in imports.items():
        home = folder(module, packages)
        edges[home] |= {folder(other, packages) for other in others} - {home}
    return edges


def sibling_imports(imports: Imports, package: str) -> Imports:
    """Which of the parts directly in a package import which, each with all that is in it."""
    edges: dict[str, set[str]] = defaultdict(set)

    def part(module: str) -> str:
        return ".".join(module.split(".")[: package.count(".") + 2])

    for module, others in imports.items():
        if module.startswith(package + "."):
            edges[part(module)] |= {part(other) for other in others if other.startswith(package + ".")} - {part(module)}
    return edges


def circle(imports: Imports) -> list[str]:
    """The shortest circle, from a node back to itself; empty if there is none."""
    found: list[str] = []
    left = {start: others for start, others in imports.items() if others}
    while ends := {node for node, others in left.items() if not others & left.keys()}:  # no circle goes through these
        left = {node: others for node, others in left.items() if node not in ends}
    for start in sorted(left):
        before = {start: start}
        queue = [start]
        for node in queue:
            for other in sorted(imports.get(node, ())):
                if other == start:
                    way = [start]
                    while node != start:
                        way.append(node)
                        node = before[node]
                    if not found or len(way) < len(found) - 1:
                        found = [start, *reversed(way)]
                    break
                if other not in before:
                    before[other] = node
                    queue.append(other)
    return found


def spell_out(way: Iterable[str], imports: Imports, packages: Set[str] = frozenset()) -> str:
    """A circle as lines `this -> that`, between folders with one import that makes the step."""
    lines = []
    for one, other in pairwise(way):
        example = next(
            (f"  ({a} -> {b})" for a in sorted(imports) for b in sorted(imports[a])
             if (folder(a, packages), folder(b, packages)) == (one, other)), ""
        )  # fmt: skip
        lines.append(f"{one} -> {other}{example if packages else ''}")
    return "\n".join(lines)


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle({"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"b"}}) == ["b", "d", "b"]


def test_no_module_imports_itself_by_way_of_others() -> None:
    imports = module_imports()
    assert len(imports) > 100

    way = circle(imports)

    assert not way, "\n" + spell_out(way, imports)


def test_no_folder_imports_itself_by_way_of_others() -> None:
    """A folder stands for the modules directly in it."""
    imports = module_imports()
    packages = {module_name(path) for path in python_files() if path.name == "__init__.py"}

    way = circle(folder_imports(imports))

    assert not way, "\n" + spell_out(way, imports, packages)


def test_no_part_of_a_package_imports_itself_by_way_of_its_siblings() -> None:
    """A part is a module, or a folder with all that is in it."""
    imports = module_imports()
    packages = {module_name(path) for path in python_files() if path.name == "__init__.py"}

    ways = {package: circle(sibling_imports(imports, package)) for package in sorted(packages)}

    assert {package: way for package, way in ways.items() if way} == {}


def is_prose(node: ast.expr, errors: Set[str]) -> bool:
    """Whether an expression is the text of a message, or a part or an edited copy of one."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in PROSE
        case ast.Subscript(value=inner) | ast.NamedExpr(value=inner) | ast.Starred(value=inner):
            return is_prose(inner, errors)
        case ast.Call(func=ast.Name(id="str" | "repr"), args=[ast.Name(id=name)]):
            return name in errors
        case ast.Call(func=ast.Attribute(value=inner, attr="strip" | "lower" | "casefold" | "split" | "removeprefix")):
            return is_prose(inner, errors)
        case ast.BoolOp(values=values):
            return any(is_prose(value, errors) for value in values)
    return False


def decisions(nodes: list[Any]) -> Iterator[tuple[int, str]]:
    """Where a module compares, searches or matches a message: line and expression."""
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name} | {"error"}
    for node in nodes:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                sides = [left, *others]
                identity = all(isinstance(op, ast.Is | ast.IsNot) for op in ops) and not any(
                    isinstance(side, ast.Constant) and side.value is None for side in sides
                )
            case ast.Call(func=ast.Attribute(value=value, attr="startswith" | "endswith" | "find" | "index" | "count")):
                sides, identity = [value], False
            case ast.Call(func=ast.Attribute(value=value, attr="match" | "fullmatch" | "search"), args=arguments):
                sides, identity = [value, *arguments], False
            case ast.Match(subject=subject):
                sides, identity = [subject], False
            case _:
                continue
        if not identity and any(is_prose(side, errors) for side in sides):
            text = node.subject if isinstance(node, ast.Match) else node
            yield text.lineno, ast.unparse(text)


def test_a_decision_by_words_is_found() -> None:
    code = """
if finding.message == "x" or "y" in problems or not why: ...
if reason.startswith("z") or pattern.match(what): ...
if len(problems) > 3 or message: ...
try: ...
except OSError as problem:
    if "gone" in str(problem).lower(): ...
match self.why:
    case "a": ...
if why is None: ...
"""
    assert [line for line, _ in sorted(decisions(nodes_of(ast.parse(code))))] == [2, 2, 3, 3, 7, 8, 10]


def test_programs_never_read_prose() -> None:
    """What code needs to know travels as an enum or a number; only what makes sentences looks at them."""
    found = [
        f"{module}:{line}: {text}"
        for module, nodes in read_nodes().items()
        if not SENTENCES_ARE_MADE_IN & set(module.split("."))
        for line, text in sorted(decisions(nodes))
    ]
    assert not found, "\n" + "\n".join(found)


def test_no_module_imports_what_only_posix_has() -> None:
    found = []
    for module, nodes in read_nodes().items():
        for node in nodes:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found += [f"{module}: {name}" for name in names if name in ("fcntl", "grp", "pwd", "resource", "termios")]
    assert found == []
