"""Keep private texts out of traces: hash contents, and mask e-mail addresses, home folders and keys in names."""

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

_ELLIPSIS = "…"
_TAG_DIGITS = 4
_MAX_NAME_LENGTH = 200
_MAX_SEARCHED = 1_000
"""The characters of a name in which private texts are searched; the rest is dropped."""
_UNSURE_LENGTH = 100
"""The last of these characters may begin a private text that is cut off. They are dropped, too."""

_FOLDERS = ("home", "users", "scratch", "root")
# the hints of keys that are one run of letters and digits
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
"""Each text that `_PRIVATE` matches contains one of these, in upper or lower case. They are faster to search."""
_PREFIX_LENGTH = 3
_HINT_SET = frozenset(_HINTS)
_SHORT_HINTS = tuple(hint for hint in _HINTS if len(hint) < _PREFIX_LENGTH)
"""Hints that are too short to be found by their first `_PREFIX_LENGTH` characters, as all others are."""
_is_call_id = re.compile(r"(?:toolu_|call_)?[A-Za-z0-9]*").fullmatch
"""Matches the id of a call: a run of letters and digits, in which only the hints of `_HINTS_IN_RUNS` can be."""
_has_vault_token = re.compile(r"(?<![\w.])s\.").search  # not the `s.` in `events.jsonl`
_SHORTEST_KEY = 15  # the length of the shortest key that is a run of letters and digits: a token that begins with `eyJ`
_is_hex_id = re.compile(r"(?:toolu_|call_|adk-)?[0-9a-fx-]*").fullmatch  # such as a UUID; it contains no key

_SLASH = r"(?:[\\/]|%2[Ff]|%5[Cc])+"  # slashes or backslashes, which may be percent-encoded
_REST = r"[^\s\"']*"  # the rest of a path
_RANDOM = r"(?=[A-Za-z]*\d)[A-Za-z0-9]{16,}"  # letters with at least one digit
_KEY = rf"(?:{_RANDOM}|[A-Za-z0-9]{{30,}})[\w-]*"
"""The text after the prefix of a key: a run of characters as no word of a name has it."""
_KEY_WITH_DIGIT = r"(?=[\w-]*\d)[\w-]{12,}"
"""The text after a prefix with which no word begins."""
_NO_LETTER_BEFORE = r"(?<![A-Za-z])"
"""Excludes a prefix at the end of a word, such as the `sk-` in `task-`; a digit or underscore may precede it."""
_NO_WORD_BEFORE = r"(?<![A-Za-z0-9])"
_SECRET_PREFIX = r"(?:(?:api|auth|access|account|client|secret|shared[-_]?access)[-_]?)"
_HOME_NAMES = "home|HOME|homes|Users|USERS|users|scratch"

