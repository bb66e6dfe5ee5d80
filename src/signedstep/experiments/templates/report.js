"use strict";
(() => {
  const { methods, problems } = JSON.parse(document.getElementById("data").textContent);
  const get = (id) => document.getElementById(id);
  const axisNames = { iterations: "iteration", evals: "evaluations of loss and gradient", seconds: "seconds" };
  const hidden = new Set();
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = () => document.querySelector("input[name=axis]:checked").value;
  const translucent = (colour) => colour + "26";
  const dashes = { dash: "6 3", dot: "2 3", solid: "" };

  function traces(problem) {
    const shown = methods.filter((m) => problem.curves[m.id]?.[axis()] && !hidden.has(m.id));
    const bands = get("bands").checked ? shown.map((m) => band(m, problem.curves[m.id][axis()])) : [];
    return [...bands, ...shown.map((m) => line(m, problem.curves[m.id][axis()]))];
  }

  function line(method, curve) {
    const { colour: color, dash, width } = method;
    return { x: curve.x, y: curve.y, name: method.label, mode: "lines", line: { color, dash, width },
             hovertemplate: "%{y:.4g}", showlegend: false };
  }

  function band(method, curve) {
    const known = curve.x.map((_, i) => i).filter((i) => curve.low[i] !== null && curve.high[i] !== null);
    const back = [...known].reverse();
    return { x: [...known, ...back].map((i) => curve.x[i]),
             y: [...known.map((i) => curve.high[i]), ...back.map((i) => curve.low[i])],
             fill: "toself", fillcolor: translucent(method.colour), line: { width: 0 }, mode: "lines",
             hoverinfo: "skip", showlegend: false };
  }

  // Powers of ten are too few ticks for less than two decades, and 2 and 5 between them too many for more.
  function ticks(shown) {
    const values = shown.flatMap((trace) => trace.y).filter((value) => value > 0);
    return get("log-y").checked && Math.max(...values) < 100 * Math.min(...values) ? "D2" : undefined;
  }

  function layout(shown) {
    const narrow = get("plot").clientWidth < 640;
    const common = { gridcolor: style("--line"), linecolor: style("--line"), zeroline: false, automargin: true };
    return {
      margin: { l: 12, r: 12, t: 12, b: 12 }, hovermode: narrow ? "closest" : "x unified",
      paper_bgcolor: style("--paper"), plot_bgcolor: style("--paper"),
      font: { family: style("--ui"), size: 13, color: style("--ink") },
      hoverlabel: { bgcolor: style("--panel"), bordercolor: style("--line"), font: { color: style("--ink") } },
      xaxis: { ...common, title: { text: axisNames[axis()] }, type: get("log-x").checked ? "log" : "linear" },
      yaxis: { ...common, title: { text: "training loss" }, type: get("log-y").checked ? "log" : "linear",
               exponentformat: "power", dtick: ticks(shown), tickformat: ticks(shown) ? "~g" : undefined },
    };
  }

  function draw() {
    const problem = problems[get("problem").value];
    for (const chip of get("chips").children) {
      chip.hidden = !problem.curves[chip.dataset.method];
      chip.style.display = chip.hidden ? "none" : "";
      chip.setAttribute("aria-pressed", String(!hidden.has(chip.dataset.method)));
    }
    const shown = traces(problem);
    Plotly.react("plot", shown, layout(shown), { responsive: true, displaylogo: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] });
  }

  function chip(method) {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.method = method.id;
    button.innerHTML = `<svg width="22" height="8" aria-hidden="true"><line x1="1" x2="21" y1="4" y2="4" stroke="${method.colour}"
      stroke-width="${method.width + 0.8}" stroke-dasharray="${dashes[method.dash]}"/></svg>`;
    button.append(method.label);
    button.addEventListener("click", () => {
      if (!hidden.delete(method.id)) hidden.add(method.id);
      draw();
    });
    button.addEventListener("dblclick", () => alone(method));
    return button;
  }

  function alone(method) {
    const others = methods.filter((m) => m.id !== method.id);
    const already = others.every((m) => hidden.has(m.id));
    hidden.clear();
    if (!already) others.forEach((m) => hidden.add(m.id));
    draw();
  }

  function tabs() {
    const buttons = [...document.querySelectorAll("[data-table]")];
    const choose = (measure) => buttons.forEach((button) => {
      const chosen = button.dataset.table === measure;
      button.setAttribute("aria-pressed", String(chosen));
      get(`table-${button.dataset.table}`).hidden = !chosen;
    });
    buttons.forEach((button) => button.addEventListener("click", () => choose(button.dataset.table)));
    if (buttons.length) {
      get("tabs").hidden = false;
      choose(buttons[0].dataset.table);
    }
  }

  tabs();
  if (!problems.length) return;
  problems.forEach((problem, i) => get("problem").add(new Option(problem.name, i)));
  get("chips").append(...methods.map(chip));
  get("controls").hidden = false;
  get("controls").addEventListener("change", draw);
  dark.addEventListener("change", draw);
  draw();
})();
