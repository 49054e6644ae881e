// What makes the pages answer: two fields crossed at will on the start page, parts that unfold, texts that are copied.
// Data comes from inert JSON in the page, and reaches it as text, never as markup. `papers.js` uses `corpusPage`.
"use strict";

document.documentElement.classList.add("scripted"); // before anything is painted, so that nothing jumps
if (location.hash.includes("=")) document.documentElement.classList.add("awaiting"); // what the filters of the address find

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

  // Put a text on the clipboard, and say so on the button; pages of insecure origins have no clipboard of their own.
  async function copy(text, button) {
    const label = button.dataset.label || (button.dataset.label = button.textContent);
    let isCopied = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { class: "unseen", "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      isCopied = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = isCopied ? "Copied" : "Cannot copy";
    setTimeout(() => { button.textContent = label; }, 2000);
  }

  const isAside = (id) => id === ABSENT || id === "NA";

  const asList = (given) => (typeof given === "number" ? [given] : given);

  // Act with what a script of the site holds, which only some readers need: it comes when it is asked for.
  function withData(name, address, then) {
    if (window[name]) return then();
    const script = make("script", { src: address });
    script.addEventListener("load", then);
    document.head.append(script);
  }

  // The addresses of the gaps.
  const withGaps = (then) => withData("corpusGaps", "gaps.js", then);

  // The page of a gap; where the site has none, the papers with these values, of which there are none, and what is near.
  const gapAddress = (pairs) =>
    window.corpusGaps.addresses[pairs.map((pair) => pair.join("=")).sort().join("&")] || papersAddress(pairs);

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
        if (isBeside(row, column)) return make("td", { class: "aside" }, "0");
        const isImpossible = impossible.has(pair.join(" "));
        const address = gapAddress([[one.name, pair[0]], [other.name, pair[1]]]);
        const text = isImpossible ? make("span", { class: "unseen" }, "cannot arise") : "0";
        return make("td", { class: isImpossible ? "impossible" : "empty" }, make("a", { href: address }, text));
      };
      const heading = (value, scope) =>
        make("th", { scope, class: isAside(value[0]) && "aside" }, scope === "col" ? make("span", {}, value[1]) : value[1]);
      table.tHead.replaceChildren(make("tr", {}, make("td"), ...other.values.map((value) => heading(value, "col"))));
      table.tBodies[0].replaceChildren(
        ...one.values.map((value, row) =>
          make("tr", {}, heading(value, "row"), ...other.values.map((_, column) => cell(row, column)))));
      const open = counts.flatMap((numbers, row) => numbers.filter((_, column) => !isBeside(row, column) &&
        (numbers[column] || !impossible.has([one.values[row][0], other.values[column][0]].join(" ")))));
      byId("matrix").textContent = statement(one.label, other.label, open.filter((number) => !number).length, open.length);
    }

    // What the fields show, as the page says it before a script runs.
    function statement(rows, columns, empty, total) {
      const pair = [rows, columns].map((label) => (/^.\p{Ll}/u.test(label) ? label[0].toLowerCase() + label.slice(1) : label))
        .join(" and ");
      const one = data.noun[0];
      if (!empty) return "Every combination of " + pair + " has " + (/^[aeiou]/i.test(one) ? "an " : "a ") + one;
      return empty.toLocaleString("en") + " of " + total.toLocaleString("en") + " combinations of " + pair +
        (empty === 1 ? " has no " : " have no ") + one;
    }

    function show() {
      const asked = new Map(readFragment());
      const index = (name, otherwise) => Math.max(0, names.indexOf(asked.get(name) ?? names[otherwise]));
      rowChoice.selectedIndex = index("matrix-rows", chosen[0]);
      columnChoice.selectedIndex = index("matrix-columns", chosen[1]);
      const redraw = () => draw(rowChoice.selectedIndex, columnChoice.selectedIndex);
      withGaps(redraw);
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

  addEventListener("DOMContentLoaded", () => {
    const crossed = byId("matrix-data");
    if (crossed) startMatrix(JSON.parse(crossed.textContent));
    // A link to a folded part, or into it, unfolds it.
    const unfold = () => {
      const target = byId(location.hash.slice(1)); // ":target" is not set yet when a page is opened
      let isMoved = false;
      for (let part = target?.closest("details"); part; part = part.parentElement.closest("details")) {
        isMoved = isMoved || !part.open;
        part.open = true;
      }
      if (isMoved) target.scrollIntoView();
    };
    addEventListener("hashchange", unfold);
    unfold();
    addEventListener("click", (event) => {
      const button = event.target.closest("[data-copy]");
      if (button) copy(byId(button.dataset.copy).textContent, button);
    });
  });

  window.corpusPage = { withData, withGaps, gapAddress, ABSENT, byId, make, encode, readFragment, writeFragment, isAside, asList, copy };
})();
