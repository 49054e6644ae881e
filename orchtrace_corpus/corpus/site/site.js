// What makes the pages answer: two fields crossed at will on the start page; filters, search, sorting, columns and
// export on the page of papers. Data comes from inert JSON in the page, and reaches it as text, never as markup.
"use strict";

document.documentElement.classList.add("scripted"); // before anything is painted, so that nothing jumps

(() => {
  const ABSENT = "";

  const byId = (id) => document.getElementById(id);

  // An element with attributes and children; texts become text nodes.
  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const encode = (text) => encodeURIComponent(text).replace(/%2C/g, ",").replace(/'/g, "%27");

  const papersAddress = (pairs) =>
    "papers.html#" + pairs.map(([name, value]) => encode(name) + "=" + encodeURIComponent(value).replace(/'/g, "%27")).join("&");

  // The pairs of a fragment, in their order; what is no well-formed pair is left out.
  function readFragment() {
    const pairs = [];
    for (const part of location.hash.slice(1).split("&")) {
      const at = part.indexOf("=");
      if (at < 0) continue;
      try {
        pairs.push([decodeURIComponent(part.slice(0, at)), decodeURIComponent(part.slice(at + 1))]);
      } catch (error) {
        if (!(error instanceof URIError)) throw error;
      }
    }
    return pairs;
  }

  // Put a state into the address: as a further one, which "back" leaves, or instead of the present one.
  function writeFragment(pairs, further) {
    const wanted = pairs.length ? "#" + pairs.map(([name, value]) => encode(name) + "=" + encode(value)).join("&") : "";
    if (wanted === location.hash) return;
    const address = wanted || location.pathname + location.search;
    if (further) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }

  const count = (number, noun) => number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");

  const isAside = (id) => id === ABSENT || id === "NA";

  const asList = (given) => (typeof given === "number" ? [given] : given);

  // ---- Two fields crossed -------------------------------------------------------------------------------------------

  function startMatrix(data) {
    const rowChoice = byId("matrix-rows");
    const columnChoice = byId("matrix-columns");
    const table = byId("matrix-table");
    const names = data.fields.map((field) => field.name);
    const chosen = [rowChoice.selectedIndex, columnChoice.selectedIndex];

    function draw(rows, columns) {
      const one = data.fields[rows];
      const other = data.fields[columns];
      const counts = one.values.map(() => new Array(other.values.length).fill(0));
      one.column.forEach((given, paper) => {
        for (const row of asList(given)) for (const column of asList(other.column[paper])) counts[row][column] += 1;
      });
      const isBeside = (row, column) => isAside(one.values[row][0]) || isAside(other.values[column][0]);
      const most = Math.max(0, ...counts.flatMap((numbers, row) => numbers.filter((_, column) => !isBeside(row, column))));
      const impossible = new Set((data.impossible[one.name + " " + other.name] || []).map((pair) => pair.join(" ")));
      const cell = (row, column) => {
        const number = counts[row][column];
        const pair = [one.values[row][0], other.values[column][0]];
        if (number) {
          const address = papersAddress([[one.name, pair[0]], [other.name, pair[1]]]);
          const heat = isBeside(row, column) ? 0 : Math.ceil((4 * number) / most);
          return make("td", { class: "heat" + heat }, make("a", { href: address }, String(number)));
        }
        if (!impossible.has(pair.join(" "))) return make("td", { class: isBeside(row, column) ? "aside" : "empty" }, "0");
        return make("td", { class: "impossible" }, make("span", { class: "unseen" }, "cannot arise"));
      };
      const heading = (value, scope) => make("th", { scope, class: isAside(value[0]) && "aside" }, value[1]);
      table.tHead.replaceChildren(make("tr", {}, make("td"), ...other.values.map((value) => heading(value, "col"))));
      table.tBodies[0].replaceChildren(
        ...one.values.map((value, row) =>
          make("tr", {}, heading(value, "row"), ...other.values.map((_, column) => cell(row, column)))));
      byId("matrix-caption").textContent = one.label + " and " + other.label;
    }

    function show() {
      const asked = new Map(readFragment());
      const index = (name, otherwise) => Math.max(0, names.indexOf(asked.get(name) ?? names[otherwise]));
      rowChoice.selectedIndex = index("matrix-rows", chosen[0]);
      columnChoice.selectedIndex = index("matrix-columns", chosen[1]);
      draw(rowChoice.selectedIndex, columnChoice.selectedIndex);
    }

    function choose() {
      const pair = [names[rowChoice.selectedIndex], names[columnChoice.selectedIndex]];
      writeFragment([["matrix-rows", pair[0]], ["matrix-columns", pair[1]]], true);
      show();
    }

    byId("matrix-form").addEventListener("submit", (event) => event.preventDefault());
    rowChoice.addEventListener("change", choose);
    columnChoice.addEventListener("change", choose);
    byId("matrix-swap").addEventListener("click", () => {
      [rowChoice.selectedIndex, columnChoice.selectedIndex] = [columnChoice.selectedIndex, rowChoice.selectedIndex];
      choose();
    });
    addEventListener("popstate", show);
    addEventListener("hashchange", show);
    if (readFragment().some(([name]) => name.startsWith("matrix-"))) show();
  }

  // ---- The papers ---------------------------------------------------------------------------------------------------

  const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

  // What forms of a word have in common, as `corpus search` has it: "stop" of "stopping".
  function stem(word, endings) {
    if (!/^[a-z]+$/.test(word)) return word;
    for (const [ending, rest] of endings) {
      if (!word.endsWith(ending) || word.endsWith("ss") || word.endsWith("eed")) continue;
      const kept = word.slice(0, word.length - ending.length) + rest;
      if (kept.length < 3 || !/[aeiouy]/.test(kept)) continue;
      word = kept.length > 3 && /([^lsz])\1$/.test(kept) ? kept.slice(0, -1) : kept;
      break;
    }
    return word.length > 3 && /[eiy]$/.test(word) ? word.slice(0, -1) : word;
  }

  const wordsOf = (text) => text.match(/[\p{L}\p{N}]+/gu) || [];

  // How many bits of a word are set: https://graphics.stanford.edu/~seander/bithacks.html#CountBitsSetParallel
  function bitsOf(word) {
    word -= (word >>> 1) & 0x55555555;
    word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
    return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }

  // Which papers pass: a bit for each paper, so that one step asks 32 of them.
  class Selection {
    constructor(data) {
      this.fields = data.fields;
      this.size = data.texts.key.length;
      this.words = Math.ceil(this.size / 32);
      this.having = data.fields.map((field) => {
        const sets = field.values.map(() => new Uint32Array(this.words));
        field.column.forEach((given, paper) => {
          for (const value of asList(given)) sets[value][paper >>> 5] |= 1 << (paper & 31);
        });
        return sets;
      });
      this.meanings = data.fields.map((field) => field.values.map((value) => value[2]));
      this.texts = data.words;
      this.endings = data.endings;
      this.stems = new Map();
      this.everything = new Uint32Array(this.words).fill(0xffffffff);
      if (this.size & 31) this.everything[this.words - 1] = 2 ** (this.size & 31) - 1;
      this.searched = new Map();
    }

    stem(word) {
      if (!this.stems.has(word)) this.stems.set(word, stem(word, this.endings));
      return this.stems.get(word);
    }

    // The papers that hold a word in any of its forms, or inside a longer word, in their own text or in that of a value.
    search(word) {
      const found = new Uint32Array(this.words);
      const root = this.stem(word);
      const isInside = word.length > 2 || !/^[a-z0-9]+$/.test(word);
      const holds = (text) => (isInside && text.includes(word)) ||
        (text.includes(root) && wordsOf(text).some((one) => this.stem(one) === root));
      this.meanings.forEach((values, field) => values.forEach((text, value) => {
        if (holds(text)) this.having[field][value].forEach((bits, at) => { found[at] |= bits; });
      }));
      this.texts.forEach((text, paper) => { if (holds(text)) found[paper >>> 5] |= 1 << (paper & 31); });
      return found;
    }

    // The papers that pass: any of the chosen values in each field, every word. `counts` are live: how many papers a
    // value would leave if its field had no other filter.
    pass(chosen, text) {
      const words = wordsOf(folded(text));
      const base = this.everything.slice();
      for (const word of words) {
        if (!this.searched.has(word)) {
          if (this.searched.size > 64) this.searched.clear();
          this.searched.set(word, this.search(word));
        }
        this.searched.get(word).forEach((bits, at) => { base[at] &= bits; });
      }
      const unions = new Map();
      chosen.forEach((values, field) => {
        if (!values.size) return;
        const union = new Uint32Array(this.words);
        for (const value of values) {
          const bits = this.having[field][value];
          for (let at = 0; at < union.length; at++) union[at] |= bits[at];
        }
        unions.set(field, union);
      });
      const without = (left) => {
        const passing = base.slice();
        for (const [field, union] of unions) {
          if (field !== left) for (let at = 0; at < passing.length; at++) passing[at] &= union[at];
        }
        return passing;
      };
      const all = without(-1);
      const counts = this.having.map((sets, field) => {
        const passing = unions.has(field) ? without(field) : all;
        return sets.map((bits) => {
          let total = 0;
          for (let at = 0; at < bits.length; at++) {
            const both = bits[at] & passing[at];
            if (both) total += bitsOf(both);
          }
          return total;
        });
      });
      return { bits: all, counts };
    }
  }

  const has = (bits, paper) => (bits[paper >>> 5] >>> (paper & 31)) & 1;

  function startPapers(data) {
    const papers = data.texts;
    const size = papers.key.length;
    const fields = data.fields;
    const columns = data.columns.map(([name, label, indices, isList, isLevels, isShown]) =>
      ({ name, label, indices, isList, isLevels, isShown }));
    const fieldNumbers = new Map(fields.map((field, index) => [field.name, index]));
    const valueNumbers = fields.map((field) => new Map(field.values.map((value, index) => [value[0], index])));
    const selection = new Selection(data);
    const table = byId("papers");
    const boxes = [...document.querySelectorAll("#facets input")];
    const shownCounts = fields.map((field) =>
      [...document.querySelectorAll("#facets [data-field]")].find((one) => one.dataset.field === field.name));
    const orders = new Map();
    let state = readState();
    const counted = (number, word = "") =>
      number.toLocaleString("en") + " " + word + data.noun[number === 1 ? 0 : 1];
    let found = [];
    let limit = data.rows;

    // ---- The address holds everything that a reader can choose ----

    function readState() {
      const read = { chosen: fields.map(() => new Set()), text: "", sort: "", columns: null };
      for (const [name, value] of readFragment()) {
        const field = fieldNumbers.get(name);
        if (field !== undefined) {
          for (const id of value.split(",")) {
            const known = valueNumbers[field].get(id);
            if (known !== undefined) read.chosen[field].add(known);
          }
        } else if (name === "search-text") read.text = value;
        else if (name === "sort-by" && columnOf(value.replace(/^-/, ""))) read.sort = value;
        else if (name === "show-columns") read.columns = value.split(",").filter((one) => one && columnOf(one));
      }
      return read;
    }

    function columnOf(name) {
      return name === "title" ? { name: "title", indices: [] } : columns.find((column) => column.name === name);
    }

    function statePairs() {
      const pairs = filterPairs();
      if (state.text) pairs.push(["search-text", state.text]);
      if (state.sort) pairs.push(["sort-by", state.sort]);
      if (state.columns) pairs.push(["show-columns", state.columns.join(",")]);
      return pairs;
    }

    function filterPairs() {
      return fields.flatMap((field, index) => {
        const ids = [...state.chosen[index]].sort((a, b) => a - b).map((value) => field.values[value][0]);
        return ids.length ? [[field.name, ids.join(",")]] : [];
      });
    }

    function change(further) {
      writeFragment(statePairs(), further);
      limit = data.rows;
      show();
    }

    // ---- Order ----

    // The papers in the order of a column: terms as the taxonomy has them, numbers as numbers, text whatever the case;
    // papers without a value last.
    function order(sort) {
      if (!sort) return papers.key.map((_, paper) => paper);
      if (orders.has(sort)) return orders.get(sort);
      const column = columnOf(sort.replace(/^-/, ""));
      const sign = sort.startsWith("-") ? -1 : 1;
      const keys = papers.key.map((_, paper) => sortKey(column, paper));
      const valued = keys.map((_, paper) => paper).filter((paper) => keys[paper].length);
      const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      valued.sort((a, b) => {
        for (let at = 0; at < Math.min(keys[a].length, keys[b].length); at++) {
          const one = compare(keys[a][at], keys[b][at]);
          if (one) return sign * one;
        }
        return sign * (keys[a].length - keys[b].length) || a - b;
      });
      const all = [...valued, ...keys.map((_, paper) => paper).filter((paper) => !keys[paper].length)];
      orders.set(sort, all);
      return all;
    }

    function sortKey(column, paper) {
      if (!column.indices.length) {
        const text = papers[column.name][paper];
        if (typeof text === "number") return [text];
        return (Array.isArray(text) ? text : text ? [text] : []).map((one) => one.toLowerCase());
      }
      if (column.isLevels) {
        return column.indices.flatMap((index, at) => (valueIds(index, paper)[0] === ABSENT ? [] : [at]));
      }
      const values = asList(fields[column.indices[0]].column[paper]);
      return values.filter((value) => fields[column.indices[0]].values[value][0] !== ABSENT);
    }

    const valueIds = (index, paper) => asList(fields[index].column[paper]).map((value) => fields[index].values[value][0]);

    // ---- The table ----

    function chosenColumns() {
      return state.columns ? columns.filter((one) => state.columns.includes(one.name)) : columns.filter((one) => one.isShown);
    }

    function labels(column, paper) {
      const contested = data.contested[paper] || [];
      const told = [];
      for (const index of column.indices) {
        for (const value of asList(fields[index].column[paper])) {
          const [id, label] = fields[index].values[value];
          if (column.isLevels ? isAside(id) : id === ABSENT) continue;
          told.push([column.isLevels ? fields[index].label + " " + label : label, contested.includes(index) && fields[index].name, isAside(id)]);
        }
      }
      return told;
    }

    const pageOf = (paper) => "papers/" + encodeURIComponent(papers.key[paper]) + ".html";

    const isAddress = (text) => typeof text === "string" && /^https?:\/\//i.test(text);

    function cell(column, paper) {
      const made = make("td", { role: "cell", "data-label": column.label });
      if (column.indices.length) {
        for (const [text, contested, saysNothing] of labels(column, paper)) {
          const tag = make("span", { class: saysNothing ? "tag aside" : "tag" }, text);
          if (contested) {
            const dispute = pageOf(paper) + "#dispute-" + contested;
            tag.append(make("a", { class: "mark", href: dispute, title: "Who reads what, and why" }, "contested"));
          }
          made.append(tag);
        }
      } else if (isAddress(papers[column.name][paper])) {
        const name = column.label + " of " + papers.title[paper];
        const address = papers[column.name][paper];
        made.append(make("a", { href: address, rel: "noreferrer", "aria-label": name }, column.label.toLowerCase()));
      } else {
        const text = papers[column.name][paper];
        made.append(Array.isArray(text) ? text.join("; ") : String(text));
      }
      return made;
    }

    function byline(names) {
      if (!names.includes("others") && names.length <= 3) return names.join("; ");
      return names.filter((name) => name !== "others").slice(0, 2).join("; ") + " et al.";
    }

    function row(paper, shown) {
      const link = make("a", { href: pageOf(paper) }, papers.title[paper]);
      const title = make("th", { scope: "row", role: "rowheader" }, link,
        make("span", { class: "byline" }, byline(papers.authors[paper])));
      return make("tr", { role: "row" }, title, ...shown.map((column) => cell(column, paper)));
    }

    function heading(name, label) {
      const sorted = state.sort === name ? "ascending" : state.sort === "-" + name ? "descending" : null;
      const arrow = sorted ? make("span", { "aria-hidden": "true" }, sorted === "ascending" ? " ↑" : " ↓") : "";
      const button = make("button", { type: "button", "data-sort": name, title: "Sort by " + label }, label, arrow);
      return make("th", { scope: "col", role: "columnheader", "aria-sort": sorted }, button);
    }

    function show() {
      const passing = selection.pass(state.chosen, state.text);
      found = order(state.sort).filter((paper) => has(passing.bits, paper));
      const shown = chosenColumns();
      const focused = document.activeElement && document.activeElement.dataset.sort;
      table.tHead.rows[0].replaceChildren(heading("title", data.noun[0][0].toUpperCase() + data.noun[0].slice(1)), ...shown.map((one) => heading(one.name, one.label)));
      if (focused) table.tHead.querySelector('[data-sort="' + focused + '"]')?.focus();
      table.tBodies[0].replaceChildren(...found.slice(0, limit).map((paper) => row(paper, shown)));
      byId("more").hidden = found.length <= limit;
      byId("more").textContent = "Show " + counted(Math.min(data.rows, found.length - limit), "more ");
      byId("found").textContent =
        (found.length === size ? "" : found.length.toLocaleString("en") + " of ") + counted(size);
      showFilters(passing.counts);
      byId("command").textContent = command();
      byId("command-differs").hidden = !wordsOf(state.text).length;
    }

    function showFilters(counts) {
      for (const box of boxes) {
        const field = fieldNumbers.get(box.name);
        box.checked = state.chosen[field].has(valueNumbers[field].get(box.value));
      }
      shownCounts.forEach((section, field) => {
        if (state.chosen[field].size) section.open = true;
        section.querySelectorAll(".count").forEach((shown, value) => {
          shown.textContent = String(counts[field][value]);
          shown.parentElement.classList.toggle("none", !counts[field][value]);
        });
      });
      const items = fields.flatMap((field, index) =>
        [...state.chosen[index]].sort((a, b) => a - b).map((value) => {
          const name = field.label + ": " + field.values[value][1];
          const remove = make("button", { type: "button", "data-field": index, "data-value": value,
            "aria-label": "Remove the filter " + name }, name + " ×");
          return make("li", {}, remove);
        }));
      byId("active").replaceChildren(...items);
      if (byId("search").value !== state.text) byId("search").value = state.text;
      const shown = new Set(chosenColumns().map((column) => column.name));
      document.querySelectorAll('#column-menu input').forEach((box) => { box.checked = shown.has(box.value); });
    }

    // The filters as the command line has them; a value with a comma or a quote cannot occur among terms.
    function command() {
      const parts = filterPairs().map(([name, value]) => {
        const filter = name !== "code" ? name + "=" + value : value === "yes" ? "code!=" : value === "no" ? "code=" : "";
        return filter && " --where " + (/^[\w=!,.-]+$/.test(filter) ? filter : "'" + filter.replace(/'/g, "'\\''") + "'");
      });
      const sort = state.sort ? " --sort " + state.sort : "";
      const words = wordsOf(state.text).join(" ");
      return (words ? "corpus search " + words : "corpus list") + parts.join("") + sort;
    }

    // ---- Export of what is found ----

    function cellValue(column, paper) {
      if (column.isLevels) {
        return column.indices.flatMap((index) => {
          const id = valueIds(index, paper)[0];
          return id === ABSENT ? [] : [fields[index].name + "=" + id];
        });
      }
      if (column.indices.length) {
        const ids = valueIds(column.indices[0], paper).filter((id) => id !== ABSENT);
        if (!ids.length) return null;
        return column.name === "year" ? Number(ids[0]) : column.isList ? ids : ids[0];
      }
      const text = papers[column.name][paper];
      return typeof text === "number" || text.length ? text : null;
    }

    const exportColumns = () => [
      { name: "key", indices: [] }, { name: "title", indices: [] }, ...chosenColumns()];

    function csvCell(value) {
      if (typeof value === "number") return String(value);
      let text = value === null ? "" : Array.isArray(value) ? value.join(" ; ") : value;
      if (/^'*[=+\-@\t\r]/.test(text)) text = "'" + text; // else a spreadsheet would take it for a formula
      return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
    }

    const writers = {
      csv() {
        const chosen = exportColumns();
        const rows = found.map((paper) => chosen.map((column) => csvCell(cellValue(column, paper))));
        return [chosen.map((column) => column.name), ...rows].map((cells) => cells.join(",") + "\n").join("");
      },
      json() {
        const chosen = exportColumns();
        const rows = found.map((paper) => Object.fromEntries(chosen.map((one) => [one.name, cellValue(one, paper)])));
        return JSON.stringify({ schema: "orchtrace-corpus/list", version: 1, papers: rows }, null, 2) + "\n";
      },
      bibtex: () => found.map((paper) => window.corpusEntries[paper]).join("\n"),
    };

    function save(name, text) {
      const address = URL.createObjectURL(new Blob([text], { type: "text/plain;charset=utf-8" }));
      make("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
    }

    function exportAs(form) {
      const write = () => save("papers." + { bibtex: "bib", csv: "csv", json: "json" }[form], writers[form]());
      if (form !== "bibtex" || window.corpusEntries) return write();
      // The entries are as large as all the rest, so they come when they are asked for.
      const script = make("script", { src: "bibtex.js" });
      script.addEventListener("load", write);
      document.head.append(script);
    }

    // ---- What readers do ----

    byId("facets").addEventListener("submit", (event) => event.preventDefault());
    byId("facets").addEventListener("change", (event) => {
      const field = fieldNumbers.get(event.target.name);
      const value = valueNumbers[field].get(event.target.value);
      if (event.target.checked) state.chosen[field].add(value);
      else state.chosen[field].delete(value);
      change(true);
    });
    byId("active").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      state.chosen[Number(button.dataset.field)].delete(Number(button.dataset.value));
      change(true);
      (byId("active").querySelector("button") || byId("search")).focus();
    });
    byId("search").addEventListener("input", (event) => {
      const isFirst = !state.text;
      state.text = event.target.value;
      change(isFirst); // one step back undoes a whole search, not a letter
    });
    byId("clear").addEventListener("click", () => {
      state = { chosen: fields.map(() => new Set()), text: "", sort: "", columns: null };
      change(true);
    });
    byId("column-menu").addEventListener("change", () => {
      const boxes = [...document.querySelectorAll("#column-menu input")];
      const names = boxes.filter((box) => box.checked).map((box) => box.value);
      const usual = columns.filter((column) => column.isShown).map((column) => column.name);
      state.columns = names.join(",") === usual.join(",") ? null : names;
      change(true);
    });
    table.tHead.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const name = button.dataset.sort;
      state.sort = state.sort === name ? "-" + name : state.sort === "-" + name ? "" : name;
      change(true);
    });
    byId("export-menu").addEventListener("click", (event) => {
      if (event.target.dataset.export) exportAs(event.target.dataset.export);
    });
    byId("more").addEventListener("click", () => {
      const before = limit;
      limit += data.rows;
      show();
      table.tBodies[0].rows[before].querySelector("a").focus();
    });
    for (const menu of document.querySelectorAll(".menu")) {
      menu.addEventListener("keydown", (event) => {
        if (event.key === "Escape" && menu.open) {
          menu.open = false;
          menu.querySelector("summary").focus();
        }
      });
    }
    const follow = () => { state = readState(); limit = data.rows; show(); };
    addEventListener("popstate", follow);
    addEventListener("hashchange", follow);
    if (matchMedia("(max-width: 69.99rem)").matches) byId("facets-all").open = false;
    window.corpusPapers = { selection, readState, found: () => found }; // for tests and for the console
    show();
  }

  addEventListener("DOMContentLoaded", () => {
    const crossed = byId("matrix-data");
    const listed = byId("papers-data");
    if (crossed) startMatrix(JSON.parse(crossed.textContent));
    if (listed) startPapers(JSON.parse(listed.textContent));
    // A link to a folded part unfolds it.
    const unfold = () => {
      const named = location.hash.length > 1 && !location.hash.includes("=") && byId(decodeURI(location.hash.slice(1)));
      if (named && named.tagName === "DETAILS") named.open = true;
    };
    addEventListener("hashchange", unfold);
    unfold();
  });
})();
