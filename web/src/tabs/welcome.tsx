// Nothing is open: the bundled networks, and a place for a file.

import { useRef } from "preact/hooks";
import type { Explorer } from "../explorer";
import { bytes } from "../format";

export function Welcome({ explorer }: { explorer: Explorer }) {
  const { held, place } = explorer;
  const input = useRef<HTMLInputElement>(null);
  const data = place.tab === "data" || place.tab === "learn";
  return (
    <main class="welcome">
      <h1>{data ? "Open a table" : "Open a network or a table"}</h1>
      <button type="button" class="drop" onClick={() => input.current?.click()} data-testid="drop">
        <span><strong>Drop a file here</strong>, or choose one</span>
        <span class="faint">models: json, bif, xmlbif, net, dsc, uai · tables: csv, tsv, parquet, arrow · up to {bytes(held!.limits.upload_bytes)}</span>
      </button>
      <input
        ref={input}
        type="file"
        class="hidden"
        tabIndex={-1}
        aria-label="file"
        data-testid="file"
        onChange={(event) => {
          for (const file of event.currentTarget.files ?? []) void explorer.openFile(file);
        }}
      />
      {!data && <h2>Bundled networks</h2>}
      {!data && (
        <ul class="bundled">
          {held!.bundled.map((name) => (
            <li key={name}>
              <button type="button" onClick={() => void explorer.openBundled(name)}>{name}</button>
            </li>
          ))}
        </ul>
      )}
      <p class="faint">Nothing leaves this machine: the page speaks only with the program that printed its address.</p>
    </main>
  );
}
