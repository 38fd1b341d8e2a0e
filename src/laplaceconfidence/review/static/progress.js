// The panel on the right: progress, expected errors left, and the estimate from the random sample.

import { byId, element, percent } from "./dom.js";

const WORDS = { keep: "kept", suggestion: "suggestion accepted", other: "another class", none: "no class fits", unsure: "unsure", drop: "dropped" };
const ISSUES = { outliers: "outliers decided", copies: "sets of copies decided", leaks: "leaks decided",
  images: "odd images decided", empty: "empty texts decided", groups: "labels of the worst groups decided",
  missing: "rows with missing values decided", rare: "labels of rare classes decided", order: "rows near similar ones decided" };

export function showProgress(progress) {
  // Without flagged labels, progress is that of the labels to look at by rank.
  const flagged = progress.n_suspects > 0;
  const [n, done] = flagged ? [progress.n_suspects, progress.n_suspects_decided] : [progress.n_ranked, progress.n_ranked_decided];
  byId("bar").setAttribute("aria-valuemax", n);
  byId("bar").setAttribute("aria-valuenow", done);
  byId("bar-fill").style.width = `${n ? (100 * done) / n : 100}%`;
  byId("decided").textContent = `${done.toLocaleString("en")} of ${n.toLocaleString("en")} ${flagged ? "suspects" : "labels by rank"} decided`;
  byId("verdicts").replaceChildren(
    ...Object.entries(WORDS).filter(([verdict]) => verdict !== "drop" || progress.by_verdict.drop).flatMap(([verdict, words]) => [
      element("dt", {}, words), element("dd", { "data-verdict": verdict }, progress.by_verdict[verdict].toLocaleString("en")),
    ]),
  );
  const issues = Object.entries(progress.other_issues);
  byId("other-issues").hidden = !issues.length;
  byId("other-counts").replaceChildren(...issues.flatMap(([queue, [decided, total]]) => [
    element("dt", {}, ISSUES[queue]), element("dd", { "data-queue": queue }, `${decided.toLocaleString("en")} of ${total.toLocaleString("en")}`),
  ]));
  const rounded = (number) => Math.round(number).toLocaleString("en");
  const unclear = progress.most_left !== null;
  byId("left").textContent = unclear ? `${rounded(Math.min(progress.expected_left, progress.most_left))} to ${rounded(progress.most_left)}` : `about ${rounded(progress.expected_left)}`;
  byId("left-note").textContent = unclear
    ? "wrong labels among those without a final decision; the random sample tells how many"
    : progress.calibrated
    ? "wrong labels expected among those without a final decision, from confidences calibrated on the random sample"
    : "wrong labels expected among those without a final decision, from the confidences of the audit";
  showNoise(progress.random, progress.n_left.random === 0);
}

function showNoise(random, isDone) {
  const drawn = byId("interval");
  drawn.hidden = random.n === 0;
  if (random.n === 0) {
    byId("noise").textContent = "no decisions yet";
    byId("noise-note").textContent =
      `Decide on samples drawn at random to estimate how many labels are wrong. After ${random.needed} of them, the confidences are calibrated on them, too.`;
    return;
  }
  byId("noise").textContent = `${percent(random.rate, 1)} wrong`;
  drawn.querySelector("span").style.left = `${100 * random.low}%`;
  drawn.querySelector("span").style.width = `${100 * (random.high - random.low)}%`;
  drawn.querySelector("i").style.left = `${100 * random.rate}%`;
  const more = random.needed - random.n;
  byId("noise-note").textContent =
    `${random.wrong} of ${random.n} labels in the sample are wrong; between ${percent(random.low, 1)} and ${percent(random.high, 1)} of all labels are (95% confidence interval). ` +
    (more > 0 ? `${more} more ${more === 1 ? "decision is" : "decisions are"} needed to calibrate the confidences.` : "The confidences are calibrated on this sample.") +
    (isDone ? " It is complete: go on with another queue." : "");
}
