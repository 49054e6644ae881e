"""Papers for the leave-out test: the newest records of the pool, and made-up neighbours that they are hidden among."""

import random
from collections.abc import Sequence

from orchtrace_corpus.corpus.model.metadata import Metadata
from orchtrace_corpus.corpus.model.records import Paper, Pool

HIDDEN = 20

_METHODS = (
    "Contrastive Learning|Diffusion Models|Graph Networks|Sparse Attention|Retrieval|Distillation|Quantization|"
    "Bayesian Optimization|Reinforcement Learning|Preference Optimization|Curriculum Learning|Meta-Learning|"
    "Federated Learning|Self-Supervision|Neural Operators|Program Synthesis|Routing|Orchestration|Credit Assignment|"
    "Tool Use|Planning|Debate|Simulation|Fine-Tuning|Prompting"
).split("|")
_SUBJECTS = (
    "Language Models|Vision Transformers|Speech Recognition|Robot Manipulation|Protein Folding|Weather Forecasting|"
    "Recommender Systems|Traffic Networks|Medical Images|Knowledge Graphs|Code Generation|Question Answering|"
    "Time Series|Autonomous Driving|Wireless Networks|Power Grids|Web Agents|Multi-Agent Systems|Software Agents|"
    "Dialogue|Translation|Reward Models|Game Playing|Security Audits|Cloud Services"
).split("|")
_FORMS = (
    "{method} for {subject}|Towards {quality} {subject} by {method}|A Survey of {method} in {subject}|"
    "{quality} {method}: {subject} at Scale|Benchmarking {subject} with {method}|Rethinking {method} in {subject}|"
    "On the Limits of {method} for {subject}|{name}: {quality} {subject} via {method}"
).split("|")
_QUALITIES = "Robust Efficient Scalable Faithful Private Adaptive Safe Interpretable Fast Low-Resource".split()
_SENTENCES = (
    "We study {subject} with {method}.|Existing work on {subject} is limited by its cost.|"
    "Our approach is {quality} and needs little data.|Experiments on {number} tasks show gains over strong baselines.|"
    "We release code for {subject}.|An analysis explains when {method} fails.|A large language model serves as a baseline.|"
    "We discuss safety and security.|Agents in a simulated team are one of our case studies.|"
    "Training uses reinforcement learning on a single model.|The method extends to {other}."
).split("|")
_CATEGORIES = ("cs.LG", "cs.CL", "cs.AI", "cs.CV", "cs.RO", "cs.MA", "cs.SE", "cs.CR", "cs.IR", "stat.ML")


def hidden_papers(pool: Pool) -> tuple[Paper, ...]:
    """The newest records of the published pool with an arXiv id of the present form, the newest first."""
    published = [paper for paper in pool.papers if paper.published and paper.arxiv_id and "." in paper.arxiv_id]
    return tuple(sorted(published, key=lambda paper: paper.arxiv_id or "", reverse=True)[:HIDDEN])


def served(paper: Paper, abstract: str = "") -> Metadata:
    """What the local server says of a real record: its own title, and no abstract, since none is stored."""
    assert paper.arxiv_id is not None
    month = f"20{paper.arxiv_id[:2]}-{paper.arxiv_id[2:4]}"
    names = tuple(" ".join(reversed(name.split(", ", 1))) for name in paper.authors if name != "others") or ("Nobody",)
    day = f"{month}-15T00:{int(paper.arxiv_id[-4:]) % 60:02}:00Z"
    return Metadata(paper.arxiv_id, 1, paper.title, names, abstract, day, day, "cs.MA", ("cs.MA", "cs.AI"))


def made_papers(count: int, seed: int = 7) -> list[Metadata]:
    """Entries of neighbouring fields, with titles and abstracts put together by chance that a seed decides."""
    generator = random.Random(seed)
    return [_made(number, generator) for number in range(count)]


def _made(number: int, generator: random.Random) -> Metadata:
    def chosen(words: Sequence[str]) -> str:
        return generator.choice(words)

    parts = {
        "method": chosen(_METHODS),
        "subject": chosen(_SUBJECTS),
        "other": chosen(_SUBJECTS),
        "quality": chosen(_QUALITIES),
        "name": f"{chosen(('Aero', 'Novo', 'Lumi', 'Terra', 'Quanta'))}{chosen(('Net', 'Former', 'Bench', 'Flow'))}",
        "number": str(generator.randrange(3, 30)),
    }
    title = f"{chosen(_FORMS).format(**parts)} ({number})"
    abstract = " ".join(sentence.format(**parts) for sentence in generator.sample(_SENTENCES, 6))
    year, month = generator.randrange(23, 27), generator.randrange(1, 11)
    day = f"20{year}-{month:02}-{generator.randrange(1, 28):02}T{number % 24:02}:{number % 60:02}:00Z"
    categories = tuple(generator.sample(_CATEGORIES, 2))
    arxiv_id = f"{year}{month:02}.{90000 + number:05}"
    return Metadata(arxiv_id, 1, title, (f"Ada Toy {number}",), abstract, day, day, categories[0], categories)
