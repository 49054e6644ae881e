// The replay of a run: the state of the team after each event, and the keys and links that choose an event.

const MOST_NAMED = 12;
const MOST_LISTED = 1000; // names in a list that is closed until somebody opens it
const MOST_AGENTS_FOUND = 8;
const PAGE = 10; // rows of a table that are seen at a time
const PLAY_SECONDS = [8, 45]; // how long a run is played, at least and at most

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
    this.button = section.querySelector("[data-do=play]");
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
    this.state.addEventListener("toggle", (event) => (this.isOpen = event.target.open), true);
  }

  /** Play the run from the chosen event on, from the first if that is the last; or stop playing. */
  play() {
    if (this.timer) return this.pause();
    const {run} = this, {period} = this.timeline;
    if (this.step >= run.length - 1) this.go(0);
    const seconds = Math.min(Math.max(run.length * 0.4, PLAY_SECONDS[0]), PLAY_SECONDS[1]);
    let room = period.room(run.start[this.step]), before = performance.now();
    this.button.textContent = "❚❚ Pause";
    this.timer = setInterval(() => {
      const now = performance.now();
      room += (now - before) / 1000 * period.length / seconds;
      before = now;
      let step = this.step;
      while (step < run.length - 1 && period.room(run.start[step + 1]) <= room) step++;
      if (step !== this.step) this.go(step, true);
      if (step === run.length - 1 && room >= period.room(run.start[step])) this.pause();
    }, 60);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = undefined;
    this.button.textContent = "▶ Play";
  }

  /** Show the state after an event, and mark it in the timeline; whoever chooses one stops playing. */
  go(step, isPlaying = false) {
    if (this.timer && !isPlaying) this.pause();
    this.step = Math.min(Math.max(step, 0), this.run.length - 1);
    for (const one of [this.live, this.calls, this.messages]) one.go(this.step);
    this.slider.value = this.step + 1;
    this.slider.setAttribute("aria-valuetext", `step ${this.step + 1} of ${this.run.length}: ${this.title(this.step)}`);
    this.timeline.mark(this.step);
    this.show();
    this.changed();
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
    const {run, side} = this;
    return link(side, event, `${run.id[event]} (${this.what(event)} of ${run.names[run.agent[event]]})`);
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
    rowAfter("Live agents", this.liveAgents());
    this.names("Open calls", "calls", this.calls, (event) => this.link(event), rowAfter);
    this.names("Messages in flight", "messages", this.messages, (event) => this.link(event), rowAfter);
    const lacking = this.lacking[step], least = lacking ? `, and those of ${counted(lacking, "event")} that are not known` : "";
    rowAfter("Tokens so far", figure("tokens", this.spent[step], this.spent[step].toLocaleString("en")), least);
    const cost = this.cost[step];
    if (cost !== null) rowAfter("Cost so far", figure("cost", cost, `${significant(cost, 6)} USD`));
    this.state.replaceChildren(
      node("div", node("h3", "Event"), node("dl", ...rows)),
      node("div", node("h3", "The team after it"), node("dl", ...after)),
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

  /** The number of live agents, and behind it the list of them. */
  liveAgents() {
    const there = [...this.live.there].sort((one, other) => one - other), number = there.length;
    const summary = node("summary", figure("live", number, number.toLocaleString("en")));
    const names = there.slice(0, MOST_LISTED).map((name) => this.run.strings[name]);
    const list = node("details", summary, node("p", ...joined(names, number)));
    list.open = Boolean(this.isOpen);
    return list;
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

/** The rows of a table beyond its first, shown in parts; those of calls are sorted by any column. */
class Pages {
  constructor(table, pager, replay) {
    Object.assign(this, {table, pager, replay, first: 0});
    this.head = [...table.tHead.rows[0].cells];
    this.body = table.tBodies[0];
    this.seen = pager && pager.querySelector("[role=status]");
    const go = {
      first: () => 0, previous: () => this.first - PAGE, next: () => this.first + PAGE, last: () => this.length - 1,
    };
    for (const button of pager ? pager.querySelectorAll("button") : []) {
      button.addEventListener("click", () => this.show(go[button.dataset.go]()));
    }
    if (table.dataset.calls) this.sorts();
    else {
      const data = document.querySelector(`script[data-rows="${table.id}"]`), own = [...this.body.rows];
      this.rest = JSON.parse(data.textContent);
      this.length = own.length + this.rest.length;
      this.row = (at) => (at < own.length ? own[at] : this.made(this.rest[at - own.length], data.dataset.side));
    }
    if (pager) this.buttons();
  }

  show(first) {
    if (this.order) this.order();
    this.order = undefined;
    this.first = Math.max(0, Math.min(Math.floor(first / PAGE) * PAGE, Math.floor((this.length - 1) / PAGE) * PAGE));
    const last = Math.min(this.first + PAGE, this.length);
    this.body.replaceChildren(...Array.from({length: last - this.first}, (_, at) => this.row(this.first + at)));
    if (!this.pager) return;
    this.seen.textContent = `${(this.first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ${this.length.toLocaleString("en")}`;
    this.buttons();
  }

  buttons() {
    for (const button of this.pager.querySelectorAll("button")) {
      const isBack = ["first", "previous"].includes(button.dataset.go);
      button.disabled = isBack ? this.first === 0 : this.first + PAGE >= this.length;
    }
  }

  /** A row of the data of the page: texts, numbers with their text, links to events, names with their depth. */
  made(cells, side) {
    const row = document.createElement("tr");
    cells.forEach((cell, at) => {
      const made = row.appendChild(document.createElement(at ? "td" : "th"));
      if (!at) made.scope = "row";
      if (typeof cell === "string") made.textContent = cell;
      else if (Array.isArray(cell[0])) made.append(...joined(cell.map(([place, text]) => link(side, place, text)), cell.length));
      else if (cell.length && this.head[at].classList.contains("number")) {
        made.className = "number";
        made.append(figure("", cell[1], cell[0]));
      } else if (cell.length) {
        made.className = `depth-${Math.min(cell[1], 12)}`;
        made.textContent = cell[0];
      }
    });
    return row;
  }

  /** Let every head of a table of calls sort it. */
  sorts() {
    const {run, tokens, costs} = this.replay, by = this.table.dataset.calls;
    this.calls = [];
    for (let event = 0; event < run.length; event++) {
      if (run.flags[event] & WORK || tokens[event] || costs[event]) this.calls.push(event);
    }
    this.length = this.calls.length;
    const keys = {
      event: (event) => event, agent: (event) => run.names[run.agent[event]], what: (event) => this.replay.what(event),
      model: (event) => run.strings[run.model[event]], "begins at": (event) => run.start[event],
      lasts: (event) => run.took[event], tokens: (event) => tokens[event] || 0, USD: (event) => costs[event] || 0,
    };
    this.row = (at) => this.call(this.calls[at]);
    for (const head of this.head) {
      const name = head.textContent, button = node("button", name);
      button.type = "button";
      head.replaceChildren(button);
      if (name === by) head.setAttribute("aria-sort", "descending");
      button.addEventListener("click", () => {
        const rises = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "descending" : typeof keys[name](0) === "string";
        for (const other of this.head) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", rises ? "ascending" : "descending");
        this.order = () => this.sort(keys[name], rises);
        this.show(0);
      });
    }
    this.order = () => this.sort(keys[by], false); // only when rows beyond the first are asked for
  }

  sort(key, rises) {
    const way = rises ? 1 : -1, values = this.calls.map((event) => [key(event), event]);
    const compare = (one, other) => (one < other ? -1 : one > other ? 1 : 0);
    values.sort(([one, first], [other, second]) => way * compare(one, other) || first - second);
    this.calls = values.map(([, event]) => event);
  }

  call(event) {
    const {run, tokens, costs, side} = this.replay, number = (value, text) => (value ? [text, value] : "");
    const cells = {
      event: [[event, run.id[event]]], agent: run.names[run.agent[event]], what: this.replay.what(event),
      model: run.strings[run.model[event]], "begins at": [duration(run.start[event], run.unit), run.start[event]],
      lasts: [duration(run.took[event], run.unit), run.took[event]],
      tokens: number(tokens[event], (tokens[event] || 0).toLocaleString("en")), USD: number(costs[event], money(costs[event] || 0)),
    };
    return this.made(this.head.map((head) => cells[head.textContent]), side);
  }
}

/** A link to an event. */
function link(side, place, text) {
  const made = node("a", text);
  made.href = `#${side}-event-${place + 1}`;
  made.dataset.side = side;
  made.dataset.place = place;
  return made;
}

/** The field that finds an agent by a part of its name. */
class Search {
  constructor(replays, choose) {
    Object.assign(this, {replays, choose, active: 0});
    this.field = document.getElementById("search");
    this.list = document.getElementById("found");
    this.field.addEventListener("input", () => this.find());
    this.field.addEventListener("keydown", (event) => this.key(event));
    this.field.addEventListener("blur", () => this.close());
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // so that the field keeps the focus
    this.list.addEventListener("click", (event) => this.take(event.target.closest("[role=option]")));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=range], [type=checkbox])")) return;
      event.preventDefault();
      this.field.focus();
      this.field.select();
    });
  }

  /** The agents whose name or id has the text, those that begin with it first. */
  find() {
    const text = this.field.value.trim().toLowerCase(), isOne = Object.keys(this.replays).length === 1;
    if (!text) return this.close();
    const found = [[], [], []];
    let number = 0;
    for (const {run, side} of Object.values(this.replays)) {
      run.names.forEach((name, agent) => {
        const id = run.agentId[agent], texts = [name, id].map((one) => one.toLowerCase());
        if (!texts.some((one) => one.includes(text))) return;
        number++;
        const isWhole = texts.some((one) => one === text || one.startsWith(`${text} `));
        const rank = isWhole ? 0 : texts.some((one) => one.startsWith(text)) ? 1 : 2;
        const label = name.includes(id) ? name : `${name} (${id})`;
        found[rank].push({side, agent, name: isOne ? label : `${side.toUpperCase()}: ${label}`});
      });
    }
    const options = found.flat().slice(0, MOST_AGENTS_FOUND).map(({side, agent, name}, at) => {
      const option = node("li", name);
      option.id = `found-${at}`;
      option.setAttribute("role", "option");
      Object.assign(option.dataset, {side, agent});
      return option;
    });
    if (number > options.length) {
      const more = node("li", `and ${(number - options.length).toLocaleString("en")} more`);
      more.className = "muted";
      more.setAttribute("role", "option");
      more.setAttribute("aria-disabled", "true");
      options.push(more);
    }
    if (!number) {
      const none = node("li", "No agent has this in its name or id.");
      none.setAttribute("role", "option");
      none.setAttribute("aria-disabled", "true");
      options.push(none);
    }
    this.list.replaceChildren(...options);
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.mark(0);
  }

  mark(at) {
    const options = [...this.list.querySelectorAll("[data-agent]")];
    this.active = options.length ? (at + options.length) % options.length : 0;
    options.forEach((option, place) => option.setAttribute("aria-selected", String(place === this.active)));
    if (options.length) this.field.setAttribute("aria-activedescendant", options[this.active].id);
    else this.field.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const move = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (move && !this.list.hidden) {
      event.preventDefault();
      this.mark(this.active + move);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.take(this.list.querySelector("[aria-selected=true]"));
    } else if (event.key === "Escape") this.close();
  }

  take(option) {
    if (!option || option.dataset.agent === undefined) return;
    this.close();
    this.choose(option.dataset.side, Number(option.dataset.agent));
  }

  close() {
    this.list.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }
}

