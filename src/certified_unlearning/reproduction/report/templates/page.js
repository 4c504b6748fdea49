"use strict";
// Filters of the claims. Without this script all claims are shown, and the form stays hidden.
const form = document.getElementById("filters");
if (form) {
  const claims = [...document.querySelectorAll(".claims > li")];
  const texts = claims.map((claim) => claim.textContent.toLowerCase());
  const filter = () => {
    const { verdict, source, text } = form.elements;
    const words = text.value.toLowerCase().split(/\s+/);
    let shown = 0;
    claims.forEach((claim, index) => {
      claim.hidden =
        (verdict.value && claim.dataset.verdict !== verdict.value) ||
        (source.value && !JSON.parse(claim.dataset.sources).includes(source.value)) ||
        !words.every((word) => texts[index].includes(word));
      shown += !claim.hidden;
    });
    form.elements.shown.value = `${shown} of ${claims.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
}
