// Which of the held tables is looked at, and a way to open another.

import { useRef } from "preact/hooks";
import type { Explorer } from "../explorer";
import { short, whole } from "../format";

export function TablePicker({ explorer, onPick }: { explorer: Explorer; onPick?: () => void }) {
  const { held, place } = explorer;
  const file = useRef<HTMLInputElement>(null);
  return (
    <>
      {held!.tables.length > 0 && (
        <label>
          table{" "}
          <select value={place.table ?? ""} onChange={(event) => { explorer.go({ table: event.currentTarget.value }); onPick?.(); }} data-testid="table-picker">
            {!place.table && <option value="" />}
            {held!.tables.map((table) => (
              <option key={table.id} value={table.id}>{short(table.name, 40)} ({whole(table.rows)} rows)</option>
            ))}
          </select>
        </label>
      )}
      <button type="button" onClick={() => file.current?.click()}>open a table …</button>
      <input
        ref={file}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label="table file"
        onChange={(event) => {
          for (const one of event.currentTarget.files ?? []) void explorer.openFile(one);
        }}
      />
    </>
  );
}
