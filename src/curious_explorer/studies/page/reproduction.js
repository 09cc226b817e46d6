// The reproduction: one experiment at a time, its graph round by round, its curves and its resets.
(() => {
  const { byId, style, plain, axis, draw, whenSchemeChanges } = page;
  const data = page.data.reproduction;
  const picker = byId("experiment"), slider = byId("round"), play = byId("play"), words = byId("round-words");
  const SVG = "http://www.w3.org/2000/svg";
  const RADIUS = 0.31, BEND = 0.14, SECOND = 1000, LONGEST_INSIDE = 5;
  let experiment = data.experiments[0], timer = null, shown = null;

  const make = (name, attributes, parent) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (parent) parent.appendChild(element);
    return element;
  };
  const mix = (a, b, t) => a.map((part, i) => Math.round(part + (b[i] - part) * t));
  const rgb = (colour) => `rgb(${colour.join(",")})`;
  // Red, yellow, green: light enough that a dark name can be read on each of them.
  const RED = [239, 83, 80], YELLOW = [255, 238, 140], GREEN = [76, 175, 100];
  const shade = (t) => rgb(t < 0.5 ? mix(RED, YELLOW, 2 * t) : mix(YELLOW, GREEN, 2 * t - 1));
  const hue = (t) => rgb(mix([220, 38, 38], [59, 120, 246], t));
  const percent = (x) => `${(100 * x).toPrecision(3)}%`;

  function drawGraph() {
    const svg = byId("graph"), xs = experiment.places.map((p) => p[0]), ys = experiment.places.map((p) => -p[1]);
    const left = Math.min(...xs) - 0.9, top = Math.min(...ys) - 0.9;
    const width = Math.max(...xs) - left + 0.9, height = Math.max(...ys) - top + 0.7;
    svg.replaceChildren();
    svg.setAttribute("viewBox", `${left} ${top} ${width} ${height}`);
    svg.style.minWidth = `${Math.min(44 * width, 1000)}px`;
    svg.style.maxWidth = `${110 * width}px`;
    const head = make("marker", { id: "tip", viewBox: "0 0 6 6", refX: 5, refY: 3, markerWidth: 0.14, markerHeight: 0.14,
      markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, make("defs", {}, svg));
    make("path", { d: "M0 0L6 3L0 6z", fill: style("--edge") }, head);
    for (const [tail, to, probability, pays, reverse] of experiment.edges) {
      make("path", { d: edgePath(xs[tail], ys[tail], xs[to], ys[to], tail === to, reverse), class: pays ? "edge pays" : "edge",
        "stroke-width": 0.015 + 0.05 * Math.sqrt(probability), "marker-end": "url(#tip)" }, svg);
    }
    experiment.starts.forEach((s) => make("path", { d: `M${xs[s] - 0.8} ${ys[s]}H${xs[s] - RADIUS - 0.03}`, class: "edge",
      "stroke-width": 0.06, "marker-end": "url(#tip)" }, svg));
    experiment.states.forEach((name, s) => {
      const group = make("g", { tabindex: 0, role: "img", "data-state": s }, svg);
      ["focus", "pointerdown", "pointerenter"].forEach((kind) => group.addEventListener(kind, () => {
        shown = s;
        byId("state-words").textContent = group.getAttribute("aria-label");
      }));
      make("title", {}, group);
      make("circle", { cx: xs[s], cy: ys[s], r: RADIUS, class: "state" }, group);
      if (experiment.terminal[s]) make("circle", { cx: xs[s], cy: ys[s], r: 1.2 * RADIUS, class: "ring" }, group);
      // A name that would be too small to read within the circle stands below it.
      const inside = name.length <= LONGEST_INSIDE;
      const text = make("text", { x: xs[s], y: ys[s] + (inside ? 0.08 : 0.62), class: inside ? "" : "below" }, group);
      text.textContent = name;
      if (inside && name.length > 3) text.style.fontSize = `${0.82 / name.length}px`;
    });
  }

  function edgePath(x0, y0, x1, y1, loops, reverse) {
    if (loops) return `M${x0 - 0.12} ${y0 - RADIUS}C${x0 - 0.35} ${y0 - 0.85} ${x0 + 0.35} ${y0 - 0.85} ${x0 + 0.12} ${y0 - RADIUS - 0.02}`;
    const dx = x1 - x0, dy = y1 - y0, bend = reverse ? BEND : 0;
    const cx = (x0 + x1) / 2 + bend * dy, cy = (y0 + y1) / 2 - bend * dx;
    const towards = (fx, fy, tx, ty, far) => {
      const length = Math.hypot(tx - fx, ty - fy) || 1;
      return [fx + (tx - fx) * far / length, fy + (ty - fy) * far / length];
    };
    const [ax, ay] = towards(x0, y0, cx, cy, RADIUS), [bx, by] = towards(x1, y1, cx, cy, 1.2 * RADIUS);
    return `M${ax} ${ay}Q${cx} ${cy} ${bx} ${by}`;
  }

  function showRound() {
    const n = Number(slider.value) - 1;
    byId("graph").querySelectorAll("g[data-state]").forEach((group) => {
      const s = Number(group.dataset.state), share = experiment.shares[n][s];
      const told = `${experiment.states[s]}: resets ${percent(experiment.mu[n][s])}, visits so far ` +
        (experiment.poor[n][s] ? `${percent(share)} of the threshold, poorly visited` : "above the threshold");
      group.querySelector("circle.state").setAttribute("fill", shade(share));
      group.querySelector("title").textContent = told;
      group.setAttribute("aria-label", told);
      if (s === shown) byId("state-words").textContent = told;
    });
    const poor = experiment.poor[n].reduce((a, b) => a + b, 0);
    words.textContent = `${n + 1} of ${experiment.mu.length}: ${poor} of ${experiment.states.length} states below the threshold of ${experiment.thresholds[n]}`;
    slider.setAttribute("aria-valuetext", words.textContent);
  }

  function stop() {
    clearInterval(timer);
    timer = null;
    play.textContent = "Play";
    play.setAttribute("aria-pressed", "false");
  }

  function start() {
    if (slider.value === slider.max) slider.value = slider.min;
    showRound();
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    timer = setInterval(() => {
      slider.value = Number(slider.value) + 1;
      showRound();
      if (slider.value === slider.max) stop();
    }, SECOND);
  }

  function drawCurves(id, kind, title) {
    const traces = [];
    for (const [arm, name, colour, tint] of [["without", "without CE", style("--bad"), "rgba(220,38,38,0.18)"],
      ["with", "with CE", style("--good"), "rgba(22,163,74,0.2)"]]) {
      const { x, mean, low, high } = experiment.curves[kind][arm];
      const band = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip", showlegend: false };
      traces.push({ ...band, y: low }, { ...band, y: high, fill: "tonexty", fillcolor: tint },
        { x, y: mean, name, mode: "lines", line: { color: colour, width: 2 }, hovertemplate: "%{y:.3f}" });
    }
    const line = (x0, x1, y0, y1) => ({ type: "line", x0, x1, y0, y1, line: { color: style("--quiet"), width: 1, dash: "dot" } });
    const shapes = [{ ...line(0, 1, experiment.best, experiment.best), xref: "paper" }];
    if (kind === "samples") shapes.push({ type: "rect", x0: 0, x1: experiment.exploration, y0: 0, y1: 1, yref: "paper",
      fillcolor: "rgba(22,163,74,0.08)", line: { width: 0 }, label: { text: "exploring", textposition: "top left", font: { color: style("--quiet") } } });
    draw(id, traces, { shapes, xaxis: axis(title, { rangemode: "tozero" }),
      yaxis: axis(`return, ${experiment.return}`, { range: [-0.03 * experiment.best, 1.08 * experiment.best] }) });
  }

  function drawScatter() {
    const names = experiment.states.map(plain), last = Math.max(1, experiment.mu.length - 1), uniform = 1 / names.length;
    const traces = experiment.mu.map((mu, n) => ({ x: names.map((_, s) => s), y: mu.map((m) => Math.max(m, 1e-5)), mode: "markers",
      type: "scatter", showlegend: false, marker: { color: hue(n / last), size: 6, opacity: 0.8 },
      text: names, hovertemplate: `%{text}: %{y:.4f}<extra>round ${n + 1}</extra>` }));
    const line = (y, dash) => ({ type: "line", xref: "paper", x0: 0, x1: 1, y0: y, y1: y, line: { color: style("--good"), width: 1.5, dash } });
    const every = Math.ceil(names.length / 24);
    const ticks = names.map((_, s) => s).filter((s) => s % every === 0);
    draw("scatter", traces, { hovermode: "closest", shapes: [line(uniform, "solid"), line(uniform / 2, "dash")],
      xaxis: axis("state", { tickvals: ticks, ticktext: ticks.map((s) => names[s]) }),
      yaxis: axis("μ<sub>n</sub>(s)", { type: "log", range: [-5.1, 0.05], dtick: 1, exponentformat: "power" }) });
  }

  function drawAll() {
    drawGraph();
    showRound();
    drawCurves("by-episodes", "episodes", "learning episodes");
    drawCurves("by-samples", "samples", "samples, exploration included");
    drawScatter();
  }

  function choose(index) {
    stop();
    experiment = data.experiments[index];
    shown = null;
    byId("state-words").textContent = "";
    slider.max = experiment.mu.length;
    slider.value = experiment.mu.length;
    byId("experiment-facts").textContent = `γ ${experiment.gamma}, β ${experiment.beta.toPrecision(3)}, ${experiment.mu.length} rounds, ${experiment.states.length} states`;
    drawAll();
  }

  data.experiments.forEach((each, index) => picker.add(new Option(each.title, index)));
  picker.addEventListener("change", () => choose(Number(picker.value)));
  slider.addEventListener("input", () => { stop(); showRound(); });
  play.addEventListener("click", () => (timer === null ? start() : stop()));
  whenSchemeChanges(drawAll);
  picker.value = data.experiments.length - 1;
  choose(data.experiments.length - 1);
})();
