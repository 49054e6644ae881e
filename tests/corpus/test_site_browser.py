"""The site in a real browser, from the file system: its script agrees with the command line, and nothing else runs."""

import csv
import io
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import synthesize

from orchtrace_corpus.corpus.analysis.attributes import paper_attributes
from orchtrace_corpus.corpus.analysis.query import parse
from orchtrace_corpus.corpus.analysis.search import search
from orchtrace_corpus.corpus.api import Corpus, load
from orchtrace_corpus.corpus.model import store
from orchtrace_corpus.corpus.model.disputes import contested_tags
from orchtrace_corpus.corpus.model.records import Pool
from orchtrace_corpus.corpus.site.papers import Field, read_fields
from orchtrace_corpus.corpus.site.source import Place
from tests.browser import Browser, _browser, browser, markup_errors  # noqa: F401
from tests.conftest import ROOT, TOY, run_corpus
from tests.corpus.sites import HOSTILE, files_of, hostile_source, source_of, write_site
from tests.effort import FULL, tries

pytestmark = pytest.mark.external

COMPLETE = "return window.corpusPapers.isComplete()"
FOUND = "return window.corpusPapers.keys()"
PAGES = "index papers claims scale screening candidates taxonomy protocol 404 papers/puppeteer papers/agent-lightning "
PAGES += "claims/stop-rows gaps/stop.explicit gaps/reward_family.role.credit_unit.team gaps/reward_family.role.credit_unit.agent"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the real corpus."""
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, files_of(source_of(load(str(ROOT)), ROOT), Place(repository="https://github.com/owner/corpus")))
    return folder


@pytest.fixture(scope="module")
def toy_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the toy corpus, whose axes are others."""
    folder = tmp_path_factory.mktemp("toy-site")
    write_site(folder, files_of(source_of(load(str(TOY)), TOY)))
    return folder


def random_filters(fields: tuple[Field, ...], chance: random.Random) -> dict[str, list[str]]:
    """One to four fields, each with one or more of its values."""
    chosen = chance.sample(fields, chance.randint(1, 4))
    return {
        field.name: [value.id for value in chance.sample(field.values, min(len(field.values), chance.randint(1, 3)))]
        for field in chosen
    }


def where(filters: dict[str, list[str]]) -> list[str]:
    """The same as the command line has it."""
    written = []
    for name, values in filters.items():
        if name != "code":
            written.append(f"{name}={','.join(values)}")
        elif len(values) == 1:
            written.append("code!=" if values == ["yes"] else "code=")
    return written


def fragment(filters: dict[str, list[str]]) -> str:
    return "#" + "&".join(f"{name}={','.join(values)}" for name, values in filters.items())


def found(browser: Browser) -> list[str]:
    """The keys of the papers that the page has found, in their order, once it has read all of them."""
    wait_until(lambda: browser.run(COMPLETE))
    return list(browser.run(FOUND))


def wait_until(condition: Callable[[], Any]) -> Any:
    """What a condition comes to once it holds."""
    for _ in range(200):
        if result := condition():
            return result
        time.sleep(0.05)
    raise AssertionError("it did not come to that")


@pytest.mark.parametrize(("name", "root"), [("site", ROOT), ("toy_site", TOY)])
def test_filters_agree_with_the_command_line(
    name: str, root: Path, browser: Browser, request: pytest.FixtureRequest
) -> None:
    folder, corpus, chance = request.getfixturevalue(name), load(str(root)), random.Random(18)
    fields = read_fields(corpus.papers, corpus.taxonomy)
    attributes = paper_attributes(corpus.taxonomy)
    sizes = set()

    for number in range(tries(200, 20)):
        filters = random_filters(fields, chance)
        browser.open(folder / "papers.html", fragment(filters))
        keys = found(browser)
        if number < 3:
            listed = run_corpus(
                "--root", str(root), "list", *(p for f in where(filters) for p in ("--where", f)), "--format", "json"
            )
            assert keys == [record["key"] for record in json.loads(listed.stdout)["records"]], filters
        assert keys == [paper.key for paper in parse(where(filters), attributes).select(corpus.papers)], filters
        sizes.add(len(keys))
        # Live counts: what a further value of a field would find, its other values aside.
        field = chance.choice(fields)
        others = {one: values for one, values in filters.items() if one != field.name}
        counts = browser.run(
            "return [...document.querySelectorAll('#facets [data-field]')].find(e => e.dataset.field === arguments[0])"
            ".innerText && [...[...document.querySelectorAll('#facets [data-field]')]"
            ".find(e => e.dataset.field === arguments[0]).querySelectorAll('.count')].map(e => Number(e.textContent))",
            field.name,
        )
        wanted = [
            len(parse(where({**others, field.name: [value.id]}), attributes).select(corpus.papers))
            for value in field.values
        ]
        assert counts == wanted, (filters, field.name)
        browser.open("about:blank")

    assert len(sizes) > 2


