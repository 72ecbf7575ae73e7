// How far the answer moves when one parameter goes to the ends of its credible interval.

import { useState } from "preact/hooks";
import { keyOf } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { percent, short } from "../format";
import type { Tornado } from "../wire";
import type { PanelProps } from "./node";

const SHOWN = 15;

export function TornadoView({ explorer, model, node, shown }: PanelProps) {
  const [state, setState] = useState(node.states[0] ?? "");
  const { evidence } = explorer.place;
  const known = shown.how === "given" || shown.how === "do";
  const asked = useAsk<Tornado>(known ? null : `${model.id} ${node.name} ${state} ${keyOf(evidence)}`, (signal) =>
    explorer.client.post(`models/${model.id}/tornado`, { ...evidence, target: node.name, state }, signal),
  );
  const { answer } = asked;
  if (known) return <p class="faint">Its value is known: no parameter moves it. Take the evidence back to ask.</p>;
  return (
    <section class="answer" aria-label="tornado" data-testid="tornado">
      <label>
        of{" "}
        <select value={state} onChange={(event) => setState(event.currentTarget.value)}>
          {node.states.map((one) => <option key={one} value={one}>{short(one, 40)}</option>)}
        </select>
      </label>
      <Waiting asked={asked} />
      {answer && <Spread answer={answer} />}
      {answer && <CodeFold code={answer.code} />}
    </section>
  );
}

function Spread({ answer }: { answer: Tornado }) {
  const rows = answer.rows.slice(0, SHOWN);
  const left = Math.min(answer.answer, ...rows.flatMap((row) => [row.low, row.high]));
  const right = Math.max(answer.answer, ...rows.flatMap((row) => [row.low, row.high]));
  const at = (value: number) => (right > left ? (100 * (value - left)) / (right - left) : 50);
  return (
    <>
      <p>The answer is {percent(answer.answer)} %; one parameter at the ends of its interval makes it</p>
      <ul class="tornado">
        {rows.map((row, i) => (
          <li key={i}>
            <span class="name" title={parameter(row)}>{short(parameter(row), 60)}</span>
            <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
              <rect class="bar" x={Math.min(at(row.low), at(row.high))} width={Math.max(Math.abs(at(row.high) - at(row.low)), 0.4)} y="1" height="8" />
              <path class="was" d={`M${at(answer.answer)} 0v10`} />
            </svg>
            <span class="number">{percent(row.low)} … {percent(row.high)} %</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function parameter(row: Tornado["rows"][number]): string {
  const parents = Object.entries(row.parents).map(([name, value]) => `${name}=${value}`).join(", ");
  return `p(${row.node}=${row.state}${parents ? ` | ${parents}` : ""})`;
}
