// The replay of a run: the state of the team after each event, and the keys and links that choose an event.

const MOST_NAMED = 60;

/** What is there after each step: names come and go, so that steps back are steps forward. */
class Presence {
  constructor([steps, what]) {
    Object.assign(this, {steps, what, next: 0, there: new Set()});
  }

  go(step) {
    while (this.next < this.steps.length && this.steps[this.next] <= step) this.toggle(this.next++);
    while (this.next > 0 && this.steps[this.next - 1] > step) this.toggle(--this.next);
  }

  toggle(at) {
    if (!this.there.delete(this.what[at])) this.there.add(this.what[at]);
  }
}

class Replay {
  constructor(section, side, run, timeline) {
    Object.assign(this, {section, side, run, timeline, step: 0});
    this.slider = section.querySelector("input[type=range]");
    this.state = section.querySelector(".state");
    const {replay, length} = run, tokens = column(replay.tokens, length), costs = column(replay.cost, length);
    this.spent = new Float64Array(length);
    this.lacking = new Uint32Array(length);
    this.cost = [];
    let spent = 0, lacking = 0, cost = null;
    for (let event = 0; event < length; event++) {
      if (tokens[event] === null) lacking++; else spent += tokens[event];
      if (costs[event] !== null) cost = (cost || 0) + costs[event];
      this.spent[event] = spent;
      this.lacking[event] = lacking;
      this.cost.push(cost);
    }
    Object.assign(this, {tokens, costs});
    this.live = new Presence(replay.live);
    this.calls = new Presence(replay.calls);
    this.messages = new Presence(replay.messages);
    this.slider.addEventListener("input", () => this.go(this.slider.valueAsNumber - 1));
  }

  /** Show the state after an event, and mark it in the timeline. */
  go(step) {
    this.step = Math.min(Math.max(step, 0), this.run.length - 1);
    for (const one of [this.live, this.calls, this.messages]) one.go(this.step);
    this.slider.value = this.step + 1;
    this.slider.setAttribute("aria-valuetext", `step ${this.step + 1} of ${this.run.length}: ${this.title(this.step)}`);
    this.timeline.mark(this.step);
    this.show();
  }

  /** The next step of the critical path after the chosen event, or the one before it. */
  alongPath(direction) {
    const path = this.run.critical.event.slice().sort((one, other) => one - other);
    const next = direction > 0 ? path.find((event) => event > this.step) : path.findLast((event) => event < this.step);
    if (next !== undefined) this.go(next);
  }

  what(event) {
    const {run} = this, tool = run.strings[run.tool[event]];
    return run.types[run.type[event]].replaceAll("_", " ") + (tool ? ` ${tool}` : "");
  }

  title(event) {
    const {run} = this;
    return `${this.what(event)} of ${run.names[run.agent[event]]} at ${clock(run.start[event], 0.001, run.unit)}`;
  }

  link(event) {
    const made = node("a", `${this.run.id[event]} (${this.what(event)} of ${this.run.names[this.run.agent[event]]})`);
    made.href = `#${this.side}-event-${event + 1}`;
    made.dataset.side = this.side;
    made.dataset.place = event;
    return made;
  }

  show() {
    const {run, step} = this, rows = [], after = [];
    const row = (label, ...parts) => rows.push(node("dt", label), node("dd", ...parts));
    const rowAfter = (label, ...parts) => after.push(node("dt", label), node("dd", ...parts));
    const target = run.strings[run.target[step]], error = run.strings[run.error[step]];
    row("Step", `${(step + 1).toLocaleString("en")} of ${run.length.toLocaleString("en")}, at ${clock(run.start[step], 0.001, run.unit)}`);
    row("Event", `${run.id[step]}: ${this.what(step)} of ${run.names[run.agent[step]]}${target ? ` to ${target}` : ""}`);
    row("Lasts", duration(run.took[step], run.unit) + this.remarks(step));
    const status = run.statuses[run.status[step]];
    if (status !== "unknown" || error) row("Status", status + (error ? `, ${error}` : ""));
    const model = run.strings[run.model[step]], file = run.strings[run.file[step]];
    if (model) row("Model", model);
    if (this.tokens[step]) row("Tokens", this.tokens[step].toLocaleString("en"));
    if (this.costs[step] !== null) row("Cost", `${this.costs[step]} USD`);
    if (file) row("In the log", `${file}:${run.line[step]}`);
    this.edges(step, row);
    if (run.content && run.content[step]) row("Content", node("pre", run.content[step]));
    this.names("Live agents", "live", this.live, (name) => run.strings[name], rowAfter);
    this.names("Open calls", "calls", this.calls, (event) => this.link(event), rowAfter);
    this.names("Messages in flight", "messages", this.messages, (event) => this.link(event), rowAfter);
    const lacking = this.lacking[step], least = lacking ? `, and those of ${counted(lacking, "event")} that are not known` : "";
    rowAfter("Tokens so far", figure("tokens", this.spent[step], this.spent[step].toLocaleString("en")), least);
    const cost = this.cost[step];
    if (cost !== null) rowAfter("Cost so far", figure("cost", cost, `${significant(cost, 6)} USD`));
    this.state.replaceChildren(
      node("div", node("h4", "Event"), node("dl", ...rows)),
      node("div", node("h4", "The team after it"), node("dl", ...after)),
    );
  }