_PRIVATE = "|".join(
    (
        r"(?<=://)[^\s/?#\"']*@",  # user and password
        r"[\w.+-]{1,64}(?:@|%(?:25)*40)(?:[\w-]+\.)+[^\W\d_][\w-]+",  # e-mail addresses
        rf"(?:[A-Za-z]:|[\\/][A-Za-z]){_SLASH}(?i:users){_SLASH}[^\\/\"']*{_REST}",  # home folders
        rf"{_SLASH}(?i:homes?|users|scratch){_SLASH}{_REST}",
        rf"/root\b{_REST}",
        rf"(?<![\w:.\\])\\\\+[\w.$-]+\\{_REST}",  # shared folders of another machine
        rf"(?:{_NO_WORD_BEFORE}~(?=[A-Za-z])|~(?=[\w.-]*[\\/])){_REST}",
        rf"{_NO_WORD_BEFORE}(?:[A-Za-z]-)?-(?:[\w.]*-){{0,6}}?(?:{_HOME_NAMES})-{_REST}",  # home in a name
        rf"(?:(?<![A-Za-z0-9_])|(?<=__))_(?:home|HOME|homes|Users|USERS)_{_REST}",
        rf"{_NO_LETTER_BEFORE}[SPRspr][Kk][-_](?=(?:[\w-]*[-_])?(?=[A-Za-z]*\d)[A-Za-z0-9]{{10,}})[\w-]{{12,}}",  # keys
        rf"[spr]k[-_](?:ant|proj|svcacct|admin|or|live|test|lf)[-_](?=[\w-]*[A-Z])(?=(?:[\w-]*[-_])?{_RANDOM})[\w-]+",
        r"[spr]k[-_](?=[A-Za-z0-9]*[a-z])(?=[A-Za-z0-9]*[A-Z])(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}[\w-]*",
        rf"(?i:gh[pousr]_|github_pat_|hf_|npm_|gsk_|xai-|lsv2_[a-z]{{2}}_){_KEY}",
        rf"{_NO_LETTER_BEFORE}(?i:lin_(?:api|oauth)_|ntn_|secret_|figd_|sbp_|rubygems_|pplx-|r8_|tvly-(?:[a-z]+-)?|fw_|jina_|e2b_|nfp_|rdme_){_KEY}",
        rf"{_NO_LETTER_BEFORE}(?i:pnu_|csk-|pul-|f[om][12]_|hrku-|nrak-|pmak-|whsec_|shp(?:at|ca|pa|ss)_|xkeysib-|sntry[su]_){_KEY}",
        rf"(?i:glpat-|gl(?:ptt|dt|rt|rtr|cbt|agent|ft|ffct|imt|soat)-|gloas-|xox[a-z]-|xapp-\d-){_KEY_WITH_DIGIT}",
        rf"(?i:dckr_[a-z]{{2,4}}_|do[opr]_v1_|tgp_v1_|gocspx-|pypi-ag|nvapi-|pscale_[a-z]+_|tskey-[a-z]+-|sq0[a-z]{{3}}-){_KEY_WITH_DIGIT}",
        r"(?i:glc_|glsa_)(?=[\w+/-]*\d)[\w+/=-]{20,}",
        rf"(?:ya29\.|1//0|AQ\.A|{_NO_LETTER_BEFORE}sl\.(?:u\.)?)(?=[\w-]*\d)[\w-]{{30,}}",
        rf"(?i:hv[sbr]\.|{_NO_LETTER_BEFORE}dp\.[a-z]{{2,5}}\.|dt0[a-z]\d\d\.)(?=[\w.-]*\d)[\w.-]{{20,}}",
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
        rf"{_NO_LETTER_BEFORE}(?i:sig|password|passwd|pwd|{_SECRET_PREFIX}?(?:token|secret|signature)|{_SECRET_PREFIX}key)=[^\s;&\"']{{8,}}",
        r"\d{8,10}:AA[\w-]{30,}|(?i:hooks\.slack\.com|[\w.]+/api/webhooks|[\w.]+/webhookb2)/[^\s\"']+",
        r"(?i:age-secret-key-1)[a-z0-9A-Z]{20,}|-----BEGIN [A-Z ]*PRIVATE KEY[\s\S]*",
        rf"{_NO_LETTER_BEFORE}(?:pa|al)-(?=(?:[\w-]*[-_])?{_RANDOM})[\w-]{{43}}",  # Voyage
        r"(?<![A-Za-z\d])[MNO](?=[A-Za-z]*\d)[A-Za-z\d]{23,27}\.[\w-]{6}\.[\w-]{27,}",  # bots on Discord
        r"(?i:bearer|basic|ssws) (?=[\w.~+/-]*\d)[\w.~+/=-]{16,}",
        rf"(?:(?i:eyj)[\w-]{{8,}}\.(?i:eyj)[\w-]+|{_NO_LETTER_BEFORE}eyJ[\w-]{{12,}})(?:\.[\w-]*)*",  # JSON Web Tokens
    )
)

_FOLDER = rf"(?<![A-Za-z0-9])(?:[A-Za-z]-)?[-_](?:[\w.]*-){{0,6}}?(?:{_HOME_NAMES}|root)[-_][^/\\]*"
"""A home folder in the name of a file or folder, such as `-home-user-project`. Programs name project folders so."""

_SHORTEST_RUN_KEY = 40
"""The shortest key that is a run of letters and digits and has no prefix, but a service's name in front of it."""
_has_random_part = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{6,}|[A-Za-z0-9]{30,}").search
_has_random_part_in_words = re.compile(r"(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}|[A-Za-z0-9]{30,}").search
"""Finds a run of characters that is no word. It is longer for shapes that match words with hyphens between them."""

_has_separator = re.compile("[=>:|,]").search
"""The separators between the name of a service and its key."""

_SORTED_JSON = msgspec.json.Encoder(order="sorted", enc_hook=str)
_SALT: ContextVar[bytes] = ContextVar("salt", default=b"")


class Privacy(NamedTuple):
    """The way in which traces refer to contents."""

    salt: bytes  # a secret, without which nobody can find out a content by hashing guesses
    keep_content: bool = False  # True to keep contents instead of their hashes

    def reference(self, content: Any) -> str:
        """Return the reference to a content: its hash, or the content itself as text; empty for an empty content."""
        if not content and (content is None or content in ("", [], {})):
            return ""
        if type(content) is str:
            data = content.encode("utf-8", "replace")
        else:
            try:
                data = _SORTED_JSON.encode(content)
            except RecursionError:
                data = b"nested too deeply"
        if self.keep_content:
            return content if type(content) is str else data.decode()
        salted = _salted(self.salt).copy()
        salted.update(data)
        return f"sha256:{salted.hexdigest()[:24]}"

    @contextmanager
    def pseudonyms(self) -> Iterator[None]:
        """Let `masked` add tags, made with this salt, so that masked names of different people stay different."""
        token = _SALT.set(self.salt)
        try:
            yield
        finally:
            _SALT.reset(token)


@lru_cache(maxsize=1)
def _salted(salt: bytes) -> Any:
    """Return a hash object that has read the salt. Copying it is faster than making a new one."""
    return sha256(salt)


