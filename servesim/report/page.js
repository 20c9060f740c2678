"use strict";
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const told = (id) => JSON.parse(document.getElementById(id).textContent);
  const templates = told("templates");
  const texts = told("texts");
  const charts = Array.from(document.querySelectorAll(".chart"));
  const button = document.getElementById("mode");
  const mode = () => root.dataset.mode || (dark.matches ? "dark" : "light");
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  // One after the other, with a breath between them, so that the page can be read and scrolled meanwhile.
  async function draw() {
    for (const chart of charts) {
      const { data, layout } = told(`${chart.id}-data`);
      for (const trace of data.filter((each) => each.said)) trace.text = trace.said.map((index) => texts[index]);
      await Plotly.newPlot(chart, data, { ...layout, template: templates[mode()] }, config);
      chart.dataset.mode = mode();
      document.dispatchEvent(new CustomEvent("drawn", { detail: chart }));
      await new Promise((resume) => setTimeout(resume, 0));
    }
    await recolour();
    document.body.dataset.drawn = "yes";
  }

  async function recolour() {
    button.textContent = mode() === "dark" ? "Light" : "Dark";
    for (const chart of charts.filter((each) => each.dataset.mode && each.dataset.mode !== mode())) {
      chart.dataset.mode = mode();
      await Plotly.relayout(chart, { template: templates[mode()] });
    }
  }

  for (const buttons of document.querySelectorAll(".buttons")) {
    const [all, charts] = [Array.from(buttons.children), Array.from(buttons.nextElementSibling.children)];
    buttons.addEventListener("click", ({ target }) => {
      if (!all.includes(target)) return;
      all.forEach((each, index) => {
        each.setAttribute("aria-pressed", each === target);
        charts[index].classList.toggle("unseen", each !== target);
      });
    });
  }

  button.addEventListener("click", () => {
    root.dataset.mode = mode() === "dark" ? "light" : "dark";
    recolour();
  });
  dark.addEventListener("change", recolour);
  draw();
})();
