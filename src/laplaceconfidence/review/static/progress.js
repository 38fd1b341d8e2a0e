// The panel on the right: progress, expected errors left, and the estimate from the random sample.

import { byId, element, percent } from "./dom.js";

const WORDS = { keep: "kept", suggestion: "suggestion accepted", other: "another class", none: "no class fits", unsure: "unsure" };

export function showProgress(progress) {
  const { n_suspects: n, n_suspects_decided: done } = progress;
  byId("bar").setAttribute("aria-valuemax", n);
  byId("bar").setAttribute("aria-valuenow", done);
  byId("bar-fill").style.width = `${n ? (100 * done) / n : 100}%`;
  byId("decided").textContent = `${done.toLocaleString("en")} of ${n.toLocaleString("en")} suspects decided`;
  byId("verdicts").replaceChildren(
    ...Object.entries(WORDS).flatMap(([verdict, words]) => [
      element("dt", {}, words), element("dd", { "data-verdict": verdict }, progress.by_verdict[verdict].toLocaleString("en")),
    ]),
  );
  byId("left").textContent = `about ${Math.round(progress.expected_left).toLocaleString("en")}`;
  byId("left-note").textContent = progress.calibrated
    ? "wrong labels expected among those not settled yet, by confidences calibrated on your random sample"
    : "wrong labels expected among those not settled yet, by the confidences of the audit";
  showNoise(progress.random);
}

function showNoise(random) {
  const drawn = byId("interval");
  drawn.hidden = random.n === 0;
  if (random.n === 0) {
    byId("noise").textContent = "no decisions yet";
    byId("noise-note").textContent =
      `Decide on samples drawn at random to estimate how many labels are wrong. From ${random.needed} on, they also calibrate the confidences.`;
    return;
  }
  byId("noise").textContent = `${percent(random.rate, 1)} wrong`;
  drawn.querySelector("span").style.left = `${100 * random.low}%`;
  drawn.querySelector("span").style.width = `${100 * (random.high - random.low)}%`;
  drawn.querySelector("i").style.left = `${100 * random.rate}%`;
  const more = random.needed - random.n;
  byId("noise-note").textContent =
    `${random.wrong} of ${random.n} decisions; between ${percent(random.low, 1)} and ${percent(random.high, 1)} of all labels (95% interval). ` +
    (more > 0 ? `${more} more are needed to calibrate the confidences.` : "They calibrate the confidences.");
}
