// What is open, the tabs, and what can be done with all of it.

import { TABS, type Tab } from "../place";
import type { Explorer } from "../explorer";
import { short } from "../format";
import { ExportMenu } from "./export";

const TITLES: Record<Tab, string> = { data: "Data", learn: "Learn", network: "Network", compare: "Compare", cases: "Cases" };

interface HeaderProps {
  explorer: Explorer;
  code: boolean;
  onCode: () => void;
  onKeys: () => void;
}

export function Header({ explorer, code, onCode, onKeys }: HeaderProps) {
  return (
    <header class="top">
      <ModelPicker explorer={explorer} />
      <nav aria-label="tabs">
        <ul class="tabs">
          {TABS.map((tab) => (
            <li key={tab}>
              <button type="button" class="tab" aria-current={explorer.place.tab === tab ? "page" : undefined} onClick={() => explorer.go({ tab })}>
                {TITLES[tab]}
                {tab === "learn" && explorer.learning.running && <span class="live" aria-label="learning runs"> ●</span>}
              </button>
            </li>
          ))}
        </ul>
      </nav>
      <div class="actions">
        <button type="button" onClick={() => explorer.undo()} disabled={!explorer.canUndo}>undo</button>
        <button type="button" aria-pressed={code} onClick={onCode}>code</button>
        {explorer.model && <ExportMenu explorer={explorer} model={explorer.model} />}
        <button type="button" class="round" onClick={onKeys} aria-label="keys" title="keys">?</button>
      </div>
    </header>
  );
}

function ModelPicker({ explorer }: { explorer: Explorer }) {
  const { held, place } = explorer;
  const choose = (value: string) => {
    if (value.startsWith("model ")) void explorer.openModel(value.slice(6));
    else if (value.startsWith("bundled ")) void explorer.openBundled(value.slice(8));
    else explorer.go({ model: null, tab: "network" });
  };
  return (
    <label class="picker">
      <span class="hidden">open model</span>
      <select value={place.model ? `model ${place.model}` : ""} onChange={(event) => choose(event.currentTarget.value)} data-testid="model-picker">
        <option value="">{held && held.models.length ? "open a file …" : "Suffice"}</option>
        {held && held.models.length > 0 && (
          <optgroup label="held">
            {held.models.map((model) => (
              <option key={model.id} value={`model ${model.id}`}>{short(model.name, 40)}</option>
            ))}
          </optgroup>
        )}
        <optgroup label="bundled">
          {held?.bundled.map((name) => <option key={name} value={`bundled ${name}`}>{name}</option>)}
        </optgroup>
      </select>
    </label>
  );
}
