// A job while it runs: its steps, the score so far, and the way to stop it and keep the best.

import type { Explorer } from "../explorer";
import type { Learning } from "../learning";
import { digits } from "../format";
import type { Step } from "../wire";

export function Progress({ explorer, learning }: { explorer: Explorer; learning: Learning }) {
  const { job, steps, end } = learning;
  if (!job) return null;
  const last = steps[steps.length - 1];
  return (
    <section class="progress" aria-label="progress" data-testid="progress">
      <div class="sheet-head">
        <strong>{end ? (end.error ? "failed" : end.stopped ? "stopped: the best so far is kept" : "done") : job.kind === "learn" ? "learning …" : "redrawing rows …"}</strong>
        {last && <span>step {last.step}{last.score !== null ? `, score ${digits(last.score, 8)}` : ""}, {last.seconds.toFixed(1)} s</span>}
        <span class="spring" />
        {!end && <button type="button" disabled={learning.stopping} onClick={() => void explorer.attempt(() => learning.stop())} data-testid="stop">
            {learning.stopping ? "stopping at the next step …" : "stop and keep the best"}
          </button>}
        {end?.model && job.kind === "learn" && <button type="button" class="main" onClick={() => void explorer.openModel(end.model!)}>look at it</button>}
      </div>
      {end?.error && <p class="refusal" role="alert">{end.error}</p>}
      {last && <p class="faint">{last.text}</p>}
      <Trace steps={steps} />
    </section>
  );
}

function Trace({ steps }: { steps: Step[] }) {
  const scores = steps.map((step) => step.score).filter((score): score is number => score !== null);
  if (scores.length < 2) return null;
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const points = scores.map((score, i) => `${((300 * i) / (scores.length - 1)).toFixed(1)},${(58 - (56 * (score - low)) / (high - low || 1)).toFixed(1)}`);
  return (
    <svg class="trace" viewBox="0 0 300 60" preserveAspectRatio="none" role="img" aria-label={`score from ${digits(scores[0])} to ${digits(scores[scores.length - 1])} in ${scores.length} steps`}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
