"""Pages are escaped, their data is inert, and their policy names what may run."""

import json

import pytest

from orchtrace_corpus.base import html
from tests.browser import Browser, _browser, browser  # noqa: F401

HOSTILE = "</script><script>alert(1)</script>&<!--\u2028\ud800'\""


def test_embedded_json_can_end_no_element_and_reads_back() -> None:
    text = html.inert_json({"a": HOSTILE, "b": [1, None]})

    assert text == (
        r'{"a":"\u003c/script\u003e\u003cscript\u003ealert(1)\u003c/script\u003e\u0026\u003c!--\u2028\ud800' + "'"
        r'\"","b":[1,null]}'
    )
    assert json.loads(text) == {"a": HOSTILE, "b": [1, None]}


def test_json_has_no_number_that_browsers_cannot_read() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        html.inert_json(float("nan"))


@pytest.mark.parametrize(
    ("address", "wanted"),
    [
        ("https://arxiv.org/abs/2605.02801", "https://arxiv.org/abs/2605.02801"),
        ("HTTP://example.org/", "HTTP://example.org/"),
        ("javascript:alert(1)", ""),
        (" https://example.org/", ""),
        ("data:text/html,x", ""),
        ("//example.org/", ""),
        ("", ""),
    ],
)
def test_only_the_web_can_be_linked(address: str, wanted: str) -> None:
    assert html.web_address(address) == wanted


def test_the_policy_names_what_may_run() -> None:
    assert html.content_security_policy() == "default-src 'none'; base-uri 'none'; form-action 'none'"
    assert html.content_security_policy([html.source_hash("alert(1)")], [html.OWN_FILES], ["data:"]) == (
        "default-src 'none'; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; style-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_the_style_has_the_colours_of_drawings_for_light_and_dark() -> None:
    light, dark, _ = html.style_sheet().split("\n", 2)

    assert light.startswith(":root{color-scheme:light dark;--page:#ffffff;--plain:#f3f5f7;")
    assert dark.startswith("@media screen and (prefers-color-scheme:dark){:root{--page:#0d1117;--plain:#1a212b;")


def made_page(body: str, **values: object) -> str:
    """A page whose main part is this template."""
    source = "{% extends 'base/page.html.jinja' %}{% block title %}{{ title }}{% endblock %}{% block main %}"
    template = html.environment(html.__file__).from_string(source + body + "{% endblock %}")
    return template.render({"policy": html.content_security_policy(), "title": HOSTILE[:-4]} | values)


def test_templates_escape_and_know_their_names() -> None:
    from jinja2 import UndefinedError

    page = made_page("<p title='{{ text }}'>{{ text }}</p>", text="<b>&'\"")

    assert "<p title='&lt;b&gt;&amp;&#39;&#34;'>&lt;b&gt;&amp;&#39;&#34;</p>" in page
    assert "<title>&lt;/script&gt;&lt;script&gt;alert(1)" in page
    with pytest.raises(UndefinedError, match="'nothing' is undefined"):
        made_page("{{ nothing }}")


@pytest.mark.external
def test_hostile_data_neither_runs_nor_shows_as_markup(browser: Browser, tmp_path) -> None:
    body = "<h1>{{ data.a }}</h1><script type='application/json' id='data'>{{ data | inert_json }}</script>"
    path = tmp_path / "page.html"
    text = HOSTILE.replace("\ud800", "")
    path.write_text(made_page(body, data={"a": text}), encoding="utf-8")

    browser.open(path)

    assert browser.run("return JSON.parse(document.getElementById('data').textContent).a") == text
    assert browser.texts("h1") == [text]
    assert browser.violations() == []


@pytest.mark.external
def test_the_browser_tells_of_errors_of_requests_and_of_violations(browser: Browser, tmp_path) -> None:
    path = tmp_path / "page.html"
    path.write_text("<script>nothing()</script><img src='http://example.org/x.png'>", encoding="utf-8")

    browser.open(path)
    rules = {line.split()[0] for line in browser.violations()}
    problems = browser.problems()

    assert {"image-alt", "html-has-lang"} <= rules
    assert "request: http://example.org/x.png" in problems
    assert any("nothing is not defined" in line for line in problems)


@pytest.mark.parametrize(
    ("address", "label"),
    [
        ("https://www.example.org/a/", "example.org/a"),
        ("https://github.com/owner/name", "github.com/owner/name"),
        ("https://github.com/owner/name/blob/0a1b/src/a.py", "github.com/owner/name: src/a.py"),
        ("https://github.com/owner/name/blob/main/a.yaml#L89", "github.com/owner/name: a.yaml, line 89"),
        ("https://github.com/owner/name/blob/main/a.py#L8-L20", "github.com/owner/name: a.py, lines 8 to 20"),
        ("https://gitlab.com/owner/name/-/blob/main/a.py#L8-20", "gitlab.com/owner/name: a.py, lines 8 to 20"),
        ("not an address", "not an address"),
    ],
)
def test_an_address_is_shown_in_short(address: str, label: str) -> None:
    assert html.address_label(address) == label
