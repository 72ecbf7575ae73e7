// How often each edge is found when rows are redrawn: a job, whose answer becomes the width of the edges.

import { useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { Progress } from "../tabs/progress";
import type { Model } from "../wire";

export function Strengths({ explorer, model }: { explorer: Explorer; model: Model }) {
  const { learning, place } = explorer;
  const [n, setN] = useState(100);
  const table = place.table ?? model.table;
  if (model.kind !== "bayes_net" || !table) return null;
  const start = (event: Event) => {
    event.preventDefault();
    void explorer.attempt(() => learning.strengths(model.id, table, n));
  };
  return (
    <section aria-label="strengths of edges" data-testid="strengths">
      <form class="inline" onSubmit={start}>
        <label>
          strengths of edges, from redrawn tables
          <input type="number" min="1" max="10000" value={n} onInput={(event) => setN(Number(event.currentTarget.value))} />
        </label>
        <button type="submit" disabled={learning.running}>bootstrap</button>
      </form>
      {learning.job?.kind === "bootstrap" && <Progress explorer={explorer} learning={learning} />}
    </section>
  );
}
