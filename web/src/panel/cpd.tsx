// The node's own table: its distribution for each setting of its parents.

import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { digits, short } from "../format";
import type { Cell, CpdTable } from "../wire";
import type { PanelProps } from "./node";

export function cellText(cell: Cell): string {
  if (cell === null) return "";
  return typeof cell === "number" ? digits(cell) : short(cell, 40);
}

export function CpdView({ explorer, model, node }: PanelProps) {
  const asked = useAsk<CpdTable>(`${model.id} ${node.name}`, (signal) => explorer.client.get(`models/${model.id}/cpd`, { node: node.name }, signal));
  const { answer } = asked;
  if (!answer) return <Waiting asked={asked} />;
  const unsupported = new Set(answer.unsupported);
  return (
    <section class="answer" aria-label="table">
      {answer.rows.length === 0 && <pre>{answer.text}</pre>}
      {answer.rows.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={`table of ${short(node.name, 60)}`}>
          <table class="grid">
            <thead>
              <tr>{answer.columns.map((column, i) => <th key={i} scope="col">{short(column, 30)}</th>)}</tr>
            </thead>
            <tbody>
              {answer.rows.map((row, i) => (
                <tr key={i} class={unsupported.has(i) ? "unsupported" : ""}>
                  {row.map((cell, j) => (
                    <td key={j} class={typeof cell === "number" ? "number" : ""}>
                      {cellText(cell)}
                      <Ends ends={answer.ends?.[i]?.[j - row.length + (answer.ends[i]?.length ?? 0)]} />
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {unsupported.size > 0 && <p class="note">Rows in italics were never seen in the data: their values are the prior's.</p>}
      {answer.cut > 0 && <p class="note">{answer.cut.toLocaleString("en")} rows are left out.</p>}
      <CodeFold code={answer.code} />
    </section>
  );
}

function Ends({ ends }: { ends: [number, number] | null | undefined }) {
  return ends ? <span class="ends">{digits(ends[0], 3)}–{digits(ends[1], 3)}</span> : null;
}