def test_every_cell_leads_to_its_papers(site: Path, browser: Browser) -> None:
    corpus = load(str(ROOT))
    fields = [field for field in read_fields(corpus.papers, corpus.taxonomy) if field.name != "code"]
    pairs = [(one, other) for one in fields for other in fields]
    chance = random.Random(7)
    asked = [(fields[0], fields[1]), *chance.sample(pairs, len(pairs) if FULL else 12)]

    browser.open(site / "index.html")
    for one, other in asked:
        browser.run("location.hash = arguments[0]", f"matrix-rows={one.name}&matrix-columns={other.name}")
        labels = [field.label.lower() if field.label[1].islower() else field.label for field in (one, other)]
        pair = " and ".join(labels)
        wait_until(lambda: f" of {pair} ha" in browser.texts("#matrix")[0])  # noqa: B023
        cells = browser.run(
            "return [...document.querySelectorAll('#matrix-table tbody tr')].map(r => [...r.querySelectorAll('td')].map("
            "d => d.className === 'impossible' ? -1 : Number(d.textContent)))"
        )
        crossed = corpus.cross(one.name, other.name).crosstab
        assert [[max(0, number) for number in row] for row in cells] == [
            [crossed.count_in(row.id, column.id) for column in other.values] for row in one.values
        ], (one.name, other.name)
    gaps = json.loads(run_corpus("--root", str(ROOT), "gaps", "--format", "json").stdout)
    assert gaps  # the default pair is that of the start page
    browser.open(site / "index.html")
    links = browser.run(
        "return [...document.querySelectorAll('#matrix-table td[class^=heat] a')].map(a => [a.href, Number(a.textContent)])"
    )
    for address, number in links[:: 1 if FULL else 5]:
        browser.open(address)
        assert len(found(browser)) == number, address


