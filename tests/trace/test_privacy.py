"""What may leave the machine: whatever position of a log holds something private, no trace and no message has it."""

import importlib.util
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchtrace_corpus.base.errors import DataFileError
from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core import privacy
from orchtrace_corpus.trace.importers.core.builder import as_data
from orchtrace_corpus.trace.importers.core.privacy import Privacy, masked, masked_path
from tests.conftest import ROOT, run_corpus
from tests.effort import tries
from tests.trace.conversationlogs import LOGS, Claude, text, use, write

FORMS: dict[str, importers.Importer] = {form: importers.importer(form) for form in importers.FORMATS}
KEYS = (
    "sk-ant-api03-JaNeDoEkLmNoPqRsTuVwXyZ0123456789-ABCDEFGH",
    "sk-proj-JaNeDoE1234567890abcdefABCDEF1234567890",
    "ghp_JaNeDoEefghijklmnopqrstuvwxyzABCDEF1234",
    "github_pat_11JANEDOE0abcdefghijkl_MNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz012345",
    "AKIAJANEDOENN7EXAMPL",
    "AIzaSyJaNeDoE7890abcdefghijklmnopqrstuv",
    "hf_JaNeDoEefghijklmnopqrstuvwxyzABCDEFGH",
    "xox" + "b-123456789012-1234567890123-JaNeDoEfGhIjKlMnOpQrStUvWx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.JaNeDoE456ghiJKL",
)
ADDRESSES = ("jane.doe@corp-janedoe.example", "jane.doe%40corp-janedoe.example")
HOMES = (
    "/home/janedoe/plan", "/Users/janedoe/plan", "C:\\Users\\janedoe\\plan", "c:/users/janedoe/plan", "~janedoe/x",
    "%2Fhome%2Fjanedoe%2Fplan", "C:%5CUsers%5Cjanedoe%5Cplan",
)  # fmt: skip
FLAT = ("-home-janedoe-plan", "-Users-janedoe-plan", "C--Users-janedoe-plan", "_home_janedoe_plan", "~janedoe")
ANYWHERE = (*KEYS, *ADDRESSES, *HOMES)
BEFORE = ("", "mcp__", "claude-", "log_", "x", "7", "tool ", "a.")
APART = ("", "mcp__", "claude-", "tool ", "log_")


# Names


def test_a_secret_is_cut_out_whatever_is_before_it() -> None:
    for before, secret in product(BEFORE, ANYWHERE):
        assert "jane" not in masked(before + secret).lower()
        assert "jane" not in masked_path(f"{before}{secret}/{before}{secret}.jsonl").lower()


@pytest.mark.parametrize("secret", FLAT)
def test_home_folders_that_were_made_into_names_are_cut_out(secret: str) -> None:
    for before in APART:
        if before != "log_":
            assert "jane" not in masked(before + secret).lower()
        if not (before == "log_" and secret.startswith("C")):
            assert "jane" not in masked_path(f"{before}{secret}/{before}{secret}.jsonl").lower()


@pytest.mark.parametrize("secret", KEYS)
def test_nothing_is_left_of_a_key_but_what_was_around_it(secret: str) -> None:
    assert masked(secret) == "…"
    assert masked(f"use {secret} now") == "use … now"


