// What a learned graph must keep to: edges required and forbidden, and tiers of which no later one precedes an earlier one.

import { useState } from "preact/hooks";
import type { Learning, Rule } from "../learning";
import { short } from "../format";

export function Constraints({ learning, names }: { learning: Learning; names: string[] }) {
  return (
    <fieldset class="constraints">
      <legend>Constraints</legend>
      <p class="faint">Edges can also be chosen in the graph: choose an edge there, or “why” of a node.</p>
      <Pair learning={learning} names={names} />
      <ul class="rules" data-testid="rules">
        {(["require", "forbid"] as Rule[]).flatMap((rule) =>
          learning.rules[rule].map(([a, b], i) => (
            <li key={`${rule} ${a}\n${b}`} class={`chip is-${rule}`}>
              <span>{rule} {short(a, 24)} → {short(b, 24)}</span>
              <button type="button" class="chip-off" aria-label={`take back ${rule} ${short(a, 24)} to ${short(b, 24)}`} onClick={() => learning.unrule(rule, i)}>✕</button>
            </li>
          )),
        )}
      </ul>
      <details>
        <summary>tiers: {learning.tiers.length ? learning.tiers.map((tier) => short(tier.join(", "), 40)).join(" before ") : "none"}</summary>
        <p class="faint">No edge leads from a later tier to an earlier one. Columns without a number are free.</p>
        <ul class="tiers">
          {names.map((name) => (
            <li key={name}>
              <label>
                <input
                  type="number"
                  min="1"
                  max="99"
                  class="narrow"
                  value={learning.rules.tiers[name] ?? ""}
                  aria-label={`tier of ${short(name, 40)}`}
                  onInput={(event) => learning.tier(name, event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}
                />{" "}
                {short(name, 30)}
              </label>
            </li>
          ))}
        </ul>
      </details>
    </fieldset>
  );
}

function Pair({ learning, names }: { learning: Learning; names: string[] }) {
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const ready = from !== "" && to !== "" && from !== to;
  const choose = (title: string, value: string, set: (name: string) => void) => (
    <label>
      {title}{" "}
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        <option value="" />
        {names.map((name) => <option key={name} value={name}>{short(name, 40)}</option>)}
      </select>
    </label>
  );
  return (
    <div class="inline">
      {choose("from", from, setFrom)}
      {choose("to", to, setTo)}
      <button type="button" disabled={!ready} onClick={() => learning.rule("require", from, to)}>require</button>
      <button type="button" disabled={!ready} onClick={() => learning.rule("forbid", from, to)}>forbid</button>
    </div>
  );
}
