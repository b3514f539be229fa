// The script of the page that `tearless report` makes. Without it the page says every number; it adds what readers ask
// for: the runs of a cell, all of one run, curves, and an order and a filter of the table of runs. Settings, labels and
// reasons come from users: they become text nodes, never markup. Markup and styles that the page does not have are
// forbidden by its content security policy, so lengths and colours are set by attributes of SVG, classes and page.css.
(() => {
  "use strict";

  const { make, makeSvg, makeTable, brief, NO_VALUE, strokeOf, nearest, drawSvg, drawDygraph } = tearlessCharts;
  const MAX_LINES = 32;  // what eight colours and four dash patterns tell apart
  const MAX_CHECKED = 12;  // runs that the section Curves shows at first
  const PAPER = 660, TURNED_PAPER = 980;  // pixels between the margins of A4, upright and turned

  // ---- Data

  /** A function that reads a block of JSON when it is first called: curves are megabytes, and many want none. */
  const readLater = (id, prepare) => {
    let value;
    return () => (value = value || prepare(JSON.parse(document.getElementById(id).textContent)));
  };
  const curves = readLater("curve-data", (read) => read);
  const data = readLater("data", (read) => {
    // Runs of several grids may have the same label, or none.
    const key = (run) => JSON.stringify([run.label, run.seed]);
    const seen = new Map();
    for (const run of read.runs) seen.set(key(run), (seen.get(key(run)) || 0) + 1);
    for (const run of read.runs) {
      run.name = !run.label ? run.grid : seen.get(key(run)) > 1 ? `${run.label} (${run.grid})` : run.label;
    }
    return read;
  });

  /** The points of a curve, or null. A value that is not finite is NaN. */
  function curveOf(run, metric) {
    const text = (curves()[run] || {})[metric];
    if (!text) return null;
    const view = new DataView(Uint8Array.from(atob(text), (byte) => byte.charCodeAt(0)).buffer);
    const x = [], y = [];
    for (let offset = 0; offset + 8 <= view.byteLength; offset += 8) {
      const value = view.getFloat32(offset + 4, true);
      x.push(view.getFloat32(offset, true));
      y.push(Number.isFinite(value) ? value : NaN);
    }
    return { x, y };
  }

  const nameOf = (run) => `${run.name}, seed ${run.seed}`;
  /** As elements, of which page.css cuts a long label but not the seed. */
  const namePartsOf = (run) => [make("bdi", { title: run.name }, run.name), make("span", {}, `seed ${run.seed}`)];
  /** The indices of the runs that derive from a run. */
  const derivedFrom = (index) => data().runs.flatMap((run, i) => (run.derived_from === index ? [i] : []));

  /** A number of a run, or of what derives from it. */
  const numberOf = (index, name) => [index, ...derivedFrom(index)]
    .map((i) => ({ ...data().runs[i].measured, ...data().runs[i].scores })[name]).find((value) => value !== undefined);

  const stateOf = (run) => run.state + (run.reason ? `: ${run.reason}` : "");

  // ---- Charts

  const views = new Set();
  let onPaper = false;

  /** The curves of some runs: a choice of metric and y axis, a chart, a legend with values. show() says which runs. */
  class CurveView {
    constructor() {
      this.metric = make("select", { onchange: () => this.draw() });
      this.log = make("input", { type: "checkbox", onchange: () => this.draw() });
      this.chart = make("div", { className: "chart" });
      this.chart.setAttribute("role", "img");
      this.step = make("p", { className: "note" });
      this.legend = make("ul", { className: "legend" });
      this.note = make("p", { className: "note" });
      this.controls = make("div", { className: "controls" }, make("label", {}, "Metric", this.metric),
        make("label", {}, this.log, "Logarithmic"));
      this.heading = make("p", { className: "note" });
      this.element = make("div", { className: "curves" }, this.controls, this.heading, this.chart,
        make("p", { className: "x-title" }, "Updates"), this.step, this.legend, this.note);
      this.runs = [];
      this.width = 0;
      // It is called when the chart has its place, also in a dialog that opens, and when that changes.
      new ResizeObserver(() => {
        if (this.chart.clientWidth && this.chart.clientWidth !== this.width) this.draw();
      }).observe(this.chart);
      views.add(this);
    }

    /** Draws these {run, slot}: an index of a run, and the place of its line among colours and dash patterns. */
    show(runs) {
      this.runs = runs;
      const metrics = data().metrics.filter((metric) => runs.some(({ run }) => (curves()[run] || {})[metric]));
      if (metrics.length) {
        const chosen = metrics.includes(this.metric.value) ? this.metric.value : metrics[0];
        this.metric.replaceChildren(...metrics.map((metric) => make("option", { value: metric }, metric)));
        this.metric.value = chosen;
      }
      if (this.chart.clientWidth) this.draw();
    }

    /** Draws again; for paper as SVG, because a canvas has the pixels and the colours of the screen. */
    draw() {
      this.clear();
      this.width = this.chart.clientWidth;
      const metric = this.metric.value, log = this.log.checked;
      const having = this.runs.filter(({ run }) => (curves()[run] || {})[metric]);
      this.lines = having.slice(0, MAX_LINES).map(({ run, slot }) => {
        const { x, y } = curveOf(run, metric);
        const shown = log ? y.map((value) => (value > 0 ? value : NaN)) : y;
        return { run, slot, x, y: shown, value: make("span", { className: "value" }) };
      });
      const visible = this.lines.filter((line) => line.y.some(Number.isFinite));
      const onStep = (x) => this.showValues(x);
      if (!visible.length) {
        const why = this.lines.length ? `There is no ${log ? "positive" : "finite"} value.` : "No curve is chosen.";
        this.chart.append(make("p", { className: "note" }, why));
      } else if (window.Dygraph && !onPaper) {
        this.dygraph = drawDygraph(this.chart, visible, log, onStep);
      } else {
        drawSvg(this.chart, visible, log, onPaper ? PAPER : Math.max(this.width, 280), onStep);
      }
      this.heading.textContent = metric + (log ? " (logarithmic)" : "");
      this.chart.setAttribute("aria-label", `${metric} by step: ${visible.length} lines`);
      this.legend.replaceChildren(...this.lines.map(({ run, slot, value }) => make("li", {},
        makeSvg("svg", { viewBox: "0 0 28 8" }, makeSvg("path", { ...strokeOf(slot), d: "M0 4H28" })),
        ...namePartsOf(data().runs[run]), value)));
      this.showValues(null);
      const lacking = this.runs.length - having.length, over = having.length - this.lines.length;
      this.note.textContent = [
        this.dygraph ? "Drag over the chart to enlarge a part; double-click to see all." : "",
        lacking ? `${lacking} of the ${this.runs.length} runs ${lacking === 1 ? "has" : "have"} no ${metric}.` : "",
        over ? `Only the first ${MAX_LINES} are drawn, ${over} are not.` : ""].join(" ");
    }

    /** Writes the value of each line near the step `x` into the legend; for null, the last finite one. */
    showValues(x) {
      this.step.textContent = x === null ? "Last values:" : `Values at step ${Math.round(x)}:`;
      this.step.hidden = !this.lines.length;
      for (const line of this.lines) {
        const isWithin = x >= line.x[0] && x <= line.x[line.x.length - 1];
        const y = x === null ? line.y.filter(Number.isFinite).pop() : isWithin ? line.y[nearest(line.x, x)] : NaN;
        line.value.textContent = Number.isFinite(y) ? brief(y) : NO_VALUE;
      }
    }

    clear() {
      if (this.dygraph) this.dygraph.destroy();
      this.dygraph = null;
      this.chart.replaceChildren();
    }
  }

  /** The views that are in the page; those that have left it are forgotten. */
  function viewsInPage() {
    for (const view of views) {
      if (view.element.isConnected) continue;
      view.clear();
      views.delete(view);
    }
    return views;
  }

  const redraw = () => viewsInPage().forEach((view) => view.draw());

  // ---- The dialog

  const dialog = document.getElementById("detail");

  const textOf = (element) => (element ? element.textContent.trim() : "");
  /** The cells of each row by column: one that spans columns is in each. */
  const cellsOf = (rows) =>
    Array.from(rows, (row) => Array.from(row.cells).flatMap((cell) => Array(cell.colSpan).fill(cell)));

  /** What the heads of its row and its column say of a cell. An empty label of a row stands for that above. */
  function labelsOf(cell) {
    const body = cellsOf(cell.closest("tbody").rows), head = cellsOf(cell.closest("table").tHead.rows);
    const row = body.findIndex((cells) => cells.includes(cell)), column = body[row].indexOf(cell);
    const labels = body[row].slice(0, column).map((_, x) =>
      body.slice(0, row + 1).map((cells) => cells[x]).reverse().find((label) => textOf(label)));
    return [...labels.filter((label) => label && label.matches("th")), ...head.map((cells) => cells[column])]
      .map(textOf).filter((text) => text);
  }

  const runButton = (index, text) => {
    const button = make("button", { type: "button", className: "run" }, text);
    button.dataset.run = index;
    return button;
  };

  /** The content of the dialog for a cell; for a label with runs, such as a claim, what its row says. */
  function cellContent(button) {
    const { runs } = data(), { score } = button.dataset, cell = button.closest("th, td");
    const indices = button.dataset.runs.split(" ").map(Number).filter((index) => runs[index]);
    const isLabel = cell.matches("th"), head = isLabel ? cellsOf(cell.closest("table").tHead.rows)[0] : [];
    const said = Array.from(cell.parentElement.cells, (other, x) => [textOf(head[x]), textOf(other)]);
    const rows = indices.map((index) => {
      const value = numberOf(index, score);
      return [runButton(index, runs[index].name), String(runs[index].seed),
        value === undefined ? stateOf(runs[index]) : runs[index].state, ...(score ? [brief(value)] : [])];
    });
    return {
      title: isLabel ? textOf(cell) : labelsOf(cell).join(" · "),
      parts: [
        ...(isLabel ? [factList(said.slice(1))] : [
          make("p", { className: "note" }, textOf(cell.closest("table").caption)),
          make("p", { className: "lead" }, textOf(button))]),
        makeTable(["Run", "Seed", "State", ...(score ? [data().names[score] || score] : [])], rows)],
      runs: indices,
    };
  }

  /** Terms, and what they are: texts or elements. Those that say nothing are left out. */
  const factList = (facts) => make("dl", {}, ...facts.filter(([, value]) => value)
    .flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));

  /** A heading and a table of names and values, or nothing where there are none. */
  const pairs = (title, values) => {
    const rows = Object.entries(values || {}).map(([name, value]) => [name, brief(value)]);
    return rows.length ? [make("div", {}, make("h3", {}, title), makeTable(null, rows))] : [];
  };

  /** The content of the dialog for a run. */
  function runContent(index) {
    const { runs, settings } = data(), run = runs[index];
    const facts = [["State", stateOf(run)], ["Grid", run.grid], ["Run", run.id], ["Resumed", run.resume]];
    const trained = runs[run.derived_from];
    if (trained) facts.push(["Derived from", runButton(run.derived_from, nameOf(trained))]);
    const derived = derivedFrom(index).map((i) => make("li", {}, runButton(i, nameOf(runs[i]))));
    if (derived.length) facts.push(["Its derived runs", make("ul", {}, ...derived)]);
    const time = (text) => (text || "").replace("T", " ").replace("Z", "");
    const attempts = (run.attempts || []).map((attempt) => {
      const seconds = (Date.parse(attempt.ended_at) - Date.parse(attempt.started_at)) / 1000;
      return [String(attempt.attempt), attempt.outcome + (attempt.reason ? `: ${attempt.reason}` : ""),
        time(attempt.started_at), time(attempt.ended_at), Number.isNaN(seconds) ? NO_VALUE : brief(seconds),
        [attempt.device, attempt.processor].filter((text) => text).join(", "), attempt.version];
    });
    const shared = run.derived ? [] : Object.entries(settings);
    return {
      title: nameOf(run),
      parts: [
        factList(facts),
        make("div", { className: "columns" }, ...pairs("Scores", run.scores), ...pairs("Measured", run.measured)),
        ...pairs(run.derived ? "Settings" : "Settings that not all runs share", run.settings),
        ...(shared.length ? [make("details", {},
          make("summary", {}, `${shared.length} settings that all trained runs share`), makeTable(null, shared))] : []),
        ...(attempts.length ? [make("h3", {}, "Attempts"), makeTable(
          ["Attempt", "Outcome", "Started (UTC)", "Ended (UTC)", "Seconds", "Device", "Version"], attempts)] : [])],
      runs: [index],
    };
  }

  /** Shows the dialog that the address names, or none: the back button leaves it, and links lead to it. */
  function followAddress(event) {
    const [, kind, name] = /^#(run|cell)-([0-9a-f]+)$/.exec(location.hash) || [];
    if (!kind) {
      if (dialog.open) dialog.close();
      return;
    }
    const cell = kind === "cell" && document.querySelectorAll("button.cell")[name];
    const index = kind === "run" ? data().runs.findIndex((run) => run.id === name) : -1;
    const { title, parts, runs } = cell ? cellContent(cell) : index >= 0 ? runContent(index)
      : { title: `This report has no ${kind} ${name}.`, parts: [], runs: [] };
    const [before] = (event && dialog.open && /#(run|cell)-\w+$/.exec(event.oldURL)) || [];
    const heading = make("h2", { id: "detail-title", tabIndex: -1 }, title);
    dialog.replaceChildren(
      make("div", { className: "dialog-head" },
        ...(before ? [make("a", { className: "back", href: before }, "← Back")] : []), heading,
        make("button", { type: "button", className: "close", onclick: () => dialog.close() }, "Close")), ...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    heading.focus();
    // A derived run shows the curves of the run that it was made from.
    const trained = runs.map((run) => (curves()[run] ? run : data().runs[run].derived_from));
    const withCurves = trained.filter((run) => curves()[run]);
    if (withCurves.length) {
      const view = new CurveView();
      dialog.append(make("h3", {}, "Curves"), view.element);
      view.show([...new Set(withCurves)].map((run, slot) => ({ run, slot })));
    }
    viewsInPage();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.cell, button.run");
    if (!button) return;
    location.hash = button.matches(".run") ? `run-${data().runs[button.dataset.run].id}`
      : `cell-${Array.from(document.querySelectorAll("button.cell")).indexOf(button)}`;
  });
  dialog.addEventListener("close", () => {
    dialog.replaceChildren();
    viewsInPage();
    // An empty hash would scroll to the top.
    if (/^#(run|cell)-/.test(location.hash)) history.replaceState(null, "", location.pathname + location.search);
  });
  addEventListener("hashchange", followAddress);

  // ---- The section Curves

  const curveSection = document.getElementById("curves");
  let buildCurves = () => {};

  /** Fills the section: a list of runs, of which those that are checked are drawn. */
  function fillCurveSection() {
    buildCurves = () => {};
    const { runs } = data();
    const indices = Object.keys(curves()).map(Number).filter((index) => runs[index]);
    const first = indices.filter((index) => runs[index].seed === runs[indices[0]].seed).slice(0, MAX_CHECKED);
    const slots = new Map();  // a run keeps its colour while it is checked
    const view = new CurveView();
    const update = () => {
      const checked = entries.filter(({ box }) => box.checked).map(({ index }) => index);
      for (const run of slots.keys()) if (!checked.includes(run)) slots.delete(run);
      const taken = new Set(slots.values());
      let free = 0;
      for (const run of checked) {
        if (slots.has(run)) continue;
        while (taken.has(free)) free++;
        slots.set(run, free);
        taken.add(free);
      }
      view.show(checked.map((run) => ({ run, slot: slots.get(run) })));
      count.textContent = `${checked.length} of ${entries.length} chosen`;
    };
    const entries = indices.map((index) => {
      const box = make("input", { type: "checkbox", checked: first.includes(index), onchange: update });
      return { index, box, element: make("li", {}, make("label", {}, box, ...namePartsOf(runs[index]))) };
    });
    const setShown = (checked) => () => {
      for (const { box, element } of entries) if (!element.hidden) box.checked = checked;
      update();
    };
    const filter = make("input", { type: "search", placeholder: "words of a label",
      oninput: () => hideOthers(filter.value, entries, ({ index }) => nameOf(runs[index])) });
    const count = make("span", { className: "note" });
    document.getElementById("curve-view").append(make("fieldset", { className: "picker" }, make("legend", {}, "Runs"),
      make("div", { className: "controls" }, make("label", {}, "Filter", filter),
        make("button", { type: "button", onclick: setShown(true) }, "All listed"),
        make("button", { type: "button", onclick: setShown(false) }, "None listed"), count),
      make("ul", {}, ...entries.map(({ element }) => element))), view.element);
    update();
  }

  /** Hides each {element} whose text lacks one of the words; says how many stay. */
  function hideOthers(words, entries, wordsOf) {
    const wanted = words.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = 0;
    for (const entry of entries) {
      const text = wordsOf(entry).toLowerCase();
      entry.element.hidden = !wanted.every((word) => text.includes(word));
      if (!entry.element.hidden) shown++;
    }
    return shown;
  }

  if (curveSection) {
    const block = document.getElementById("curve-data");
    if (block && /"/.test(block.firstChild ? block.firstChild.data.slice(0, 1000) : "")) {
      buildCurves = fillCurveSection;
      // Shortly before a reader comes to it, so that the first sight of the page waits for no curve.
      new IntersectionObserver((entries, observer) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        buildCurves();
      }, { rootMargin: "300px" }).observe(curveSection);
    } else {
      curveSection.hidden = true;
      for (const link of document.querySelectorAll('nav a[href="#curves"]')) link.parentElement.hidden = true;
    }
  }

  // ---- The table of runs

  const NUMBER = /^-?\d+(\.\d+)?(e[-+]?\d+)?(?=$|[\s%])/i;
  const textOrder = new Intl.Collator("en", { numeric: true });

  /** Sorts rows by a column: numbers as numbers if all are, rows without a value last. */
  function sortBy(table, column, descending) {
    const body = table.tBodies[0];
    const keyed = Array.from(body.rows, (row) => {
      const text = row.cells[column] ? row.cells[column].textContent.trim().replace(/^−/, "-") : "";
      return { row, text, missing: text === "" || text.startsWith(NO_VALUE) };
    });
    const numeric = keyed.every(({ text, missing }) => missing || NUMBER.test(text));
    const order = (a, b) =>
      (numeric ? parseFloat(a.text) - parseFloat(b.text) : textOrder.compare(a.text, b.text)) * (descending ? -1 : 1);
    keyed.sort((a, b) => a.missing - b.missing || (a.missing ? 0 : order(a, b)));
    body.append(...keyed.map(({ row }) => row));
  }

  /** Lets a reader sort the rows of a table by a click on a head, and hide those without some words. */
  function makeSortable(table) {
    table.classList.add("runs");
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      head.replaceChildren(make("button", { type: "button", className: "sort", onclick: () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sortBy(table, column, descending);
      } }, ...head.childNodes));
    });
    const rows = Array.from(table.tBodies[0].rows, (element) => ({ element }));
    const count = make("p", { className: "note" });
    count.setAttribute("role", "status");
    const filter = make("input", { type: "search", placeholder: "words of a row", oninput: () => {
      const shown = hideOthers(filter.value, rows, ({ element }) => element.textContent);
      count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} runs: ${filter.value.trim()}`;
    } });
    table.parentElement.before(make("div", { className: "controls" }, make("label", {}, "Filter", filter)), count);
  }
  document.querySelectorAll("#run-table, #derived-table").forEach(makeSortable);

  // ---- Paper

  /** Wraps the cells of a table that is wider than paper; if that is not enough, turns the paper, then makes it smaller. */
  function fitPaper(table) {
    if (table.scrollWidth <= PAPER) return;
    table.classList.add("squeezed");
    const width = table.scrollWidth;
    if (width <= PAPER) return;
    table.parentElement.classList.add("turned");
    table.style.zoom = Math.min(1, TURNED_PAPER / width);
  }

  addEventListener("beforeprint", () => {
    buildCurves();
    for (const details of document.querySelectorAll("details:not([open])")) {
      details.open = true;
      details.classList.add("opened");
    }
    for (const table of document.querySelectorAll(".wide > table")) fitPaper(table);
    onPaper = true;
    redraw();
  });
  addEventListener("afterprint", () => {
    for (const details of document.querySelectorAll(".opened")) {
      details.open = false;
      details.classList.remove("opened");
    }
    for (const table of document.querySelectorAll(".squeezed")) {
      table.classList.remove("squeezed");
      table.parentElement.classList.remove("turned");
      table.style.zoom = "";
    }
    onPaper = false;
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);

  followAddress();
})();
