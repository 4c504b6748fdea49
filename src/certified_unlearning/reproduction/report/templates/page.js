"use strict";
// Filters for the claims. Without this script, all claims are shown, and the form stays hidden.
const form = document.getElementById("filters");
if (form) {
  const claims = [...document.querySelectorAll(".claims > li")];
  const papers = [...document.querySelectorAll("details.paper")];
  const texts = claims.map((claim) => claim.textContent.toLowerCase());
  const filter = () => {
    const { whose, verdict, severity, source, text } = form.elements;
    const words = text.value.toLowerCase().split(/\s+/);
    let shown = 0;
    claims.forEach((claim, index) => {
      claim.hidden =
        (whose.value && claim.dataset.whose !== whose.value) ||
        (verdict.value && claim.dataset.verdict !== verdict.value) ||
        (severity?.value && claim.dataset.severity !== severity.value) ||
        (source.value && !JSON.parse(claim.dataset.sources).includes(source.value)) ||
        !words.every((word) => texts[index].includes(word));
      shown += !claim.hidden;
    });
    // A filter unfolds the papers that still have claims.
    const filtered = whose.value || verdict.value || severity?.value || source.value || text.value.trim();
    [...papers, ...document.querySelectorAll(".ours")].forEach((part) => {
      part.hidden = !part.querySelector(".claims > li:not([hidden])");
    });
    if (filtered) papers.forEach((paper) => (paper.open = true));
    form.elements.shown.value = `${shown} of ${claims.length} shown`;
  };
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  filter();
}

// A link to a folded part unfolds that part.
const unfold = () => {
  let part = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!part) return;
  const target = part;
  for (; part; part = part.parentElement) if (part.tagName === "DETAILS") part.open = true;
  target.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();

// A box shows a hint while it is wider than the screen.
const boxes = [...document.querySelectorAll(".cue")].map((cue) => [cue, cue.nextElementSibling]);
const cues = new ResizeObserver(() => {
  boxes.forEach(([cue, box]) => {
    cue.hidden = box.scrollWidth <= box.clientWidth;
  });
});
boxes.forEach(([, box]) => cues.observe(box));
