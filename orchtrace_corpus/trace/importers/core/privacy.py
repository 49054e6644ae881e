"""Keep private texts out of traces: contents become salted hashes, names lose addresses, home folders and keys."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from orchtrace_corpus.base.files import read_text_beside
from orchtrace_corpus.base.named_tuples import NamedTuple

_MASKED = "…"
_TAG_DIGITS = 4
_MOST_NAME = 200
_MOST_READ = 1_000
"""The length of a name that is searched."""
_TORN = 100
"""The length before the end of what is searched that may be the beginning of a private text, cut short."""

_FOLDERS = ("home", "users", "scratch", "root")
_HINTS_IN_RUNS = (
    "akia", "asia", "abia", "acca", "a3t", "absk", "aiza", "eyj", "dapi", "ltai", "jqqj9", "eaa", "atatt3",
    "atctt3", "atbb",
)  # fmt: skip
_HINTS = (
    "@", "~", "%40", "%25", "\\\\", *_FOLDERS, "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "gh", "hf_", "npm_",
    "xai-", "xox", "xapp-", "lsv2_", "gl", "_v1_", "pypi-", "gocspx-", "ya29.", "1//0", "aq.", "whsec_", "sg.",
    "dckr_", "hvs.", "hvb.", "hvr.", "sl.", "sig=", "key=", "token=", "secret=", "signature=", "password=",
    "passwd=", "pwd=", "q~", "==", "hooks.slack.", "/webhook", ":aa", "shpat_", "shpca_", "shppa_", "shpss_", "sq0",
    "lin_", "ntn_", "figd_", "hrku-", "nrak-", "sntry", "dp.", "pul-", "fo1_", "fm2_", "sbp_", "pscale_", "pmak-",
    "rubygems_", "pplx-", "r8_", "tvly-", "fw_", "nvapi-", "jina_", "e2b_", "tskey-", "nfp_", "xkeysib-", "rdme_",
    "pnu_", "dt0", "secret-key-1", "atlasv1", "key-", "-us", "pat", "private key", "bearer ", "basic ", "v1.0-",
    "secret_", "pa-", "al-", "ssws ",
    *_HINTS_IN_RUNS,
)  # fmt: skip
"""A name without any of these, in any case, is not private: this is checked before the slower search."""
_BEGINNING = 3
_OWN_HINTS = frozenset(_HINTS)
_SHORT_HINTS = tuple(hint for hint in _HINTS if len(hint) < _BEGINNING)
"""Hints that are shorter than the beginnings by which all others are searched at once."""
_CALL_ID = re.compile(r"(?:toolu_|call_)?[A-Za-z0-9]*").fullmatch
"""An id of a call: no key with a mark of its own can be in such a run of letters and digits."""
_VAULT = re.compile(r"(?<![\w.])s\.").search  # the mark of a token of Vault; `s.` alone ends a word in `events.jsonl`
_SHORTEST_KEY = 15  # of the keys that are such a run: a token that begins with `eyJ`
_NUMBER = re.compile(r"(?:toolu_|call_|adk-)?[0-9a-fx-]*").fullmatch  # such as a UUID: it contains no key

_SLASH = r"(?:[\\/]|%2[Ff]|%5[Cc])+"
_REST = r"[^\s\"']*"
_LONG = r"(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}"
_BODY = rf"(?:{_LONG}|[A-Za-z0-9]{{30,}})[\w-]*"
"""The text after the mark of a key: a run of characters that no word of a name has."""
_LOOSE = r"(?=[\w-]*\d)[\w-]{12,}"
"""The text after a mark that no word begins with."""
_ALONE = r"(?<![A-Za-z])"
"""Excludes the end of a word, such as the sk of `task-`; digits and underscores may precede."""
_APART = r"(?<![A-Za-z0-9])"
_NAMED = r"(?:(?:api|auth|access|account|client|secret|shared[-_]?access)[-_]?)"
_HOMES = "home|HOME|homes|Users|USERS|users|scratch"

_PRIVATE = "|".join(
    (
        r"(?<=://)[^\s/?#\"']*@",  # user and password
        r"[\w.+-]{1,64}(?:@|%(?:25)*40)(?:[\w-]+\.)+[^\W\d_][\w-]+",  # e-mail addresses
        rf"(?:[A-Za-z]:|[\\/][A-Za-z]){_SLASH}(?i:users){_SLASH}[^\\/\"']*{_REST}",  # homes; Windows has blanks in them
        rf"{_SLASH}(?i:homes?|users|scratch){_SLASH}{_REST}",
        rf"/root\b{_REST}",
        rf"(?<![\w:.\\])\\\\+[\w.$-]+\\{_REST}",  # folders that another machine shares
        rf"(?:{_APART}~(?=[A-Za-z])|~(?=[\w.-]*[\\/])){_REST}",
        rf"{_APART}(?:[A-Za-z]-)?-(?:[\w.]*-){{0,6}}?(?:{_HOMES})-{_REST}",  # the same, made into names
        rf"(?:(?<![A-Za-z0-9_])|(?<=__))_(?:home|HOME|homes|Users|USERS)_{_REST}",
        rf"{_ALONE}[SPRspr][Kk][-_](?=(?:[\w-]*[-_])?(?=[A-Za-z]*\d)[A-Za-z0-9]{{10,}})[\w-]{{12,}}",  # keys
        rf"[spr]k[-_](?:ant|proj|svcacct|admin|or|live|test|lf)[-_](?=[\w-]*[A-Z])(?=(?:[\w-]*[-_])?{_LONG})[\w-]+",
        r"[spr]k[-_](?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}[\w-]*",
        rf"(?i:gh[pousr]_|github_pat_|hf_|npm_|gsk_|xai-|lsv2_[a-z]{{2}}_){_BODY}",
        rf"{_ALONE}(?i:lin_(?:api|oauth)_|ntn_|secret_|figd_|sbp_|rubygems_|pplx-|r8_|tvly-(?:[a-z]+-)?|fw_|jina_|e2b_|nfp_|rdme_){_BODY}",
        rf"{_ALONE}(?i:pnu_|csk-|pul-|f[om][12]_|hrku-|nrak-|pmak-|whsec_|shp(?:at|ca|pa|ss)_|xkeysib-|sntry[su]_){_BODY}",
        rf"(?i:glpat-|gl(?:ptt|dt|rt|rtr|cbt|agent|ft|ffct|imt|soat)-|gloas-|xox[a-z]-|xapp-\d-){_LOOSE}",
        rf"(?i:dckr_[a-z]{{2,4}}_|do[opr]_v1_|tgp_v1_|gocspx-|pypi-ag|nvapi-|pscale_[a-z]+_|tskey-[a-z]+-|sq0[a-z]{{3}}-){_LOOSE}",
        r"(?i:glc_|glsa_)(?=[\w+/-]*\d)[\w+/=-]{20,}",
        rf"(?:ya29\.|1//0|AQ\.A|{_ALONE}sl\.(?:u\.)?)(?=[\w-]*\d)[\w-]{{30,}}",
        rf"(?i:hv[sbr]\.|{_ALONE}dp\.[a-z]{{2,5}}\.|dt0[a-z]\d\d\.)(?=[\w.-]*\d)[\w.-]{{20,}}",
        r"(?<![\w.])s\.(?=[A-Za-z]*\d)(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])[A-Za-z0-9]{24}(?!\w)",
        r"(?i:sg\.)[\w-]{16,}\.[\w-]{16,}",
        r"(?:SK|AC)[0-9a-f]{32}|dapi[0-9a-f]{32}(?:-\d)?|(?i:key-)[0-9a-f]{32}|[0-9a-f]{32}-us\d{1,2}",
        r"pat[A-Za-z0-9]{14}\.[0-9a-f]{40,}|pat-[a-z]{2}\d-[0-9a-f-]{30,}|v1\.0-[0-9a-f]{24}-[0-9a-f]{40,}",
        r"AKIA[0-9A-Z]{12,}|(?:ASIA|ABIA|ACCA|A3T)(?=[A-Z]*\d)[0-9A-Z]{16,}|akia(?=[a-z]*\d)[0-9a-z]{16,}",
        r"ABSK[\w+/=]{40,}|LTAI(?=[A-Za-z]*\d)[A-Za-z0-9]{12,}|EAA(?=[A-Za-z]*\d)[\w-]{40,}",
        r"AT(?:ATT3|CTT3|BB)(?=[\w=-]*\d)[\w=-]{20,}|[A-Za-z0-9]{10,}\.atlasv1\.[\w-]{20,}",
        r"AIza[\w-]{12,}|(?i:aizasy)(?=[\w-]*\d)[\w-]{20,}",
        r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{30,}|[A-Za-z0-9]{30,}JQQJ9[A-Za-z0-9]{20,}",  # Azure
        r"(?<![A-Za-z0-9])[A-Za-z0-9+/]{86}==",
        rf"{_ALONE}(?i:sig|password|passwd|pwd|{_NAMED}?(?:token|secret|signature)|{_NAMED}key)=[^\s;&\"']{{8,}}",
        r"\d{8,10}:AA[\w-]{30,}|(?i:hooks\.slack\.com|[\w.]+/api/webhooks|[\w.]+/webhookb2)/[^\s\"']+",
        r"(?i:age-secret-key-1)[a-z0-9A-Z]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY[\s\S]*",
        rf"{_ALONE}(?:pa|al)-(?=(?:[\w-]*[-_])?{_LONG})[\w-]{{43}}",  # Voyage
        r"(?<![A-Za-z\d])[MNO](?=[A-Za-z]*\d)[A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,}",  # bots on Discord
        r"(?i:bearer|basic|ssws) (?=[\w.~+/-]*\d)[\w.~+/=-]{16,}",
        rf"(?:(?i:eyj)[\w-]{{8,}}\.(?i:eyj)[\w-]+|{_ALONE}eyJ[\w-]{{12,}})(?:\.[\w-]*)*",  # JSON Web Tokens
    )
)

_FOLDER = rf"(?<![A-Za-z0-9])(?:[A-Za-z]-)?[-_](?:[\w.]*-){{0,6}}?(?:{_HOMES}|root)[-_][^/\\]*"
"""A home folder in the name of a file or folder, as programs make it that have a folder for each project."""

_NO_SERVICE = 40
"""The length of the shortest keys, of services without a mark in their keys, that are one run."""
_IS_RANDOM = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{6,}|[A-Za-z0-9]{30,}").search
_IS_RANDOM_LOOSELY = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}|[A-Za-z0-9]{30,}").search
"""A run of characters that is no word; it is longer in shapes that allow words with hyphens between them."""

_SETS = re.compile("[=>:|,]").search
"""The separators between the name of a service and its key."""

_CANONICAL = msgspec.json.Encoder(order="sorted", enc_hook=str)
_SALT: ContextVar[bytes] = ContextVar("salt", default=b"")


class Privacy(NamedTuple):
    """The way to refer to contents.

    Attributes:
        salt: A secret that makes the hashes of guessable contents useless to others.
        keep_content: True to keep contents in full instead of their hashes.
    """

    salt: bytes
    keep_content: bool = False

    def reference(self, content: Any) -> str:
        """Return the reference to a content: a hash, which is the same for the same content, or the content itself."""
        if not content and (content is None or content in ("", [], {})):
            return ""
        if type(content) is str:
            data = content.encode("utf-8", "replace")
        else:
            try:
                data = _CANONICAL.encode(content)
            except RecursionError:
                data = b"nested too deeply"
        if self.keep_content:
            return content if type(content) is str else data.decode()
        salted = _salted(self.salt).copy()
        salted.update(data)
        return f"sha256:{salted.hexdigest()[:24]}"

    @contextmanager
    def pseudonyms(self) -> Iterator[None]:
        """Let `masked` put a tag, made with this salt, in place of a private text: two people keep two names."""
        before = _SALT.set(self.salt)
        try:
            yield
        finally:
            _SALT.reset(before)


@lru_cache(maxsize=1)
def _salted(salt: bytes) -> Any:
    """Return the hash of a salt; a copy of it is faster than a new hash."""
    return sha256(salt)


def masked(name: str) -> str:
    """Return a name without e-mail addresses, home folders and keys."""
    is_number = len(name) <= _MOST_NAME and _NUMBER(name)  # mostly the id of one call, which is not cached
    return name if is_number else _masked(name[: _MOST_READ + 1], _SALT.get())


def masked_path(path: str) -> str:
    """Return the path of a file in UTF-8, its folders and its name masked."""
    salt = _SALT.get()
    if _has_any(_FOLDERS, path.casefold()):
        path = re.sub(_FOLDER, lambda match: _MASKED + _tag(match.group(), salt), path)
    return masked(path).encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=10_000)
def _masked(name: str, salt: bytes) -> str:
    is_torn = len(name) > _MOST_READ
    may_hold_secrets, shapes = _suspicions(name)
    if may_hold_secrets or shapes:
        name = name[:_MOST_READ]
        if may_hold_secrets:
            name = re.sub(_PRIVATE, lambda match: _MASKED + _tag(match.group(), salt), name)
        for shape in shapes:
            name = shape.cut(name, salt)
        if is_torn:
            name = name[:-_TORN]
    return name[:_MOST_NAME]


class Shape(msgspec.Struct, frozen=True):
    """A shape of keys from `secret_shapes.json`."""

    pattern: str
    marks: tuple[str, ...]  # one of these, in lower case, is in each name with such a key
    is_loose: bool = False  # True if words with hyphens between them match, too
    is_named: bool = False  # True if the mark is the name of a service, which is in front of the key

    def cut(self, name: str, salt: bytes) -> str:
        """Return the name without keys of this shape, each cut out to the end of its run."""
        is_random = _IS_RANDOM_LOOSELY if self.is_loose else _IS_RANDOM

        def cut(found: re.Match[str]) -> str:
            text = found.group()
            return _MASKED + _tag(text, salt) if is_random(text) else text

        return re.sub(f"(?:{self.pattern})[A-Za-z0-9]*", cut, name)


def _suspicions(name: str) -> tuple[bool, tuple[Shape, ...]]:
    """Return True if a name may match `_PRIVATE`, and the collected shapes that have a mark in it."""
    if (is_run := _CALL_ID(name) is not None) and len(name) < _SHORTEST_KEY:
        return False, ()
    # keys with a beginning that is too short to search in any case
    may_hold_secrets = "SK" in name or "AC" in name or _VAULT(name) is not None
    may_hold_secrets = may_hold_secrets or (len(name) > 57 and name.count(".") > 1)  # as a token of Discord has parts
    folded = name.casefold()
    if is_run and len(name) < _NO_SERVICE:
        return may_hold_secrets or _has_any(_HINTS_IN_RUNS, folded), ()
    may_hold_secrets = may_hold_secrets or _has_any(_SHORT_HINTS, folded)
    beginnings, marks_by_beginning, shapes_by_mark = _marks(bool(_SETS(name)))
    present = beginnings.intersection(zip(folded, folded[1:], folded[2:], strict=False))
    if not present:
        return may_hold_secrets, ()
    marks = [mark for beginning in present for mark in marks_by_beginning[beginning] if mark in folded]
    shapes = dict.fromkeys(shape for mark in marks for shape in shapes_by_mark.get(mark, ()))
    return may_hold_secrets or not _OWN_HINTS.isdisjoint(marks), tuple(shapes)


@cache
def _marks(with_named: bool) -> tuple[frozenset[Any], dict[Any, list[str]], dict[str, list[Shape]]]:
    """Return the beginnings of marks, the marks by beginning, and the collected shapes by mark, named ones if asked."""
    data = read_text_beside(__file__, "secret_shapes.json")
    shapes_by_mark: dict[str, list[Shape]] = {}
    for shape in msgspec.convert(msgspec.json.decode(data)["shapes"], tuple[Shape, ...]):
        for mark in shape.marks if with_named or not shape.is_named else ():
            shapes_by_mark.setdefault(mark, []).append(shape)
    marks_by_beginning: dict[Any, list[str]] = {}
    for mark in dict.fromkeys((*_HINTS, *shapes_by_mark)):
        if len(mark) >= _BEGINNING:
            marks_by_beginning.setdefault(tuple(mark[:_BEGINNING]), []).append(mark)
    return frozenset(marks_by_beginning), marks_by_beginning, shapes_by_mark


def _has_any(words: tuple[str, ...], name: str) -> bool:
    return any(map(name.__contains__, words))


def _tag(private: str, salt: bytes) -> str:
    """Return a few digits by which two masked names differ: too few to guess the text even with the salt."""
    if not salt:
        return ""
    import hmac

    return hmac.digest(salt, private.encode("utf-8", "replace"), "sha256").hex()[:_TAG_DIGITS]
