// The rows of a table, the most surprising first; a click makes one the evidence.

import { useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { NOTHING } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { digits, short, whole } from "../format";
import { cellText } from "../panel/cpd";
import type { Cases, Value } from "../wire";
import { TablePicker } from "./tables";

const PAGE = 50;

export function CasesTab({ explorer }: { explorer: Explorer }) {
  const [order, setOrder] = useState<"surprise" | "row">("surprise");
  const [offset, setOffset] = useState(0);
  const model = explorer.model!;
  const table = explorer.place.table ?? model.table;
  const asked = useAsk<Cases>(table ? `${model.id} ${table} ${order} ${offset}` : null, (signal) =>
    explorer.client.get(`models/${model.id}/cases`, { table, order, offset, limit: PAGE }, signal),
  );
  const { answer } = asked;
  const take = (cells: Cases["rows"][number]["cells"]) => {
    const given = Object.fromEntries(
      answer!.columns.map((name, i): [string, Value | null] => [name, cells[i] ?? null]).filter(([name, cell]) => cell !== null && explorer.nodes.has(name)),
    ) as Record<string, Value>;
    explorer.go({ tab: "network" });
    void explorer.believe({ ...NOTHING, given });
  };
  return (
    <main class="sheet">
      <div class="sheet-head">
        <h1>Cases</h1>
        <TablePicker explorer={explorer} onPick={() => setOffset(0)} />
        <label>
          order{" "}
          <select value={order} onChange={(event) => { setOrder(event.currentTarget.value as "surprise" | "row"); setOffset(0); }}>
            <option value="surprise">most surprising first</option>
            <option value="row">as in the table</option>
          </select>
        </label>
        <span class="spring" />
        {answer && <Pages offset={offset} total={answer.total} onPage={setOffset} />}
      </div>
      {!table && <p class="faint">There is no table yet: drop one anywhere on the page.</p>}
      <Waiting asked={asked} />
      {answer && (
        <>
          <p class="faint">A click on a row makes it the evidence.</p>
          <div class="scroll" tabIndex={0} role="region" aria-label="rows">
            <table class="grid cases" data-testid="cases">
              <thead>
                <tr>
                  <th scope="col">row</th>
                  <th scope="col">log probability</th>
                  {answer.columns.map((name) => <th key={name} scope="col" title={name}>{short(name, 20)}</th>)}
                </tr>
              </thead>
              <tbody>
                {answer.rows.map(({ row, log_prob, cells }) => (
                  <tr key={row} onClick={() => take(cells)}>
                    <th scope="row">
                      <button type="button" class="link" aria-label={`make row ${whole(row)} the evidence`} onClick={(event) => { event.stopPropagation(); take(cells); }}>{whole(row)}</button>
                    </th>
                    <td class="number">{digits(log_prob)}</td>
                    {cells.map((cell, i) => <td key={i} class={typeof cell === "number" ? "number" : cell === null ? "missing" : ""}>{cell === null ? "missing" : cellText(cell)}</td>)}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <CodeFold code={answer.code} />
        </>
      )}
    </main>
  );
}

function Pages({ offset, total, onPage }: { offset: number; total: number; onPage: (offset: number) => void }) {
  return (
    <span class="pages" role="group" aria-label="pages">
      <button type="button" disabled={offset === 0} onClick={() => onPage(Math.max(0, offset - PAGE))}>previous</button>
      <span>{whole(total ? offset + 1 : 0)}–{whole(Math.min(offset + PAGE, total))} of {whole(total)}</span>
      <button type="button" disabled={offset + PAGE >= total} onClick={() => onPage(offset + PAGE)}>next</button>
    </span>
  );
}