  remarks(step) {
    const flags = this.run.flags[step];
    const found = [[OPEN, "an open call: perhaps it only waited"], [ASSUMED, "time assumed"], [OFF_CLOCK, "off the clock"]];
    return (this.run.onPath.has(step) ? "; on the critical path" : "")
      + found.filter(([flag]) => flags & flag).map(([, words]) => `; ${words}`).join("");
  }

  edges(step, row) {
    const [sources, targets] = this.run.edges, before = [], after = [];
    for (let at = 0; at < sources.length; at++) {
      if (targets[at] === step) before.push(sources[at]);
      if (sources[at] === step) after.push(targets[at]);
    }
    for (const [label, found] of [["Depends on", before], ["Leads to", after]]) {
      if (found.length) row(label, ...joined(found.slice(0, MOST_NAMED).map((event) => this.link(event)), found.length));
    }
  }

  names(label, name, presence, show, row) {
    const there = [...presence.there].sort((one, other) => one - other);
    const shown = there.slice(0, MOST_NAMED).map(show);
    row(label, figure(name, there.length, there.length.toLocaleString("en")), ...(shown.length ? [": "] : []),
        ...joined(shown, there.length));
  }
}

/** An element with texts and elements in it; texts stay texts. */
function node(tag, ...children) {
  const made = document.createElement(tag);
  made.append(...children);
  return made;
}

/** A number as it is shown, and exactly. */
function figure(name, value, text) {
  const made = node("data", text);
  made.dataset.name = name;
  made.value = value;
  return made;
}

/** Texts and elements with commas between them, and how many more there are. */
function joined(found, number) {
  const parts = found.flatMap((one, at) => (at ? [", ", one] : [one]));
  return number > found.length ? [...parts, ` and ${(number - found.length).toLocaleString("en")} more`] : parts;
}

function start() {
  const all = JSON.parse(document.getElementById("runs").textContent), replays = {};
  const period = new Period(Math.max(...all.map((data) => data.elapsed)));
  all.forEach((data, number) => {
    const side = "ab"[number], section = document.getElementById(`${side}-run`), run = new Run(data);
    const timeline = new Timeline(section, side, run, period, (event) => replays[side].go(event));
    const replay = new Replay(section, side, run, timeline);
    replays[side] = replay;
    const commands = {
      in: () => period.zoom(0.5, share(timeline)),
      out: () => period.zoom(2, share(timeline)),
      all: () => period.set(0, period.elapsed),
      earlier: () => period.pan(-0.2),
      later: () => period.pan(0.2),
      critical: () => replay.alongPath(1),
      "critical-back": () => replay.alongPath(-1),
      previous: () => replay.go(replay.step - 1),
      next: () => replay.go(replay.step + 1),
      first: () => replay.go(0),
      last: () => replay.go(run.length - 1),
    };
    const keys = {"+": "in", "=": "in", "-": "out", "_": "out", "0": "all", ArrowLeft: "earlier", ArrowRight: "later",
                  c: "critical", C: "critical-back", n: "next", p: "previous", Home: "first", End: "last"};
    for (const button of section.querySelectorAll("button")) button.addEventListener("click", commands[button.dataset.do]);
    timeline.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      commands[keys[event.key]]();
    });
    for (const [name, shows] of [["messages", "showsMessages"], ["present", "showsPresent"]]) {
      section.querySelector(`[data-show=${name}]`).addEventListener("change", (event) => {
        timeline[shows] = event.target.checked;
        timeline.plan();
      });
    }
    replay.go(0);
  });

  /** Where to zoom: at the chosen event while it is in view, else in the middle. */
  function share(timeline) {
    const moment = timeline.run.start[timeline.chosen];
    const at = (moment - period.begin) / (period.end - period.begin);
    return at >= 0 && at <= 1 ? at : 0.5;
  }

  /** Choose the event that the address names, such as `#a-event-12`. */
  function follow(scrolls) {
    const [, side, step] = /^#([ab])-event-(\d+)$/.exec(location.hash) || [];
    if (!side || !replays[side] || step < 1 || step > replays[side].run.length) return;
    replays[side].go(step - 1);
    if (scrolls) {
      document.getElementById(`${side}-run`).scrollIntoView();
      replays[side].timeline.box.focus({preventScroll: true});
    }
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-place]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    history.pushState(null, "", link.hash);
    follow(!link.closest(".state"));
  });
  addEventListener("popstate", () => follow(true));
  follow(true);
}

start();