HEX = "0123456789abcdef" * 8
MIXED = "aB3dE5fG7hJ9kL1mN2pQ4rS6tV8wX0yZ" * 4
SHAPES = {
    "Google OAuth client": f"GOCSPX-{MIXED[:28]}",
    "Google OAuth token": f"ya29.a0{MIXED[:60]}",
    "Google OAuth refresh": f"1//0{MIXED[:40]}",
    "Gemini": f"AQ.Ab8{MIXED[:47]}",
    "Stripe": f"rk_live_{MIXED[:24]}",
    "Stripe webhook": f"whsec_{MIXED[:32]}",
    "SendGrid": f"SG.{MIXED[:22]}.{MIXED[:43]}",
    "Twilio key": f"SK{HEX[:32]}",
    "Twilio account": f"AC{HEX[:32]}",
    "Mailgun": f"key-{HEX[:32]}",
    "Mailchimp": f"{HEX[:32]}-us12",
    "Brevo": f"xkeysib-{HEX[:64]}-{MIXED[:16]}",
    "DigitalOcean": f"dop_v1_{HEX[:64]}",
    "DigitalOcean OAuth": f"doo_v1_{HEX[:64]}",
    "Databricks": f"dapi{HEX[:32]}-2",
    "PyPI": f"pypi-AgEIcHlwaS5vcmc{MIXED[:70]}",
    "RubyGems": f"rubygems_{HEX[:48]}",
    "Docker": f"dckr_pat_{MIXED[:12]}-{MIXED[:14]}",
    "Docker organisation": f"dckr_oat_{MIXED[:32]}",
    "Vault": f"hvs.{MIXED[:90]}",
    "Vault batch": f"hvb.{MIXED[:90]}",
    "Vault of old": f"s.{MIXED[:24]}",
    "Dropbox": "sl.B1" + "qz7Kx" * 8,  # in which no other mark is
    "Terraform": f"{MIXED[:14]}.atlasv1.{MIXED[:60]}",
    "Pulumi": f"pul-{HEX[:40]}",
    "Doppler": f"dp.pt.{MIXED[:43]}",
    "Grafana cloud": f"glc_{MIXED[:40]}+/{MIXED[:8]}==",
    "Grafana service": f"glsa_{MIXED[:32]}_{HEX[:8]}",
    "GitLab": f"glpat-{MIXED[:20]}",
    "GitLab trigger": f"glptt-{HEX[:40]}",
    "GitLab deploy": f"gldt-{MIXED[:20]}",
    "GitLab runner": f"glrt-{MIXED[:20]}",
    "GitLab job": f"glcbt-64_{MIXED[:20]}",
    "GitLab agent": f"glagent-{MIXED[:50]}",
    "GitHub OAuth": f"gho_{MIXED[:36]}",
    "GitHub app": f"ghs_{MIXED[:36]}",
    "GitHub refresh": f"ghr_{MIXED[:36]}",
    "Azure SAS": f"sig={MIXED[:42]}%3D",
    "Azure storage": f"AccountKey={MIXED[:86]}==",
    "Azure storage key": f"{MIXED[:86]}==",
    "Azure client": f"abc8Q~{MIXED[:34]}",
    "Azure OpenAI": f"{MIXED[:52]}JQQJ99{MIXED[:26]}",
    "AWS": f"ABIA{MIXED[:16].upper()}",
    "AWS Bedrock": f"ABSK{MIXED[:100]}",
    "Alibaba": f"LTAI{MIXED[:20]}",
    "Atlassian": f"ATATT3xFfGF0{MIXED[:60]}={HEX[:8].upper()}",
    "Slack app": "xapp" + f"-1-A0{MIXED[:9].upper()}-{HEX[:12]}-{HEX[:64]}",
    "Slack webhook": "hooks.slack" + f".com/services/T{MIXED[:8].upper()}/B{MIXED[:8].upper()}/{MIXED[:24]}",
    "Discord webhook": f"discord.com/api/webhooks/123456789012345678/{MIXED[:68]}",
    "Telegram": f"123456789:AA{MIXED[:33]}",
    "Shopify": f"shpat_{HEX[:32]}",
    "Square": f"sq0atp-{MIXED[:22]}",
    "Facebook": f"EAAB{MIXED[:80]}",
    "Linear": f"lin_api_{MIXED[:40]}",
    "Notion": f"ntn_{MIXED[:46]}",
    "Figma": f"figd_{MIXED[:40]}",
    "Airtable": f"pat{MIXED[:14]}.{HEX[:64]}",
    "HubSpot": f"pat-na1-{HEX[:8]}-{HEX[:4]}-{HEX[:4]}-{HEX[:4]}-{HEX[:12]}",
    "Heroku": f"HRKU-{MIXED[:40]}",
    "New Relic": f"NRAK-{MIXED[:27].upper()}",
    "Sentry": f"sntrys_{MIXED[:60]}",
    "Postman": f"PMAK-{HEX[:24]}-{HEX[:34]}",
    "Dynatrace": f"dt0c01.{MIXED[:24].upper()}.{MIXED[:64].upper()}",
    "Cloudflare": f"v1.0-{HEX[:24]}-{HEX}",
    "Fly": f"fo1_{MIXED[:43]}",
    "Supabase": f"sbp_{HEX[:40]}",
    "PlanetScale": f"pscale_tkn_{MIXED[:43]}",
    "Tailscale": f"tskey-auth-{MIXED[:16]}-{MIXED[:32]}",
    "Netlify": f"nfp_{MIXED[:36]}",
    "Prefect": f"pnu_{MIXED[:36]}",
    "ReadMe": f"rdme_{HEX[:70]}",
    "age": f"AGE-SECRET-KEY-1{MIXED[:58].upper()}",
    "private key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "bearer": f"Bearer {MIXED[:40]}",
    "OpenRouter": f"sk-or-v1-{HEX[:64]}",
    "Groq": f"gsk_{MIXED[:52]}",
    "Cerebras": f"csk-{MIXED[:48]}",
    "Fireworks": f"fw_{MIXED[:24]}",
    "Together": f"tgp_v1_{MIXED[:43]}",
    "NVIDIA": f"nvapi-{MIXED[:64]}",
    "Perplexity": f"pplx-{MIXED[:48]}",
    "Replicate": f"r8_{MIXED[:37]}",
    "Tavily": f"tvly-dev-{MIXED[:32]}",
    "Jina": f"jina_{MIXED[:60]}",
    "E2B": f"e2b_{HEX[:40]}",
    "LangSmith": f"lsv2_pt_{HEX[:32]}_{HEX[:10]}",
    "Pinecone": f"pcsk_{MIXED[:6]}_{MIXED[:63]}",
    "Notion of old": f"secret_{MIXED[:43]}",
    "Voyage": f"pa-{MIXED[:20]}_{MIXED[:22]}",
    "Okta": f"SSWS 00{MIXED[:40]}",
    "Discord bot": f"MTIz{MIXED[:20]}.Gb{MIXED[:4]}.{MIXED[:38]}",
    "Vercel": f"vcp_{MIXED[:56]}",
    "1Password": "A3-AB1CD2-EF3GH4-IJ5KL-MN6OP-QR7ST-UV8WX",
}
"""A key of each shape that secret scanners know, made up of parts: none was ever valid."""