def test_cells_that_cannot_arise_are_told_apart(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html", "#matrix-rows=rl&matrix-columns=stop")

    classes = browser.run(
        "return [...document.querySelectorAll('#matrix-table tbody tr')].map(r => [...r.querySelectorAll('td')].map(d => d.className))"
    )

    crossed = load(str(ROOT)).cross("rl", "stop")
    kinds = {"explicit": "impossible", "implicit": "impossible", "designed": "empty", "": "empty"}
    assert [shown if shown in ("impossible", "empty") else "number" for shown in classes[2]] == [
        "number" if crossed["none"].get(value) else kind for value, kind in kinds.items()
    ]
    assert "impossible" not in (*classes[0], *classes[1])
    assert browser.texts("#matrix-table td.impossible")[0] == "cannot arise"


def test_every_empty_cell_leads_to_its_gap(site: Path, browser: Browser) -> None:
    """With and without a script, also of fields that a reader crosses, for which the site has no page of a gap."""
    links = "return [...document.querySelectorAll('#matrix-table td.empty, #matrix-table td.impossible')].map(d => d.firstChild.href)"
    browser.open(site / "index.html")
    written = browser.run(links)
    assert len(written) == 57
    browser.run("location.hash = 'matrix-rows=credit_unit&matrix-columns=reward_family'")
    wait_until(lambda: browser.texts("#matrix")[0].startswith("54 of 69 combinations of credit unit and reward"))
    assert sorted(browser.run(links)) == sorted(written)

    browser.run("location.hash = 'matrix-rows=topology&matrix-columns=stop'")
    wait_until(lambda: browser.texts("#matrix") == ["14 of 18 combinations of topology and O5 Stop have no paper"])
    assert all("papers.html#topology=" in address and "&stop=" in address for address in browser.run(links))


def test_explicit_stopping_is_one_click_away(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    browser.one(".numbers a[href='gaps/stop.explicit.html']").click()

    assert browser.texts("h1") == ["O5 Stop: Explicit"]


def test_an_empty_result_says_whether_it_is_a_known_gap(site: Path, browser: Browser) -> None:
    browser.open(site / "papers.html", "#stop=explicit&topology=debate")
    wait_until(lambda: browser.all("#nearest-gap dl"))
    said = browser.run("return document.getElementById('nearest').innerText").split("\n")
    assert [line for line in said if line] == [
        "No paper passes all of these filters.",
        "Without O5 Stop: 8 papers",
        "No paper here has this: what would count, and what comes near",
        "O5 Stop: Explicit",
        "A trained component takes the decision, and a part of the training signal is aimed at that decision.",
        "Topology: Debate",
        "Peers argue, play against or judge one another, also as a committee.",
    ]
    browser.open(site / "papers.html", "#reward_family=tool&credit_unit=token")
    link = "#nearest-gap a[href*=reward_family]"  # not that of the state before
    wait_until(lambda: browser.all(link))
    browser.one(link).click()
    assert browser.texts("h1") == ["R5 Tool use × Token"]
    browser.open(site / "papers.html", "#search-text=zzzz&stop=designed")
    wait_until(lambda: browser.one("#nearest").is_displayed())
    assert browser.texts("#nearest-gap *") == []  # words are no tags


def test_a_claim_unfolds_where_a_link_names_it(site: Path, browser: Browser) -> None:
    browser.open(site / "claims.html", "#stop-rows")
    wait_until(lambda: browser.run("return document.getElementById('stop-rows').open"))

    assert len(browser.all("details.claim[open]")) == 1


def test_a_citation_is_copied(site: Path, browser: Browser) -> None:
    browser.open(site / "index.html")
    browser.one(".hero summary").click()
    browser.one("[data-copy]").click()

    wait_until(lambda: browser.texts("[data-copy]")[0] == "Copied")


def test_a_state_is_in_the_address_and_back_leaves_it(site: Path, browser: Browser) -> None:
    browser.open(site / "papers.html")
    everything = found(browser)

    browser.run("document.querySelector('[data-field=stop]').open = true")
    browser.one("input[name=stop][value=implicit]").click()
    filtered = found(browser)
    browser.one("input[name=code][value=yes]").find_element("xpath", "./ancestor::details[1]/summary").click()
    browser.one("input[name=code][value=yes]").click()
    browser.one("#search").send_keys("agent")
    browser.one("#papers thead [data-sort=year]").click()
    browser.one("#column-menu summary").click()
    browser.one("#column-menu input[value=venue]").click()
    both, address = found(browser), browser.driver.current_url
    rows = browser.texts("#papers tbody tr")

    assert address.endswith(
        "papers.html#stop=implicit&code=yes&search-text=agent&sort-by=year"
        "&show-columns=year,reward_family,credit_unit,sub_decisions,venue,code"
    )
    assert 0 < len(both) <= len(filtered) < len(everything)
    browser.open("about:blank")
    browser.open(address)
    assert (found(browser), browser.texts("#papers tbody tr")) == (both, rows)
    assert browser.texts("#command") == ["corpus search agent --where stop=implicit --where code!= --sort year"]
    assert browser.one("#search").get_attribute("value") == "agent"
    browser.open(site / "papers.html")
    browser.run("document.querySelector('[data-field=stop]').open = true")
    browser.one("input[name=stop][value=implicit]").click()
    browser.one("input[name=stop][value=designed]").click()
    browser.driver.back()
    wait_until(lambda: found(browser) == filtered)
    browser.driver.back()
    wait_until(lambda: found(browser) == everything)
    assert browser.driver.current_url.endswith("papers.html")
    browser.driver.forward()
    wait_until(lambda: found(browser) == filtered)


def test_what_is_found_stays_in_sight_while_filters_are_chosen(site: Path, browser: Browser) -> None:
    browser.resize(1200, 900)
    browser.open(site / "papers.html")

    browser.one("#facets details[data-field=code] > summary").click()  # the last of the filters
    browser.one("input[name=code][value=yes]").click()

    assert browser.run(
        "const place = found.getBoundingClientRect(); return place.top >= 0 && place.bottom <= innerHeight"
    )
    assert 0 < len(found(browser)) < len(load(str(ROOT)).papers)


def test_a_contested_tag_leads_to_who_reads_what(site: Path, browser: Browser) -> None:
    browser.open(site / "papers.html", "#stop=implicit&sort-by=year")  # rows that the script has made

    browser.one("#papers a[href='papers/puppeteer.html#dispute-stop']").click()

    assert browser.driver.current_url.endswith("papers/puppeteer.html#dispute-stop")
    assert browser.one(":target").text.startswith("O5 Stop: Implicit stands. Open.")


def test_contested_tags_are_a_filter_a_column_and_a_word_to_search(site: Path, browser: Browser) -> None:
    corpus = load(str(ROOT))
    tags = contested_tags(store.CorpusFiles(str(ROOT)).disputes.require())
    wanted = {tag: [paper.key for paper in corpus.papers if (paper.key, tag) in tags] for tag in ("stop", "topology")}
    either = [paper.key for paper in corpus.papers if any((paper.key, tag) in tags for _, tag in tags)]

    browser.open(site / "papers.html", "#show-columns=contested")
    browser.run("document.querySelector('[data-field=contested]').open = true")
    labels = [text.strip() for text in browser.texts("[data-field=contested] label")]
    browser.one("input[name=contested][value=stop]").click()

    numbers = [f"{label} {sum(tag == name for _, tag in tags)}" for name, label in (
        ("reward_family", "Reward family"), ("credit_unit", "Credit unit"), ("topology", "Topology"),
        ("communicate", "O3 Communicate"), ("stop", "O5 Stop"),
    )]  # fmt: skip
    assert labels == [*numbers, f"None {len(corpus.papers) - len(either)}"]
    assert (found(browser), browser.driver.current_url.partition("#")[2]) == (
        wanted["stop"], "contested=stop&show-columns=contested",
    )  # fmt: skip
    assert browser.texts("#command") == ["corpus list --where contested=stop"]
    assert all("O5 Stop" in text for text in browser.texts("#papers tbody td"))
    shown = json.loads(exported(browser, "json", "papers.json"))["papers"]
    order = ("reward_family", "credit_unit", "topology", "communicate", "stop")
    assert {one["key"]: one["contested"] for one in shown} == {
        key: [tag for tag in order if (key, tag) in tags] for key in wanted["stop"]
    }
    browser.open("about:blank")
    browser.open(site / "papers.html", "#contested=topology,stop")
    assert found(browser) == [key for key in either if key in {*wanted["stop"], *wanted["topology"]}]
    browser.open("about:blank")
    browser.open(site / "papers.html", "#search-text=contested")
    assert found(browser) == either


def test_malformed_addresses_show_what_they_can(site: Path, browser: Browser) -> None:
    implicit = [paper.key for paper in load(str(ROOT)).where("stop=implicit").papers]
    for address in (
        "#%E0%A4%A&stop=implicit",
        "#stop=implicit,nonsense&nothing=1",
        "#stop=implicit&sort-by=nothing&show-columns=",
    ):
        browser.open("about:blank")
        browser.open(site / "papers.html", address)
        assert found(browser) == implicit, address


QUERIES = (
    *("stopping", "termination", "Delegation", "aggregating", "spawned", "reward shaping", "credit assignment", "GRPO"),
    *("credit-assignment", "R4", "PUPPETEER", "müller", "tree search", "benchmarks 2025", "rl", "nothing-has-this"),
)


def test_search_finds_the_papers_that_the_command_line_finds(site: Path, browser: Browser) -> None:
    corpus = load(str(ROOT))
    pool, sizes = Pool(corpus.taxonomy, corpus.papers, ()), {}

    for query in QUERIES:
        browser.open("about:blank")
        browser.open(site / "papers.html", f"#search-text={quote(query)}")
        keys = {hit.record.key for hit in search(pool, (), [query])[0] if not hit.missing}
        assert found(browser) == [paper.key for paper in corpus.papers if paper.key in keys], query
        sizes[query] = len(keys)

    assert sizes["PUPPETEER"] == 1
    assert sizes["nothing-has-this"] == 0
    assert len({*sizes.values()}) > 6
    assert browser.texts("#found") == [f"0 of {len(corpus.papers)} papers"]


def test_a_search_is_said_as_the_terminal_has_it(site: Path, browser: Browser) -> None:
    browser.open(site / "papers.html", "#reward_family=shared&search-text=credit%20%27assignment%27&sort-by=-year")

    browser.run("document.querySelector('#command').closest('details').open = true")
    command = browser.texts("#command")[0]
    assert command == "corpus search credit assignment --where reward_family=shared --sort -year"
    listed = json.loads(run_corpus("--root", str(ROOT), *command.split()[1:], "--format", "json").stdout)
    assert found(browser) == [record["key"] for record in listed["papers"]]
    assert browser.texts("#command-differs") == [
        "The terminal puts the best first, counts papers with a word only in the name or meaning of a tag's field, "
        "and without a match shows those with most of the words."
    ]
    browser.one("#clear").click()
    assert browser.texts("#command") == ["corpus list"]
    assert not browser.one("#command-differs").is_displayed()


def test_sorting_agrees_with_the_command_line(site: Path, browser: Browser) -> None:
    for column in ("title", "year", "reward_family", "credit_unit", "affiliation", "authors", "category"):
        for sort in (column, f"-{column}"):
            browser.open("about:blank")
            browser.open(site / "papers.html", f"#sort-by={sort}")
            listed = json.loads(run_corpus("--root", str(ROOT), "list", "--sort", sort, "--format", "json").stdout)
            assert found(browser) == [record["key"] for record in listed["records"]], sort


def exported(browser: Browser, form: str, name: str) -> str:
    """Export what is shown, and read the file."""
    path = browser.downloads / name
    path.unlink(missing_ok=True)
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(browser.downloads)}
    )
    browser.run("document.getElementById('export-menu').open = true")
    browser.one(f"[data-export={form}]").click()
    wait_until(lambda: path.exists() and not list(browser.downloads.glob("*.crdownload")))
    return path.read_text(encoding="utf-8")


