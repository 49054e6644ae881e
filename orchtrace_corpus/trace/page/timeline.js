"use strict";
// The timeline of a run: a lane for each agent, drawn for the part of the time and of the lanes that is in view.
// The page has at most MOST_ELEMENTS elements: what begins and ends within the same few pixels is drawn as one.
// Sub-agents that do the same can share a lane, which then shows how many of them are at work.

const MOST_ELEMENTS = 1900;
const LEAST_ELEMENTS = 300; // are drawn, whatever else is on the page
const LANE = 26;
const BAR = 14;
const AXIS = 22;
const PROFILE = 48;
const MOST_ARROWS = 60; // of more, only those of the chosen event are drawn
const LEAST_MARK = [12, 28]; // marks that are nearer to each other, in pixels, are counted; where there are many
const MANY_MARKS = 100;
const WORK = 1, OPEN = 2, ASSUMED = 4, OFF_CLOCK = 8;
const SVG = "http://www.w3.org/2000/svg";
const KINDS = ["model", "tool", "assumed", "open"];
const SIGNS = {spawn: "▼", despawn: "▲", return: "▲", stop: "▲", message: "◆", tool_result: "•"};

/** A column of a run: an array, also where all its values are the same. */
function column(values, length) {
  return Array.isArray(values) ? values : new Array(length).fill(values);
}

/** A number to so many digits that matter, without needless zeros; what lies halfway becomes even, as in Python. */
function significant(number, digits) {
  const [mantissa, exponent] = number.toExponential(digits + 40).split("e");
  const isTie = /^50*$/.test(mantissa.slice(digits + 1)), isEven = mantissa.replace(".", "")[digits - 1] % 2 === 0;
  const rounded = isTie && isEven ? `${mantissa.slice(0, digits + 1)}e${exponent}` : number.toPrecision(digits);
  return Number(rounded).toLocaleString("en", {maximumFractionDigits: 20});
}

/** A duration in words, as the screen has it. */
function duration(time, unit) {
  if (unit !== "s") return `${significant(time, 6)} ${time === 1 ? unit : `${unit}s`}`;
  if (time > 0 && time < 0.9995) return `${significant(time * 1000, 3)} ms`;
  if (time < 59.95) return `${significant(time, 3)} s`;
  const whole = Math.round(time) - (time % 1 === 0.5 && Math.round(time) % 2);
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60, seconds = whole % 60;
  const two = (number) => String(number).padStart(2, "0");
  if (hours) return minutes ? `${hours.toLocaleString("en")} h ${two(minutes)} min` : `${hours.toLocaleString("en")} h`;
  return seconds ? `${minutes} min ${two(seconds)} s` : `${minutes} min`;
}

/** A moment of the run, exact to a part of a second or of a step, such as `12 h 24 min 05.3 s`. */
function clock(moment, exact, unit) {
  const digits = Math.min(Math.max(0, -Math.floor(Math.log10(exact) + 1e-9)), 12);
  const rounded = Number(moment.toFixed(digits));
  if (unit !== "s") return `${rounded.toLocaleString("en", {maximumFractionDigits: 12})} ${rounded === 1 ? unit : `${unit}s`}`;
  if (rounded < 1 && rounded > 0) return `${Number((rounded * 1000).toFixed(Math.max(digits - 3, 0)))} ms`;
  if (rounded < 60) return `${rounded} s`;
  const hours = Math.floor(rounded / 3600), minutes = Math.floor(rounded / 60) % 60;
  const seconds = Number((rounded % 60).toFixed(digits));
  const parts = hours ? [`${hours.toLocaleString("en")} h`] : [];
  if (minutes || !seconds) parts.push(`${minutes} min`);
  if (seconds) parts.push(`${seconds} s`);
  return hours && !minutes && !seconds ? parts[0] : parts.join(" ");
}

/** An amount of money, as the tables have it. */
function money(usd) {
  if (usd >= 0.995 || usd === 0) return usd.toLocaleString("en", {minimumFractionDigits: 2, maximumFractionDigits: 2});
  return usd >= 0.00005 ? usd.toFixed(4) : "<0.0001";
}