def masked(name: str) -> str:
    """Return a name without e-mail addresses, home folders and keys."""
    if len(name) <= _MAX_NAME_LENGTH and _is_hex_id(name):  # mostly the id of a call, which would only fill the cache
        return name
    return _masked(name[: _MAX_SEARCHED + 1], _SALT.get())


def masked_path(path: str) -> str:
    """Return the path of a file with private parts masked, in UTF-8."""
    salt = _SALT.get()
    if _has_any(_FOLDERS, path.casefold()):
        path = re.sub(_FOLDER, lambda match: _ELLIPSIS + _tag(match.group(), salt), path)
    return masked(path).encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=10_000)
def _masked(name: str, salt: bytes) -> str:
    is_too_long = len(name) > _MAX_SEARCHED
    may_be_private, shapes = _suspicions(name)
    if may_be_private or shapes:
        name = name[:_MAX_SEARCHED]
        if may_be_private:
            name = re.sub(_PRIVATE, lambda match: _ELLIPSIS + _tag(match.group(), salt), name)
        for shape in shapes:
            name = shape.mask(name, salt)
        if is_too_long:
            name = name[:-_UNSURE_LENGTH]
    return name[:_MAX_NAME_LENGTH]


class Shape(msgspec.Struct, frozen=True):
    """A shape of keys, from `secret_shapes.json`."""

    pattern: str
    marks: tuple[str, ...]  # each name with such a key has one of these texts, in upper or lower case
    is_loose: bool = False  # True if the pattern also matches words with hyphens between them
    is_named: bool = False  # True if the name of the service is in front of the key, with a separator

    def mask(self, name: str, salt: bytes) -> str:
        """Return the name with keys of this shape masked, each to the end of its run of letters and digits."""
        has_random_part = _has_random_part_in_words if self.is_loose else _has_random_part

        def replacement(match: re.Match[str]) -> str:
            text = match.group()
            return _ELLIPSIS + _tag(text, salt) if has_random_part(text) else text

        return re.sub(f"(?:{self.pattern})[A-Za-z0-9]*", replacement, name)


def _suspicions(name: str) -> tuple[bool, tuple[Shape, ...]]:
    """Return True if a name may match `_PRIVATE`, and the shapes of `secret_shapes.json` that have a mark in it."""
    is_run = _is_call_id(name) is not None
    if is_run and len(name) < _SHORTEST_KEY:
        return False, ()
    may_be_private = (
        "SK" in name or "AC" in name  # keys of Twilio: as hints in any case, these would match too many names
        or _has_vault_token(name) is not None
        or (len(name) > 57 and name.count(".") > 1)  # tokens of Discord have three parts
    )  # fmt: skip
    folded = name.casefold()
    if is_run and len(name) < _SHORTEST_RUN_KEY:
        return may_be_private or _has_any(_HINTS_IN_RUNS, folded), ()
    may_be_private = may_be_private or _has_any(_SHORT_HINTS, folded)
    prefixes, marks_by_prefix, shapes_by_mark = _marks(with_named=bool(_has_separator(name)))
    present_prefixes = prefixes.intersection(zip(folded, folded[1:], folded[2:], strict=False))
    if not present_prefixes:
        return may_be_private, ()
    marks = [mark for prefix in present_prefixes for mark in marks_by_prefix[prefix] if mark in folded]
    shapes = dict.fromkeys(shape for mark in marks for shape in shapes_by_mark.get(mark, ()))
    return may_be_private or not _HINT_SET.isdisjoint(marks), tuple(shapes)


@cache
def _marks(with_named: bool) -> tuple[frozenset[Any], dict[Any, list[str]], dict[str, list[Shape]]]:
    """Return the prefixes of hints and marks, the hints and marks by prefix, and the shapes by mark.

    A prefix is a tuple of `_PREFIX_LENGTH` characters. `with_named` includes shapes with the name of a service.
    """
    data = read_text_beside(__file__, "secret_shapes.json")
    shapes_by_mark: dict[str, list[Shape]] = {}
    for shape in msgspec.convert(msgspec.json.decode(data)["shapes"], tuple[Shape, ...]):
        if with_named or not shape.is_named:
            for mark in shape.marks:
                shapes_by_mark.setdefault(mark, []).append(shape)
    marks_by_prefix: dict[Any, list[str]] = {}
    for mark in dict.fromkeys((*_HINTS, *shapes_by_mark)):
        if len(mark) >= _PREFIX_LENGTH:
            marks_by_prefix.setdefault(tuple(mark[:_PREFIX_LENGTH]), []).append(mark)
    return frozenset(marks_by_prefix), marks_by_prefix, shapes_by_mark


def _has_any(words: tuple[str, ...], name: str) -> bool:
    return any(map(name.__contains__, words))


def _tag(private: str, salt: bytes) -> str:
    """Return digits that tell masked texts apart, too few to guess the text by; none without a salt."""
    if not salt:
        return ""
    import hmac

    return hmac.digest(salt, private.encode("utf-8", "replace"), "sha256").hex()[:_TAG_DIGITS]
