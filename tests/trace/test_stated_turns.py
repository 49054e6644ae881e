"""What a stated duration settles: of a call, of a turn, and of a call in the background."""

from typing import Any

from orchtrace_corpus.trace.measures.definitions import measure
from orchtrace_corpus.trace.view import TraceView
from orchtrace_corpus.trace.view.open_calls import Cause
from tests.trace.traces import event, raw, trace


def view_of(*events: dict[str, Any], edges: str = "", **more: Any) -> TraceView:
    return TraceView(trace(raw(list(events), edges, **more)))


def call(name: str, t: float, t_end: float, agent: str = "main", **more: Any) -> dict[str, Any]:
    return event(name, t, "tool_call", agent, tool="Bash", t_end=t_end, **more)


def answer(name: str, t: float, t_end: float, agent: str = "main", **more: Any) -> dict[str, Any]:
    return event(name, t, "inference", agent, t_end=t_end, model="m", **more)


def turn(t: float, t_end: float, run_time: float, **more: Any) -> dict[str, Any]:
    return {"agent": "main", "t": t, "t_end": t_end, "run_time": run_time, **more}


def works(view: TraceView) -> dict[str, float]:
    return {event.id: work for event, work in zip(view.trace.events, view.timing.works, strict=True) if work}


LONG = (answer("a", 0, 4), call("b", 4, 1204), answer("c", 1204, 1210))


def test_a_call_without_any_statement_perhaps_waited() -> None:
    view = view_of(*LONG)

    assert [one.cause for one in view.open_calls] == [Cause.LONG]
    assert (sum(view.timing.works), sum(view.timing_if_waiting.works)) == (1210, 10)


def test_a_turn_as_long_as_it_took_waited_for_nobody() -> None:
    view = view_of(*LONG, turns=[turn(0, 1210.4, 1210.2)])

    assert view.open_calls == ()
    assert works(view) == {"a": 4, "b": 1200, "c": 6}
    assert view.timing.stated.waits == ()


def test_a_turn_shorter_than_it_took_waited_in_its_call_and_the_clock_stood_still() -> None:
    view = view_of(*LONG, turns=[turn(0, 1210, 30)])

    assert view.open_calls == ()
    assert works(view) == {"a": 4, "b": 20, "c": 6}
    assert (view.timing.elapsed, view.timing.waited) == (30, 1180)
    assert [(one.seconds, one.calls) for one in view.timing.stated.waits] == [(1180, ((1, 1180, 1180),))]
    assert measure(view, ["waited"])["waited"].value == 1180


def test_of_two_long_calls_of_a_turn_the_sum_is_known_and_not_which_waited() -> None:
    view = view_of(
        answer("a", 0, 4), call("b", 4, 604), answer("c", 604, 610), call("d", 610, 1210), answer("e", 1210, 1214),
        turns=[turn(0, 1214, 614)],
    )  # fmt: skip

    assert view.open_calls == ()
    assert sum(view.timing.works) == sum(view.timing_if_waiting.works) == 614
    assert view.timing.elapsed == 614
    assert [one.calls for one in view.timing.stated.waits] == [((1, 0, 600), (3, 0, 600))]


