// Why edges are there, and why others are not.

import { useState } from "preact/hooks";
import { short } from "../format";
import type { PanelProps } from "./node";

export function WhyView({ explorer, node, onEdge }: PanelProps) {
  const [other, setOther] = useState("");
  const near = new Set([node.name, ...node.parents, ...node.children]);
  const far = [...explorer.nodes.keys()].filter((name) => !near.has(name));
  return (
    <section class="answer" aria-label="why">
      <ul class="plain">
        {node.parents.map((parent) => (
          <li key={parent}><button type="button" class="link" onClick={() => onEdge(parent, node.name)}>{short(parent, 20)} → {short(node.name, 20)}</button></li>
        ))}
        {node.children.map((child) => (
          <li key={child}><button type="button" class="link" onClick={() => onEdge(node.name, child)}>{short(node.name, 20)} → {short(child, 20)}</button></li>
        ))}
      </ul>
      {far.length > 0 && (
        <form class="inline" onSubmit={(event) => { event.preventDefault(); if (other) onEdge(other, node.name); }}>
          <label>
            why no edge from
            <select value={other} onChange={(event) => setOther(event.currentTarget.value)}>
              <option value="" />
              {far.map((name) => <option key={name} value={name}>{short(name, 40)}</option>)}
            </select>
          </label>
          <button type="submit" disabled={!other}>ask</button>
        </form>
      )}
    </section>
  );
}
