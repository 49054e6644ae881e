"""Read the answers to the issue form "suggest a paper" from the body of an issue as GitHub writes it.

Each question is a heading of the third level, followed by its answer. Anybody on the internet can write such a body,
so only plain text and terms of the taxonomy are accepted. `render.schema` writes the form from the same questions.

Reference: the syntax of GitHub's form schema
(https://docs.github.com/en/communities/using-templates-to-encourage-useful-issues-and-pull-requests).
"""

import re
from collections.abc import Mapping

from orchtrace_corpus.base.errors import CommandUseError
from orchtrace_corpus.base.findings import quote
from orchtrace_corpus.base.named_tuples import NamedTuple
from orchtrace_corpus.base.yamlfile.decoders import NOT_APPLICABLE
from orchtrace_corpus.corpus.model.field_table import FieldKind, FieldValue, RecordField, Section, field_label
from orchtrace_corpus.corpus.model.fields import ACTIVE_ELEMENTS, PLAIN_ELEMENTS
from orchtrace_corpus.corpus.model.records import Tag
from orchtrace_corpus.corpus.model.tagging import join_tags, read_level, read_tag, read_value
from orchtrace_corpus.corpus.model.taxonomy import Facet, Kind, Taxonomy, Term

NO_ANSWER = "_No response_"
"""The text that GitHub writes for a question without an answer."""

DOES_NOT_ARISE = "Does not arise"
"""The answer that a term with levels is absent from the paper. No answer means that nobody has decided yet."""

MAX_BODY_BYTES = 256 * 1024
"""Enough for GitHub's limit of 65,536 characters."""

MAX_ANSWER_CHARACTERS = 2000


class Question(NamedTuple):
    """A question of the form. It asks for a tag (`facet`), a level (`facet` and `term`), a `field`, or a text.

    Attributes:
        name: The name of the facet, term or field; `identifier`, `note` or `source` for a text.
        label: The heading, which is unique in the form.
        about: The explanation of what to answer.
        facet: The facet whose terms or levels are the options.
        is_evidence: Whether the answer is about the evidence, not about the paper.
        is_long: Whether the answer may take several lines.
    """

    name: str
    label: str
    about: str
    facet: Facet | None = None
    term: Term | None = None
    is_evidence: bool = False
    is_long: bool = False
    field: RecordField | None = None

    @property
    def options(self) -> dict[str, str]:
        """The ids of terms or levels, or other values, by option; empty for a free text."""
        if self.field is not None and self.field.kind is FieldKind.FLAG:
            return {"Yes": "true", "No": "false"}
        if self.field is not None:
            return {choice: choice for choice in self.field.choices}
        if self.facet is None:
            return {}
        if self.term is not None:
            return {**{_option(level): level.id for level in self.facet.levels}, DOES_NOT_ARISE: ""}
        options = {_option(term): term.id for term in self.facet.terms}
        if self.facet.allows_na:
            options[f"Not applicable ({NOT_APPLICABLE})"] = NOT_APPLICABLE
        return options


class Form(NamedTuple):
    """The answers of a form by the names of their questions, and `remarks` about answers that were changed or left out.

    Attributes:
        texts: The answers to questions for a text.
        tags: The tags of the paper, by facet.
        evidence: The tags of the evidence, by facet.
        values: The values of fields.
    """

    texts: Mapping[str, str]
    tags: dict[str, Tag]
    evidence: dict[str, Tag]
    remarks: tuple[str, ...]
    values: Mapping[str, FieldValue] = {}


def questions(taxonomy: Taxonomy) -> tuple[Question, ...]:
    """Return the questions of the form, in the order of a record's fields, with the tags after its first section."""
    noun = taxonomy.noun.one
    example = f"Such as 2605.08686, a DOI, or the address of the {noun}'s page."
    form_questions = [Question("identifier", "arXiv id, DOI or address", example)]
    head_fields = (field for field in taxonomy.paper_fields if field.section is Section.HEAD)
    form_questions += (_field_question(field, noun) for field in head_fields if field.question)
    for facet in taxonomy.papers:
        if facet.kind is Kind.LEVELS:
            form_questions += (
                Question(term.id, f"{facet.label}: {term.label}", term.definition, facet, term) for term in facet.terms
            )
        else:
            form_questions.append(Question(facet.field, facet.label, facet.definition, facet))
    for field in taxonomy.paper_fields:
        if field.name == "evidence":
            support = f"What in the {noun} supports the answers above, in one sentence of your own."
            source = f"The address where that can be read, such as a version of the {noun}."
            form_questions.append(Question("note", "Evidence", support, is_long=True))
            form_questions.append(Question("source", "Source of the evidence", source))
            form_questions += (
                Question(facet.field, facet.label, facet.definition, facet, is_evidence=True)
                for facet in taxonomy.evidence
            )
        elif field.section is not Section.HEAD and field.question:
            form_questions.append(_field_question(field, noun))
    labels = [" ".join(question.label.casefold().split()) for question in form_questions]
    for index, question in enumerate(form_questions):
        if labels.count(labels[index]) > 1:
            form_questions[index] = question._replace(label=f"{question.label} ({question.name})")
    return tuple(form_questions)


