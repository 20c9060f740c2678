"use strict";
(() => {
  const points = JSON.parse(document.getElementById("points").textContent);
  const switches = Array.from(document.querySelectorAll("#legend [data-config]"));
  const bands = document.getElementById("bands");
  const panel = document.getElementById("panel");
  const drawn = [];

  // What a click on a point opens: its configuration, its figures, and the commands that run it.
  function show({ title, config, figures, state, error, commands }) {
    const made = (tag, text, parent = panel) => {
      const element = parent.appendChild(document.createElement(tag));
      element.textContent = text;
      return element;
    };
    const listed = (rows) => {
      const list = made("dl", "");
      for (const [name, value] of rows) {
        const row = made("div", "", list);
        made("dt", name, row);
        made("dd", value, row);
      }
    };
    panel.replaceChildren();
    const close = made("button", "×");
    close.className = "close";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => { panel.hidden = true; });
    made("h3", title);
    listed(config);
    listed(figures);
    if (state) made("p", state).className = "state";
    if (error) made("pre", error);
    const text = commands.join("\n");
    made("pre", text).className = "commands";
    const copy = made("button", commands.length > 1 ? `Copy the ${commands.length} commands` : "Copy the command");
    copy.className = "copy";
    copy.dataset.copy = text;
    panel.hidden = false;
  }

  async function copied(button) {
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      const code = button.parentElement.querySelector(".commands") ?? button.nextElementSibling;
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = said; }, 1200);
  }

  function seen(chart) {
    const shown = new Map(switches.map((each) => [each.dataset.config, each.getAttribute("aria-pressed") === "true"]));
    const indices = chart.data.map((_, index) => index).filter((index) => shown.has(chart.data[index].legendgroup));
    const banded = !bands || bands.getAttribute("aria-pressed") === "true";
    const visible = indices.map((index) => shown.get(chart.data[index].legendgroup)
      && (banded || chart.data[index].name !== "interval"));
    if (visible.some((each, at) => each !== (chart.data[indices[at]].visible ?? true))) {
      Plotly.restyle(chart, { visible }, indices);
    }
  }

  function press(chosen) {
    switches.forEach((each, index) => each.setAttribute("aria-pressed", chosen[index]));
    drawn.forEach(seen);
  }

  switches.forEach((button, index) => {
    button.addEventListener("click", () => {
      press(switches.map((each, at) => (each.getAttribute("aria-pressed") === "true") !== (at === index)));
    });
    button.addEventListener("dblclick", () => {
      const alone = switches.every((each, at) => (each.dataset.alone === "yes") === (at === index));
      switches.forEach((each, at) => { each.dataset.alone = !alone && at === index ? "yes" : ""; });
      press(switches.map((_, at) => alone || at === index));
    });
  });

  bands?.addEventListener("click", () => {
    bands.setAttribute("aria-pressed", bands.getAttribute("aria-pressed") !== "true");
    drawn.forEach(seen);
  });

  document.addEventListener("drawn", ({ detail: chart }) => {
    drawn.push(chart);
    seen(chart);
    chart.on("plotly_click", (event) => {
      const said = points[event.points[0].customdata];
      if (said) show(said);
    });
  });
  document.addEventListener("click", ({ target }) => {
    if (target.classList.contains("copy")) copied(target);
  });
  document.addEventListener("keydown", ({ key }) => {
    if (key === "Escape") panel.hidden = true;
  });
})();