def test_what_is_shown_is_exported_as_the_command_line_writes_it(site: Path, browser: Browser) -> None:
    filters = ["--where", "topology=centralized,debate", "--where", "code!="]
    columns = "year,reward_family,credit_unit,sub_decisions,trains,authors,venue,code,summary"
    browser.open(site / "papers.html", f"#topology=centralized,debate&code=yes&show-columns={columns}")
    shown = browser.run("return [...document.querySelectorAll('#column-menu input:checked')].map(e => e.value)")
    listing = ("--root", str(ROOT), "list", *filters, "--columns", ",".join(["key", "title", *shown]), "--format")

    assert set(shown) == set(columns.split(","))
    assert exported(browser, "csv", "papers.csv") == run_corpus(*listing, "csv").stdout
    assert json.loads(exported(browser, "json", "papers.json")) == json.loads(run_corpus(*listing, "json").stdout)
    assert (
        exported(browser, "bibtex", "papers.bib")
        == run_corpus("--root", str(ROOT), "export", "bibtex", *filters).stdout
    )


def test_pages_say_the_same_without_a_script(site: Path, browser: Browser) -> None:
    browser.open(site / "papers.html")
    with_script = browser.run("return document.querySelector('#papers tbody').innerHTML.replace(/\\n/g, '')")
    browser.open(site / "index.html", "#matrix-rows=reward_family&matrix-columns=credit_unit")
    matrix = browser.run("return document.querySelector('#matrix-table').innerHTML.replace(/\\n/g, '')")

    browser.scripts(False)
    browser.open("about:blank")
    browser.open(site / "papers.html")
    assert browser.run("return document.querySelector('#papers tbody').innerHTML.replace(/\\n/g, '')") == with_script
    assert [one.is_displayed() for one in browser.all("#facets, #search, #export-menu")] == [False] * 3
    browser.open(site / "index.html")
    assert browser.run("return document.querySelector('#matrix-table').innerHTML.replace(/\\n/g, '')") == matrix