/** How many of something there are, in words. */
function counted(number, noun) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : `${noun}s`}`;
}

/** The first place in a rising array whose value is not below a limit. */
function firstFrom(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < limit) low = middle + 1; else high = middle;
  }
  return low;
}

/** A run: its columns, and what the drawing needs to look up. */
class Run {
  constructor(data) {
    const {events} = data, length = events.id.length;
    Object.assign(this, {length, unit: data.unit, elapsed: data.elapsed, id: events.id, strings: data.strings});
    Object.assign(this, {critical: data.critical, waits: data.waits, arrows: data.arrows, edges: data.edges});
    Object.assign(this, {types: data.types, statuses: data.statuses, replay: data.replay});
    for (const name of ["agent", "type", "status", "took", "flags", "tool", "model", "target", "error", "file", "line"]) {
      this[name] = column(events[name], length);
    }
    this.start = events.start;
    this.content = "content" in events ? column(events.content, length) : null;
    this.names = data.agents.name;
    this.agentId = data.agents.id;
    this.depth = data.agents.depth;
    this.group = column(data.agents.group, this.names.length);
    this.role = column(data.agents.role, this.names.length);
    this.begins = data.agents.begin;
    this.ends = data.agents.end;
    this.onPath = new Set(data.critical.event);
    this.lanes = this.names.map(() => []);
    for (let event = 0; event < length; event++) {
      if (!(this.flags[event] & OFF_CLOCK)) this.lanes[this.agent[event]].push(event);
    }
    this.starts = [];
    this.reach = []; // for each event of a lane, the latest end of it and those before it
    for (const lane of this.lanes) {
      lane.sort((one, other) => this.start[one] - this.start[other] || one - other);
      let latest = -Infinity;
      this.starts.push(Float64Array.from(lane, (event) => this.start[event]));
      this.reach.push(Float64Array.from(lane, (event) => (latest = Math.max(latest, this.end(event)))));
    }
  }

  end(event) {
    return this.start[event] + this.took[event];
  }

  /** Which of the events of a lane touch a time: the first place, and the one behind the last. */
  range(lane, begin, end) {
    const from = firstFrom(this.reach[lane], begin);
    let to = firstFrom(this.starts[lane], end);
    while (to < this.starts[lane].length && this.starts[lane][to] === end) to++;
    return [from, Math.max(from, to)];
  }

  /** How an event is drawn: a place in KINDS for those that work, -1 for the others. */
  kind(event) {
    const flags = this.flags[event];
    if (!(flags & WORK)) return -1;
    if (flags & OPEN) return 3;
    if (flags & ASSUMED) return 2;
    return this.isTool(event) ? 1 : 0;
  }

  isTool(event) {
    return this.types[this.type[event]] === "tool_call";
  }

  sign(event) {
    if (this.statuses[this.status[event]] === "error") return "✕";
    return SIGNS[this.types[this.type[event]]] || "●";
  }
}

/** Times in rising order, and the sums of those before each, to add up how long ago they all were. */
class Moments {
  constructor(times) {
    this.times = Float64Array.from(times).sort();
    this.sums = new Float64Array(this.times.length + 1);
    this.times.forEach((time, at) => (this.sums[at + 1] = this.sums[at] + time));
  }

  since(moment) {
    const number = firstFrom(this.times, moment);
    return number * moment - this.sums[number];
  }
}

/** How many of some agents are at work, as a mean over any part of the time: models, and tools. */
class Load {
  constructor(run, agents) {
    this.kinds = [[], []].map((_, which) => {
      const own = agents.flatMap((agent) => run.lanes[agent].filter((event) => run.kind(event) >= 0 && run.isTool(event) === (which === 1)));
      return [new Moments(own.map((event) => run.start[event])), new Moments(own.map((event) => run.end(event)))];
    });
  }

  mean(which, begin, end) {
    const [starts, ends] = this.kinds[which];
    return (starts.since(end) - starts.since(begin) - ends.since(end) + ends.since(begin)) / (end - begin);
  }

  /** The profile of a period as two areas, the models and on them the tools, with the largest number. */
  areas(timeline, bottom, height) {
    const {period, left, width} = timeline, step = 3, columns = Math.max(1, Math.floor((width - 8 - left) / step));
    const edges = Array.from({length: columns + 1}, (_, at) => timeline.moment(left + at * step));
    const models = [], all = [];
    for (let at = 0; at < columns; at++) {
      const end = Math.min(edges[at + 1], period.end);
      models.push(Math.max(0, this.mean(0, edges[at], end)));
      all.push(models[at] + Math.max(0, this.mean(1, edges[at], end)));
    }
    const most = Math.max(...all, 1e-9), y = (value) => Math.round((bottom - height * value / most) * 10) / 10;
    const area = (values) => `M${left},${bottom}${values.map((value, at) => `V${y(value)}H${left + (at + 1) * step}`).join("")}V${bottom}z`;
    return {most, shapes: [["path", "area tool", {d: area(all)}], ["path", "area model", {d: area(models)}]]};
  }
}

/**
 * What part of the time is seen; timelines that are compared share one.
 *
 * Where the axis is broken, a long time takes little room. Zooming and moving count in that room.
 */
class Period {
  constructor(elapsed, breaks) {
    this.elapsed = elapsed || 1;
    this.listeners = [];
    this.all = breaks;
    this.break(true);
  }

  break(isBroken) {
    this.breaks = isBroken ? this.all : [];
    this.length = this.room(this.elapsed);
    this.least = this.length * 1e-9;
    this.set(0, this.elapsed);
  }

  /** How much room the time up to a moment takes. */
  room(moment) {
    if (!this.breaks.length) return moment;
    return this.breaks.reduce((room, [begin, end, short]) => {
      return room - Math.min(Math.max(moment - begin, 0), end - begin) * (1 - short / (end - begin));
    }, moment);
  }

  /** The moment up to which the time takes so much room. */
  moment(room) {
    let removed = 0;
    for (const [begin, end, short] of this.breaks) {
      if (room <= begin - removed) break;
      if (room < begin - removed + short) return begin + (room - begin + removed) * (end - begin) / short;
      removed += end - begin - short;
    }
    return room + removed;
  }

  set(begin, end) {
    this.setRoom(this.room(begin), this.room(end));
  }

  setRoom(from, to) {
    const length = Math.min(Math.max(to - from, this.least), this.length);
    this.from = Math.min(Math.max(from, 0), this.length - length);
    this.to = this.from + length;
    this.isWhole = length >= this.length;
    [this.begin, this.end] = this.isWhole ? [0, this.elapsed] : [this.moment(this.from), this.moment(this.to)];
    for (const listener of this.listeners) listener();
  }

  zoom(factor, at = 0.5) {
    const length = this.to - this.from, next = Math.min(Math.max(length * factor, this.least), this.length);
    const from = this.from + (length - next) * at;
    this.setRoom(from, from + next);
  }

  pan(share) {
    const length = this.to - this.from, from = Math.min(Math.max(this.from + length * share, 0), this.length - length);
    this.setRoom(from, from + length);
  }

  /** Bring a moment into view. */
  show(moment) {
    if (moment >= this.begin && moment <= this.end) return;
    const half = (this.to - this.from) / 2, room = this.room(moment);
    this.setRoom(room - half, room + half);
  }
}

/** Distances between the marks of an axis that people can read. */
function tickDistance(length, most, unit) {
  const least = length / most;
  const clock = unit === "s" ? [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400] : [];
  const fine = 10 ** Math.floor(Math.log10(least));
  const found = [1, 2, 5, 10].map((times) => times * fine).find((one) => one >= least * 0.999);
  if (unit === "s" && least > 30) return clock.find((one) => one >= least) || Math.ceil(least / 86400) * 86400;
  if (unit === "s" && found > 10) return least <= 15 ? 15 : 30;
  return unit === "s" ? found : Math.max(found, 1);
}

class Timeline {
  constructor(section, axis, side, run, period, shows, choose) {
    Object.assign(this, {section, axis, side, run, period, shows, choose});
    this.box = section.querySelector(".lanes");
    this.svg = this.box.querySelector("svg");
    this.profile = section.querySelector(".profile");
    this.loads = new Map();
    this.opened = new Set();
    this.said = section.querySelector(".drawn");
    this.svg.setAttribute("paint-order", "stroke");
    this.group = this.svg.appendChild(document.createElementNS(SVG, "g"));
    this.cursor = this.svg.appendChild(document.createElementNS(SVG, "g"));
    this.grain = 1;
    this.chosen = -1;
    this.pointers = new Map();
    period.listeners.push(() => this.plan());
    this.box.addEventListener("scroll", () => this.plan());
    this.box.addEventListener("wheel", (event) => this.wheel(event), {passive: false});
    this.box.addEventListener("pointerdown", (event) => this.press(event));
    this.box.addEventListener("pointermove", (event) => this.drag(event));
    for (const name of ["pointerup", "pointercancel"]) this.box.addEventListener(name, (event) => this.release(event));
    this.box.addEventListener("dblclick", (event) => period.zoom(1 / 3, this.share(event)));
    new ResizeObserver(() => {
      if (this.box.clientWidth !== this.width || this.box.clientHeight !== this.height) this.plan();
    }).observe(this.box);
    this.measure();
    this.plan();
  }

  /** Find out how much room there is, and which lanes are in view. */
  measure() {
    this.width = Math.max(this.box.clientWidth, 200);
    this.left = this.width < 600 ? 96 : 190;
    this.arrange();
    this.height = this.box.clientHeight;
    this.first = Math.floor(this.box.scrollTop / LANE);
    this.last = Math.min(this.rows.length, Math.ceil((this.box.scrollTop + this.height) / LANE));
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => this.draw());
  }

  get scale() {
    return (this.width - this.left - 8) / (this.period.to - this.period.from);
  }

  x(moment) {
    return this.left + (this.period.room(moment) - this.period.from) * this.scale;
  }

  moment(x) {
    return this.period.moment(this.period.from + (x - this.left) / this.scale);
  }

  /**
   * Give each agent its lane, or that of its group; an agent that is not shown has none: -1.
   *
   * Where only those are wanted that are there in the period, the others are not shown. Of a group that is not open,
   * the agent of the chosen event has a lane below that of the group.
   */
  arrange() {
    const {run, period, shows, opened} = this, groups = new Map(), rows = [];
    run.names.forEach((_, agent) => {
      if (shows.present && (run.begins[agent] > period.end || run.ends[agent] < period.begin)) return;
      const number = shows.groups ? run.group[agent] : -1, group = groups.get(number);
      if (group) group.agents.push(agent);
      else rows.push({agents: [agent], number});
      if (number >= 0 && !group) groups.set(number, rows.at(-1));
    });
    const chosen = this.chosen < 0 ? -1 : run.agent[this.chosen];
    this.rows = rows.flatMap((row) => {
      if (row.agents.length < 2) return [row];
      const own = opened.has(row.number) ? row.agents : row.agents.filter((agent) => agent === chosen);
      return [{...row, isGroup: true}, ...own.map((agent) => ({agents: [agent], number: row.number, isMember: true}))];
    });
    this.lane = new Int32Array(run.names.length).fill(-1);
    this.rows.forEach((row, lane) => row.agents.forEach((agent) => (this.lane[agent] = lane)));
    const height = this.rows.length * LANE;
    if (this.svg.getAttribute("height") !== String(height)) this.svg.setAttribute("height", height);
  }

  load(key, agents) {
    if (!this.loads.has(key)) this.loads.set(key, new Load(this.run, agents));
    return this.loads.get(key);
  }

  /** A lane in view; all above it are one, and all below it. */
  edge(lane) {
    return Math.min(Math.max(lane, this.first - 1), this.last);
  }

  draw() {
    this.planned = false;
    this.measure();
    let shapes, tally;
    const others = document.getElementsByTagName("*").length - this.group.childElementCount;
    const most = Math.max(MOST_ELEMENTS - others, LEAST_ELEMENTS);
    for (this.grain = Math.max(1, this.grain / 2); ; this.grain *= shapes.length > 3 * most ? 4 : 2) {
      tally = {events: 0, groups: 0, grouped: 0, inGroups: 0, arrows: 0, arrowShapes: 0};
      shapes = this.shapes(tally);
      if (shapes.length <= most || this.grain > this.width) break;
    }
    this.group.replaceChildren(...shapes.slice(0, most).map(element));
    if (this.axis) this.axis.replaceChildren(...this.ticks().map(element));
    this.drawProfile();
    this.drawCursor();
    for (const [svg, height] of [[this.svg, this.rows.length * LANE], [this.axis, AXIS], [this.profile, PROFILE]]) {
      if (svg) svg.setAttribute("viewBox", `0 0 ${this.width} ${height}`); // so that paper, which is narrower, has all of it
    }
    this.say(shapes.length, tally);
  }

  /** What is in view, as elements to draw: `[tag, class, attributes, text]`. */
  shapes(tally) {
    const found = [];
    for (let lane = this.first; lane < this.last; lane++) {
      if (this.rows[lane].isGroup) this.drawGroup(lane, found, tally); else this.drawLane(lane, found, tally);
    }
    this.drawBreaks(found);
    this.drawPath(found);
    this.drawArrows(found, tally);
    for (let lane = this.first; lane < this.last; lane++) this.drawMarks(lane, found, tally);
    return found;
  }

  label(lane, text, depth, name, found) {
    const indent = Math.min(depth * (this.left > 100 ? 12 : 6), this.left / 2);
    const most = Math.floor((this.left - indent - 12) / 7.2), cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
    found.push(["text", name, {x: 4 + indent, y: lane * LANE + LANE / 2 + 5}, cut]);
  }

  /** A group: how many of its agents are at work. */
  drawGroup(lane, found, tally) {
    const {run, period, opened} = this, {agents, number} = this.rows[lane], role = run.strings[run.role[agents[0]]];
    const sign = opened.has(number) ? "▾" : "▸";
    this.label(lane, `${sign} ${agents.length.toLocaleString("en")} × ${role || "agent"}`, run.depth[agents[0]], "name group", found);
    const {shapes, most} = this.load(number, agents).areas(this, (lane + 1) * LANE - 3, LANE - 6);
    found.push(...shapes);
    if (most >= 1.5 && this.left > 100) {
      found.push(["text", "peak", {x: this.left - 6, y: lane * LANE + LANE / 2 + 4}, `≤${Math.ceil(most - 1e-6)}`]);
    }
    for (const agent of agents) {
      const [from, to] = run.range(agent, period.begin, period.end);
      if (this.lane[agent] === lane) tally.inGroups += to - from;
    }
  }

  /** How many of all agents are at work, where that is shown. */
  drawProfile() {
    if (!this.profile) return;
    const all = this.load("all", this.run.names.map((_, agent) => agent)), bottom = PROFILE - 2;
    const {shapes, most} = all.areas(this, bottom, PROFILE - 6);
    const texts = [["text", "name top", {x: 4, y: 20}, "at work"],
      ["text", "name", {x: 4, y: 38}, `at most ${Math.ceil(most - 1e-6).toLocaleString("en")}`]];
    this.profile.replaceChildren(...[...shapes, ...texts].map(element));
  }
  /** Where the axis is broken: its edges, as zigzags. */
  drawBreaks(found) {
    const {period} = this, height = this.rows.length * LANE;
    for (const [begin, end] of period.breaks) {
      if (end <= period.begin || begin >= period.end) continue;
      const left = this.x(Math.max(begin, period.begin)), right = this.x(Math.min(end, period.end)), middle = (left + right) / 2;
      const zigzag = (x) => `M${x},0${"l3,6.5l-6,13l3,6.5".repeat(this.rows.length)}`;
      found.push(["rect", "break", {x: middle - 5, y: 0, width: 10, height}]);
      found.push(["path", "break", {d: `${zigzag(middle - 5)}${zigzag(middle + 5)}`}]);
    }
  }

  drawLane(lane, found, tally) {
    const {run, period, grain} = this, middle = lane * LANE + LANE / 2, row = this.rows[lane], [agent] = row.agents;
    const isChosen = this.chosen >= 0 && run.agent[this.chosen] === agent;
    const name = `name${run.depth[agent] ? "" : " top"}${isChosen ? " chosen" : ""}`;
    this.label(lane, run.names[agent], run.depth[agent] + (row.isMember ? 1 : 0), name, found);
    const [begin, end] = [Math.max(run.begins[agent], period.begin), Math.min(run.ends[agent], period.end)];
    if (end >= begin) found.push(["line", "life", {x1: this.x(begin), x2: this.x(end), y1: middle, y2: middle}]);
    this.drawWaits(lane, found);
    const groups = new Map(), columns = Math.ceil(this.width / grain) + 2;
    const [from, to] = run.range(agent, period.begin, period.end), own = run.lanes[agent];
    for (let at = from; at < to; at++) {
      const event = own[at], kind = run.kind(event);
      if (kind < 0 || run.end(event) < period.begin) continue;
      const left = this.x(Math.max(run.start[event], period.begin));
      const right = this.x(Math.min(run.end(event), period.end));
      const key = (Math.floor(left / grain) * columns + Math.floor(right / grain)) * KINDS.length + kind;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, {kind, left, right, number: 1});
      else {
        group.number++;
        if (left < group.left) group.left = left;
        if (right > group.right) group.right = right;
      }
    }
    const ordered = [...groups.values()].sort((one, other) => one.kind - other.kind);
    for (const {kind, left, right, number} of ordered) {
      const height = kind === 0 ? BAR : BAR - 4, width = Math.max(right - left, Math.max(1.5, grain > 1 ? grain - 0.5 : 0));
      const place = {x: left, y: middle - height / 2, width, height};
      found.push(["rect", `bar ${KINDS[kind]}`, kind === 3 ? {...place, fill: `url(#${this.side}-hatch)`} : place]);
      count(tally, number);
    }
  }

  drawWaits(lane, found) {
    const {run, period, grain} = this, y = lane * LANE + LANE / 2, {waits} = run;
    let reached = -Infinity;
    for (const wait of this.waitsOf(this.rows[lane].agents[0])) {
      if (waits.end[wait] < period.begin || waits.begin[wait] > period.end) continue;
      const left = this.x(Math.max(waits.begin[wait], period.begin)), right = this.x(Math.min(waits.end[wait], period.end));
      if (right - left < 2 || right < reached + grain) continue;
      found.push(["line", "wait", {x1: left, x2: right, y1: y, y2: y}]);
      reached = right;
    }
  }

  waitsOf(agent) {
    if (!this.waiting) {
      this.waiting = this.run.names.map(() => []);
      this.run.waits.agent.forEach((waiting, wait) => this.waiting[waiting].push(wait));
    }
    return this.waiting[agent];
  }

  /** The signs of a lane; of a group, only its errors. */
  drawMarks(lane, found, tally) {
    const {run, period} = this, middle = lane * LANE + LANE / 2, {agents, isGroup} = this.rows[lane], groups = new Map();
    const [first, last] = run.range(agents[0], period.begin, period.end);
    const grain = Math.max(this.grain, LEAST_MARK[last - first > MANY_MARKS ? 1 : 0]);
    for (const agent of agents) {
      if (this.lane[agent] !== lane) continue;
      const [from, to] = run.range(agent, period.begin, period.end);
      for (let at = from; at < to; at++) {
        const event = run.lanes[agent][at], start = run.start[event], isBar = run.kind(event) >= 0;
        const failed = run.statuses[run.status[event]] === "error";
        if (start < period.begin || ((isBar || isGroup) && !failed)) continue;
        const key = Math.floor((this.x(start) - this.left) / grain), group = groups.get(key), small = run.sign(event) === "•";
        const x = grain < LEAST_MARK[1] ? this.x(start) : this.left + (key + 0.5) * grain; // numbers of three digits fit
        if (group === undefined) groups.set(key, {event, failed, small, x, number: 1, bars: isBar ? 1 : 0});
        else {
          group.number++;
          group.bars += isBar ? 1 : 0;
          group.failed ||= failed;
          group.small &&= small;
        }
      }
    }
    for (const {event, failed, small, x, number, bars} of groups.values()) {
      if (isGroup) found.push(["rect", "fault", {x: x - 1, y: lane * LANE + 2, width: 2, height: 7}]);
      else if (number === 1) found.push(["text", failed ? "mark failed" : "mark", {x, y: middle + 4}, run.sign(event)]);
      else if (small) found.push(["text", "mark", {x, y: middle + 4}, "•"]);
      else {
        const text = number < 1000 ? String(number) : `${Math.floor(number / 1000)}k`;
        const width = 6 + 6.5 * text.length;
        found.push(["rect", failed ? "many failed" : "many", {x: x - width / 2, y: middle - 7, width, height: 14, rx: 7}]);
        found.push(["text", "count", {x, y: middle + 4}, text]);
      }
      if (!isGroup && number > bars) count(tally, number - bars); // the bars are counted already
    }
  }

  /** The critical path: a line below the bars on it, dashed in gaps, and between lanes where it goes to another. */
  drawPath(found) {
    const {run, period, grain} = this, {event: events, worked, gap} = run.critical;
    const reached = new Map(), lines = [], steps = new Set();
    let before = -1;
    for (let at = 0; at < events.length; at++) {
      const event = events[at], lane = this.lane[run.agent[event]], begin = run.start[event], end = begin + worked[at];
      const isSeen = lane >= this.first && lane < this.last && end >= period.begin && begin <= period.end;
      if (isSeen && worked[at] > 0) {
        const left = this.x(Math.max(begin, period.begin)), right = Math.max(this.x(Math.min(end, period.end)), left + 1.5);
        const last = reached.get(lane);
        if (last !== undefined && left <= last.right + grain) last.right = Math.max(last.right, right);
        else {
          const line = {left, right, lane};
          reached.set(lane, line);
          lines.push(line);
        }
      }
      const from = this.x(Math.max(begin - gap[at], period.begin)), until = this.x(Math.min(begin, period.end));
      if (lane >= this.first && lane < this.last && gap[at] > 0 && until - from >= 6) {
        const y = lane * LANE + LANE / 2 + BAR / 2 + 3;
        found.push(["line", "gap", {x1: from, x2: until, y1: y, y2: y}]);
      }
      const other = before < 0 ? -1 : this.lane[run.agent[before]];
      if (lane >= 0 && other >= 0 && other !== lane && begin >= period.begin && begin <= period.end) {
        const x = this.x(begin), from = this.edge(other), to = this.edge(lane);
        const key = `${Math.floor(x / Math.max(grain, 3))} ${from} ${to}`;
        if (from !== to && !steps.has(key)) {
          steps.add(key);
          const y1 = from * LANE + LANE / 2 + BAR / 2 + 3, y2 = to * LANE + LANE / 2 + BAR / 2 + 3;
          found.push(["line", "step", {x1: x, x2: x, y1, y2}]);
        }
      }
      before = event;
    }
    for (const {left, right, lane} of lines) {
      const y = lane * LANE + LANE / 2 + BAR / 2 + 1.5;
      found.push(["rect", "critical", {x: left, y, width: right - left, height: 3}]);
    }
  }

  /** Arrows between lanes; where there are too many to follow, only those of the chosen event. */
  drawArrows(found, tally) {
    const {run, period, shows} = this, {event: events, agent, arrival} = run.arrows, drawn = new Map();
    for (let at = 0; at < events.length; at++) {
      const event = events[at], kind = run.types[run.type[event]], isChosen = event === this.chosen;
      if (kind === "message" && !shows.messages && !isChosen) continue;
      if (arrival[at] < period.begin || run.start[event] > period.end) continue;
      const from = this.edge(this.lane[run.agent[event]]), to = this.edge(this.lane[agent[at]]);
      if (from === to || this.lane[run.agent[event]] < 0 || this.lane[agent[at]] < 0) continue;
      const x1 = this.x(run.start[event]), x2 = this.x(arrival[at]);
      tally.arrows++;
      const key = isChosen ? `chosen ${at}` : `${Math.floor(x1 / this.grain)} ${Math.floor(x2 / this.grain)} ${from} ${to} ${kind}`;
      if (!drawn.has(key)) drawn.set(key, {x1, x2, from, to, kind, isChosen});
    }
    const all = [...drawn.values()], shown = all.length > MOST_ARROWS ? all.filter((arrow) => arrow.isChosen) : all;
    tally.arrowShapes = all.length > MOST_ARROWS ? shown.length : tally.arrows;
    for (const {x1, x2, from, to, kind, isChosen} of shown) {
      const down = to > from ? 1 : -1;
      const y1 = from * LANE + LANE / 2, y2 = to * LANE + LANE / 2 - down * (BAR / 2 + 1);
      const [a, b] = clipped(x1, y1, x2, y2, this.left - 4, this.width);
      const place = {x1: a[0], y1: a[1], x2: b[0], y2: b[1], "marker-end": `url(#${this.side}-head)`};
      found.push(["line", `arrow ${kind}${isChosen ? " chosen" : ""}`, place]);
    }
  }

  ticks() {
    const {period, run} = this, most = Math.max(2, Math.min(10, Math.floor((this.width - this.left) / 90)));
    const distance = tickDistance(period.to - period.from, most, run.unit), found = [];
    for (let n = Math.ceil(period.begin / distance - 1e-9); n * distance <= period.end && found.length < 24; n++) {
      const broken = period.breaks.find(([begin, end]) => n * distance > begin && n * distance < end);
      if (broken) n = Math.ceil(broken[1] / distance);
      if (n * distance > period.end) break;
      const x = this.x(n * distance);
      found.push(["line", "tick", {x1: x, x2: x, y1: AXIS - 6, y2: AXIS}]);
      const anchor = x > this.width - 60 ? "end" : "start";
      found.push(["text", "tick", {x: anchor === "end" ? x - 3 : x + 3, y: AXIS - 8, "text-anchor": anchor},
                  clock(n * distance, distance, run.unit)]);
    }
    for (const [begin, end] of period.breaks) {
      const x = this.x((begin + end) / 2);
      if (x > this.left && x < this.width - 8) found.push(["text", "break", {x, y: AXIS - 1, "text-anchor": "middle"}, "≈"]);
    }
    return found;
  }

  drawCursor() {
    const {run, chosen} = this;
    if (chosen < 0) return;
    const x = this.x(run.start[chosen]), lane = this.lane[run.agent[chosen]];
    const inside = lane >= 0 && x >= this.left - 1 && x <= this.width;
    const right = Math.min(this.x(run.end(chosen)), this.width);
    const height = this.rows.length * LANE;
    const box = {x: x - 3, y: lane * LANE + 2, width: Math.max(right - x, 0) + 6, height: LANE - 4, rx: 3};
    this.cursor.replaceChildren(...(inside ? [
      element(["line", "cursor", {x1: x, x2: x, y1: 0, y2: height}]), element(["rect", "cursor", box]),
    ] : []));
  }

  say(number, {events, groups, grouped, inGroups, arrows, arrowShapes}) {
    const {run, period} = this, parts = [`Shown: ${counted(events + inGroups, "event")}`];
    if (inGroups) parts.push(`, ${inGroups.toLocaleString("en")} of them as profiles of groups`);
    parts.push(grouped ? `, ${grouped.toLocaleString("en")} of them in ${counted(groups, "group")} of neighbours that are `
      + `too close to draw apart; zoom in to see each.` : inGroups ? "." : ", each by itself.");
    if (arrowShapes < arrows) parts.push(` Of ${counted(arrows, "arrow")}, only those of the chosen event are drawn; zoom in to see more.`);
    const lanes = this.last - this.first, all = this.rows.length.toLocaleString("en");
    if (lanes < this.rows.length) {
      parts.push(` Lanes ${(this.first + 1).toLocaleString("en")} to ${this.last.toLocaleString("en")} of ${all}; scroll for the others.`);
    }
    for (const [begin, end] of period.breaks) {
      if (end <= period.begin || begin >= period.end) continue;
      parts.push(` The time axis is broken at ≈: ${duration(end - begin, run.unit)} in which nothing but open calls went on.`);
    }
    const [begin, end] = [period.begin, period.end].map((moment) => clock(moment, (period.end - period.begin) / 100, run.unit));
    parts.push(period.isWhole ? "" : ` From ${begin} to ${end}.`);
    const text = parts.join("");
    if (this.said.textContent !== text) this.said.textContent = text;
  }

  /** Mark an event, and bring it into view. */
  mark(event) {
    this.chosen = event;
    this.period.show(this.run.start[event]);
    this.plan();
    this.arrange();
    const top = this.lane[this.run.agent[event]] * LANE;
    if (top < this.box.scrollTop) this.box.scrollTop = top;
    const below = top + LANE - this.box.clientHeight;
    if (below > this.box.scrollTop) this.box.scrollTop = below;
    this.drawCursor();
  }

  share(event) {
    const x = event.clientX - this.box.getBoundingClientRect().left;
    return Math.min(Math.max((x - this.left) / (this.width - this.left - 8), 0), 1);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.period.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.share(event));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.period.pan((event.deltaX || event.deltaY) / this.width);
    }
  }

  press(event) {
    if (event.button) return;
    this.pointers.set(event.pointerId, event.clientX);
    this.moved = 0;
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (before === undefined) return;
    const others = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
    const move = event.clientX - before;
    this.moved += Math.abs(move);
    if (this.moved >= 4 && !this.box.hasPointerCapture(event.pointerId)) this.box.setPointerCapture(event.pointerId);
    if (others.length === 1) {
      const distance = Math.abs(before - others[0]), next = Math.abs(event.clientX - others[0]);
      if (distance > 8 && next > 8) this.period.zoom(distance / next, this.share(event));
    } else if (!others.length && this.moved >= 4) this.period.pan(-move / (this.width - this.left - 8));
    this.pointers.set(event.pointerId, event.clientX);
  }

  release(event) {
    const isClick = event.type === "pointerup" && this.pointers.size === 1 && this.moved < 4;
    this.pointers.delete(event.pointerId);
    if (!isClick) return;
    const frame = this.svg.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
    const row = this.rows[Math.floor(y / LANE)], found = this.at(x, y);
    if (found >= 0) this.choose(found);
    else if (row && row.isGroup && x < this.left) this.toggle(row.number);
  }

  /** Open a group, so that each of its agents has a lane, or close it. */
  toggle(number) {
    if (!this.opened.delete(number)) this.opened.add(number);
    this.plan();
    this.changed();
  }

  /** The event at a place of the drawing: one that goes on there, the latest to begin, else the nearest; -1 for none. */
  at(x, y) {
    const {run} = this, row = this.rows[Math.floor(y / LANE)];
    if (x < this.left - 6 || row === undefined) return -1;
    const moment = this.moment(x), near = Math.max(this.moment(x + 8) - moment, moment - this.moment(x - 8));
    let best = -1, nearest = Infinity;
    for (const agent of row.agents) {
      const [from, to] = run.range(agent, moment - near, moment + near);
      for (let at = from; at < to; at++) {
        const event = run.lanes[agent][at], isBar = run.kind(event) >= 0;
        const ends = isBar ? run.end(event) : run.start[event];
        const away = Math.max(run.start[event] - moment, moment - ends, 0) + (isBar ? near / 4 : 0);
        if (away <= nearest && away <= near) [best, nearest] = [event, away];
      }
    }
    return best;
  }
}

/** Add a shape that stands for so many events to what is said of the drawing. */
function count(tally, number) {
  tally.events += number;
  if (number > 1) {
    tally.groups++;
    tally.grouped += number;
  }
}

/** A line cut off at two edges, as its two ends. */
function clipped(x1, y1, x2, y2, left, right) {
  const at = (x) => [x, x2 === x1 ? y1 : y1 + (y2 - y1) * (x - x1) / (x2 - x1)];
  const end = (x, y) => x < left ? at(left) : x > right ? at(right) : [x, y];
  return [end(x1, y1), end(x2, y2)];
}

function element([tag, name, attributes, text]) {
  const made = document.createElementNS(SVG, tag);
  made.setAttribute("class", name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, typeof value === "number" ? Math.round(value * 100) / 100 : value);
  }
  if (text !== undefined) made.textContent = text;
  return made;
}