def test_keys_of_every_known_shape_are_cut_out() -> None:
    for name, key in SHAPES.items():
        assert (name, masked(key), masked(f"tool {key}")) == (name, "…", "tool …")
        path = masked_path(f"logs/{key}.jsonl")
        assert (name, MIXED[8:16] in path, HEX[8:16] in path) == (name, False, False)


NAMED = {
    "pinecone_api_key=": f"{HEX[:8]}-{HEX[:4]}-{HEX[:4]}-{HEX[:4]}-{HEX[:12]}",
    "okta-token: ": f"00{MIXED[:40]}",
    "discord bot := ": HEX[:64],
    "DISCORD_CLIENT_SECRET=": MIXED[:32].lower(),
    "voyage key = ": f"pa-{MIXED[:43]}",
    "snyk_token=": f"{HEX[:8]}-{HEX[:4]}-{HEX[:4]}-{HEX[:4]}-{HEX[:12]}",
}


def test_keys_that_look_like_ids_are_cut_out_behind_the_name_of_their_service() -> None:
    for mark, key in NAMED.items():
        assert (mark, [name for name in (mark + key, f"x{mark}{key}.jsonl") if key[2:] in masked(name)]) == (mark, [])
        assert masked(key) in (key, "…")
    for key in (HEX[:64], NAMED["snyk_token="]):
        assert [masked(name + key) for name in ("", "pinecone-", "discord ")] == [
            key,
            f"pinecone-{key}",
            f"discord {key}",
        ]


def test_the_collected_shapes_say_where_they_come_from_and_hold_nothing_that_every_hash_could_match() -> None:
    collection = json.loads(read_text_beside(privacy.__file__, "secret_shapes.json"))
    hashes = [*(HEX[:length] for length in (32, 40, 64)), NAMED["snyk_token="], MIXED[:40], *HARMLESS]

    assert collection["source"].endswith(f"/blob/{collection['version']}/config/betterleaks.toml")
    assert collection["license"].startswith("MIT License. Copyright (c) ")
    assert len(collection["shapes"]) > 300
    for shape in collection["shapes"]:
        found = [name for name in hashes if re.search(shape["pattern"], name)]
        assert (shape["id"], found, min(map(len, shape["marks"])) > 2) == (shape["id"], [], True)
        assert shape["marks"] == [mark.casefold() for mark in shape["marks"]]


