// A table: what its columns are taken for, what is missing, and corrections, which make a new table beside it.

import { Gauge } from "../parts/gauge";
import { useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { short, whole } from "../format";
import type { Column, Correction, Table, TableDetail } from "../wire";
import { ColumnRow } from "./column";
import { TablePicker } from "./tables";

export type Corrections = Record<string, Correction>;

export function DataTab({ explorer }: { explorer: Explorer }) {
  const { place } = explorer;
  const asked = useAsk<TableDetail>(place.table, (signal) => explorer.client.get(`tables/${place.table}`, {}, signal));
  const { answer } = asked;
  return (
    <main class="sheet">
      <div class="sheet-head">
        <h1>Data</h1>
        <TablePicker explorer={explorer} />
        <span class="spring" />
        {answer && <span class="faint">{whole(answer.rows)} rows, {answer.columns.length} columns</span>}
        {answer && <button type="button" class="main" onClick={() => explorer.go({ tab: "learn" })}>learn from it</button>}
      </div>
      <Waiting asked={asked} />
      {answer && <Columns key={answer.id} explorer={explorer} table={answer} />}
      {answer && <CodeFold code={answer.code} />}
    </main>
  );
}

function Columns({ explorer, table }: { explorer: Explorer; table: TableDetail }) {
  const [corrections, setCorrections] = useState<Corrections>({});
  const [filter, setFilter] = useState("");
  const changed = Object.keys(corrections).length;
  const correct = (column: Column, correction: Correction | null) => {
    const { [column.name]: _, ...rest } = corrections;
    setCorrections(correction ? { ...rest, [column.name]: correction } : rest);
  };
  const apply = () =>
    explorer.attempt(async () => {
      const made = await explorer.client.post<Table>(`tables/${table.id}/schema`, { columns: corrections });
      await explorer.refresh();
      explorer.go({ table: made.id });
    });
  const shown = table.columns.filter((column) => column.name.toLowerCase().includes(filter.toLowerCase()));
  return (
    <>
      <Missingness table={table} />
      {table.notes.map((note) => <p key={note} class="note">{note}</p>)}
      <div class="sheet-head">
        <input type="search" placeholder="find a column…" aria-label="find a column" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} />
        <span class="spring" />
        {changed > 0 && <button type="button" class="quiet" onClick={() => setCorrections({})}>forget corrections</button>}
        <button type="button" class="main" disabled={!changed} onClick={() => void apply()} data-testid="apply">
          apply {changed || ""} correction{changed === 1 ? "" : "s"}
        </button>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="columns">
        <table class="grid columns-table" data-testid="columns">
          <thead>
            <tr><th scope="col">column</th><th scope="col">kind</th><th scope="col">missing</th><th scope="col">values</th></tr>
          </thead>
          <tbody>
            {shown.map((column) => (
              <ColumnRow key={column.name} column={column} rows={table.rows} correction={corrections[column.name] ?? null} onCorrect={(c) => correct(column, c)} />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Missingness({ table }: { table: TableDetail }) {
  const { warning, patterns } = table.missingness;
  const gaps = patterns.filter((pattern) => pattern.columns.length > 0);
  if (!warning && gaps.length === 0) return <p class="faint">No cell is missing.</p>;
  return (
    <section aria-label="missing cells">
      {warning && <p class="note" role="note">{warning}</p>}
      <details>
        <summary>patterns of missing cells</summary>
        <table class="grid">
          <thead><tr><th scope="col">missing together</th><th scope="col">rows</th></tr></thead>
          <tbody>
            {patterns.map((pattern, i) => (
              <tr key={i}>
                <td>{pattern.columns.length ? short(pattern.columns.join(", "), 160) : "nothing missing"}</td>
                <td class="number"><Gauge value={pattern.rows} of={table.rows} /> {whole(pattern.rows)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </section>
  );
}
