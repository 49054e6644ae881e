"""What claims come to over the published pool, that of today and that with candidates, and what breaks them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchtrace_corpus.base.text.layout import Line, Span, first_names_and_more, line, pluralize, wrap
from orchtrace_corpus.base.text.table import Table, envelope
from orchtrace_corpus.corpus.analysis.claim_readings import Cause
from orchtrace_corpus.corpus.analysis.claims import PoolVerdict, Verdict
from orchtrace_corpus.corpus.model.candidates import Candidate, Decision
from orchtrace_corpus.corpus.model.claim_file import PoolName

_PIPE_WIDTH = 100
_MOST_BEFORE = 5
_OVER = {PoolName.TODAY: "over the pool of today", PoolName.CANDIDATES: "with the candidates"}
_AS_IF = (
    "as if the candidates proposed for inclusion were entries, first those that only enlarge a share's whole, "
    "and each claim were about all entries:"
)
FOUND_OVER = {PoolName.TODAY: "found", PoolName.CANDIDATES: "with candidates found"}
"""What introduces that which was found over a later pool."""


def pools_of(verdicts: Sequence[Verdict]) -> tuple[PoolName, ...]:
    """The pools over which some claims were judged, where there is more than that of today."""
    names = tuple(name for name in PoolName if any(name in verdict.pools for verdict in verdicts))
    return () if names == (PoolName.TODAY,) else names


def pool_summary(
    verdicts: Sequence[Verdict], name: PoolName, *, is_named: bool = True, hint: str = "; see --with candidates"
) -> tuple[str, ...]:
    """How many claims hold over a later pool, and which do not; over that of today, those about the published one.

    Args:
        verdicts: What the claims come to.
        name: The later pool.
        is_named: Whether those that fall with the candidates are named.
        hint: Where a reader learns which candidates they are.
    """
    asked = {PoolName.PUBLISHED, name} if name is PoolName.TODAY else {name}
    judged = [verdict for verdict in verdicts if asked <= verdict.pools.keys()]
    falling = [verdict for verdict in judged if not verdict.pools[name].holds]
    over = _OVER[name]
    told = (f"{over} {len(judged)} of {len(judged)} hold",) * bool(judged)
    awaited = name is PoolName.CANDIDATES
    if falling:
        named = "; ".join(f"{one.claim.id}{'' if awaited else _by(one.pools[name])}" for one in falling)
        told = (f"{over} {len(falling)} of {len(judged)} fall{'s' * (len(falling) == 1)}",)
        if awaited and (exact := sum(one.claim.is_exact for one in falling)):
            counts = "is an exact count" if exact == 1 else "are exact counts"
            told = (f"{told[0]}; {exact} {counts}, outdated by any addition",)
        if is_named or not awaited:
            told = (f"{told[0]}: {named}",)
    return (*told, *_candidate_notes([one.pools[name] for one in judged], hint)) if awaited else told


def _candidate_notes(judged: Sequence[PoolVerdict], hint: str) -> Iterator[str]:
    """What the cells of candidates mean, and whether open tags could make claims fall."""
    if not judged:
        return
    if any(one.falls_at for one in judged):
        yield f"falls at N/M: the first N of M candidates make it fall{hint}"
    if could := sum(bool(one.could_fall_by) for one in judged):
        yield f"{could} could fall through open tags{hint}"


def pools_text(pools: Mapping[PoolName, PoolVerdict], word: str) -> str:
    """The verdict over each pool, in words, `word` as it is written; of one that is judged only today, nothing."""
    if {*pools} <= {PoolName.TODAY}:
        return ""
    labels = {PoolName.PUBLISHED: "published pool", PoolName.TODAY: "today", PoolName.CANDIDATES: "with candidates"}
    told = []
    for name, label in labels.items():
        found = pools.get(name)
        if found is None:
            told += ["the claim is about no other pool"] * (name is PoolName.TODAY)
            continue
        fails = word if name is PoolName.PUBLISHED else f"falls{_by(found)}"
        told.append(f"{label}: {'holds' if found.holds else fails}")
        if name is PoolName.CANDIDATES:
            open_tags = f"{', '.join(found.could_fall_by)} through open tags"
            told[-1] += f", could fall by {open_tags}" if found.could_fall_by else ""
            told[-1] += f"; {reach_text(found)}"
    return "; ".join(told)


def pool_word(verdict: Verdict, name: PoolName, fails: str = "fails") -> str:
    """What a claim comes to over one pool: of candidates, at which it falls. `fails` is said of a claim as written."""
    found = verdict.pools.get(name)
    if name is PoolName.PUBLISHED:
        return fails if verdict.problem else "-" if found is None else "holds" if found.holds else fails
    if found is None:
        return "-"
    if name is PoolName.TODAY:
        return "holds" if found.holds else f"falls{_by(found)}"
    if found.holds:
        return f"could fall by {len(found.could_fall_by)}" if found.could_fall_by else "holds"
    return f"falls at {found.falls_at}/{len(found.counted)}" if found.falls_at else "falls"


def reach_text(awaited: PoolVerdict) -> str:
    """How many candidates a claim counts, from which on it falls, and how many open tags leave out."""
    counts = f"counts {pluralize(len(awaited.counted), 'candidate')}"
    at = awaited.falls_at
    falls = f", falls from the {_ordinal(at)} on ({awaited.counted[at - 1]})" if at else ""
    falls += f", after {first_names_and_more(awaited.counted[: at - 1], _MOST_BEFORE)}" if at > 1 else ""
    return f"{counts}{falls}; open tags leave out {awaited.undecided or 'none'}"


def _ordinal(number: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{number}{'th' if number % 100 in (11, 12, 13) else endings.get(number % 10, 'th')}"


def pools_table(verdicts: Sequence[Verdict]) -> Table:
    """What the claims come to that are judged over more than one pool, a column for each pool."""
    judged = [verdict for verdict in verdicts if len(verdict.pools) > 1]
    pools = pools_of(judged)
    labels = {PoolName.CANDIDATES: "with candidates"}
    rows = tuple((one.claim.claim, *(pool_word(one, name) for name in pools)) for one in judged)
    return Table("claims", "", ("claim", *(labels.get(name, name.value) for name in pools)), rows)


def causes_lines(
    causes: Sequence[Cause], verdicts: Sequence[Verdict], left_out: Sequence[Candidate], width: int | None
) -> list[Line]:
    """The candidates by which claims would fall, or could, claim by claim: the tags that do it, and their sources.

    Theses come before exact counts. Of candidates that are not proposed for inclusion, those that would make a thesis
    fall are named at the end. An address stands on a line of its own, and is never cut.

    Args:
        causes: What would make claims fall, of all candidates.
        verdicts: What the claims come to with the candidates proposed for inclusion.
        left_out: The candidates that are not proposed for inclusion.
        width: How many cells a line has.
    """
    available = min(width or _PIPE_WIDTH, _PIPE_WIDTH)
    proposed = [one for one in causes if one.proposal is Decision.INCLUDE]
    lines: list[Line] = []
    for verdict in sorted(verdicts, key=lambda one: one.claim.is_exact):
        own = [one for one in proposed if one.claim.id == verdict.claim.id]
        if not own:
            continue
        awaited = verdict.pools[PoolName.CANDIDATES]
        lines += [line()] * bool(lines)
        lines.append((Span(verdict.claim.id, "key"), Span(f"  {_effect(own[0])}", "warning")))
        lines += [line(text, "heading") for text in wrap(verdict.claim.claim, available)]
        told = f"expected {verdict.expected}; with the candidates found {awaited.found}"
        lines += [line(text) for sentence in (told, reach_text(awaited)) for text in wrap(sentence, available)]
        for one in own:
            lines.append((Span(f"  {one.name}", "key"), Span(f": {_tags(one)}")))
            lines += [line(f"    {source}{' (a copy)' * (source in one.copies)}", "muted") for source in one.sources]
    if lines:
        lines = [*(line(text) for text in wrap(_AS_IF, available)), line(), *lines]
    else:
        lines = [line("no claim that holds today would fall, or could fall, if the candidates were taken in")]
    if proposed and all(one.is_certain for one in proposed):
        lines += [line(), line("no claim could fall through open tags")]
    proposals = Counter(one.proposal.value for one in left_out)
    if proposals:
        told = ", ".join(f"{proposals[one.value]} {one.value}" for one in Decision if proposals[one.value])
        lines += [line(), *(line(text) for text in wrap(f"candidates not proposed for inclusion: {told}", available))]
    for one in causes:
        if one.proposal is not Decision.INCLUDE and not one.claim.is_exact:
            told = f"{one.claim.id} {_effect(one)} by {one.name} ({one.proposal.value}): {_tags(one)}"
            lines += [line(text) for text in wrap(told, available, first="  ", rest="    ")]
    return lines


def causes_table(causes: Sequence[Cause]) -> Table:
    """The same with a row for each candidate of each claim."""
    columns = ("claim", "verdict", "candidate", "proposal", "tags", "sources")
    rows = tuple((one.claim.id, _effect(one), one.name, one.proposal.value, _tags(one), one.sources) for one in causes)
    return Table("causes", "", columns, rows)


def _effect(cause: Cause) -> str:
    falls = "falls" if cause.is_certain else "could fall"
    return f"{falls} (an exact count, which any addition outdates)" if cause.claim.is_exact else falls


def _tags(cause: Cause) -> str:
    read = (f"{tag} {' or '.join(values)}" for tag, values in cause.tags.items() if values)
    return ", ".join(read)


def causes_data(causes: Sequence[Cause]) -> str:
    """The same for programs."""
    told = [
        {
            "claim": one.claim.id,
            "exact": one.claim.is_exact,
            "candidate": one.name,
            "proposal": one.proposal.value,
            "certain": one.is_certain,
            "tags": {tag: list(values) for tag, values in one.tags.items()},
            "sources": list(one.sources),
            "copies": list(one.copies),
        }
        for one in causes
    ]
    return envelope("causes", {"causes": told})


def pool_data(verdict: PoolVerdict) -> dict[str, Any]:
    """The verdict over one pool, for programs."""
    return {"holds": verdict.holds, "found": verdict.found, "falls_by": list(verdict.falls_by)}


def awaited_data(verdict: PoolVerdict) -> dict[str, Any]:
    """What the verdict over the pool with candidates has besides, for programs."""
    return {
        "could_fall_by": list(verdict.could_fall_by),
        "counted": list(verdict.counted),
        "falls_at": verdict.falls_at or None,
        "left_out_by_open_tags": verdict.undecided,
    }


def _by(verdict: PoolVerdict) -> str:
    return f", by {', '.join(verdict.falls_by)}" if verdict.falls_by else ""
