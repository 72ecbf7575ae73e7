// All nodes by name, those with evidence marked; typing leaves those that contain the letters.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { howOf } from "../evidence";
import { short } from "../format";

const MOST = 300;
const SIGNS = { given: "●", soft: "◐", do: "▣" };

export function Finder({ explorer, onChoose }: { explorer: Explorer; onChoose: (name: string) => void }) {
  const [text, setText] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const names = useMemo(() => [...explorer.nodes.keys()], [explorer.nodes]);
  const found = useMemo(() => {
    const letters = text.toLowerCase();
    return names.filter((name) => name.toLowerCase().includes(letters));
  }, [names, text]);
  useSlash(input.current, explorer);
  const choose = (name: string) => {
    onChoose(name);
    const drawn = explorer.layouts.graph?.nodes.some((node) => node.name === name) ?? true;
    if (!drawn) void explorer.focus(name);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && found[0] !== undefined) choose(found[0]);
    if (event.key === "Escape") setText("");
  };
  return (
    <nav class="finder" aria-label="nodes">
      <input
        ref={input}
        type="search"
        placeholder="find a node…"
        aria-label="find a node"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={key}
        data-testid="finder"
      />
      <ul>
        {found.slice(0, MOST).map((name) => {
          const how = howOf(explorer.place.evidence, name);
          return (
            <li key={name}>
              <button type="button" class={how ? `is-${how}` : ""} aria-current={explorer.place.node === name ? "true" : undefined} onClick={() => choose(name)} title={name}>
                <span class="sign" aria-hidden="true">{how ? SIGNS[how] : ""}</span>
                <bdi>{short(name, 28)}</bdi>
              </button>
            </li>
          );
        })}
      </ul>
      {found.length > MOST && <p class="faint">{found.length - MOST} more</p>}
      {found.length === 0 && text && <p class="faint">no node has “{short(text, 20)}” in its name</p>}
    </nav>
  );
}

function useSlash(input: HTMLInputElement | null, explorer: Explorer): void {
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      const typing = (event.target as Element).closest("input, select, textarea") !== null;
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        event.preventDefault();
        input?.focus();
      }
      if (event.key === "u") explorer.undo();
    };
    document.addEventListener("keydown", key);
    return () => document.removeEventListener("keydown", key);
  }, [input, explorer]);
}
