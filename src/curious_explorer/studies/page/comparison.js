// The comparison: curves, bars, profile and heat map, for the methods that are switched on.
(() => {
  const { byId, style, plain, axis, draw, whenSchemeChanges } = page;
  const data = page.data.comparison, names = data.methods.map(plain);
  const picker = byId("comparison-environment"), measure = byId("comparison-measure"), bands = byId("comparison-bands");
  // Ten hues that can be told apart on white and on black; beyond ten methods the dashes tell.
  const HUES = ["#2f7ed8", "#e0701a", "#2e9e4f", "#d63d3d", "#8d62c9", "#a2705c", "#d862b0", "#8a8f98", "#a9a51c", "#17a6b8"];
  const DASHES = ["solid", "dash", "dot"];
  const colour = (m) => HUES[m % HUES.length], dash = (m) => DASHES[Math.floor(m / HUES.length) % DASHES.length];
  const tint = (m) => `${colour(m)}26`;
  const boxes = data.methods.map((name, m) => {
    const label = document.createElement("label"), box = document.createElement("input"), swatch = document.createElement("i");
    label.className = "check";
    box.type = "checkbox";
    box.checked = true;
    swatch.style.borderTop = `3px ${dash(m) === "solid" ? "solid" : dash(m) === "dash" ? "dashed" : "dotted"} ${colour(m)}`;
    label.append(box, swatch, name);
    byId("comparison-methods").append(label);
    box.addEventListener("change", drawAll);
    return box;
  });
  const shown = () => data.methods.map((_, m) => m).filter((m) => boxes[m].checked);
  const environment = () => data.environments[Number(picker.value)];
  const percent = { tickformat: ".0%", range: [-0.03, 1.05] };

  function drawCurves() {
    const { samples: x, curves, budget } = environment(), traces = [];
    for (const m of shown()) {
      const [y, low, high] = curves[m], band = { x, mode: "lines", line: { width: 0 }, hoverinfo: "skip" };
      if (bands.checked) traces.push({ ...band, y: low }, { ...band, y: high, fill: "tonexty", fillcolor: tint(m) });
      traces.push({ x, y, name: names[m], mode: "lines", line: { color: colour(m), width: 2, dash: dash(m) },
        hovertemplate: `${names[m]}: %{y:.1%} after %{x:,.0f}<extra></extra>` });
    }
    const line = { type: "line", xref: "paper", x0: 0, x1: 1, y0: data.target, y1: data.target, line: { color: style("--quiet"), width: 1, dash: "dot" } };
    draw("comparison-value", traces, { height: 420, showlegend: false, hovermode: "closest", shapes: [line],
      xaxis: axis("samples", { type: "log", range: [Math.log10(x[0]), Math.log10(budget)], dtick: 1, exponentformat: "power" }),
      yaxis: axis(`${data.quantity}, of the best`, percent) });
  }

  function drawBars() {
    const { toTarget, reached, budget } = environment(), rows = shown();
    const got = (m) => toTarget[m] !== null;
    const told = (m) => (got(m) ? toTarget[m].toLocaleString("en") : `${Math.round(100 * reached[m])}% of runs`);
    const trace = { type: "bar", orientation: "h", y: rows.map((m) => names[m]), x: rows.map((m) => (got(m) ? Math.max(toTarget[m], 1) : 1)),
      marker: { color: rows.map((m) => (got(m) ? colour(m) : "rgba(0,0,0,0)")) }, text: rows.map(told), textposition: "outside", cliponaxis: false,
      textfont: { color: style("--ink"), size: 11 }, hovertemplate: "%{y}: %{text}<extra></extra>" };
    draw("comparison-bars", [trace], { height: Math.max(200, 60 + 21 * rows.length), margin: { l: 110, r: 56, t: 10, b: 46 }, hovermode: "closest", bargap: 0.25,
      xaxis: axis(`samples to ${Math.round(100 * data.target)}%, median`, { type: "log", range: [0, Math.log10(budget) + 0.1], dtick: 1, exponentformat: "power" }),
      yaxis: { autorange: "reversed", dtick: 1, fixedrange: true } });
  }

  function drawProfile() {
    const traces = shown().map((m) => ({ x: data.profile.taus, y: data.profile.shares[m], name: names[m], mode: "lines",
      line: { color: colour(m), width: 2, dash: dash(m) }, hovertemplate: `${names[m]}: %{y:.0%} of runs above %{x:.2f}<extra></extra>` }));
    draw("comparison-shares", traces, { showlegend: false, hovermode: "closest",
      xaxis: axis(`final ${data.quantity} τ, of the best`, { range: [-0.01, 1] }), yaxis: axis("share of runs", percent) });
  }

  function drawHeat() {
    const rows = shown(), table = data.improvement[measure.value];
    const cells = (part) => rows.map((one) => rows.map((other) => table[one][other] ? part(table[one][other], one, other) : null));
    const trace = { type: "heatmap", x: rows.map((m) => names[m]), y: rows.map((m) => names[m]), z: cells(([p]) => p), zmin: 0, zmax: 1, xgap: 1, ygap: 1,
      colorscale: [[0, style("--low")], [0.5, style("--panel")], [1, style("--high")]], showscale: false, hoverongaps: false, texttemplate: "%{text}",
      text: cells(([p]) => p.toFixed(2)).map((row) => row.map((words) => words ?? "")), textfont: { size: 10, color: style("--ink") },
      customdata: cells(([, low, high], one, other) => `${names[one]} beats ${names[other]}, 95% interval ${low.toFixed(2)} to ${high.toFixed(2)}`),
      hovertemplate: "%{z:.2f}: %{customdata}<extra></extra>" };
    byId("comparison-heat").style.minWidth = `${120 + 34 * rows.length}px`;
    draw("comparison-heat", [trace], { height: 130 + 27 * rows.length, margin: { l: 110, r: 12, t: 10, b: 100 }, hovermode: "closest",
      xaxis: { tickangle: -60, showgrid: false, fixedrange: true, dtick: 1 }, yaxis: { autorange: "reversed", showgrid: false, fixedrange: true, dtick: 1 } });
  }

  function drawEnvironment() {
    drawCurves();
    drawBars();
  }

  function drawAll() {
    drawEnvironment();
    drawProfile();
    drawHeat();
  }

  function switchAll(on) {
    boxes.forEach((box) => { box.checked = on; });
    drawAll();
  }

  data.environments.forEach((each, index) => picker.add(new Option(each.name, index)));
  picker.value = data.environments.length - 1;
  picker.addEventListener("change", drawEnvironment);
  bands.addEventListener("change", drawCurves);
  measure.addEventListener("change", drawHeat);
  byId("comparison-all").addEventListener("click", () => switchAll(true));
  byId("comparison-none").addEventListener("click", () => switchAll(false));
  whenSchemeChanges(drawAll);
  drawAll();
})();
