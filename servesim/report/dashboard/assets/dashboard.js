"use strict";

window.dash_clientside = window.dash_clientside || {};
window.dash_clientside.servesim = {
  /* Light or dark: as the system has it, until the button says otherwise. */
  mode(clicks, mode, templates) {
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const next = !mode ? system : mode === "dark" ? "light" : "dark";
    document.documentElement.dataset.mode = next;
    for (const chart of document.querySelectorAll(".js-plotly-plot")) {
      window.Plotly.relayout(chart, { template: templates[next] });
    }
    return next;
  },

  /* Which panels are seen: classes of the page. */
  panels(state, side) {
    if (!state) return "";
    const asked = new URLSearchParams(state.query);
    const b = side === "B" && asked.has("compare");
    const classes = [asked.has("sweep") ? "sweep" : "what-if", `side-${b ? "b" : "a"}`];
    if (asked.has("compare")) classes.push("comparing");
    return classes.join(" ");
  },

  /* The controls that have to be mended are marked, and the groups that they are in unfold. */
  wrong(ran) {
    for (const control of document.querySelectorAll("#sidebar .control")) {
      const wrong = Boolean(ran?.wrong.includes(control.id.replace(/-control$/, "")));
      control.classList.toggle("wrong", wrong);
      if (wrong && control.closest("details")) control.closest("details").open = true;
    }
  },

  async copy(clicks, command) {
    if (window.dash_clientside.callback_context.triggered_id !== "copy") return "Copy the command";
    await navigator.clipboard.writeText(command);
    return "Copied";
  },

  /* The charts with the configurations that are switched on. */
  shown(groups, figures, mode, templates) {
    return figures.map((figure) => ({
      ...figure,
      layout: { ...figure.layout, template: templates[mode] },
      data: figure.data.map((trace) => ({
        ...trace, visible: !trace.legendgroup || groups.includes(trace.legendgroup),
      })),
    }));
  },

  /* The command of the point that was clicked. */
  picked(clicks, figures) {
    const point = window.dash_clientside.callback_context.triggered[0]?.value?.points?.[0];
    return figures[0]?.layout.meta[point?.customdata] ?? "";
  },
};
