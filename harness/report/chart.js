// Elements and charts of curves: what the script of a report (page.js) and that of `tearless serve` (serve/live.js) have
// in common. Texts become text nodes, never markup; lengths and colours are set by attributes of SVG, classes and
// page.css, because the pages' content security policy forbids styles.
const tearlessCharts = (() => {
  "use strict";

  const COLOURS = 8;
  const DASHES = [[], [8, 2.5], [6, 2, 1, 2], [1, 1.5]];
  const CHART_HEIGHT = 336;
  const RING = "m-2 0a2 2 0 1 0 4 0a2 2 0 1 0 -4 0";
  const NO_VALUE = "–";

  // ---- Elements

  /** A new element with these properties; children that are strings become text. */
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };

  /** A new element of SVG with these attributes. */
  const makeSvg = (tag, attributes, ...children) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  /** A table with a head, which scrolls where it is wider than its place. The first cell of a row is its header. */
  const makeTable = (head, rows) =>
    make("div", { className: "wide" }, make("table", {},
      ...(head ? [make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text))))] : []),
      make("tbody", {}, ...rows.map((cells) =>
        make("tr", {}, ...cells.map((cell, column) => make(column ? "td" : "th", {}, cell)))))));

  /** A number in six digits; whole numbers whole. null is what JSON has in place of a number that is not finite. */
  const brief = (value) => {
    if (typeof value !== "number") return value === null || value === undefined ? NO_VALUE : String(value);
    return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
  };

  // ---- Charts

  const dashOf = (slot) => DASHES[Math.floor(slot / COLOURS) % DASHES.length];
  const strokeOf = (slot) => {
    const dash = dashOf(slot).join(" ");
    return { class: `curve line-${slot % COLOURS}`, ...(dash && { "stroke-dasharray": dash }) };
  };

  /** Round values in [low, high], about `count`: multiples of 1, 2 or 5 times a power of ten. */
  function ticksOf(low, high, count) {
    const power = 10 ** Math.floor(Math.log10((high - low) / count));
    const step = power * ([1, 2, 5, 10].find((factor) => (high - low) / (factor * power) <= count + 0.5) || 10);
    const first = Math.ceil(low / step), length = Math.floor(high / step) - first + 1;
    return Array.from({ length }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }

  /** As ticksOf(), for a logarithmic axis: powers of ten, within two decades times 1, 2 and 5, within one as linear. */
  function logTicksOf(low, high) {
    const decades = Math.log10(high / low);
    if (decades < 1) return ticksOf(low, high, 6);
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += Math.ceil(decades / 8)) {
      ticks.push(...(decades > 2 ? [1] : [1, 2, 5]).map((factor) => Number(`${factor}e${power}`)));
    }
    return ticks.filter((tick) => low <= tick && tick <= high);
  }

  /** The least and the greatest of the values, apart. */
  function rangeOf(values) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
    if (low < high) return [low, high];
    const margin = Math.abs(low) / 10 || 1;
    return [low - margin, high + margin];
  }

  /** The index of the point that is nearest to `x` among `xs`, which rise. */
  function nearest(xs, x) {
    let low = 0, high = xs.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] < x) low = middle + 1;
      else high = middle;
    }
    return low > 0 && x - xs[low - 1] < xs[low] - x ? low - 1 : low;
  }

  /** Draws lines as SVG of `width` pixels. Calls onStep(x) while a pointer is over the chart, then onStep(null). */
  function drawSvg(holder, lines, log, width, onStep) {
    const [left, right, top, bottom] = [64, 12, 10, 26];
    const [xLow, xHigh] = rangeOf(lines.flatMap((line) => line.x));
    let [yLow, yHigh] = rangeOf(lines.flatMap((line) => line.y));
    const scale = log ? Math.log10 : (value) => value;
    if (!log) [yLow, yHigh] = [yLow - (yHigh - yLow) / 20, yHigh + (yHigh - yLow) / 20];
    const atX = (x) => left + (width - left - right) * (x - xLow) / (xHigh - xLow);
    const atY = (y) =>
      CHART_HEIGHT - bottom - (CHART_HEIGHT - top - bottom) * (scale(y) - scale(yLow)) / (scale(yHigh) - scale(yLow));

    const viewBox = `0 0 ${width} ${CHART_HEIGHT}`;
    const svg = makeSvg("svg", { viewBox, width, height: CHART_HEIGHT, "aria-hidden": "true" });
    for (const tick of log ? logTicksOf(yLow, yHigh) : ticksOf(yLow, yHigh, 6)) {
      svg.append(makeSvg("path", { class: "grid", d: `M${left} ${atY(tick)}H${width - right}` }),
        makeSvg("text", { x: left - 6, y: atY(tick) + 4, "text-anchor": "end" }, brief(tick)));
    }
    for (const tick of ticksOf(xLow, xHigh, width / 110)) {
      svg.append(makeSvg("path", { class: "grid", d: `M${atX(tick)} ${top}V${CHART_HEIGHT - bottom}` }),
        makeSvg("text", { x: atX(tick), y: CHART_HEIGHT - 6, "text-anchor": "middle" }, brief(tick)));
    }
    svg.append(makeSvg("path", { class: "axis", d: `M${left} ${top}V${CHART_HEIGHT - bottom}H${width - right}` }));
    for (const { x, y, slot } of lines) {
      let path = "", alone = false;  // a point between two gaps is drawn as a ring
      for (let i = 0; i < x.length; i++) {
        const starts = i === 0 || Number.isNaN(y[i - 1]);
        if (alone && Number.isNaN(y[i])) path += RING;
        alone = !Number.isNaN(y[i]) && starts;
        if (!Number.isNaN(y[i])) path += `${starts ? "M" : "L"}${atX(x[i]).toFixed(1)} ${atY(y[i]).toFixed(1)}`;
      }
      svg.append(makeSvg("path", { ...strokeOf(slot), d: path + (alone ? RING : "") }));
    }
    const cursor = makeSvg("path", { class: "cursor", d: "" });
    svg.append(cursor);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const share = ((event.clientX - box.left) * width / box.width - left) / (width - left - right);
      const step = xLow + Math.min(Math.max(share, 0), 1) * (xHigh - xLow);
      cursor.setAttribute("d", `M${atX(step)} ${top}V${CHART_HEIGHT - bottom}`);
      onStep(step);
    });
    svg.addEventListener("pointerleave", () => {
      cursor.setAttribute("d", "");
      onStep(null);
    });
    holder.replaceChildren(svg);
  }

  /** As drawSvg(), by dygraphs, which can enlarge a part. */
  function drawDygraph(holder, lines, log, onStep) {
    const { Dygraph } = window;
    // Its other plugins write texts as markup and style attributes.
    Dygraph.PLUGINS = [Dygraph.Plugins.Axes, Dygraph.Plugins.Grid];
    const rows = new Map();
    lines.forEach((line, index) => line.x.forEach((x, i) => {
      if (!rows.has(x)) rows.set(x, [x, ...lines.map(() => null)]);
      rows.get(x)[index + 1] = line.y[i];
    }));
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    const { mousedown, dblclick, willDestroyContextMyself } = Dygraph.defaultInteractionModel;
    return new Dygraph(holder, [...rows.values()].sort((a, b) => a[0] - b[0]), {
      labels: ["step", ...lines.map((_, index) => `line ${index}`)],
      series: Object.fromEntries(lines.map(({ slot }, index) => [`line ${index}`, {
        color: colour(`--line-${slot % COLOURS}`), strokePattern: dashOf(slot).length ? dashOf(slot) : null,
      }])),
      connectSeparatedPoints: true,  // null: another curve's step; NaN remains a gap
      logscale: log, strokeWidth: 1.6, pointSize: 2.5, xRangePad: 4, yRangePad: 8, axisLabelFontSize: 13,
      axisLineColor: colour("--soft"), gridLineColor: colour("--rule"), gridLineWidth: 0.5,
      axisLabelFormatter: brief, axisLabelWidth: 64, dateWindow: rows.size === 1 ? rangeOf(rows.keys()) : null,
      // Without its events of touch, so that a finger scrolls the page.
      interactionModel: { mousedown, dblclick, willDestroyContextMyself },
      highlightCallback: (event, x) => onStep(x), unhighlightCallback: () => onStep(null),
    });
  }

  return { make, makeSvg, makeTable, brief, NO_VALUE, strokeOf, nearest, drawSvg, drawDygraph };
})();
