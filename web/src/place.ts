// Where the user is: what the address fragment says, so that reload, back and undo lead there again.
// The token comes in the same fragment, is kept for this tab, and never stands in the address again.

import { keyOf, NOTHING } from "./evidence";
import type { Evidence } from "./wire";

export const TABS = ["data", "learn", "network", "compare", "cases"] as const;
export type Tab = (typeof TABS)[number];
export type View = "picture" | "list";

export interface Place {
  tab: Tab;
  model: string | null;
  against: string | null;
  table: string | null;
  node: string | null;
  focus: string | null;
  steps: number;
  view: View;
  sampled: boolean;
  evidence: Evidence;
}

export const START: Place = {
  tab: "network",
  model: null,
  against: null,
  table: null,
  node: null,
  focus: null,
  steps: 1,
  view: "picture",
  sampled: false,
  evidence: NOTHING,
};

const TOKEN = "suffice-token";

export function takeToken(): string {
  const parts = new URLSearchParams(location.hash.slice(1));
  const token = parts.get("token");
  if (token) {
    sessionStorage.setItem(TOKEN, token);
    parts.delete("token");
    history.replaceState(history.state, "", `${location.pathname}#${parts}`);
  }
  return sessionStorage.getItem(TOKEN) ?? "";
}

export function readPlace(fragment: string): Place {
  const parts = new URLSearchParams(fragment.replace(/^#/, ""));
  const tab = TABS.find((name) => name === parts.get("tab")) ?? START.tab;
  const steps = Number(parts.get("steps") ?? "1");
  return {
    tab,
    model: parts.get("model"),
    against: parts.get("against"),
    table: parts.get("table"),
    node: parts.get("node"),
    focus: parts.get("focus"),
    steps: Number.isInteger(steps) && steps >= 0 && steps <= 9 ? steps : 1,
    view: parts.get("view") === "list" ? "list" : "picture",
    sampled: parts.get("sampled") === "yes",
    evidence: readEvidence(parts.get("evidence")),
  };
}

export function fragmentOf(place: Place): string {
  const parts = new URLSearchParams({ tab: place.tab });
  for (const key of ["model", "against", "table", "node", "focus"] as const) {
    const value = place[key];
    if (value !== null) parts.set(key, value);
  }
  if (place.focus !== null && place.steps !== 1) parts.set("steps", String(place.steps));
  if (place.view === "list") parts.set("view", "list");
  if (place.sampled) parts.set("sampled", "yes");
  if (keyOf(place.evidence) !== keyOf(NOTHING)) parts.set("evidence", JSON.stringify(place.evidence));
  return `#${parts}`;
}

function readEvidence(text: string | null): Evidence {
  if (text === null) return NOTHING;
  try {
    const read = JSON.parse(text) as Partial<Evidence>;
    return { given: plain(read.given), soft: plain(read.soft), do: plain(read.do) };
  } catch {
    return NOTHING;
  }
}

function plain<T>(part: Record<string, T> | undefined): Record<string, T> {
  return part && typeof part === "object" && !Array.isArray(part) ? part : {};
}
