"""What an edit of the records breaks elsewhere: claims that fail with it, disputes and rows of scale that it leaves."""

from collections.abc import Mapping, Sequence

from orchtrace_corpus.base.findings import Finding, beyond, printable
from orchtrace_corpus.corpus.analysis import claims
from orchtrace_corpus.corpus.cli.session import CorpusSession
from orchtrace_corpus.corpus.model import disputes, store
from orchtrace_corpus.corpus.model.records import Loaded

_SHOWN = 3

_KINDS = (
    ("C1", "claim", "claims", "corpus claims {names} shows the records; data/claims.yaml says what is expected"),
    ("C201", "dispute", "disputes", "take what is disputed about {names} out of data/disputes.yaml"),
    ("C2", "dispute", "disputes", "write what {names} has now as 'stands' in data/disputes.yaml, with why"),
    ("F119", "published record", "published records", "put {names} back, or take it out of data/published.yaml"),
    ("S1", "row of scale", "rows of scale", "name another record in data/scale.yaml, or leave the field out"),
)
"""What can break: what the codes of its findings begin with, what one and several are called, and how it is mended."""


def broken(root: str, present: Loaded, wanted: Loaded, texts: Mapping[str, str]) -> tuple[Finding, ...]:
    """What `corpus check` would find in the files beside the records with an edit made, and does not find now.

    A claim that failed before is not told again, whatever it finds now.

    Args:
        root: The corpus's folder.
        present: The corpus as it is, without errors: nothing else is judged by data with errors.
        wanted: The same with the edit made, without errors, too.
        texts: The new text of each file that the edit changes, by its name below the folder.
    """
    before = _found(root, present, {})
    failing = {finding.record for finding in before if finding.code == "C101"}
    after = _found(root, wanted, texts)
    return tuple(
        finding for finding in beyond(before, after) if finding.code != "C101" or finding.record not in failing
    )


def tell(session: CorpusSession, found: Sequence[Finding], *, is_made: bool) -> None:
    """Say what an edit breaks, or would break, and how each kind of it is mended."""
    if not found:
        return
    lines, counts, left = [], [], list(found)
    for start, one, several, mend in _KINDS:
        some = [finding for finding in left if finding.code.startswith(start)]
        left = [finding for finding in left if finding not in some]
        if not some:
            continue
        names = list(dict.fromkeys(printable(finding.record) for finding in some))
        count = len(names) if start == "C1" else len(some)  # a claim can break in more than one way
        counts.append(f"{count} {one if count == 1 else several}")
        lines += [str(finding) for finding in some[:_SHOWN]]
        lines += [f"... and {len(some) - _SHOWN} more; see corpus check"] if len(some) > _SHOWN else []
        shown = " ".join((*names[:_SHOWN], *(["..."] if len(names) > _SHOWN else [])))
        lines.append(f"To mend: {mend.format(names=shown)}.")
    told = (
        "breaks {}: corpus check fails until that is mended"
        if is_made
        else "would break {}, and corpus check would fail"
    )
    what = " and ".join(part for part in (", ".join(counts[:-1]), counts[-1]) if part)
    session.output.tell("\n".join((f"corpus: the edit {told.format(what)}:", *lines)))


def _found(root: str, loaded: Loaded, texts: Mapping[str, str]) -> list[Finding]:
    """All findings of the files beside the records."""
    pool = loaded.pool
    if pool is None:
        return []
    claim_file, dispute_file, scale_file = (
        texts[name].encode() if name in texts else None for name in (store.CLAIMS, store.DISPUTES, store.SCALE)
    )
    return [
        *claims.check(store.read_claims(root, claim_file), pool),
        *disputes.check(store.read_disputes(root, pool.taxonomy, dispute_file), pool.papers, pool.taxonomy),
        *loaded.missing,
        *store.read_scale(root, loaded, scale_file).findings,
    ]