@pytest.mark.parametrize("page", PAGES.split())
def test_axe_finds_no_violation(page: str, site: Path, browser: Browser) -> None:
    assert browser.violations_of_looks(site / f"{page}.html") == []


def test_markup_is_valid_before_and_after_the_scripts(site: Path, browser: Browser, tmp_path: Path) -> None:
    rendered = []
    for page in ("index", "papers", "candidates"):
        browser.open(site / f"{page}.html", "#stop=explicit&sort-by=year")
        browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        rendered.append(tmp_path / f"{page}-with-script.html")
        markup = browser.run("return document.documentElement.outerHTML")
        rendered[-1].write_text(f"<!doctype html>\n{markup}", encoding="utf-8")

    assert markup_errors(*(site / f"{page}.html" for page in PAGES.split()), *rendered) == []


@pytest.mark.parametrize("page", PAGES.split())
def test_no_page_is_wider_than_the_screen(page: str, site: Path, browser: Browser) -> None:
    for width in (360, 768, 1200, 1600):
        browser.resize(width)
        browser.open(site / f"{page}.html")
        assert browser.run("return document.documentElement.scrollWidth <= document.documentElement.clientWidth"), width


@pytest.mark.parametrize("page", "papers claims scale screening candidates protocol papers/puppeteer".split())
def test_no_table_is_cut_on_a_phone_and_other_tables_show_where_they_go_on(
    page: str, site: Path, browser: Browser
) -> None:
    cut = "return [...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 1).length"
    browser.resize(390)
    browser.open(site / f"{page}.html")
    assert browser.run(cut) == 0
    browser.open(site / "taxonomy.html")
    assert browser.run(cut) == 1  # the benchmarks with what each measures
    assert browser.run("return getComputedStyle(document.querySelector('.scroll')).backgroundAttachment") == (
        "local, local, scroll, scroll"
    )


