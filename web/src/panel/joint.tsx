// The joint distribution of the node and one or two others.

import { Gauge } from "../parts/gauge";
import { useState } from "preact/hooks";
import { keyOf } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { percent, short } from "../format";
import type { Joint } from "../wire";
import type { PanelProps } from "./node";

const CELLS = 400;

export function JointView({ explorer, model, node }: PanelProps) {
  const [others, setOthers] = useState<[string, string]>(["", ""]);
  const { evidence } = explorer.place;
  const targets = [node.name, ...others.filter((name, i) => name && name !== node.name && others.indexOf(name) === i)];
  const asked = useAsk<Joint>(targets.length > 1 ? `${model.id} ${targets.join("\n")} ${keyOf(evidence)}` : null, (signal) =>
    explorer.client.post(`models/${model.id}/joint`, { ...evidence, targets }, signal),
  );
  const names = [...explorer.nodes.values()].filter((one) => one.kind === "finite" && one.name !== node.name);
  return (
    <section class="answer" aria-label="joint" data-testid="joint">
      {[0, 1].map((i) => (
        <label key={i}>
          {i === 0 ? "with" : "and"}{" "}
          <select value={others[i]} onChange={(event) => setOthers(others.map((old, j) => (i === j ? event.currentTarget.value : old)) as [string, string])}>
            <option value="" />
            {names.map((one) => <option key={one.name} value={one.name}>{short(one.name, 40)}</option>)}
          </select>
        </label>
      ))}
      <Waiting asked={asked} />
      {asked.answer && targets.length > 1 && <Cells joint={asked.answer} />}
      {asked.answer && targets.length > 1 && <CodeFold code={asked.answer.code} />}
    </section>
  );
}

function Cells({ joint }: { joint: Joint }) {
  const rows = cells(joint.probs, joint.states);
  const across = joint.states[joint.states.length - 1]!;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`joint of ${joint.targets.join(", ")}`}>
      <table class="grid heat">
        <thead>
          <tr>
            {joint.targets.slice(0, -1).map((name) => <th key={name} scope="col">{short(name, 20)}</th>)}
            {across.map((state) => <th key={state} scope="col">{short(state, 16)}</th>)}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, CELLS).map(({ states, probs }, i) => (
            <tr key={i}>
              {states.map((state, j) => <th key={j} scope="row">{short(state, 16)}</th>)}
              {probs.map((p, j) => (
                <td key={j} class="number"><Gauge value={p} of={1} /> {percent(p)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > CELLS && <p class="note">{rows.length - CELLS} rows are left out.</p>}
    </div>
  );
}

interface CellRow {
  states: string[];
  probs: number[];
}

/** The nested table as rows: the states of all but the last target, and the probabilities of the last one's. */
function cells(probs: unknown, states: string[][]): CellRow[] {
  if (states.length === 1) return [{ states: [], probs: probs as number[] }];
  return (probs as unknown[]).flatMap((part, i) => cells(part, states.slice(1)).map((row) => ({ ...row, states: [states[0]![i]!, ...row.states] })));
}
