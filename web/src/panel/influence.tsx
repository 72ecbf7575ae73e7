// Which other nodes would tell the most about this one.

import { Gauge } from "../parts/gauge";
import { keyOf } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { digits, percent, short } from "../format";
import type { Influence } from "../wire";
import type { PanelProps } from "./node";

const SHOWN = 30;

export function InfluenceView({ explorer, model, node, shown }: PanelProps) {
  const { evidence } = explorer.place;
  const known = shown.how === "given" || shown.how === "do";
  const asked = useAsk<Influence>(known ? null : `${model.id} ${node.name} ${keyOf(evidence)}`, (signal) =>
    explorer.client.post(`models/${model.id}/influence`, { ...evidence, target: node.name }, signal),
  );
  const { answer } = asked;
  if (known) return <p class="faint">Its value is known: nothing tells more about it. Take the evidence back to ask.</p>;
  if (!answer) return <Waiting asked={asked} />;
  const most = answer.rows[0]?.information || 1;
  return (
    <section class="answer" aria-label="influence" data-testid="influence">
      <p class="faint">Mutual information with {short(node.name, 30)}, and how far the states of each node would move it.</p>
      <table class="grid">
        <thead><tr><th scope="col">node</th><th scope="col" colSpan={2}>information</th></tr></thead>
        <tbody>
          {answer.rows.slice(0, SHOWN).map((row) => (
            <tr key={row.node}>
              <th scope="row">
                <details>
                  <summary><bdi>{short(row.node, 22)}</bdi></summary>
                  <ul class="plain">
                    {row.moves.map((move, i) => <li key={i}>= {short(move.state, 20)}: {move.of !== null && `${short(move.of, 20)} `}{moved(move.from)} → {moved(move.to)}</li>)}
                  </ul>
                  <button type="button" class="link" onClick={() => explorer.select(row.node)}>go there</button>
                </details>
              </th>
              <td><Gauge value={row.information} of={most} /></td>
              <td class="number">{digits(row.information, 3)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {answer.rows.length > SHOWN && <p class="faint">{answer.rows.length - SHOWN} more tell less.</p>}
      <CodeFold code={answer.code} />
    </section>
  );
}

function moved(value: number): string {
  return value >= 0 && value <= 1 ? `${percent(value)} %` : digits(value);
}
