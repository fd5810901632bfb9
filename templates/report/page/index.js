// Show only the campaigns whose row contains all words of the filter.
"use strict";
(() => {
  const form = document.getElementById("filter");
  const rows = [...document.getElementById("campaigns").tBodies[0].rows];
  function filter() {
    const words = form.querySelector("input").value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every(one => row.textContent.toLowerCase().includes(one));
    form.querySelector("output").textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
  }
  form.addEventListener("input", filter);
  form.addEventListener("submit", event => event.preventDefault());
  form.hidden = false;
  filter();
})();
