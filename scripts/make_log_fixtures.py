"""Run the real SDKs with scripted models, and write what they log to `tests/data/logs`, with the truth beside it.

    python -m venv /tmp/sdks
    /tmp/sdks/bin/pip install openai-agents==0.24.0 langgraph==1.2.22 langsmith==0.14.17 opentelemetry-sdk==1.45.2 \
        opentelemetry-exporter-otlp-proto-common==1.45.2 openinference-instrumentation-openai-agents==2.6.0
    /tmp/sdks/bin/python scripts/make_log_fixtures.py tests/data/logs

No model is called and no network is used but this machine's own: a scripted model answers, sleeps a little, and
notes the tokens that it reports. `truth.json` in each folder holds these, by file and by agent. Ids and times
differ from run to run, everything else is the same.
"""

import argparse
from pathlib import Path
from typing import Any

from sdk_logs import Truth, langgraph, openai_agents, otlp, write


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder to write, such as tests/data/logs")
    folder = parser.parse_args().folder
    for name in ("openai_agents", "otlp", "langsmith"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    make_openai_agents(folder)
    make_langsmith(folder / "langsmith")


def make_openai_agents(folder: Path) -> None:
    """Write every scenario as the SDK exports it, through OpenInference, and with GenAI attributes."""
    truths: dict[str, Any] = {}
    for name, scenario in openai_agents.scenarios().items():
        truth = Truth()
        exported, requests = openai_agents.run(name, scenario, truth)
        truths[name] = truth.as_data()
        write(folder / "openai_agents" / f"{name}.json", [{"data": exported}], lines=False)
        write(folder / "otlp" / f"{name}.openinference.jsonl", list(map(otlp.with_hex_ids, requests)), lines=True)
        write(folder / "otlp" / f"{name}.genai.json", [otlp.genai_request(exported)], lines=False)
    for each in ("openai_agents", "otlp"):
        write(folder / each / "truth.json", [truths], lines=False)


def make_langsmith(folder: Path) -> None:
    """Write every scenario as merged runs, one on each line, and one also as the requests that were sent."""
    truths: dict[str, Any] = {}
    for name, (build, given) in langgraph.scenarios().items():
        truth = Truth()
        requests = list(langgraph.sent(build(truth), given, name))
        truths[name] = truth.as_data()
        write(folder / f"{name}.jsonl", langgraph.merged(requests), lines=True)
        if name == "send":
            truths["requests"] = truths[name]
            write(folder / "requests.jsonl", requests, lines=True)
    write(folder / "truth.json", [truths], lines=False)


if __name__ == "__main__":
    main()
