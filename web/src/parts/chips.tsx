// The evidence, each finding with a way to take it back, and how probable it is.

import { findings, NOTHING } from "../evidence";
import type { Explorer } from "../explorer";
import { chance, short } from "../format";

const SIGNS = { given: "●", soft: "◐", do: "▣" };

export function Chips({ explorer }: { explorer: Explorer }) {
  const { now, busy } = explorer.answers;
  const { evidence } = explorer.place;
  const dense = Object.keys(evidence.given).some((name) => explorer.nodes.get(name)?.kind === "real");
  const found = findings(evidence);
  return (
    <div class="chips" role="region" aria-label="evidence" data-testid="evidence">
      <div class="chip-list">
        {found.length === 0 && <span class="faint">No evidence: click a bar to observe its state.</span>}
        {found.map(({ node, how, text }) => (
          <span key={node} class={`chip is-${how}`}>
            <span aria-hidden="true">{SIGNS[how]} </span>
            <button type="button" class="chip-name" onClick={() => explorer.select(node)} title={text}>{short(text, 48)}</button>
            <button type="button" class="chip-off" onClick={() => void explorer.drop(node)} aria-label={`take back ${short(text, 60)}`}>✕</button>
          </span>
        ))}
      </div>
      {now && found.length > 0 && (
        <span class={`p-evidence${busy ? " busy" : ""}`} data-testid="p-evidence">
          {dense ? "density of evidence" : "p(evidence)"} <output>{chance(now.evidence_probability, now.log_evidence)}</output>
        </span>
      )}
      {now && now.method === "sampled" && (
        <span class="tag" data-testid="sampled">sampled{now.error !== null ? `, standard error ${now.error.toPrecision(2)}` : ""}</span>
      )}
      {found.length > 0 && (
        <button type="button" class="quiet" onClick={() => void explorer.believe(NOTHING)}>clear all</button>
      )}
    </div>
  );
}
