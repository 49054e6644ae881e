// The list of papers and that of candidates: filters with live counts, search, sorting, columns and export. The fields of
// all papers come first, in one file, their texts after them in parts, so that a long list answers before it is read.
"use strict";

(() => {
  const { withData, withGaps, gapAddress, ABSENT, byId, make, encode, readFragment, writeFragment, isAside, asList, copy } = window.corpusPage;

  const folded = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/ß/g, "ss");

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
      this.size = data.size;
      this.words = Math.ceil(this.size / 32);
      this.having = data.fields.map((field) => {
        const sets = field.values.map(() => new Uint32Array(this.words));
        field.column.forEach((given, paper) => {
          for (const value of asList(given)) sets[value][paper >>> 5] |= 1 << (paper & 31);
        });
        return sets;
      });
      this.meanings = data.fields.map((field) => field.values.map((value) => value[2]));
      this.texts = new Array(data.size).fill("");
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
    const fields = data.fields;
    const columns = data.columns.map(([name, label, indices, isList, isLevels, isShown]) =>
      ({ name, label, indices, isList, isLevels, isShown }));
    const fieldNumbers = new Map(fields.map((field, index) => [field.name, index]));
    const valueNumbers = fields.map((field) => new Map(field.values.map((value, index) => [value[0], index])));
    const textNumbers = new Map(data.names.map((name, index) => [name, index]));
    const selection = new Selection(data);
    const size = data.size;
    const everyone = Array.from({ length: size }, (_, paper) => paper);
    const table = byId("papers"); // candidates have none: they are shown and hidden as they stand in the page
    const items = table ? [] : [...document.querySelectorAll("#list > details")];
    const records = new Array(size);
    const text = (name, paper) => records[paper][textNumbers.get(name)];
    const boxes = [...document.querySelectorAll("#facets input")];
    const shownCounts = fields.map((field) =>
      [...document.querySelectorAll("#facets [data-field]")].find((one) => one.dataset.field === field.name));
    const orders = new Map();
    let state = readState();
    const counted = (number, word = "") =>
      number.toLocaleString("en") + " " + word + data.noun[number === 1 ? 0 : 1];
    let found = [];
    let limit = data.rows;
    let isDrawn = false; // until then the rows are those of the page as it came

    // ---- The texts, which come in parts ----

    const missing = new Set(Array.from({ length: data.parts }, (_, part) => part));
    const waiting = [];
    const isComplete = () => !missing.size;
    const partOf = (paper) => Math.floor(paper / data.part_size);

    // The last text of a record is what it is found by beside the others.
    window.corpusAdd = (part, added) => {
      added.forEach((record, index) => {
        const paper = part * data.part_size + index;
        records[paper] = record;
        selection.texts[paper] =
          folded(data.searched.map((at) => [record[at]].flat().join("\n")).join("\n")) + "\n" + record[record.length - 1];
      });
      missing.delete(part);
      selection.searched.clear();
    };

    // The next part: one that a row to be shown waits for, else the first.
    function readPart() {
      const asked = found.slice(0, limit).map(partOf).find((part) => missing.has(part));
      const part = asked ?? [...missing][0];
      if (part === undefined) {
        waiting.splice(0).forEach((act) => act());
        return;
      }
      const script = make("script", { src: data.file + "-" + (part + 1) + ".js" });
      script.addEventListener("load", () => {
        script.remove();
        if (asked !== undefined || state.text || isComplete()) show();
        setTimeout(readPart);
      });
      script.addEventListener("error", () => { byId("found").textContent = "The list cannot be read: " + script.src; });
      document.head.append(script);
    }

    // Do what needs every text: now, or when the last part is there.
    function whenComplete(act) {
      if (isComplete()) act();
      else waiting.push(act);
    }

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
      if (!sort) return everyone;
      if (orders.has(sort)) return orders.get(sort);
      const column = columnOf(sort.replace(/^-/, ""));
      if (!column.indices.length && !isComplete()) return everyone;
      const sign = sort.startsWith("-") ? -1 : 1;
      const keys = everyone.map((paper) => sortKey(column, paper));
      const valued = everyone.filter((paper) => keys[paper].length);
      const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
      valued.sort((a, b) => {
        for (let at = 0; at < Math.min(keys[a].length, keys[b].length); at++) {
          const one = compare(keys[a][at], keys[b][at]);
          if (one) return sign * one;
        }
        return sign * (keys[a].length - keys[b].length) || a - b;
      });
      const all = [...valued, ...everyone.filter((paper) => !keys[paper].length)];
      orders.set(sort, all);
      return all;
    }

    function sortKey(column, paper) {
      if (!column.indices.length) {
        const value = text(column.name, paper);
        if (typeof value === "number") return [value];
        return (Array.isArray(value) ? value : value ? [value] : []).map((part) => part.toLowerCase());
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

    const pageOf = (paper) => "papers/" + encodeURIComponent(text("key", paper)) + ".html";

    const isAddress = (text) => typeof text === "string" && /^https?:\/\//i.test(text);

    function cell(column, paper) {
      const made = make("td", { "data-label": column.label });
      if (column.indices.length) {
        for (const [label, contested, saysNothing] of labels(column, paper)) {
          const tag = make("span", { class: saysNothing ? "tag aside" : "tag" }, label);
          if (contested) {
            const name = label + " is contested: who reads what, and why";
            const dispute = pageOf(paper) + "#dispute-" + contested;
            tag.append(" ", make("a", { class: "mark", href: dispute, title: name, "aria-label": name }, "?"));
          }
          made.append(tag);
        }
        return made;
      }
      const value = text(column.name, paper);
      if (isAddress(value)) {
        const name = column.label + " of " + text("title", paper);
        made.append(make("a", { href: value, rel: "noreferrer", "aria-label": name }, column.label.toLowerCase()));
      } else {
        made.append(Array.isArray(value) ? value.join("; ") : String(value));
      }
      return made;
    }

    function byline(names) {
      if (!names.includes("others") && names.length <= 3) return names.join("; ");
      return names.filter((name) => name !== "others").slice(0, 2).join("; ") + " et al.";
    }

    function row(paper, shown) {
      if (!records[paper]) return make("tr", { "aria-busy": "true" }, make("th", { scope: "row" }, "…"), ...shown.map(() => make("td")));
      const link = make("a", { href: pageOf(paper) }, text("title", paper));
      const title = make("th", { scope: "row" }, link, make("span", { class: "byline" }, byline(text("authors", paper))));
      return make("tr", {}, title, ...shown.map((column) => cell(column, paper)));
    }

    function heading(name, label) {
      const sorted = state.sort === name ? "ascending" : state.sort === "-" + name ? "descending" : null;
      const button = make("button", { type: "button", "data-sort": name, title: "Sort by " + label }, label);
      return make("th", { scope: "col", "aria-sort": sorted }, button); // the arrow is the style's
    }

    // What an address asks for is seen once it is whole, so that nothing moves.
    const reveal = () => document.documentElement.classList.remove("awaiting");

    function show() {
      const passing = selection.pass(state.chosen, state.text);
      found = order(state.sort).filter((paper) => has(passing.bits, paper));
      if (table) showRows();
      else items.forEach((item, paper) => { item.hidden = !has(passing.bits, paper); });
      const isSearching = !isComplete() && (state.text || (state.sort && !columnOf(state.sort.replace(/^-/, "")).indices.length));
      byId("found").textContent = (found.length === size ? "" : found.length.toLocaleString("en") + " of ") +
        counted(size) + (isSearching ? ", still reading the list" : "");
      showFilters(passing.counts);
      showNearest(passing.bits);
      if (!table || (found.length && found.slice(0, limit).every((paper) => records[paper]))) reveal();
    }

    function showRows() {
      const shown = chosenColumns();
      const focused = document.activeElement && document.activeElement.dataset.sort;
      const first = data.noun[0][0].toUpperCase() + data.noun[0].slice(1);
      table.tHead.rows[0].replaceChildren(heading("title", first), ...shown.map((column) => heading(column.name, column.label)));
      if (focused) table.tHead.querySelector('[data-sort="' + focused + '"]')?.focus();
      // The rows of the page as it came are the first of the list, with the usual columns.
      if (isDrawn || found.length !== size || limit !== data.rows || state.sort || state.columns) {
        table.tBodies[0].replaceChildren(...found.slice(0, limit).map((paper) => row(paper, shown)));
        isDrawn = true;
      }
      byId("more").hidden = found.length <= limit;
      byId("more").textContent = "Show " + counted(Math.min(data.rows, found.length - limit), "more ");
      byId("command").textContent = command();
      byId("command-differs").hidden = !wordsOf(state.text).length;
    }

    // Where nothing passes: what each filter keeps out alone, the fewest dropped first.
    function showNearest(bits) {
      const offers = [];
      if (!bits.some(Boolean)) {
        const total = (chosen, words) => selection.pass(chosen, words).bits.reduce((sum, word) => sum + bitsOf(word), 0);
        fields.forEach((field, index) => {
          if (!state.chosen[index].size) return;
          const number = total(state.chosen.map((values, at) => (at === index ? new Set() : values)), state.text);
          if (number) offers.push(make("button", { type: "button", "data-field": index }, "Without " + field.label + ": " + counted(number)));
        });
        const number = state.text ? total(state.chosen, "") : 0;
        if (number) offers.push(make("button", { type: "button", "data-text": "" }, "Without the words: " + counted(number)));
      }
      byId("nearest").hidden = bits.some(Boolean);
      byId("nearest-offers").replaceChildren(...offers);
      if (data.parts) showGap(bits.some(Boolean) || state.text);
    }

    // Where no paper has the chosen values: whether that is a known gap, and what the values mean.
    function showGap(isNone) {
      const place = byId("nearest-gap");
      place.replaceChildren();
      const chosen = fields.flatMap((field, index) => (state.chosen[index].size ? [[field, [...state.chosen[index]]]] : []));
      if (isNone || !chosen.length || chosen.some(([, values]) => values.length > 1)) {
        if (!found.length) reveal();
        return;
      }
      const pairs = chosen.map(([field, [value]]) => [field.name, field.values[value][0]]);
      const asked = location.hash;
      withGaps(() => {
        if (asked !== location.hash) return;
        const pages = [pairs, ...pairs.map((pair) => [pair])].map(gapAddress);
        const page = pages.find((address) => !address.startsWith("papers.html"));
        if (page) {
          const text = "No " + data.noun[0] + " here has this: what would count, and what comes near";
          place.append(make("p", {}, make("a", { class: "button", href: page }, text)));
        }
        const meant = chosen.flatMap(([field, [value]], at) => {
          const meaning = window.corpusGaps.meanings[pairs[at][0]]?.[pairs[at][1]];
          return meaning ? [make("dt", {}, field.label + ": " + field.values[value][1]), make("dd", {}, meaning)] : [];
        });
        if (meant.length) place.append(make("dl", { class: "terms" }, ...meant));
        reveal();
      });
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
      const value = text(column.name, paper);
      return typeof value === "number" || value.length ? value : null;
    }

    const exportColumns = () => [
      { name: "key", indices: [] }, { name: "title", indices: [] }, ...chosenColumns()];

    function csvCell(value) {
      if (typeof value === "number") return String(value);
      let written = value === null ? "" : Array.isArray(value) ? value.join(" ; ") : value;
      if (/^'*[=+\-@\t\r]/.test(written)) written = "'" + written; // else a spreadsheet would take it for a formula
      return /[",\r\n]/.test(written) ? '"' + written.replace(/"/g, '""') + '"' : written;
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

    function save(name, content) {
      const address = URL.createObjectURL(new Blob([content], { type: "text/plain;charset=utf-8" }));
      make("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60000);
    }

    // The entries are as large as all the rest, so they come when they are asked for.
    const withEntries = (act) => withData("corpusEntries", "bibtex.js", act);

    function exportAs(form, button) {
      if (form === "copy") withEntries(() => copy(writers.bibtex(), button));
      else if (form === "bibtex") withEntries(() => save("papers.bib", writers.bibtex()));
      else whenComplete(() => save("papers." + form, writers[form]()));
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
    byId("search").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault(); // else the key would act on what it leads to
      document.querySelector("#papers tbody a, #list > details:not([hidden]) > summary")?.focus();
    });
    byId("clear").addEventListener("click", () => {
      state = { chosen: fields.map(() => new Set()), text: "", sort: "", columns: null };
      change(true);
    });
    byId("nearest-offers").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      if (button.dataset.field) state.chosen[Number(button.dataset.field)].clear();
      else state.text = "";
      change(true);
      byId("search").focus();
    });
    addEventListener("keydown", (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target.closest("input, select, textarea")) return;
      event.preventDefault();
      byId("search").focus();
    });
    if (table) {
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
        if (event.target.dataset.export) exportAs(event.target.dataset.export, event.target);
      });
      byId("more").addEventListener("click", () => {
        const before = limit;
        limit += data.rows;
        show();
        table.tBodies[0].rows[before].querySelector("a").focus();
      });
    }
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
    const wide = matchMedia("(min-width: 70rem)"); // filters stand beside the list, where they move nothing
    const unfold = () => { if (wide.matches) byId("facets-all").open = true; };
    wide.addEventListener("change", unfold);
    unfold();
    items.forEach((item, paper) => { selection.texts[paper] = folded(item.textContent); });
    window.corpusPapers = { selection, readState, isComplete, keys: () => found.map((paper) => text("key", paper)) }; // for tests
    show();
    // Rows of the page as it came need no texts: they are painted first.
    if (data.parts) setTimeout(readPart, isDrawn ? 0 : 300);
  }

  addEventListener("DOMContentLoaded", () => startPapers(window.corpusData));
})();
