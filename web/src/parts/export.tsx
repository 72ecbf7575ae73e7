// What can be taken away: pictures, the model in several formats, a report.

import type { Explorer } from "../explorer";
import type { Model } from "../wire";
import { Menu } from "./menu";

const FORMATS = ["json", "bif", "xmlbif", "net", "dsc", "uai"] as const;

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function ExportMenu({ explorer, model }: { explorer: Explorer; model: Model }) {
  const { client, place } = explorer;
  const stem = model.name.replace(/\.[^.]*$/, "").replace(/[^\p{L}\p{N}_-]+/gu, "_").slice(0, 60) || "model";
  const take = (name: string, fetch: () => Promise<Blob>) =>
    void explorer.attempt(async () => {
      explorer.say(`making ${name}`);
      save(await fetch(), name);
      explorer.say(`${name} saved`);
    });
  const picture = (format: "svg" | "png") => {
    const body = { ...place.evidence, format, focus: place.focus, steps: place.steps };
    take(`${stem}.${format}`, () => client.file("POST", `models/${model.id}/picture`, { body }));
  };
  return (
    <Menu title="export">
      <button type="button" onClick={() => picture("svg")}>picture as SVG</button>
      <button type="button" onClick={() => picture("png")}>picture as PNG</button>
      {FORMATS.map((format) => (
        <button key={format} type="button" onClick={() => take(`${stem}.${format}`, () => client.file("GET", `models/${model.id}/export`, { query: { format } }))}>
          model as {format}
        </button>
      ))}
      <button type="button" onClick={() => take(`${stem}.html`, () => client.file("POST", `models/${model.id}/report`, { body: { table: place.table ?? model.table } }))}>
        report as HTML
      </button>
    </Menu>
  );
}
