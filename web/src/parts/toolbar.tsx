// Above the graph: what of it is shown, and how.

import type { Explorer } from "../explorer";
import type { Marker } from "../answers";
import type { Widths } from "../layouts";
import { short } from "../format";

interface ToolbarProps {
  explorer: Explorer;
  narrow: boolean;
  best: boolean;
  onBest: () => void;
}

export function Toolbar({ explorer, narrow, best, onBest }: ToolbarProps) {
  const { place, layouts } = explorer;
  return (
    <div class="toolbar" role="toolbar" aria-label="view">
      {place.focus !== null && <FocusTools explorer={explorer} focus={place.focus} />}
      {place.focus === null && place.node !== null && (
        <button type="button" onClick={() => void explorer.focus(place.node)}>focus on {short(place.node, 18)}</button>
      )}
      <span class="spring" />
      <button type="button" aria-pressed={best} onClick={onBest} title="the values that are most probable together">most probable</button>
      <label>
        marks{" "}
        <select value={explorer.marker} onChange={(event) => { explorer.marker = event.currentTarget.value as Marker; explorer.changed(); }}>
          <option value="before">last change</option>
          <option value="prior">no evidence</option>
          <option value="none">none</option>
        </select>
      </label>
      {!narrow && (
        <label>
          width{" "}
          <select value={layouts.widths} onChange={(event) => void explorer.widen(event.currentTarget.value as Widths)}>
            <option value="none">none</option>
            <option value="loss">loss</option>
            <option value="share">bootstrap</option>
          </select>
        </label>
      )}
      {!narrow && (
        <button type="button" aria-pressed={place.view === "list"} onClick={() => explorer.go({ view: place.view === "list" ? "picture" : "list" })} data-testid="view">
          list
        </button>
      )}
    </div>
  );
}

function FocusTools({ explorer, focus }: { explorer: Explorer; focus: string }) {
  const { layouts, place } = explorer;
  const hidden = layouts.graph?.hidden ?? 0;
  return (
    <>
      <span class="focus-said">
        around <strong>{short(focus, 20)}</strong>
        {hidden > 0 && <span class="faint"> {hidden} nodes not shown</span>}
      </span>
      <label>
        steps{" "}
        <select value={place.steps} onChange={(event) => void explorer.focus(focus, Number(event.currentTarget.value))}>
          {[1, 2, 3, 4].map((steps) => <option key={steps} value={steps}>{steps}</option>)}
        </select>
      </label>
      {place.node !== null && place.node !== focus && (
        <button type="button" onClick={() => void explorer.focus(place.node)}>focus on {short(place.node, 18)}</button>
      )}
      <button type="button" disabled={!layouts.whole} onClick={() => void explorer.focus(null)} data-testid="whole">
        {layouts.whole ? "whole graph" : "whole graph is being laid out …"}
      </button>
    </>
  );
}