@pytest.mark.parametrize(
    ("pattern", "converted"),
    [
        (r"""\b(ab_(?i)[a-z]{9})(?:\\?['"\x60]|[\s;]|\\[nr]|$)""", r"(?<![A-Za-z])(?:ab_(?i:[a-z]{9}))"),
        (r"(?i)\b(x-(?i)[(a]{9})(?:[^\w-]|\z)", r"(?i:(?<![A-Za-z])(?:x-(?i:[(a]{9})))"),
        (r"(?P<of>[[:alnum:]]\()", r"(?:[A-Za-z0-9]\()"),
    ],
)
def test_patterns_of_the_collection_become_those_of_python(pattern: str, converted: str) -> None:
    spec = importlib.util.spec_from_file_location("secret_shapes", ROOT / "scripts" / "secret_shapes.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    assert script.python_pattern(pattern) == converted
    assert re.compile(converted)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("https://janedoe:hunter2@git.example.com/x", "https://…git.example.com/x"),
        ("https://janedoe@git.example.com/x", "https://…git.example.com/x"),
        ("postgres://janedoe:pa%40ss@db/x", "postgres://…db/x"),
        ("ssh://janedoe@devbox/x", "ssh://…devbox/x"),
        (r"\\fileserver\people\janedoe\x", "…"),
        (r"\\wsl.localhost\Ubuntu\home\janedoe\x", "…"),
        (r"read \\wsl$\Ubuntu\janedoe", "read …"),
        ("/users/janedoe/plan", "…"),
        ("/homes/janedoe/plan", "…"),
        ("/scratch/janedoe/plan", "…"),
        ("/lustre/scratch/janedoe/plan", "/lustre…"),
        ("/export/home/janedoe", "/export…"),
        ("/mnt/c/Users/Jane Doe/plan", "/mnt…"),
        ("/mnt/c/users/janedoe", "/mnt…"),
        ("-mnt-c-Users-janedoe-plan", "…"),
        ("--wsl-localhost-Ubuntu-home-janedoe-plan", "…"),
        ("-users-janedoe-plan", "…"),
        ("-scratch-janedoe-plan", "…"),
        ("-homes-janedoe-plan", "…"),
    ],
)  # fmt: skip
def test_people_are_cut_out_of_addresses_shares_and_homes_of_every_kind(name: str, shown: str) -> None:
    assert masked(name) == shown
    assert "jane" not in masked_path(f"{name}/log.jsonl").lower()


def test_a_key_that_is_cut_in_two_by_the_end_of_what_is_looked_at_does_not_show() -> None:
    for length in range(880, 1_001):
        assert "jane" not in masked(f"/home/{'x' * (length - 30)} {KEYS[2]}").lower()


WORDS = (
    "task", "risk", "disk", "desk", "mask", "home", "users", "root", "key", "json", "journey", "breakthroughs", "high",
    "self", "sk", "pk", "learn", "hf", "hub", "npm", "github", "pat", "agent", "claude", "opus", "gpt", "codex", "list",
    "v2", "4", "8", "20260101", "2026", "search", "documents", "identification", "assistant", "Reader", "keyJsonSchema",
)  # fmt: skip


@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
    st.sampled_from("_-."),
    st.sampled_from(["", "mcp__", "mcp__server__"]),
)
def test_names_of_ordinary_words_stay_as_they_are(words: list[str], between: str, before: str) -> None:
    name = before + between.join(words)
    if not (before and between == "_" and words[0] in ("home", "users")):
        assert masked(name) == name


@given(
    st.uuids(), st.binary(min_size=8, max_size=32), st.sampled_from(["", "task-", "agent_", "call-", "span:", "disk-"])
)
def test_ids_and_hashes_stay_as_they_are(uuid: Any, digest: bytes, before: str) -> None:
    for name in (str(uuid), digest.hex(), f"sha256:{digest.hex()}", f"rollout-2026-03-01T09-00-00-{uuid}"):
        assert masked(before + name) == before + name