def read(body: str, taxonomy: Taxonomy) -> Form:
    """Return the answers in the body of an issue. Unknown questions are skipped with a remark."""
    by_heading = {question.label.casefold(): question for question in questions(taxonomy)}
    by_heading |= {question.name: question for question in by_heading.values() if question.name not in by_heading}
    texts: dict[str, str] = {}
    tags: dict[str, Tag] = {}
    evidence: dict[str, Tag] = {}
    values: dict[str, FieldValue] = {}
    remarks: list[str] = []
    answered: set[str] = set()
    parts = re.split(r"^### (.*)$", "\n".join(body.splitlines()), flags=re.MULTILINE)
    # After the text before the first heading, `parts` are headings and the text below each, in turn.
    for heading, block in zip(parts[1::2], parts[2::2], strict=True):
        heading = " ".join(heading.split())
        question = by_heading.get(heading.casefold())
        if question is None:
            remarks.append(f"{quote(heading)} is not a question of the form")
            continue
        if question.label in answered:
            remarks.append(f"{quote(heading)} is answered twice; only the first counts")
            continue
        answered.add(question.label)
        if len(block.strip()) > MAX_ANSWER_CHARACTERS:
            limit = f"{MAX_ANSWER_CHARACTERS} characters"
            remarks.append(f"the answer to {quote(heading)} is longer than {limit}, and left out")
            continue
        is_address = question.field is not None and question.field.kind in (FieldKind.URL, FieldKind.URLS)
        answer = _plain(block, only_address=is_address or question.name in ("identifier", "source"))
        if not answer:
            continue
        if question.facet is None and answer != " ".join(block.split()):
            remarks.append(f"the answer to {quote(heading)} had markup, and is now {quote(answer)}")
        try:
            if question.facet is not None:
                tag = _tag(question, question.facet, answer)
                facet_tags = evidence if question.is_evidence else tags
                # A facet of kind `levels` has several questions, whose answers make up one tag.
                facet_tags[question.facet.field] = join_tags(question.facet, facet_tags.get(question.facet.field), tag)
            elif question.field is not None and question.field.is_settable:
                values[question.name] = read_value(question.field, question.options.get(answer, answer))
            else:
                texts[question.name] = answer
        except CommandUseError as error:
            remarks.append(f"the answer to {quote(heading)} is left out: {error}".replace("\n", " "))
    return Form(texts, tags, evidence, tuple(remarks), values)


def _field_question(field: RecordField, noun: str) -> Question:
    # Only fields of the survey itself have a label; they use no placeholder.
    about = field.question if field.label else field.question.replace("{noun}", noun)
    return Question(field.name, field_label(field), about, is_long=field.section is Section.RECORD, field=field)


def _option(term: Term) -> str:
    """Return the option for a term. It contains the id, since GitHub refuses an option that is just the word None."""
    return f"{term.label} ({term.id})"


def _plain(text: str, *, only_address: bool = False) -> str:
    """Return an answer as one line of text without Markdown and HTML tags; other text such as `x<y` is kept.

    A link becomes its text with the address in brackets, or the address alone with `only_address`.
    """
    if text.strip() == NO_ANSWER:
        return ""
    from html import unescape  # not at the top: `corpus check` imports this module to write the form

    def plain_link(link: re.Match[str]) -> str:
        """Return a Markdown link as text. An image becomes its alternative text."""
        exclamation_mark, label, target = link.groups()
        address = target.split()[0].strip("<>") if target.split() else ""
        if exclamation_mark or not re.match(r"https?://", address) or address == label.strip():
            return label
        return address if only_address or not label.strip() else f"{label} ({address})"

    before = ""
    while before != text:  # removing markup can uncover other markup; each round shortens the text
        before = text
        text = re.sub(r"<(https?://[^<>\s]+)>", r"\1", text)
        text = re.sub(r"<!--.*?(?:-->|$)", " ", text, flags=re.DOTALL)
        text = re.sub(
            rf"</?(?:{ACTIVE_ELEMENTS}|{PLAIN_ELEMENTS})(?:\s[^<>]*=[^<>]*|\s*)/?>", " ", text, flags=re.IGNORECASE
        )
        text = re.sub(_MARKDOWN_LINK, plain_link, text)
        text = re.sub(r"`+|\*\*+", "", unescape(text))
    # A space makes the remaining starts of tags and links harmless.
    text = re.sub(r"<(?=[A-Za-z/!?])", "< ", text).replace("](", "] (")
    return " ".join("".join(c for c in " ".join(text.split()) if c.isprintable()).split())


_MARKDOWN_LINK = r"(!?)\[([^\[\]]*)\]\(([^()]*(?:\([^()]*\)[^()]*)*)\)"


def _tag(question: Question, facet: Facet, answer: str) -> Tag:
    """Return the tag for an answer: an option, or since people can edit the answer, names or ids of terms."""
    options = question.options
    if question.term is not None:
        level = options[answer] if answer in options else read_level(facet, answer)
        return {question.term.id: level} if level else {}
    if facet.kind is Kind.SINGLE:
        return options[answer] if answer in options else read_tag(facet, answer)
    # GitHub joins the chosen options with commas, and an option can contain commas itself.
    terms = []
    rest = answer
    while rest:
        option = next((option for option in options if f"{rest}, ".startswith(f"{option}, ")), None)
        if option is None:
            return read_tag(facet, answer)
        terms.append(options[option])
        rest = rest[len(option) :].removeprefix(",").lstrip()
    return read_tag(facet, ",".join(terms))