SHIFTED = (
    "const done = arguments[arguments.length - 1]; let moved = 0;"
    "new PerformanceObserver(list => list.getEntries().forEach(e => { moved += e.value; }))"
    ".observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(moved), 700);"
)


@pytest.mark.parametrize(
    "address",
    "index.html papers.html claims.html scale.html screening.html candidates.html papers.html#delegate=explicit "
    "papers.html#stop=explicit papers.html#search-text=debate candidates.html#proposal=unclear".split(),
)
def test_nothing_moves_while_a_page_comes(address: str, site: Path, browser: Browser) -> None:
    name, _, fragment = address.partition("#")
    for width in (390, 1200):
        browser.resize(width)
        browser.open("about:blank")
        browser.open(site / name, f"#{fragment}")
        assert browser.driver.execute_async_script(SHIFTED) < 0.05, width
        assert browser.one("footer").is_displayed()
        hidden = (
            "return [...document.querySelectorAll('.found')].some(e => getComputedStyle(e).visibility === 'hidden')"
        )
        assert not browser.run(hidden)


def test_filters_stand_beside_the_list_in_a_window_that_is_made_wide(site: Path, browser: Browser) -> None:
    browser.resize(600)
    browser.open(site / "papers.html")
    assert browser.run("return document.getElementById('facets-all').open") is False
    browser.resize(1200)
    wait_until(lambda: browser.run("return document.getElementById('facets-all').open"))


def test_what_is_not_found_leads_back_at_any_address(toy_site: Path, browser: Browser, tmp_path: Path) -> None:
    for folder in ("", "papers/", "claims/", "gaps/"):
        shown = tmp_path / "corpus" / folder / "no-such-page.html"  # as a server shows it
        shown.parent.mkdir(parents=True, exist_ok=True)
        shown.write_bytes((toy_site / "404.html").read_bytes())
        (tmp_path / "corpus" / "site.css").write_bytes((toy_site / "site.css").read_bytes())
        browser.open(shown)
        assert browser.one("main a").get_attribute("href") == (tmp_path / "corpus" / "papers.html").as_uri()
        wait_until(
            lambda: browser.run("return getComputedStyle(document.querySelector('.top')).paddingBottom") == "0px"
        )
        browser.problems()  # before the script ran, the style of a folder that is not there


def test_keys_alone_reach_a_paper(site: Path, browser: Browser) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.open(site / "papers.html")
    browser.press(Keys.TAB)
    assert browser.run("return document.activeElement.textContent") == "Skip to the content"
    found(browser)
    browser.press("/")
    browser.press("puppeteer")
    browser.press(Keys.ENTER)
    assert browser.run("return document.activeElement.href").endswith("papers/puppeteer.html")
    browser.press(Keys.ENTER)
    wait_until(lambda: browser.driver.current_url.endswith("papers/puppeteer.html"))