HARMLESS = (
    "claude-opus-4-8-20260101", "gpt-5-codex-high", "us.anthropic.claude-sonnet-4-20250514-v1:0", "example@2026-01-15",
    "@scope/package@1.2.3", "mcp__home_assistant__turn_on", "mcp__claude_ai_Google_Drive__search_files",
    "toolu_01A09q90qw90lq917835lq9", "call_abcDEF0123456789abcdefgh", "task-01ARZ3NDEKTSV4RRFFQ69G5FAV", "1.0~beta1",
    "hf_doc_search", "mcp__hf_hub_query_v2", "sk-learn-pipeline-v2", "pk_fk_constraint_checker_v2", "smart-home-control",
    "list_users_by_id", "breakthroughs_identification_2", "keyJsonSchemaValidator", "task-test-5f3e2a1b4c5d6e7f8a9b",
    "ASIAPACIFICREGIONALREPORT", "a/b", "read_file", "task-0123456789abcdef",
    "https://example.org/search?q=a", "jina_embeddings_v2_base_en", "hvs.vault_reader", "sg.team.lead", "pat_patch_path",
    "glsa_reader_v2", "keyboard=qwerty_layout", "gl-render-2", "s.tasks", "pul-request-2", "dapi_client", "SKILL", "ACCOUNT",
    "scratch-pad", "scratch_pad_write", "mcp__notes__users_list", "a//b", "ratio 3:4", "bearer of news", "basic search",
)  # fmt: skip


def test_what_only_looks_a_little_like_a_secret_stays() -> None:
    assert [(name, masked(name)) for name in HARMLESS if masked(name) != name] == []


PIECES = (
    "home", "Users", "uſers", "root", "sk", "SK", "pk", "ghp", "GHO", "github_pat", "glpat", "hf", "npm", "gsK", "xai", "xoxb",
    "xapp-1", "lsv2_pt", "AKIA", "ASIA", "akia", "AIza", "aizasy", "eyJ", "eyj", "C:", "a", "b7", "%2F", "%5c", "%40", "%2540",
    "/", "\\", "-", "_", "~", "@", ".", "mail.example.org", "0123456789abcdefABCDEFGHIJ", "abcdefghijklmnop0",
)  # fmt: skip


@given(st.lists(st.sampled_from((*PIECES, "scratch", "://", *SHAPES.values())), max_size=6).map("".join))
@settings(max_examples=tries(2_000, 100))
def test_what_is_private_is_never_missed_by_the_quick_look(name: str) -> None:
    if re.search(privacy._PRIVATE, name):
        assert masked(name) != name


# Names that differ only in what is cut out


def named(folder: Path, salt: bytes) -> tuple[list[str], set[str]]:
    """The ids and the models of the traces of a folder."""
    found = [
        trace
        for session in importers.sessions(str(folder))
        for trace in map(as_data, importers.read(session, Privacy(salt)))
    ]
    models = {event["model"] for trace in found for event in trace["events"] if "model" in event}
    return [trace["trace_id"] for trace in found], models


def test_names_of_two_people_stay_two_names_and_the_salt_says_which(tmp_path: Path) -> None:
    for person in ("alice", "bob"):
        main = Claude(f"/home/{person}/session")
        main.say(0, "Go.")
        for number in (1, 2):
            main.answer(number, f"m{number}", text("A"))["message"]["model"] = f"mm-/home/{person}/a"
        write(tmp_path / person / "log.jsonl", main.rows)

    ids, models = named(tmp_path, b"ours")
    assert len(set(ids)) == len(models) == 2
    assert all(model.startswith("mm-…") and len(model) == 8 for model in models)
    assert named(tmp_path, b"ours") == (ids, models)
    assert named(tmp_path, b"theirs")[1] != models


def test_a_salt_that_was_used_is_forgotten() -> None:
    with Privacy(b"salt").pseudonyms():
        assert masked("/home/ann") != "…"
    assert masked("/home/ann") == "…"


# Every position of every log


def places(value: Any, path: str = "") -> Iterator[str]:
    """Where a value holds strings: the path to each, the same for all elements of an array."""
    if isinstance(value, dict):
        yield f"{path}{{}}"
        for name, inner in value.items():
            yield from places(inner, f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, f"{path}[]")
    elif isinstance(value, str):
        yield path


def seeded(value: Any, place: str, secret: str, path: str = "") -> Any:
    """The value with a secret behind each string of a place, or as the name of one more member of each object."""
    if isinstance(value, dict):
        found = {name: seeded(inner, place, secret, f"{path}.{name}") for name, inner in value.items()}
        return {**found, secret: secret} if place == f"{path}{{}}" else found
    if isinstance(value, list):
        return [seeded(inner, place, secret, f"{path}[]") for inner in value]
    return value + secret if path == place and isinstance(value, str) else value


