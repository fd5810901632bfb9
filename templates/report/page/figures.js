// Draw figures. Readers can zoom, pan, hide curves, read values, and open the trial of a point. uPlot draws axes and the cursor. The
// curves are drawn here from a pyramid of extremes, so that a million points are fast and no extreme is lost. Tiles are a table.
"use strict";
(() => {
  const COLOURS = { // Okabe and Ito, as in the PDF; and lighter ones on a dark page
    light: ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"],
    dark: ["#4FA8E0", "#FF8A3D", "#2FC49A", "#E79CCB", "#F0B429", "#9AD6FA", "#FFFFFF", "#A8A8A8"],
  };
  const DASHES = [[], [6, 3], [2, 2], [8, 3, 2, 3], [10, 4], [4, 4], [], [1, 3]];
  const RUN = 4; // a run of a pyramid's level has this many samples, or runs of the level below
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const figures = [];

  // --- Data

  function decode({ base, floats }) {
    const bytes = Uint8Array.fromBase64?.(floats) ?? Uint8Array.from(atob(floats), one => one.charCodeAt(0));
    const offsets = new Float32Array(bytes.buffer); // little-endian, as every browser's machine is
    const values = new Float64Array(offsets.length);
    for (let i = 0; i < values.length; i++) values[i] = base + offsets[i];
    return values;
  }

  // The indices of the least and greatest values in runs of 4, 16, 64 … samples.
  function pyramid(low, high) {
    const levels = [];
    let below = { least: null, greatest: null, length: low.length };
    while (below.length > 1024) {
      const length = Math.ceil(below.length / RUN);
      const level = { least: new Uint32Array(length), greatest: new Uint32Array(length), length };
      for (let run = 0; run < length; run++) {
        let least = -1, greatest = -1;
        for (let i = run * RUN; i < Math.min((run + 1) * RUN, below.length); i++) {
          const down = below.least ? below.least[i] : i, up = below.greatest ? below.greatest[i] : i;
          if (least < 0 || low[down] < low[least] || low[least] !== low[least]) least = down;
          if (greatest < 0 || high[up] > high[greatest] || high[greatest] !== high[greatest]) greatest = up;
        }
        level.least[run] = least;
        level.greatest[run] = greatest;
      }
      levels.push(level);
      below = level;
    }
    return levels;
  }

  // The first index at which xs is at least x.
  function placeOf(xs, x) {
    let from = 0, to = xs.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if (xs[middle] < x) from = middle + 1; else to = middle;
    }
    return from;
  }

  function nearest(xs, x) {
    const place = placeOf(xs, x);
    return place > 0 && (place === xs.length || x - xs[place - 1] <= xs[place] - x) ? place - 1 : place;
  }

  function makeCurve(raw, number) {
    const curve = { ...raw, number, x: decode(raw.x), y: decode(raw.y) };
    for (const name of ["low", "high"]) curve[name] = raw[name] ? decode(raw[name]) : curve.y;
    curve.banded = Boolean(raw.low);
    curve.isLine = curve.low.every((low, i) => low === curve.high[i]);
    curve.levelsOfExtremes = pyramid(curve.low, curve.high);
    return curve;
  }

  // The indices to draw between two values of x: all, or the extremes of each run if there are more than `most`.
  function placesToDraw(curve, from, to, most) {
    const first = Math.max(0, placeOf(curve.x, from) - 1);
    const last = Math.min(curve.x.length - 1, placeOf(curve.x, to) + 1);
    let level = null, size = 1;
    for (const next of curve.levelsOfExtremes) {
      if ((last - first) / size <= most) break;
      level = next;
      size *= RUN;
    }
    const places = [];
    if (!level) for (let i = first; i <= last; i++) places.push(i);
    else for (let run = Math.floor(first / size); run <= Math.floor(last / size); run++) {
      const [a, b] = [level.least[run], level.greatest[run]];
      places.push(Math.min(a, b));
      if (a !== b) places.push(Math.max(a, b));
    }
    return places;
  }

  // The numbers of a box plot: quartiles (R's type 7), and the ends of its whiskers, the outermost samples at most 1.5 interquartile ranges from them.
  function boxOf(samples, isLog) {
    const to = isLog ? Math.log : one => one, back = isLog ? Math.exp : one => one;
    const sorted = Float64Array.from(samples, to).sort();
    const quartile = share => {
      const at = share * (sorted.length - 1), below = Math.floor(at);
      return sorted[below] + (at - below) * ((sorted[below + 1] ?? sorted[below]) - sorted[below]);
    };
    const [low, median, high] = [0.25, 0.5, 0.75].map(quartile), reach = 1.5 * (high - low);
    const inside = sorted.filter(one => one >= low - reach && one <= high + reach);
    const [least, first, middle, last, greatest] = [inside[0], low, median, high, inside.at(-1)].map(back);
    return { least, low: first, median: middle, high: last, greatest };
  }

  // Mean and covariance of the points of a curve, as the points of the ellipse of one standard deviation; none for fewer than three points.
  function ellipseOf({ x, y }) {
    const n = x.length, mean = of => of.reduce((sum, one) => sum + one, 0) / n;
    if (n < 3) return [];
    const [mx, my] = [mean(x), mean(y)];
    const covariance = (a, ma, b, mb) => a.reduce((sum, one, i) => sum + (one - ma) * (b[i] - mb), 0) / (n - 1);
    const [xx, xy, yy] = [covariance(x, mx, x, mx), covariance(x, mx, y, my), covariance(y, my, y, my)];
    // A square root of the covariance matrix (Cholesky's) maps the unit circle to the ellipse.
    const a = Math.sqrt(xx), b = a > 0 ? xy / a : 0, c = Math.sqrt(Math.max(0, yy - b * b));
    return Array.from({ length: 73 }, (_, i) => {
      const turn = i * Math.PI / 36;
      return [mx + a * Math.cos(turn), my + b * Math.cos(turn) + c * Math.sin(turn)];
    });
  }

  // --- Drawing

  function colourOf(curve) {
    return COLOURS[dark.matches ? "dark" : "light"][curve.number % 8];
  }

  // Where a point is on the x axis: bars of one level stand side by side.
  function across(panel, figure, curve, i) {
    if (figure.kind !== "bars") return curve.x[i];
    return curve.x[i] + (panel.curves.indexOf(curve) - (panel.curves.length - 1) / 2) * barWidth(panel);
  }

  const barWidth = panel => 0.8 / panel.curves.length;

  function drawPanel(plot, panel, figure) {
    const { ctx, bbox } = plot, scale = devicePixelRatio;
    const X = value => plot.valToPos(value, "x", true), Y = value => plot.valToPos(value, "y", true);
    const { min, max } = plot.scales.x;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.lineJoin = "round";
    for (const curve of panel.curves.filter(one => !figure.hidden.has(one.label))) {
      const places = placesToDraw(curve, min, max, 4 * bbox.width);
      ctx.strokeStyle = ctx.fillStyle = colourOf(curve);
      ctx.lineWidth = 1.3 * scale;
      const shapes = { bars: drawBars, boxes: drawBox, segments: drawSegments }[figure.kind];
      if (shapes && !(figure.kind === "segments" && curve.isLine)) {
        shapes(ctx, panel, figure, curve, places, X, Y, scale);
        continue;
      }
      if (curve.banded && figure.kind === "line") {
        ctx.globalAlpha = 0.3;
        ctx.beginPath();
        for (const i of places) ctx.lineTo(X(curve.x[i]), Y(curve.high[i]));
        for (const i of places.toReversed()) ctx.lineTo(X(curve.x[i]), Y(curve.low[i]));
        ctx.fill();
        ctx.globalAlpha = 1;
      }
      if (figure.kind === "step" || figure.kind === "points") ctx.setLineDash(DASHES[curve.number % 8].map(one => one * scale));
      ctx.beginPath();
      // A distribution is continued to both edges of the plot: from 0 to 1 if it rises, from 1 to 0 if it falls.
      const [from, to] = curve.y.at(0) <= curve.y.at(-1) ? [0, 1] : [1, 0];
      let before = NaN;
      if (figure.cumulative && curve.x[0] >= min) ctx.moveTo(bbox.left, before = Y(from));
      for (const i of places) {
        const [x, y] = [X(curve.x[i]), Y(curve.y[i])];
        if (Number.isNaN(y)) { before = NaN; continue; }
        if (Number.isNaN(before)) ctx.moveTo(x, y);
        else if (figure.kind === "step" || figure.kind === "segments") ctx.lineTo(x, before);
        ctx.lineTo(x, y);
        before = y;
      }
      if (figure.cumulative && curve.x.at(-1) <= max) {
        ctx.lineTo(X(curve.x.at(-1)), Y(to));
        ctx.lineTo(bbox.left + bbox.width, Y(to));
      }
      if (figure.kind !== "points" || curve.banded) ctx.stroke(); // points without intervals are single observations
      ctx.setLineDash([]);
      if (figure.ellipses) drawEllipse(ctx, curve, X, Y);
      if (figure.kind === "points") drawMarks(ctx, curve, places, X, Y, scale);
    }
    ctx.restore();
  }

  function drawArea(ctx, alpha) {
    ctx.globalAlpha = alpha;
    ctx.fill();
    ctx.globalAlpha = 1;
    ctx.stroke();
  }

  function line(ctx, ...points) {
    ctx.beginPath();
    for (const [x, y] of points) ctx.lineTo(x, y);
    ctx.stroke();
  }

  function drawBars(ctx, panel, figure, curve, places, X, Y, scale) {
    const half = 0.44 * barWidth(panel);
    for (const i of places) {
      const at = across(panel, figure, curve, i), [left, right] = [X(at - half), X(at + half)], top = Y(curve.y[i]);
      ctx.beginPath();
      if (figure.log.y) ctx.arc(X(at), top, 3.5 * scale, 0, 7); // a bar needs an axis that has a zero
      else ctx.rect(left, top, right - left, Y(0) - top);
      drawArea(ctx, figure.log.y ? 1 : 0.45);
      if (curve.low[i] === curve.low[i]) line(ctx, [X(at), Y(curve.low[i])], [X(at), Y(curve.high[i])]);
    }
  }

  function drawBox(ctx, panel, figure, { box, x, y }, places, X, Y, scale) {
    if (!x.length) return;
    const [left, middle, right] = [X(x[0] - 0.3), X(x[0]), X(x[0] + 0.3)], [low, high] = [Y(box.low), Y(box.high)];
    ctx.beginPath();
    ctx.rect(left, high, right - left, low - high);
    drawArea(ctx, 0.25);
    line(ctx, [left, Y(box.median)], [right, Y(box.median)]);
    line(ctx, [middle, low], [middle, Y(box.least)]);
    line(ctx, [middle, high], [middle, Y(box.greatest)]);
    for (const one of y.filter(one => one < box.least || one > box.greatest)) {
      ctx.beginPath();
      ctx.arc(middle, Y(one), 1.5 * scale, 0, 7);
      ctx.fill();
    }
  }

  function drawSegments(ctx, panel, figure, curve, places, X, Y, scale) {
    ctx.beginPath();
    for (const i of places) {
      const [x, low, high] = [X(curve.x[i]), Y(curve.low[i]), Y(curve.high[i])];
      ctx.moveTo(x, low);
      ctx.lineTo(x, Math.min(high, low - scale)); // at least a pixel
    }
    ctx.stroke();
  }

  function drawEllipse(ctx, curve, X, Y) {
    ctx.beginPath();
    for (const [x, y] of ellipseOf(curve)) ctx.lineTo(X(x), Y(y));
    drawArea(ctx, 0.15);
  }

  function drawMarks(ctx, curve, places, X, Y, scale) {
    for (const i of places) {
      const [x, y, r] = [X(curve.x[i]), Y(curve.y[i]), 3.5 * scale];
      ctx.beginPath();
      if (curve.banded && curve.low[i] === curve.low[i]) {
        ctx.moveTo(x, Y(curve.low[i]));
        ctx.lineTo(x, Y(curve.high[i]));
        ctx.stroke();
        ctx.beginPath();
      }
      const shape = curve.number % 3; // disc, triangle, square
      if (shape === 0) ctx.arc(x, y, r, 0, 7);
      else if (shape === 1) { ctx.moveTo(x, y - 1.2 * r); ctx.lineTo(x + 1.1 * r, y + r); ctx.lineTo(x - 1.1 * r, y + r); }
      else ctx.rect(x - r, y - r, 2 * r, 2 * r);
      ctx.fill();
    }
  }

  // The range of y, the same for all panels of a quantity: from zero if the whole width is shown, as in the PDF; otherwise that of the visible values.
  function rangeOfY(panel, figure, min, max) {
    let low = Infinity, high = -Infinity;
    const panels = figure.kind === "segments" ? [panel] : figure.panels.filter(one => one.quantity === panel.quantity);
    // On a scale that includes the end of a receiver's window of megabytes, segments would be too small to see.
    const visible = panels.flatMap(one => one.curves).filter(one => !figure.hidden.has(one.label)), drawn = visible.filter(one => !one.isLine);
    for (const curve of figure.kind === "segments" && drawn.length ? drawn : visible) {
      for (const i of placesToDraw(curve, min, max, 4000)) {
        if (curve.x[i] < min || curve.x[i] > max) continue;
        for (const value of [curve.y[i], curve.low[i], curve.high[i]]) {
          if (figure.log.y && value <= 0) continue;
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
    }
    if (low > high) return figure.log.y ? [1, 10] : [0, 1];
    if (figure.log.y) return [low / 1.1, high * 1.1];
    const whole = min <= figure.whole[0] && max >= figure.whole[1];
    if (figure.kind === "bars" || whole && !figure.ellipses) low = Math.min(0, low);
    const margin = (high - low || Math.abs(high) || 1) * 0.06;
    return [low === 0 ? 0 : low - margin, high + margin];
  }

  function axes(figure, isLast) {
    const common = { stroke: () => css("--ink"), grid: { stroke: () => css("--hair"), width: 0.5 }, ticks: { stroke: () => css("--hair") },
      font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif" };
    const words = new Map();
    figure.x.levels.forEach((word, i) => words.set(i, word));
    if (figure.kind === "points" && !words.size) {
      for (const curve of figure.panels.flatMap(one => one.curves)) curve.levels?.forEach((word, i) => words.set(curve.x[i], word));
    }
    const few = words.size > 0 && words.size <= 16;
    const x = { ...common, label: isLast ? figure.x.title : undefined, labelSize: 22, size: 34 };
    if (few) {
      x.splits = (plot, _, min, max) => [...words.keys()].filter(one => one >= min && one <= max).sort((a, b) => a - b);
      x.values = (plot, splits) => splits.map(one => words.get(one));
      x.filter = (plot, splits) => splits;
    }
    return [x, { ...common, label: figure.y.title || undefined, labelSize: 22, size: 58 }];
  }

  const plain = value => String(Number(value.toPrecision(5)));

  function makePlot(panel, figure, isLast) {
    const width = panel.box.clientWidth, [min, max] = figure.view;
    const plot = new uPlot({
      width, height: figure.panels.length > 1 ? 190 : 300,
      axes: axes(figure, isLast),
      series: [{}, { show: false }],
      scales: {
        x: { time: false, min, max, range: (self, low, high) => [low, high], distr: figure.log.x ? 3 : 1, dir: figure.x.reversed ? -1 : 1 },
        y: { auto: false, range: rangeOfY(panel, figure, min, max), distr: figure.log.y ? 3 : 1 },
      },
      legend: { show: false },
      cursor: { y: false, points: { show: false }, sync: { key: figure.x.column, scales: ["x", null], filters: { pub: type => type === "mousemove" || type === "mouseleave" } }, drag: { x: true, y: false, dist: 4, setScale: false },
        bind: { mousedown: (self, target, handler) => event => event.shiftKey ? startPan(event, figure, self) : handler(event),
          dblclick: () => () => setView(figure, ...figure.whole) } },
      hooks: {
        draw: [self => drawPanel(self, panel, figure)],
        setSelect: [self => {
          const { left, width } = self.select, ends = [left, left + width].map(one => self.posToVal(one, "x"));
          if (width > 0) setView(figure, Math.min(...ends), Math.max(...ends));
        }],
        setCursor: [self => readOut(self, panel, figure)],
      },
    }, [[min, max], [null, null]], panel.box);
    plot.over.addEventListener("click", event => {
      if (plot.select.width === 0 && !event.shiftKey) openPoint(plot, panel, figure);
    });
    return plot;
  }

  function plotFigure(figure) {
    figure.panels.forEach((panel, number) => {
      panel.plot?.destroy();
      panel.plot = makePlot(panel, figure, number === figure.panels.length - 1);
    });
  }

  // --- Views

  function setView(figure, min, max) {
    if (!(max > min)) return;
    figure.view = [min, max];
    for (const panel of figure.panels) {
      const [low, high] = rangeOfY(panel, figure, min, max);
      panel.plot.batch(() => {
        panel.plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        panel.plot.setScale("x", { min, max });
        panel.plot.setScale("y", { min: low, max: high });
      });
    }
  }

  // Move the ends of the view to the right, each by a share of the view's width. On a logarithmic axis, the width is measured in logarithms.
  function moveView(figure, from, to) {
    const there = figure.log.x ? Math.log : one => one, back = figure.log.x ? Math.exp : one => one;
    if (figure.x.reversed) [from, to] = [-to, -from];
    const [min, max] = figure.view.map(there);
    setView(figure, back(min + from * (max - min)), back(max + to * (max - min)));
  }

  function startPan(event, figure, plot) {
    let last = event.clientX;
    const move = next => {
      const share = (last - next.clientX) / plot.over.clientWidth;
      last = next.clientX;
      moveView(figure, share, share);
    };
    addEventListener("mousemove", move);
    addEventListener("mouseup", () => removeEventListener("mousemove", move), { once: true });
    event.preventDefault();
  }

  function keyPressed(event, panel, figure) {
    const { plot } = panel, width = plot.over.clientWidth, at = plot.cursor.left >= 0 ? plot.cursor.left : width / 2;
    const moveCursor = by => plot.setCursor({ left: Math.min(width, Math.max(0, at + by)), top: 10 });
    const shift = event.shiftKey, actions = {
      ArrowLeft: () => shift ? moveView(figure, -0.2, -0.2) : moveCursor(-width / 100),
      ArrowRight: () => shift ? moveView(figure, 0.2, 0.2) : moveCursor(width / 100),
      "+": () => moveView(figure, 0.2, -0.2),
      "-": () => moveView(figure, -0.3, 0.3),
      Escape: () => setView(figure, ...figure.whole),
      Enter: () => openPoint(plot, panel, figure),
    };
    const action = event.ctrlKey || event.altKey || event.metaKey ? null : actions[event.key === "=" ? "+" : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // --- Values and trials

  function placeAt(curve, figure, x) {
    if (figure.kind === "step") return Math.max(0, placeOf(curve.x, x + 1e-12 * Math.abs(x)) - 1);
    return nearest(curve.x, x);
  }

  function readOut(plot, panel, figure) {
    const shown = plot.cursor.left >= 0, x = shown ? plot.posToVal(plot.cursor.left, "x") : NaN;
    panel.position.textContent = !shown ? "" : figure.x.levels.length ? figure.x.levels[Math.round(x)] ?? "" : `at ${plain(x)}`;
    for (const curve of panel.curves) {
      const near = shown && curve.x.length ? placeAt(curve, figure, x) : -1;
      const i = near >= 0 && figure.x.levels.length && curve.x[near] !== Math.round(x) ? -1 : near;
      if (curve.box) {
        const { least, low, median, high, greatest } = curve.box;
        curve.output.textContent = `median ${plain(median)}, quartiles ${plain(low)} and ${plain(high)}, whiskers ${plain(least)} to ${plain(greatest)}`;
        continue;
      }
      const band = i >= 0 && curve.banded && curve.low[i] < curve.high[i] ? ` [${plain(curve.low[i])}, ${plain(curve.high[i])}]` : "";
      curve.output.textContent = i < 0 || Number.isNaN(curve.y[i]) ? "" : plain(curve.y[i]) + band;
    }
  }

  // Open the trials of the visible point that is nearest to the cursor.
  function openPoint(plot, panel, figure) {
    const { left, top } = plot.cursor;
    if (!(left >= 0)) return;
    const x = plot.posToVal(left, "x");
    let best = null;
    for (const curve of panel.curves.filter(one => !figure.hidden.has(one.label) && one.x.length)) {
      for (const i of curve.box ? curve.x.keys() : [placeAt(curve, figure, x)]) {
        const distance = Math.abs(plot.valToPos(curve.y[i], "y") - top) + Math.abs(plot.valToPos(across(panel, figure, curve, i), "x") - left);
        if (!best || distance < best.distance) best = { curve, i, distance };
      }
    }
    if (!best) return;
    const { curve, i } = best;
    const words = [...curve.label.split(", "), ...(curve.levels ? [curve.levels[i]] : [])];
    const detail = curve.at ? { places: [curve.at[curve.at.length > 1 ? i : 0]] } : { places: figure.trials, words };
    document.dispatchEvent(new CustomEvent("open-trials", { detail: { ...detail, title: words.join(", ") } }));
  }

  // --- Elements

  function toggleLog(figure, axis, button) {
    figure.log[axis] = !figure.log[axis];
    button.setAttribute("aria-pressed", figure.log[axis]);
    setWhole(figure);
    plotFigure(figure);
  }

  function setWhole(figure) {
    let min = Infinity, max = -Infinity;
    for (const curve of figure.panels.flatMap(one => one.curves)) {
      for (const x of curve.x) {
        if (figure.log.x && x <= 0) continue;
        if (x < min) min = x;
        if (x > max) max = x;
      }
    }
    const margin = figure.kind === "points" ? 0.04 : figure.kind === "step" ? 0.02 : 0;
    if (min > max) [min, max] = figure.log.x ? [1, 10] : [0, 1];
    if (figure.log.x) [min, max] = [min * (min / max) ** margin, max * (max / min) ** margin];
    else [min, max] = [min - margin * (max - min), max + margin * (max - min)];
    if (figure.kind === "step" && !figure.log.x && min < 0.8 * max) min = Math.min(0, min); // otherwise the steps would be in one place
    if (min === max) [min, max] = [min - 0.5, max + 0.5];
    if (["bars", "boxes"].includes(figure.kind)) [min, max] = [-0.5, figure.x.levels.length - 0.5];
    figure.whole = figure.view = [min, max];
  }

  function legend(panel, figure) {
    return panel.curves.map(curve => {
      curve.swatch = element("i");
      curve.output = element("output");
      const toggle = () => {
        const hidden = !figure.hidden.delete(curve.label);
        if (hidden) figure.hidden.add(curve.label);
        for (const one of figure.panels.flatMap(other => other.curves)) {
          if (one.label === curve.label) one.button.setAttribute("aria-pressed", !hidden);
        }
        setView(figure, ...figure.view);
        for (const one of figure.panels) one.plot.redraw();
      };
      curve.button = element("button", { type: "button", "aria-pressed": "true", title: "Hide or show this curve", onclick: toggle }, curve.swatch, curve.label, curve.output);
      return curve.button;
    });
  }

  function paintSwatches(figure) {
    for (const curve of figure.panels.flatMap(one => one.curves)) curve.swatch.style.background = colourOf(curve);
  }

  function pictureButton(holder) {
    const button = element("button", { type: "button", title: "The picture of the PDF, with marks that are not in the data, such as theory or buffer size",
      "aria-pressed": "false", onclick: () => button.setAttribute("aria-pressed", holder.classList.toggle("shows-picture")) }, "Picture");
    return button;
  }

  // Tiles are a table, whose cells open the trials of a row and a column.
  function makeTiles(holder, { x, y, panels, trials }) {
    const tile = (row, column, panel, found) => {
      if (!found) return element("td");
      const words = [row, column, ...panel.split(" · ")].filter(Boolean);
      const open = () => document.dispatchEvent(new CustomEvent("open-trials", { detail: { places: trials, words, title: words.join(", ") } }));
      return element("td", { style: `background: color-mix(in oklab, #0072B2 ${100 * found.share}%, #E8F1F8); color: ${found.share > 0.5 ? "#fff" : "#222"}` },
        element("button", { type: "button", title: "Open the trials", onclick: open }, found.text, element("small", {}, found.interval)));
    };
    const tables = panels.map(({ title, rows }) => element("div", { class: "panel scroll" },
      ...(panels.length > 1 ? [element("h4", {}, title)] : []),
      element("table", { class: "tiles" },
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, `${y.title} \\ ${x.title}`), ...x.levels.map(one => element("th", { scope: "col" }, one)))),
        element("tbody", {}, ...y.levels.map(row => element("tr", {}, element("th", { scope: "row" }, row), ...x.levels.map(column => tile(row, column, title, rows[row]?.[column]))))))));
    holder.querySelector(".picture").after(element("div", { class: "tools" }, pictureButton(holder), element("small", {}, "Click: the trials of a tile.")), ...tables);
    holder.classList.add("with-curves");
  }

  function makeFigure(holder, raw) {
    if (raw.kind === "tiles") return makeTiles(holder, raw);
    const labels = [...new Set(raw.panels.flatMap(panel => panel.curves.map(one => one.label)))];
    const panels = raw.panels.map(panel => ({ ...panel, curves: panel.curves.map(one => makeCurve(one, labels.indexOf(one.label))) }));
    if (raw.kind === "boxes") for (const curve of panels.flatMap(one => one.curves)) curve.box = boxOf(curve.y, raw.y.log);
    const figure = { ...raw, panels, hidden: new Set(), log: { x: raw.x.log && !raw.x.levels.length, y: raw.y.log } };
    setWhole(figure);
    const button = (text, title, onclick, more = {}) => element("button", { type: "button", title, onclick, ...more }, text);
    const tools = element("div", { class: "tools", role: "toolbar", "aria-label": "View of the figure" },
      button("+", "Zoom in (key +)", () => moveView(figure, 0.2, -0.2)),
      button("−", "Zoom out (key −)", () => moveView(figure, -0.3, 0.3)),
      button("←", "Pan to the left (Shift and arrow key)", () => moveView(figure, -0.2, -0.2)),
      button("→", "Pan to the right (Shift and arrow key)", () => moveView(figure, 0.2, 0.2)),
      button("Whole figure", "Show everything (Escape, or a double click)", () => setView(figure, ...figure.whole)));
    for (const axis of ["x", "y"]) {
      if (axis === "x" && raw.x.levels.length) continue;
      const log = button(`Log ${axis}`, `Logarithmic ${axis} axis`, () => toggleLog(figure, axis, log), { "aria-pressed": String(figure.log[axis]) });
      tools.append(log);
    }
    tools.append(pictureButton(holder), element("small", {}, "Drag: zoom. Shift and drag: pan. Click: the trial of a point."));
    holder.querySelector(".picture").after(tools);
    let last = tools;
    for (const panel of panels) {
      panel.position = element("output");
      panel.box = element("div", { class: "plot", tabindex: "0", role: "group",
        "aria-label": `${panel.title || raw.y.title}: arrow keys read values, + and - zoom, Shift and arrow keys pan, Enter opens the trial, Escape shows everything`,
        onkeydown: event => keyPressed(event, panel, figure) });
      const box = element("div", { class: "panel" },
        ...(panels.length > 1 ? [element("h4", {}, panel.title)] : []),
        element("div", { class: "legend" }, ...legend(panel, figure), panel.position), panel.box);
      last.after(box);
      last = box;
    }
    holder.classList.add("with-curves");
    paintSwatches(figure);
    plotFigure(figure);
    figures.push(figure);
    new ResizeObserver(() => {
      for (const panel of panels) {
        if (panel.box.clientWidth && panel.box.clientWidth !== panel.plot.width) panel.plot.setSize({ width: panel.box.clientWidth, height: panel.plot.height });
      }
    }).observe(holder);
  }

  // A figure is made when it is about to be seen, so that the page opens fast.
  const watcher = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      makeFigure(target, JSON.parse(target.querySelector("script.curves").textContent));
    }
  }, { rootMargin: "600px" });
  for (const script of document.querySelectorAll("script.curves")) watcher.observe(script.closest("figure"));

  dark.addEventListener("change", () => {
    for (const figure of figures) {
      paintSwatches(figure);
      for (const panel of figure.panels) panel.plot.redraw(false, true);
    }
  });
})();
