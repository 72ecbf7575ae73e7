// Soft evidence: a weight for each state.

import { useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { short } from "../format";
import type { NodeInfo } from "../wire";

export function SoftForm({ explorer, node }: { explorer: Explorer; node: NodeInfo }) {
  const [weights, setWeights] = useState(() => explorer.place.evidence.soft[node.name] ?? node.states.map(() => 1));
  const change = (i: number, text: string) => setWeights(weights.map((w, j) => (i === j ? Number(text) : w)));
  const valid = weights.every((w) => Number.isFinite(w) && w >= 0) && weights.some((w) => w > 0);
  const send = (event: Event) => {
    event.preventDefault();
    if (valid) void explorer.soften(node.name, weights);
  };
  return (
    <form class="soft" onSubmit={send} data-testid="soft-form">
      <p class="faint">How probable what was seen would be, were it this state. Only ratios matter.</p>
      {node.states.map((state, i) => (
        <label key={state}>
          <span>{short(state, 20)}</span>
          <input type="range" min="0" max="1" step="0.01" value={Math.min(weights[i] ?? 0, 1)} aria-label={`weight of ${short(state, 40)}, slider`} onInput={(event) => change(i, event.currentTarget.value)} />
          <input type="number" min="0" step="any" value={weights[i]} aria-label={`weight of ${short(state, 40)}`} onInput={(event) => change(i, event.currentTarget.value)} />
        </label>
      ))}
      {!valid && <p class="refusal">weights are at least 0, and not all of them 0</p>}
      <button type="submit" disabled={!valid}>apply</button>
    </form>
  );
}