function start() {
  const {runs: all, breaks} = JSON.parse(document.getElementById("runs").textContent), replays = {}, shows = {};
  const toolbar = document.getElementById("timelines"), boxes = [...toolbar.querySelectorAll("[data-show]")];
  const period = new Period(Math.max(...all.map((data) => data.elapsed)), breaks);
  let isFollowing = true, planned = 0;
  for (const box of boxes) {
    box.checked = box.defaultChecked; // what a browser remembers of the last visit is not in the address
    shows[box.dataset.show] = box.checked;
    box.addEventListener("change", () => show(box.dataset.show, box.checked));
  }
  function show(name, isShown) {
    shows[name] = isShown;
    for (const box of boxes) if (box.dataset.show === name) box.checked = isShown;
    if (name === "broken") period.break(isShown);
    for (const {timeline} of Object.values(replays)) timeline.plan();
    note();
  }
  const inPeriod = {
    in: (timeline) => period.zoom(0.5, share(timeline)),
    out: (timeline) => period.zoom(2, share(timeline)),
    all: () => period.set(0, period.elapsed),
    earlier: () => period.pan(-0.2),
    later: () => period.pan(0.2),
  };
  const keys = {"+": "in", "=": "in", "-": "out", "_": "out", "0": "all", ArrowLeft: "earlier", ArrowRight: "later",
      c: "critical", C: "critical-back", n: "next", p: "previous", Home: "first", End: "last", " ": "play"};
  all.forEach((data, number) => {
    const side = "ab"[number], section = document.getElementById(`${side}-run`), run = new Run(data);
    const axis = number ? null : toolbar.querySelector(".axis");
    const timeline = new Timeline(section, axis, side, run, period, shows, (event) => choose(side, event));
    const replay = new Replay(document.getElementById(`${side}-replay`), side, run, timeline);
    replay.changed = note;
    replays[side] = replay;
    const commands = {
          ...inPeriod,
        critical: () => replay.alongPath(1),
        "critical-back": () => replay.alongPath(-1),
      previous: () => replay.go(replay.step - 1),
      next: () => replay.go(replay.step + 1),
      first: () => replay.go(0),
      last: () => replay.go(run.length - 1),
      play: () => replay.play(),
    };
    for (const button of replay.section.querySelectorAll("button")) button.addEventListener("click", commands[button.dataset.do]);
    timeline.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      commands[keys[event.key]](timeline);
    });
  });
  for (const button of toolbar.querySelectorAll("button")) {
    button.addEventListener("click", () => inPeriod[button.dataset.do](replays.a.timeline));
  }
  new Search(replays, (side, agent) => {
    const {run, timeline} = replays[side], own = run.lanes[agent];
    const event = own.length ? own[0] : run.agent.indexOf(agent);
    if (event < 0) return;
    choose(side, event);
    timeline.box.focus({preventScroll: true});
  });
  for (const table of document.querySelectorAll("table[id]")) {
    const pager = document.querySelector(`.pager[data-table="${table.id}"]`), {side} = table.dataset;
    if (pager || table.dataset.calls) new Pages(table, pager, replays[side]);
  }

  /** Where to zoom: at the chosen event while it is in view, else in the middle. */
  function share(timeline) {
    const at = (period.room(timeline.run.start[timeline.chosen]) - period.from) / (period.to - period.from);
    return at >= 0 && at <= 1 ? at : 0.5;
  }
  /** Choose an event, so that the way back leads to the one before. */
  function choose(side, event) {
    if (replays[side].step !== event) history.pushState(null, "", address({[side]: event}));
    replays[side].go(event);
  }
  /** The address of the page as it is seen: what is chosen, the period, and what is shown unlike at first. */
  function address(chosen = {}) {
    const parts = Object.values(replays).map(({side, step}) => `${side}-event-${(chosen[side] ?? step) + 1}`);
    const isFirst = parts.every((part) => part.endsWith("-event-1"));
    const seen = period.isWhole ? [] : [`time=${exact(period.begin)}-${exact(period.end)}`];
    for (const box of boxes) if (box.checked !== box.defaultChecked) seen.push(`${box.dataset.show}=${Number(box.checked)}`);
    const opened = Object.values(replays).flatMap(({side, timeline}) => [...timeline.opened].map((group) => `${side}${group}`));
    if (opened.length) seen.push(`open=${opened.join(",")}`);
    return `#${[...(isFirst && !seen.length ? [] : parts), ...seen].join("&")}`;
  }
  /** Note in the address what is seen, soon, and not more often than browsers allow. */
  function note() {
    if (isFollowing || planned) return;
    planned = setTimeout(() => {
      planned = 0;
      const now = address();
      if (now !== (location.hash || "#")) history.replaceState(null, "", now);
    }, 300);
  }
  function exact(moment) {
    return Number(moment.toPrecision(12));
  }

  /** Show what the address says, such as `#a-event-12&time=3-9.5`. */
  function follow(scrolls) {
    isFollowing = true;
    clearTimeout(planned);
    planned = 0;
    const parts = location.hash.slice(1).split("&"), said = new Map(parts.map((part) => part.split("=", 2)));
    if (location.hash.length > 1 && !/^#(?:[ab]-event-\d|[a-z]+=)/.test(location.hash)) return (isFollowing = false);
    for (const box of boxes) {
      const name = box.dataset.show, isShown = said.has(name) ? said.get(name) === "1" : box.defaultChecked;
      if (shows[name] !== isShown) show(name, isShown);
    }
    for (const {timeline} of Object.values(replays)) timeline.opened.clear();
    for (const [, side, group] of (said.get("open") || "").matchAll(/([ab])(\d+)/g)) {
      if (replays[side]) replays[side].timeline.opened.add(Number(group));
    }
    const time = /^([\d.e-]+?)-([\d.]+(?:e[+-]?\d+)?)$/.exec(said.get("time") || "");
    const [begin, end] = time ? [Number(time[1]), Number(time[2])] : [0, period.elapsed];
    const steps = new Map(parts.map((part) => /^([ab])-event-(\d+)$/.exec(part)).filter(Boolean).map(([, side, step]) => [side, step - 1]));
    for (const replay of Object.values(replays)) replay.go(steps.get(replay.side) ?? 0);
    const chosen = Object.keys(replays).find((side) => steps.has(side));
    if (begin < end) period.set(begin, end);
    if (scrolls && chosen && parts.length === 1) {
      document.getElementById(`${chosen}-run`).scrollIntoView({block: "nearest"});
      replays[chosen].timeline.box.focus({preventScroll: true});
    }
    isFollowing = false;
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-place]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const {side, place} = link.dataset;
    choose(side, Number(place));
    if (link.closest(".state")) return;
    document.getElementById(`${side}-run`).scrollIntoView({block: "nearest"});
    replays[side].timeline.box.focus({preventScroll: true});
  });
  for (const {timeline} of Object.values(replays)) timeline.changed = note;
  period.listeners.push(note);
  for (const name of ["popstate", "hashchange"]) addEventListener(name, () => follow(true));
  follow(true);
}

start();
