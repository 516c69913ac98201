// A field that filters the rows of long tables: pages with many rows get one below their title.
// It works without a network.
(() => {
  const article = document.querySelector(".bd-article");
  const rows = [...(article?.querySelectorAll("tbody tr") ?? [])];
  if (rows.length < 250) return;
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const box = document.createElement("p");
  box.className = "filter";
  box.innerHTML =
    '<input type="search" aria-label="Filter the rows of this page" ' +
    'placeholder="Filter: words of a name or a meaning"> <output></output>';
  article.querySelector("h1").after(box);
  const [input, count] = box.children;

  const apply = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, i) => {
      row.hidden = !words.every((word) => texts[i].includes(word));
      shown += !row.hidden;
    });
    // a table without a row goes with its frame, and a section without a table with its heading
    for (const table of article.querySelectorAll("table")) {
      table.hidden = words.length > 0 && !table.querySelector("tbody tr:not([hidden])");
    }
    for (const section of article.querySelectorAll("section section")) {
      section.hidden = words.length > 0 && !section.querySelector("table:not([hidden])");
    }
    count.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  };

  input.value = new URLSearchParams(location.search).get("filter") ?? "";
  input.addEventListener("input", apply);
  apply();
})();
