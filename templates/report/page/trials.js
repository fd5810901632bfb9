// The table of trials: filter it, and show a trial's verdict, checks and files.
"use strict";
(() => {
  const { factors, rows } = JSON.parse(document.getElementById("trial-rows").textContent);
  const dialog = document.getElementById("trial-dialog");
  const table = document.getElementById("trial-table");
  let details = null; // unpacked when the first trial is opened

  // --- Filter

  const columns = [
    ...(new Set(rows.map(row => row.campaign)).size > 1 ? [["campaign", row => row.campaign]] : []),
    ...(new Set(rows.map(row => row.part)).size > 1 ? [["part", row => row.part]] : []),
    ...factors.map((name, place) => [name, row => row.levels[place]]),
    ["verdict", row => row.state],
  ];
  const form = document.getElementById("filter");
  const count = element("output");
  const chosen = columns.map(([name, value]) => {
    const values = [...new Set(rows.map(value))].filter(one => one !== "");
    const select = element("select", {}, element("option", { value: "" }, "all"), ...values.map(one => element("option", { value: one }, one)));
    form.append(element("label", {}, name, select));
    return [select, value];
  });
  const words = element("input", { type: "search" });
  form.append(element("label", {}, "id or reason", words), element("button", { type: "reset" }, "All trials"), count);

  function filter() {
    const wanted = words.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      const matches = chosen.every(([select, value]) => select.value === "" || value(row) === select.value)
        && `${row.id} ${row.reasons}`.toLowerCase().includes(wanted);
      table.tBodies[0].rows[place].hidden = !matches;
      shown += matches;
    });
    count.textContent = `${shown} of ${rows.length} trials`;
  }
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = false;
  filter();

  // --- One trial

  const path = (row, ...parts) => [row.folder, "trials", row.id, ...parts].flatMap(one => one.split("/")).map(encodeURIComponent).join("/");

  function checksTable(checks) {
    return element("div", { class: "scroll", tabindex: "0" }, element("table", {},
      element("thead", {}, element("tr", {}, ...["Result", "Check", "Host", "Requested", "Observed"].map(one => element("th", { scope: "col" }, one)))),
      element("tbody", {}, ...checks.map(check => element("tr", {}, ...check.map((cell, place) =>
        place ? element("td", {}, cell) : element("td", { class: cell === "passed" ? "valid" : "invalid" }, cell)))))));
  }

  function checksOf(trial) {
    const checks = trial.checks.map(one => details.checks[one]);
    const failed = checks.filter(one => one[0] !== "passed"), passed = checks.filter(one => one[0] === "passed");
    return [
      ...(failed.length ? [checksTable(failed)] : []),
      ...(passed.length ? [element("details", {}, element("summary", {}, `${passed.length} passed`), checksTable(passed))] : []),
      ...(checks.length ? [] : ["None is recorded."]),
    ];
  }

  // A script's exit code, output and time are in a file of the same name.
  const scriptOf = file => file.endsWith(".json") ? file.replace(/json$/, "sh") : "";

  async function unpack(text) {
    const bytes = Uint8Array.from(atob(text), one => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  function filesOf(row, trial) {
    const scripts = new Map(trial.scripts.map(([name, text]) => [details.names[name], details.scripts[text]]));
    const folders = new Map();
    for (const name of trial.files.map(one => details.names[one])) {
      const [folder, file] = name.split("/");
      folders.set(folder, [...(folders.get(folder) ?? []), file]);
    }
    return [...folders].flatMap(([folder, files]) => [
      element("h3", {}, folder[0].toUpperCase() + folder.slice(1)),
      element("ul", folder === "commands" ? { class: "commands" } : {}, ...files.filter(file => !files.includes(scriptOf(file))).map(file => {
        const link = (name, text) => element("a", { href: path(row, folder, name) }, text);
        const result = files.find(one => one !== file && scriptOf(one) === file);
        const links = [link(file, file), ...(result ? [" → ", link(result, "result")] : [])];
        const text = scripts.get(`${folder}/${file}`);
        if (text === undefined) return element("li", {}, ...links);
        return element("li", { class: "script" }, element("details", {}, element("summary", {}, file),
          element("p", {}, ...links), element("pre", { tabindex: "0" }, text)));
      })),
    ]);
  }

  function show(heading, ...content) {
    const close = element("button", { type: "button", class: "close", onclick: () => dialog.close() }, "Close");
    dialog.replaceChildren(element("h2", { id: "trial-heading" }, heading), close, ...content);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    close.focus();
  }

  async function openTrial(place) {
    details ??= await unpack(document.getElementById("trial-details").textContent);
    const row = rows[place], trial = details.trials[place];
    const facts = [...columns.map(([name, value]) => [name, value(row)]), ["replicate", row.replicate], ["block", row.block], ["reasons", row.reasons]];
    show(row.id,
      element("dl", {}, ...facts.filter(([, value]) => value !== "").map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value))))),
      ...(row.recorded ? [element("p", {}, element("a", { href: path(row, "manifest.json") }, "manifest.json"))] : []),
      element("h3", {}, "Checks"), ...checksOf(trial), ...filesOf(row, trial));
  }

  // Open the trials of a point: those of `places` that have all levels in `words`, or all of `places` if none has.
  document.addEventListener("open-trials", ({ detail }) => {
    const matching = detail.words ? detail.places.filter(place => {
      const own = [rows[place].campaign, rows[place].part, ...rows[place].levels];
      return detail.words.every(one => own.includes(one));
    }) : detail.places.filter(place => place >= 0);
    const places = matching.length ? matching : detail.places.filter(place => place >= 0);
    if (places.length === 1) openTrial(places[0]);
    else show(`${places.length} trials: ${detail.title}`, element("ul", {}, ...places.map(place =>
      element("li", {}, element("button", { type: "button", onclick: () => openTrial(place) }, rows[place].id)))));
  });

  table.addEventListener("click", event => {
    const link = event.target.closest("a[data-trial]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openTrial(Number(link.dataset.trial));
  });
  dialog.addEventListener("click", event => {
    if (event.target === dialog) dialog.close();
  });
})();
