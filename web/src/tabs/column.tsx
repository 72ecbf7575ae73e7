// One column of a table, with what may be corrected of it.

import { Gauge } from "../parts/gauge";
import { cellText } from "../panel/cpd";
import { short, whole } from "../format";
import type { Column, Correction, Kind } from "../wire";

interface ColumnProps {
  column: Column;
  rows: number;
  correction: Correction | null;
  onCorrect: (correction: Correction | null) => void;
}

const KINDS: (Kind | "ignore")[] = ["finite", "real", "count", "ignore"];
const SHOWN = 8;

export function ColumnRow({ column, rows, correction, onCorrect }: ColumnProps) {
  const kind = correction?.kind ?? column.kind;
  const choose = (next: Kind | "ignore") => onCorrect(next === column.kind ? null : { kind: next });
  return (
    <tr class={correction ? "is-changed" : ""} data-column={column.name}>
      <th scope="row">
        <bdi title={column.name}>{short(column.name, 40)}</bdi>
        {correction && <span class="tag">corrected</span>}
        {column.notes.map((note) => <span key={note} class="faint">{note}</span>)}
      </th>
      <td>
        <select value={kind} aria-label={`kind of ${short(column.name, 40)}`} onChange={(event) => choose(event.currentTarget.value as Kind | "ignore")}>
          {KINDS.map((one) => <option key={one} value={one}>{one}</option>)}
        </select>
        {kind === "real" && (
          <label class="small">
            bins{" "}
            <input
              type="number"
              min="2"
              max="50"
              class="narrow"
              value={correction?.bins ?? ""}
              aria-label={`bins of ${short(column.name, 40)}`}
              onInput={(event) => onCorrect(event.currentTarget.value ? { kind: "real", bins: Number(event.currentTarget.value) } : kind === column.kind ? null : { kind })}
            />
          </label>
        )}
      </td>
      <td class="number">{column.missing ? <><Gauge value={column.missing} of={rows} /> {whole(column.missing)}</> : "–"}</td>
      <td>{kind === "finite" ? <States column={column} rows={rows} correction={correction} onCorrect={onCorrect} /> : kind !== "ignore" && <>{cellText(column.minimum)} to {cellText(column.maximum)}</>}</td>
    </tr>
  );
}

function States({ column, rows, correction, onCorrect }: ColumnProps) {
  const order = correction?.states ?? column.states.map((one) => one.state);
  const counts = new Map(column.states.map((one) => [one.state, one.count]));
  const move = (i: number, by: number) => {
    const next = [...order];
    [next[i], next[i + by]] = [next[i + by]!, next[i]!];
    onCorrect({ ...correction, kind: "finite", states: next });
  };
  const ordered = correction?.ordered ?? false;
  return (
    <div class="states">
      <ol>
        {order.slice(0, correction?.states ? order.length : SHOWN).map((state, i) => (
          <li key={state}>
            <span class="state-name" title={state}>{short(state, 24)}</span>
            <Gauge value={counts.get(state) ?? 0} of={rows} />
            <span class="number">{whole(counts.get(state) ?? 0)}</span>
            <button type="button" class="quiet" disabled={i === 0} onClick={() => move(i, -1)} aria-label={`${short(state, 30)} earlier`}>↑</button>
            <button type="button" class="quiet" disabled={i === order.length - 1} onClick={() => move(i, 1)} aria-label={`${short(state, 30)} later`}>↓</button>
          </li>
        ))}
      </ol>
      {order.length > SHOWN && !correction?.states && (
        <button type="button" class="link" onClick={() => onCorrect({ ...correction, kind: "finite", states: order })}>order all {order.length} states</button>
      )}
      {order.length > 2 && (
        <label class="small">
          <input type="checkbox" checked={ordered} onChange={(event) => onCorrect({ ...correction, kind: "finite", states: order, ordered: event.currentTarget.checked })} /> the order means something
        </label>
      )}
    </div>
  );
}
