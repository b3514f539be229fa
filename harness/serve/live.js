// The script of the pages of `tearless serve`. When the server says that something has changed, it asks for the page
// again and puts its <main> in the place of the old one; it draws curves. Texts become text nodes.
(() => {
  "use strict";

  const { make, makeSvg, brief, NO_VALUE, strokeOf, nearest, drawSvg } = tearlessCharts;
  const status = document.getElementById("live");
  const chosen = new Map();  // place of curves → its metric and axis, which stay when the page is replaced
  let shown = "";            // the page as it came last

  /** A view of curves in its place on the page. */
  class LiveCurves {
    constructor(holder, number) {
      const { runs, metrics } = JSON.parse(holder.dataset.curves);
      const before = chosen.get(number) || {};
      this.runs = runs;
      this.metric = make("select", {}, ...metrics.map((metric) => make("option", { value: metric }, metric)));
      if (metrics.includes(before.metric)) this.metric.value = before.metric;
      this.log = make("input", { type: "checkbox", checked: Boolean(before.log) });
      for (const control of [this.metric, this.log]) {
        control.addEventListener("change", () => {
          chosen.set(number, { metric: this.metric.value, log: this.log.checked });
          this.load();
        });
      }
      this.chart = make("div", { className: "chart" });
      this.chart.setAttribute("role", "img");
      this.step = make("p", { className: "note" });
      this.legend = make("ul", { className: "legend" });
      holder.replaceChildren(make("div", { className: "controls" }, make("label", {}, "Metric", this.metric),
        make("label", {}, this.log, "Logarithmic")), this.chart, make("p", { className: "x-title" }, "Updates"),
        this.step, this.legend);
      this.lines = [];
      new ResizeObserver(() => this.draw()).observe(holder);
      this.load();
    }

    async load() {
      const metric = this.metric.value;
      const lines = await Promise.all(this.runs.map(async ({ run, label }, slot) => {
        const answer = await fetch(`/curve?run=${encodeURIComponent(run)}&metric=${encodeURIComponent(metric)}`);
        const { x, y } = answer.ok ? await answer.json() : { x: [], y: [] };
        return { slot, label, x, y: y.map((value) => (value === null ? NaN : value)), value: make("span", { className: "value" }) };
      }));
      if (metric !== this.metric.value) return;  // another one was chosen meanwhile
      this.lines = lines;
      this.draw();
    }

    draw() {
      const width = this.chart.clientWidth, log = this.log.checked;
      if (!width) return;
      const lines = this.lines
        .map((line) => (log ? { ...line, y: line.y.map((value) => (value > 0 ? value : NaN)) } : line))
        .filter((line) => line.y.some(Number.isFinite));
      this.chart.setAttribute("aria-label", `${this.metric.value} by update: ${lines.length} lines`);
      if (lines.length) drawSvg(this.chart, lines, log, Math.max(width, 280), (x) => this.showValues(x));
      else this.chart.replaceChildren(make("p", { className: "note" }, "There is no value yet."));
      this.legend.replaceChildren(...this.lines.map(({ label, slot, value }) => make("li", {},
        makeSvg("svg", { viewBox: "0 0 28 8" }, makeSvg("path", { ...strokeOf(slot), d: "M0 4H28" })),
        make("bdi", { title: label }, label), value)));
      this.showValues(null);
    }

    /** The value of each line near the update `x`; for null, the last finite one. */
    showValues(x) {
      this.step.textContent = x === null ? "Last values:" : `Values at update ${Math.round(x)}:`;
      for (const line of this.lines) {
        const isWithin = line.x.length && x >= line.x[0] && x <= line.x[line.x.length - 1];
        const y = x === null ? line.y.filter(Number.isFinite).pop() : isWithin ? line.y[nearest(line.x, x)] : NaN;
        line.value.textContent = Number.isFinite(y) ? brief(y) : NO_VALUE;
      }
    }
  }

  const drawCurves = () =>
    document.querySelectorAll(".live-curves").forEach((holder, number) => new LiveCurves(holder, number));

  /** Replaces what has changed. Not while a person types into the page. */
  async function refresh() {
    const main = document.querySelector("main");
    if (main.contains(document.activeElement) && document.activeElement.matches("input, select")) return;
    const answer = await fetch(location.href, { cache: "no-cache" });
    const text = await answer.text();
    const isSame = text === shown;
    shown = text;
    if (isSame) return;
    const page = new DOMParser().parseFromString(text, "text/html"), fresh = page.querySelector("main");
    if (!fresh) {
      status.textContent = text;  // a sentence of the server
      return;
    }
    const open = new Set(Array.from(main.querySelectorAll("details[open] > summary"), (summary) => summary.textContent));
    for (const summary of fresh.querySelectorAll("details > summary")) {
      if (open.has(summary.textContent)) summary.parentElement.open = true;
    }
    const scrolled = Array.from(main.querySelectorAll(".wide"), (wide) => wide.scrollLeft);
    main.replaceWith(fresh);
    fresh.querySelectorAll(".wide").forEach((wide, i) => { wide.scrollLeft = scrolled[i] || 0; });
    drawCurves();
  }

  // ---- Changes. A browser has few connections to one server, so a page that is not looked at gives its own back.

  let events = null;
  function listen() {
    if (document.hidden) {
      if (events) events.close();
      events = null;
      return;
    }
    if (events) return;
    events = new EventSource("/events");
    events.onmessage = refresh;
    events.onopen = () => {
      status.textContent = "This page follows the workspace.";
      refresh();
    };
    events.onerror = () => { status.textContent = "The server does not answer; tearless serve may have ended."; };
  }

  document.addEventListener("visibilitychange", listen);
  drawCurves();
  listen();
})();