@cache
def records(path: Path) -> list[Any]:
    """What a log holds: its lines, or the document that it is."""
    if path.suffix == ".json":
        return [json.loads(path.read_bytes())]
    found = []
    for line in path.read_bytes().splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def files(form: str) -> Iterator[tuple[Path, Path]]:
    """The logs of a format, each with the folder that holds its session."""
    for top in sorted((LOGS / form).iterdir()):
        if top.name != "truth.json":
            for file in sorted(top.rglob("*.json*")) if top.is_dir() else [top]:
                yield top, file


def said(folder: Path) -> str:
    """All that an import of a folder writes or says."""
    try:
        return "\n".join(
            json.dumps(as_data(trace), ensure_ascii=False)
            for session in importers.sessions(str(folder))
            for trace in importers.read(session, Privacy(b"salt"))
        )
    except DataFileError as error:
        return str(error.args[0]).replace(str(folder), "")


def with_secret(top: Path, file: Path, folder: Path, place: str, secret: str) -> Path:
    """A copy of a session in which one place of one file holds a secret."""
    for each in sorted(top.rglob("*.json*")) if top.is_dir() else [top]:
        target = folder / each.relative_to(top.parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(lines(seeded(row, place, secret) for row in records(each)) if each == file else plain(each))
    return folder


def lines(rows: Iterable[Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


@cache
def plain(path: Path) -> str:
    return lines(records(path))


@pytest.mark.parametrize("form", FORMS)
def test_no_position_of_a_log_lets_a_secret_out(tmp_path: Path, form: str) -> None:
    seeds = [before + secret for secret in ANYWHERE for before in ("_", " ", "")]
    seeds += [before + secret for secret in FLAT for before in (" ", "__")]
    known: set[str] = set()
    number, leaks = 0, []
    for top, file in files(form):
        new = {place for row in records(file) for place in places(row)} - known
        known |= new
        for place in sorted(new)[:: tries(1, 3)]:
            for _ in range(tries(2, 1)):
                number += 1
                secret = seeds[number * 7 % len(seeds)]
                folder = with_secret(top, file, tmp_path / str(number), place, secret)
                if "jane" in said(folder).lower():
                    leaks.append((file.name, place, secret))
    assert number > tries(30, 5)
    assert leaks == []


@pytest.mark.parametrize("secret", [*KEYS, *ADDRESSES, *FLAT, "~janedoe/x", "C:_Users_janedoe_plan"])
def test_no_name_of_a_file_lets_a_secret_out(tmp_path: Path, secret: str) -> None:
    name = secret.replace("/", "_").replace("\\", "_")
    main = Claude()
    main.say(0, "Go.")
    main.answer(1, "m1", text("A"))
    main.rows.append(b"{nonsense\n")
    write(tmp_path / name / f"log-{name}.jsonl", main.rows)

    shown = said(tmp_path)
    assert "source" in shown
    assert "jane" not in shown.lower()


def test_no_command_shows_a_secret(tmp_path: Path) -> None:
    main = Claude()
    for number, secret in enumerate((*ANYWHERE, *FLAT)):
        main.say(number, secret)
        call = use(f"call-{secret}", f"mcp__{secret}", command=secret)
        main.answer(number + 0.5, f"m{number}", call)["message"]["model"] = f"claude-{secret}"
        main.row(f"odd {secret}", number)
    main.rows.append(b'{"cut": "janedoe')
    main.write(tmp_path / "logs")

    written = run_corpus("trace", "import", str(tmp_path / "logs"))
    told = run_corpus("trace", "doctor", str(tmp_path / "logs"))
    tables = run_corpus("trace", "import", str(tmp_path / "logs"), "--to", "parquet", "-o", str(tmp_path / "tables"))
    assert "mcp__…" in written.stdout
    assert "claude-…" in told.stdout
    for shown in (written.stdout, written.stderr, told.stdout, told.stderr, tables.stderr.replace(str(tmp_path), "")):
        assert "jane" not in shown.lower()
    parquet = pytest.importorskip("pyarrow.parquet")
    for table in (tmp_path / "tables").iterdir():
        assert "jane" not in str(parquet.read_table(table).to_pylist()).lower()