def test_hostile_texts_neither_run_nor_load(browser: Browser, tmp_path: Path) -> None:
    start = write_site(tmp_path, files_of(hostile_source(tmp_path), Place(repository="https://github.com/o/c")))

    for page in sorted(tmp_path.rglob("*.html")):
        browser.open(page)
        browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        assert browser.run("return window.hacked") is None, page.name
        assert browser.problems() == [], page.name
    browser.open(start.parent / "papers.html")
    keys = found(browser)
    for box in browser.run("return [...document.querySelectorAll('#facets input')].map((_, i) => i)"):
        browser.run("document.querySelectorAll('#facets input')[arguments[0]].click()", box)
        browser.run("document.querySelectorAll('#facets input')[arguments[0]].click()", box)
    assert found(browser) == keys
    browser.run("document.querySelectorAll('#column-menu input').forEach(e => { if (!e.checked) e.click(); })")
    assert HOSTILE in browser.texts("#papers tbody th a")[0]
    rows = list(csv.reader(io.StringIO(exported(browser, "csv", "papers.csv"))))
    assert rows[1][1] == f"0 {HOSTILE}"
    assert browser.run("return window.hacked") is None
    browser.open(start, "#matrix-rows=tools&matrix-columns=water")
    assert browser.run("return window.hacked") is None


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Corpus]:
    """A large made-up corpus, and its site."""
    folder = tmp_path_factory.mktemp("large")
    synthesize.synthesize(folder / "corpus", tries(10_000, 1_000))
    corpus = load(str(folder / "corpus"))
    write_site(folder / "site", files_of(source_of(corpus, folder / "corpus")))
    return folder / "site", corpus


def test_no_result_offers_what_each_filter_keeps_out(site: Path, browser: Browser) -> None:
    corpus = load(str(ROOT))
    assert not corpus.where("reward_family=tool").papers

    browser.open(site / "papers.html", "#reward_family=tool&stop=explicit&search-text=nothing-has-this")
    assert found(browser) == []
    assert browser.one("#nearest").is_displayed()
    assert browser.texts("#nearest-offers button") == []  # each filter alone has no paper
    browser.open("about:blank")
    browser.open(site / "papers.html", "#reward_family=tool&category=survey")
    number = len(corpus.where("category=survey").papers)
    assert browser.texts("#nearest-offers button") == [f"Without Reward family: {number} papers"]
    browser.one("#nearest-offers button").click()
    assert found(browser) == [paper.key for paper in corpus.where("category=survey").papers]
    assert not browser.one("#nearest").is_displayed()


def test_candidates_are_searched_and_filtered_as_papers_are(site: Path, browser: Browser) -> None:
    listed = store.CorpusFiles(str(ROOT)).candidates.items

    def shown() -> list[str]:
        return list(
            browser.run("return [...document.querySelectorAll('#list > details:not([hidden])')].map(e => e.id)")
        )

    browser.open(site / "candidates.html", "#proposal=unclear")
    unclear = {candidate.name for candidate in listed if candidate.proposal.value == "unclear"}
    assert {*shown()} == unclear
    browser.run("location.hash = '#open=stop'")
    wait_until(lambda: {*shown()} == {one.name for one in listed if "stop" in one.open_tags})
    browser.run("location.hash = '#search-text=' + encodeURIComponent(arguments[0])", listed[0].paper.title)
    wait_until(lambda: shown() == [listed[0].name])
    browser.run("location.hash = arguments[0]", f"#{listed[3].name}")  # a link to one unfolds it, whatever is filtered
    wait_until(lambda: browser.run("return document.querySelector(':target')?.open"))
    assert len(shown()) == len(listed)


def test_a_large_corpus_is_filtered_and_drawn_in_part(large: tuple[Path, Corpus], browser: Browser) -> None:
    folder, corpus = large
    total = len(corpus.papers)

    browser.open(folder / "papers.html", "#stop=explicit,implicit&topology=swarm")

    assert found(browser) == [paper.key for paper in corpus.where("stop=explicit,implicit", "topology=swarm").papers]
    browser.one("#clear").click()
    assert browser.texts("#found") == [f"{total:,} papers"]
    assert browser.run("return document.querySelectorAll('#papers tbody tr').length") == 100
    assert browser.texts("#more") == ["Show 100 more papers"]
    browser.one("#more").click()
    assert browser.run("return document.querySelectorAll('#papers tbody tr').length") == 200
