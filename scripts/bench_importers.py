"""The claims about the speed of importing logs, which `bench.py` prints with all others.

python scripts/bench_importers.py [FORMAT ...]     # only these claims
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from measured import Claim, Run, run

ROOT = Path(__file__).resolve().parents[1]
CORPUS = str(Path(sys.executable).parent / "corpus")
COMMAND = (CORPUS, "--quiet", "trace", "import")
SCREEN = (CORPUS, "--quiet", "trace", "doctor")
IMPORT = """\
import gc, sys
from orchtrace_corpus.trace import importers
from orchtrace_corpus.trace.importers.core.privacy import Privacy
gc.disable()
for session in importers.sessions(sys.argv[1]):
    for trace in importers.read(session, Privacy(b"salt")):
        pass
"""
JSON_LINES = """\
import gc, json, os, sys
gc.disable()
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        with open(os.path.join(folder, name), "rb") as file:
            for line in [file.read()] if name.endswith(".json") else file:
                json.loads(line)
"""
LOGS = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "openai_agents": "OpenAI Agents SDK",
    "otlp_genai": "OTLP, GenAI attributes",
    "otlp_openinference": "OTLP, OpenInference attributes",
    "langsmith": "LangSmith",
    "atif": "ATIF",
    "opencode": "OpenCode",
    "inspect_ai": "Inspect AI",
    "autogen": "AutoGen",
    "google_adk": "Google ADK",
    "qwen_code": "Qwen Code",
    "gemini_cli": "Gemini CLI",
    "copilot_cli": "Copilot CLI",
    "kimi_code": "Kimi Code",
}
"""The formats that `synthesize_logs.py` writes, with their names for people."""

ROUNDS = 3
IMPORT_LIMIT = 3.0
SCREEN_LIMIT = 3.3


def import_claims(size: int, forms: Sequence[str] = tuple(LOGS)) -> Iterator[Claim]:
    """Yield the claims about importing made-up logs and showing them, compared with `json.loads` on the same lines.

    Showing logs is measured in processor time, from the start of the process to its end.

    Args:
        size: The least size of the logs of each format, in MB (10^6 bytes).
        forms: The formats, keys of `LOGS`.
    """
    for form in forms:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "logs"
            run((sys.executable, str(ROOT / "scripts" / "synthesize_logs.py"), form, str(size), str(folder)))
            megabytes = sum(file.stat().st_size for file in folder.rglob("*.json*")) / 1e6
            imports = []
            json_loads = []
            commands = []
            screens = []
            for index in range(ROUNDS):  # in turns, so that a busy moment of the machine affects all
                imports.append(run((sys.executable, "-c", IMPORT, str(folder))))
                json_loads.append(run((sys.executable, "-c", JSON_LINES, str(folder))))
                commands.append(run((*COMMAND, str(folder), "-o", f"{name}/{index}.jsonl")))
                screens.append(run((*SCREEN, str(folder))))
            yield _claim(LOGS[form], megabytes, min(imports), min(json_loads), min(commands))
            screen_seconds = min(screen.cpu_seconds for screen in screens)
            json_seconds = min(load.cpu_seconds for load in json_loads)
            yield Claim(
                f"`corpus trace doctor`, {megabytes:.0f} MB of logs, {LOGS[form]}, against `json.loads` alone on the "
                "same lines, time of the processor",
                screen_seconds / json_seconds,
                SCREEN_LIMIT,
                f"{screen_seconds:.2f} s and {min(screens).peak_mib:.0f} MiB against {json_seconds:.2f} s",
            )


def _claim(what: str, megabytes: float, ours: Run, plain: Run, command: Run) -> Claim:
    return Claim(
        f"importing {megabytes:.0f} MB of logs, {what}, against `json.loads` alone on the same lines",
        ours.seconds / plain.seconds,
        IMPORT_LIMIT,
        f"{megabytes / ours.seconds:.0f} MB/s and {ours.peak_mib:.0f} MiB against "
        f"{megabytes / plain.seconds:.0f} MB/s and {plain.peak_mib:.0f} MiB; "
        f"`corpus trace import`, which writes them, {megabytes / command.seconds:.0f} MB/s",
    )


if __name__ == "__main__":
    for claim in import_claims(100, sys.argv[1:] or tuple(LOGS)):
        print(f"{claim.measured:.2f} (at most {claim.limit:.2f}): {claim.what}: {claim.detail}")
