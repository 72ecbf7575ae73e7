// Two models: where their graphs differ, how they score, how far apart they are, and the same evidence in both.

import { useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { howOf, keyOf, valueOf } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { Bars } from "../parts/bars";
import { Chips } from "../parts/chips";
import { CodeFold } from "../parts/code";
import { digits, short } from "../format";
import { Stage } from "../picture/stage";
import type { Shown } from "../picture/canvas";
import type { Comparison, LineStyle, Model } from "../wire";

const LINES: [LineStyle, string][] = [
  ["both", "in both"],
  ["here", "only in the first"],
  ["there", "only in the second"],
  ["reversed", "in both, with another direction"],
];

export function CompareTab({ explorer }: { explorer: Explorer }) {
  const { held, place } = explorer;
  const model = explorer.model!;
  const other = explorer.against;
  const [node, setNode] = useState<string | null>(place.node);
  const table = place.table ?? model.table;
  const asked = useAsk<Comparison>(other ? `${model.id} ${other.id} ${table} ${keyOf(place.evidence)}` : null, (signal) =>
    explorer.client.post("compare", { a: model.id, b: other!.id, table, ...place.evidence }, signal),
  );
  const answer = other ? asked.answer : null;
  const show = (name: string): Shown => ({
    info: explorer.nodes.get(name),
    belief: answer?.beliefs.a.nodes[name],
    was: answer?.beliefs.b.nodes[name],
    how: howOf(place.evidence, name),
    value: valueOf(place.evidence, name),
    best: undefined,
    problem: explorer.impossible?.node === name ? explorer.impossible.value : undefined,
  });
  return (
    <main class="network">
      <h1 class="hidden">Compare</h1>
      <Chips explorer={explorer} />
      <div class="columns two">
        <section class="middle" aria-label="both graphs">
          <div class="toolbar">
            <strong>{short(model.name, 30)}</strong> against{" "}
            <label>
              <span class="hidden">the other model</span>
              <select value={place.against ?? ""} onChange={(event) => explorer.go({ against: event.currentTarget.value || null })} data-testid="against">
                <option value="">choose a model …</option>
                {held!.models.filter((one) => one.id !== model.id).map((one) => <option key={one.id} value={one.id}>{short(one.name, 40)}</option>)}
              </select>
            </label>
            <span class="spring" />
            <Legend />
          </div>
          <Waiting asked={asked} />
          {!other && <p class="faint middle-text">Choose a second model: open one, drop a file, or learn one from a table.</p>}
          {answer && (
            <Stage
              graph={answer.graph}
              label={`both graphs: ${model.name} and ${other!.name}`}
              chosen={node}
              centre={null}
              path={null}
              edge={null}
              show={show}
              impossible={explorer.impossible}
              onChoose={setNode}
              onState={(name, state) => void explorer.click(name, state)}
              onFocus={setNode}
              onEdge={null}
              onView={() => undefined}
              onEscape={() => setNode(null)}
            />
          )}
        </section>
        {answer && <Numbers explorer={explorer} answer={answer} a={model} b={other!} node={node} />}
      </div>
    </main>
  );
}

function Legend() {
  return (
    <ul class="lines" aria-label="what the lines mean">
      {LINES.map(([style, words]) => (
        <li key={style}>
          <svg width="34" height="10" aria-hidden="true" class={`edge style-${style}`}>
            <path class="edge-line" d="M1 5H33" stroke-width={style === "here" ? 3.8 : 1.4} stroke-dasharray={style === "there" ? "1.5 4" : style === "reversed" ? "8 5" : undefined} />
            {style === "here" && <path class="edge-inner" d="M1 5H33" stroke-width="1.2" />}
          </svg>
          {words}
        </li>
      ))}
    </ul>
  );
}

function Numbers({ explorer, answer, a, b, node }: { explorer: Explorer; answer: Comparison; a: Model; b: Model; node: string | null }) {
  const info = node === null ? undefined : explorer.nodes.get(node);
  const { kl, shd, scores, beliefs } = answer;
  return (
    <aside class="panel" aria-label="comparison" data-testid="comparison">
      {info && (
        <>
          <h2><bdi>{short(info.name, 60)}</bdi></h2>
          {([["a", a], ["b", b]] as const).map(([side, model]) => (
            <section key={side} aria-label={model.name}>
              <h3>{short(model.name, 40)}</h3>
              {beliefs[side].possible ? (
                <Bars info={info} belief={beliefs[side].nodes[info.name]} was={undefined} value={valueOf(explorer.place.evidence, info.name)} wide onState={(state) => void explorer.click(info.name, state)} />
              ) : (
                <p class="refusal">{beliefs[side].message}</p>
              )}
            </section>
          ))}
        </>
      )}
      <h2>Both models</h2>
      <table class="grid">
        <thead><tr><th scope="col" /><th scope="col">{short(a.name, 18)}</th><th scope="col">{short(b.name, 18)}</th></tr></thead>
        <tbody>
          {scores.map((score) => (
            <tr key={score.name}><th scope="row">{score.name}</th><td class="number">{digits(score.a, 7)}</td><td class="number">{digits(score.b, 7)}</td></tr>
          ))}
        </tbody>
      </table>
      <dl class="facts">
        {shd !== null && <dt>structural Hamming distance</dt>}
        {shd !== null && <dd>{shd}</dd>}
        {kl && <dt>KL, first to second</dt>}
        {kl && <dd>{digits(kl.a_to_b)}</dd>}
        {kl && <dt>KL, second to first</dt>}
        {kl && <dd>{digits(kl.b_to_a)}</dd>}
      </dl>
      {answer.notes.map((note) => <p key={note} class="note">{note}</p>)}
      {!info && <p class="faint">Choose a node to see its beliefs in both. In the graph, bars are those of the first model, marks those of the second.</p>}
      <CodeFold code={answer.code} />
    </aside>
  );
}
