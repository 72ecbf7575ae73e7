// The page: what is open, the tabs, and the tab that is shown.

import { useEffect, useState } from "preact/hooks";
import type { Explorer } from "./explorer";
import { useSource } from "./signal";
import { Banners } from "./parts/banners";
import { Header } from "./parts/header";
import { CodeBlock } from "./parts/code";
import { Keys } from "./parts/keys";
import { Welcome } from "./tabs/welcome";
import { NetworkTab } from "./tabs/network";
import { DataTab } from "./tabs/data";
import { LearnTab } from "./tabs/learn";
import { CompareTab } from "./tabs/compare";
import { CasesTab } from "./tabs/cases";

function Shown({ explorer }: { explorer: Explorer }) {
  const { held, place } = explorer;
  if (!held) return <main class="waiting" aria-busy="true"><p class="faint">{explorer.refused || explorer.gone ? "" : "opening …"}</p></main>;
  const needsModel = place.tab === "network" || place.tab === "cases" || place.tab === "compare";
  if (needsModel ? !explorer.model : held.tables.length === 0) return <Welcome explorer={explorer} />;
  switch (place.tab) {
    case "data":
      return <DataTab explorer={explorer} />;
    case "learn":
      return <LearnTab explorer={explorer} />;
    case "compare":
      return <CompareTab explorer={explorer} />;
    case "cases":
      return <CasesTab explorer={explorer} />;
    case "network":
      return <NetworkTab explorer={explorer} />;
  }
}

/** A file dropped anywhere is opened. */
function useDrop(explorer: Explorer): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const drag = (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    };
    const leave = (event: DragEvent) => {
      if (event.relatedTarget === null) setOver(false);
    };
    const drop = (event: DragEvent) => {
      event.preventDefault();
      setOver(false);
      for (const file of event.dataTransfer?.files ?? []) void explorer.openFile(file);
    };
    document.addEventListener("dragover", drag);
    document.addEventListener("dragleave", leave);
    document.addEventListener("drop", drop);
    return () => {
      document.removeEventListener("dragover", drag);
      document.removeEventListener("dragleave", leave);
      document.removeEventListener("drop", drop);
    };
  }, [explorer]);
  return over;
}

export function App({ explorer }: { explorer: Explorer }) {
  useSource(explorer);
  const over = useDrop(explorer);
  const [code, setCode] = useState(false);
  const [keys, setKeys] = useState(false);
  const current = explorer.answers.now?.code ?? explorer.model?.code ?? null;
  return (
    <div class={`page${over ? " dropping" : ""}`}>
      <Header explorer={explorer} code={code} onCode={() => setCode(!code)} onKeys={() => setKeys(true)} />
      <Banners explorer={explorer} />
      <Shown explorer={explorer} />
      {code && (
        <section class="drawer" aria-label="code of these beliefs">
          <div class="drawer-head">
            <h2>The same outside the explorer</h2>
            <button type="button" class="quiet" onClick={() => setCode(false)}>close</button>
          </div>
          {current ? <CodeBlock code={current} /> : <p class="faint">Nothing is open.</p>}
        </section>
      )}
      {keys && <Keys onClose={() => setKeys(false)} />}
      <div class="hidden" role="status" aria-live="polite" data-testid="status">{explorer.said}</div>
    </div>
  );
}