def test_a_wait_lies_where_nothing_else_went_on() -> None:
    view = view_of(
        answer("a", 0, 4), call("b", 4, 1004), call("quick", 4, 6), answer("below", 10, 60, "child"),
        answer("c", 1004, 1010), agents=[{"id": "child", "parent": "main"}], turns=[turn(0, 1010, 70)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "b": 60, "quick": 2, "below": 50, "c": 6}
    assert (view.timing.elapsed, view.timing.waited) == (70, 940)


def test_what_a_call_waited_while_another_agent_worked_is_not_taken_off_the_clock() -> None:
    view = view_of(
        answer("a", 0, 4), call("b", 4, 104), answer("below", 4, 104, "child"), answer("c", 104, 110),
        agents=[{"id": "child", "parent": "main"}], turns=[turn(0, 110, 20)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "b": 10, "below": 100, "c": 6}
    assert (view.timing.elapsed, view.timing.waited) == (110, 0)


def test_a_call_of_a_child_may_be_what_waited() -> None:
    view = view_of(
        answer("a", 0, 4), answer("below", 4, 8, "child"), call("b", 8, 1208, "child"), answer("c", 1210, 1216),
        agents=[{"id": "child", "parent": "main"}], turns=[turn(0, 1216, 21)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "below": 4, "b": 5, "c": 6}
    assert (view.timing.elapsed, view.timing.waited) == (21, 1195)


def test_waits_that_events_show_are_not_counted_again() -> None:
    view = view_of(
        answer("a", 0, 4), call("ask", 4, 504),
        event("person", 4, "human_intervention", "user", to="main", t_end=504), call("b", 504, 1004),
        answer("c", 1004, 1010), turns=[turn(0, 1010, 510)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "b": 500, "c": 6}
    assert view.timing.waited == 500
    assert view.timing.stated.waits == ()


def test_calls_outside_a_turn_that_states_its_duration_are_judged_as_before() -> None:
    view = view_of(*LONG, call("later", 2000, 4000), turns=[turn(0, 1210, 1210)])

    assert [view.trace.events[one.event].id for one in view.open_calls] == ["later"]


def test_sleep_was_no_work_and_waits_stay_unknown() -> None:
    view = view_of(answer("a", 0, 460, inferred=True), turns=[turn(0, 470, 310, excludes="sleep")])

    assert (sum(view.timing.works), sum(view.timing_if_waiting.works)) == (300, 0)
    assert (view.timing.elapsed, view.timing.waited) == (460, 0)


def test_a_call_that_states_its_run_time_worked_that_long_at_its_end() -> None:
    view = view_of(answer("a", 0, 4), call("b", 4, 1204, run_time=3), answer("c", 1204, 1210), edges="a>b b>c")

    assert view.open_calls == ()
    assert works(view) == {"a": 4, "b": 3, "c": 6}
    assert (view.timing.work_starts[1], view.timing.elapsed) == (1201, 1210)


def test_a_person_who_was_asked_first_takes_the_rest_off_the_clock() -> None:
    asked = event("person", 4, "human_intervention", "user", to="main", t_end=1201)
    view = view_of(answer("a", 0, 4), call("b", 4, 1204, run_time=3), asked, answer("c", 1204, 1210), edges="b>person")

    assert view.open_calls == ()
    assert (view.timing.elapsed, view.timing.waited, sum(view.timing.works)) == (13, 1197, 13)


BACKGROUND = (
    answer("a", 0, 6),
    call("b", 6, 1886, background=True, call_id="x"),
    event("launched", 7, "tool_result", "main", call_id="x"),
    answer("c", 7, 14),
)


def test_a_call_in_the_background_works_until_it_ends_while_its_agent_goes_on() -> None:
    view = view_of(*BACKGROUND, answer("d", 1886, 1890))

    assert view.open_calls == ()
    assert works(view) == {"a": 6, "b": 1880, "c": 7, "d": 4}


def test_a_call_in_the_background_works_while_a_person_is_waited_for() -> None:
    typed = event("typed", 14, "human_intervention", "user", to="main", t_end=1000)
    view = view_of(*BACKGROUND, typed, answer("d", 1000, 1004))

    assert works(view)["b"] == 1880
    assert (view.timing.elapsed, view.timing.waited) == (1886, 0)


def test_a_call_whose_end_the_log_does_not_show_has_a_range_to_the_end_of_the_log() -> None:
    first, call_, *rest = BACKGROUND
    view = view_of(first, {**call_, "t_end": 7, "unfinished": True}, *rest, answer("d", 500, 507))

    assert [(one.event, one.cause) for one in view.open_calls] == [(1, Cause.UNFINISHED)]
    assert (view.timing.works[1], view.timing_if_waiting.works[1]) == (501, 1)
    assert view.timing.unknown == [1]


def test_an_agent_without_a_record_may_be_what_waited() -> None:
    life = event("life", 4, "inference", "child", t_end=1204, inferred=True)
    view = view_of(
        answer("a", 0, 4), life, answer("c", 1204, 1210), agents=[{"id": "child", "parent": "main"}],
        turns=[turn(0, 1210, 40)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "life": 30, "c": 6}
    assert (view.timing.elapsed, view.timing.waited) == (40, 1170)


def test_a_turn_that_states_less_than_its_models_took_says_nothing() -> None:
    events = (answer("a", 0, 400), call("b", 400, 700), answer("c", 700, 800))
    view = view_of(*events, turns=[turn(0, 800, 50)])

    assert [one.cause for one in view.open_calls] == [Cause.LONG]
    assert (view.timing.elapsed, view.timing.stated.waits) == (800, ())


def test_calls_that_state_their_run_time_take_the_waits_of_their_turn_first() -> None:
    view = view_of(
        answer("a", 0, 4), call("b", 4, 2004), call("c", 2004, 2604, run_time=60), answer("d", 2604, 2610),
        turns=[turn(0, 2610, 1270)],
    )  # fmt: skip

    assert works(view) == {"a": 4, "b": 1200, "c": 60, "d": 6}
    waits = view.timing.stated.waits[0].calls
    assert [(view.trace.events[one.event].id, one.least, one.most) for one in waits] == [
        ("b", 800, 800), ("c", 540, 540),
    ]  # fmt: skip
    assert (view.timing.elapsed, view.timing.waited) == (1270, 1340)


def test_the_one_call_that_states_its_run_time_waited_for_what_its_turn_leaves_out() -> None:
    events = (answer("a", 0, 4), call("b", 4, 1024.5, run_time=120), call("c", 1024.5, 1030), answer("d", 1030, 1040))
    view = view_of(*events, turns=[turn(0, 1040, 140)])

    (one,) = view.timing.stated.waits[0].calls
    assert (view.trace.events[one.event].id, one.least, one.most) == ("b", 900, 900)


def test_what_a_call_with_a_run_time_waited_beside_other_work_is_not_taken_from_that_time() -> None:
    view = view_of(
        answer("a", 0, 6), call("build", 6, 3000, background=True, call_id="x"),
        event("launched", 7, "tool_result", "main", call_id="x"),
        answer("b", 7, 14), call("c", 14, 1034, run_time=120), answer("d", 1034, 1040),
        turns=[turn(0, 1040, 140)],
    )  # fmt: skip

    assert works(view) == {"a": 6, "build": 2994, "b": 7, "c": 120, "d": 6}


def test_a_call_that_asks_waits_for_the_person_while_a_command_works_in_the_background() -> None:
    asked = event("person", 14, "human_intervention", "user", to="main", t_end=417)
    view = view_of(*BACKGROUND, call("ask", 14, 417), asked, answer("d", 417, 420), edges="ask>person")

    assert works(view) == {"a": 6, "b": 1880, "c": 7, "d": 3}
    assert (view.timing.elapsed, view.timing.waited) == (1886, 0)
