"""A logged run on one screen: who worked when, and what is said of it."""

from orchtrace_corpus.base.findings import printable
from orchtrace_corpus.base.text.layout import UNICODE, Glyphs, Line, Span, clip, display_width, line
from orchtrace_corpus.trace.render.names import broken, counted, duration, kept
from orchtrace_corpus.trace.render.page import timelines
from orchtrace_corpus.trace.render.story import Case, Story
from orchtrace_corpus.trace.view.agent_tree import Appearance

_PIPE_WIDTH = 100
_PIPE_AGENTS = 16
_LEAST_AGENTS = 5
_LABELS = 10
_NARROW = 50
_TOKENS = "tokens"
_MARKS = {"s": "spawn", "d": "end of an agent", "m": "message", "t": "tool", "r": "return", "h": "a person acts",
          "!": "guard", "e": "stop", "x": "error"}  # fmt: skip


def page(case: Case, size: tuple[int, int] | None, glyphs: Glyphs = UNICODE) -> list[Line]:
    """The run on a page that fits the width, and the height as far as the text lets it.

    Args:
        case: The run.
        size: The columns and lines of the terminal; None where there is none.
        glyphs: The characters to draw with.

    Raises:
        CycleError: The edges go round in a circle.
    """
    look = Story(case)
    room = min(size[0] if size else _PIPE_WIDTH, _PIPE_WIDTH)
    indent = _LABELS if room >= _NARROW else 2
    above = [line(clip(f"{case.form} {printable(case.trace.trace_id, limit=200)}", room, glyphs.ellipsis), "heading")]
    above += [line(text) for text in broken(look.head(), room)]
    below: list[Line] = []
    for label, said in look.said():
        below += [line(text) for text in broken(said, room, label=f"{label} " if label else "", indent=indent)]
    if case.hint:
        below += [line(text, "muted") for text in broken(case.hint, room)]
    most = _PIPE_AGENTS if size is None else max(size[1] - len(above) - len(below) - 4, _LEAST_AGENTS)
    return [*above, *_drawn(look, most, room, glyphs), *below]


def _drawn(look: Story, most: int, room: int, glyphs: Glyphs) -> list[Line]:
    """The agents that fit, each with its line of time; how many do not; the signs that were used."""
    shown = _shown(look, most)
    end = duration(look.run.times.wall, look.run.times.unit)
    lines = timelines(
        look.run.trace, look.run.times, shown, room, glyphs,
        names=look.names, end=broken(end, room)[0], assumed=look.assumed,
    )  # fmt: skip
    free = room - sum(display_width(span.text) for span in lines[0])
    if free > len(_TOKENS) and any(one.tokens is not None for one in shown):
        lines[0] = (*lines[0], Span(_TOKENS.rjust(free), "muted"))
    drawn = {span.text for one in lines[1:] for span in one if span.style in ("heading", "warning")}
    left_out = len(look.everybody) - len(shown)
    if left_out:
        text = f"{glyphs.ellipsis} and {counted(left_out, 'more agent')}, in the sums"
        lines += [line(part, "muted") for part in broken(text, room)]
    signs = [f"{glyphs.shades[0]} model", f"{glyphs.shades[2]} tool", f"{glyphs.empty} idle"]
    if any(look.run.trace.events[number].agent in {one.agent for one in shown} for number in look.assumed):
        signs.insert(1, f"{glyphs.shades[1]} assumed")
    signs += [f"{sign} {words}" for sign, words in _MARKS.items() if any(sign in text for text in drawn)]
    if look.run.times.wall:
        lines += [line(text, "muted") for text in broken(", ".join(map(kept, signs)), room)]
    return [tuple(span._replace(text=span.text.replace("\ue000", " ")) for span in one) for one in lines]


def _shown(look: Story, most: int) -> list[Appearance]:
    """The agents that fit the screen: those on the critical path, then those of most tokens, each below its parents."""
    everybody = look.everybody
    if len(everybody) <= most:
        return list(everybody)
    events = look.run.trace.events
    on_path = {events[n].agent for n, part in zip(look.chain.events, look.chain.parts, strict=True) if part > 0}
    kept_places: set[int] = set()
    places = sorted(
        range(len(everybody)),
        key=lambda n: (
            everybody[n].agent in look.people,
            everybody[n].agent not in on_path,
            -(everybody[n].tokens or 0.0),
        ),
    )
    for place in places:
        above, depth = [place], everybody[place].depth
        for earlier in range(place - 1, -1, -1):
            if not depth or len(above) > most:
                break
            if everybody[earlier].depth < depth:
                above.append(earlier)
                depth = everybody[earlier].depth
        if len(kept_places | set(above)) <= most:
            kept_places.update(above)
        if len(kept_places) == most:
            break
    return [everybody[place] for place in sorted(kept_places)]
