// An edge, present or absent: what the data say of it, and what the next learning shall do about it.

import type { Explorer } from "../explorer";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { digits, short } from "../format";
import type { EdgeWhy, Model } from "../wire";

interface EdgePanelProps {
  explorer: Explorer;
  model: Model;
  parent: string;
  child: string;
  onClose: () => void;
}

export function EdgePanel({ explorer, model, parent, child, onClose }: EdgePanelProps) {
  const asked = useAsk<EdgeWhy>(`${model.id} ${parent}\n${child}`, (signal) => explorer.client.get(`models/${model.id}/edge`, { parent, child }, signal));
  const { answer } = asked;
  const { require, forbid } = explorer.learning.rules;
  const has = (pairs: [string, string][]) => pairs.some(([a, b]) => a === parent && b === child);
  return (
    <aside class="panel" aria-label="edge" data-testid="edge-panel">
      <div class="panel-head">
        <h2><bdi>{short(parent, 40)}</bdi> {model.kind === "bayes_net" ? "→" : "–"} <bdi>{short(child, 40)}</bdi></h2>
        <button type="button" class="quiet" aria-label="close the panel" onClick={onClose}>✕</button>
      </div>
      <p>
        <button type="button" class="link" onClick={() => { onClose(); explorer.select(parent); }}>{short(parent, 24)}</button>{" "}
        <button type="button" class="link" onClick={() => { onClose(); explorer.select(child); }}>{short(child, 24)}</button>
      </p>
      <Waiting asked={asked} />
      {answer && <p>{answer.present ? "The edge is in the graph." : "The edge is not in the graph."}</p>}
      {answer && answer.loss !== null && <p>Score lost without it: <strong>{digits(answer.loss)}</strong></p>}
      {answer?.direction && <p>Direction: {answer.direction}</p>}
      {answer && <pre class="said">{answer.text}</pre>}
      {answer && <CodeFold code={answer.code} />}
      {model.kind === "bayes_net" && (
        <div class="means" role="group" aria-label="when learning again">
          <span class="faint">when learning again:</span>
          <button type="button" aria-pressed={has(require)} onClick={() => explorer.learning.rule("require", parent, child)}>require</button>
          <button type="button" aria-pressed={has(forbid)} onClick={() => explorer.learning.rule("forbid", parent, child)}>forbid</button>
        </div>
      )}
    </aside>
  );
}
