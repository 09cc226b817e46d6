"use strict";
// What the scripts of all parts of the page share; each part's data is in `page.data` under its name.
const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"); // Plotly reads some tags
  const layout = (extra) => ({
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", height: 340,
    font: { color: style("--ink"), family: "system-ui, sans-serif", size: 12 }, margin: { l: 58, r: 12, t: 10, b: 46 },
    legend: { orientation: "h", y: 1.12 }, hovermode: "x unified", dragmode: false, // a finger that scrolls the page should not zoom
    hoverlabel: { bgcolor: style("--panel"), font: { color: style("--ink") } }, ...extra,
  });
  const axis = (title, extra) => ({ title: { text: title }, gridcolor: style("--line"), zerolinecolor: style("--line"), ...extra });
  const options = { displayModeBar: false, responsive: true };
  // The box gets the drawing's height too: Plotly leaves that to whoever made the box.
  const draw = (id, traces, extra) => {
    const wanted = layout(extra);
    byId(id).style.height = `${wanted.height}px`;
    return Plotly.react(id, traces, wanted, options);
  };
  const whenSchemeChanges = (draw) => matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

  // Column heads of sortable tables become buttons; cells sort by `data-sort`, those without one go last.
  function makeSortable(table) {
    const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
    const key = (row, column) => row.cells[column].dataset.sort;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        body.append(...[...body.rows].sort((a, b) => {
          const [x, y] = [key(a, column), key(b, column)];
          return x === undefined || y === undefined ? (x === undefined) - (y === undefined) : sign * (x - y);
        }));
      });
    });
  }
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  return { data, byId, style, plain, axis, draw, whenSchemeChanges };
})();
