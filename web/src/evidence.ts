// Evidence as a value: what was observed, weighed, or set. Each change makes a new one.

import type { Evidence, Value } from "./wire";

export type How = "given" | "soft" | "do";

export interface Finding {
  node: string;
  how: How;
  text: string;
}

export const NOTHING: Evidence = { given: {}, soft: {}, do: {} };

export function without(evidence: Evidence, node: string): Evidence {
  const rest = <T>(part: Record<string, T>) => Object.fromEntries(Object.entries(part).filter(([name]) => name !== node));
  return { given: rest(evidence.given), soft: rest(evidence.soft), do: rest(evidence.do) };
}

export function put(evidence: Evidence, how: "given" | "do", node: string, value: Value): Evidence {
  const rest = without(evidence, node);
  return { ...rest, [how]: { ...rest[how], [node]: value } };
}

export function putSoft(evidence: Evidence, node: string, weights: number[]): Evidence {
  const rest = without(evidence, node);
  return { ...rest, soft: { ...rest.soft, [node]: weights } };
}

export function toggle(evidence: Evidence, how: "given" | "do", node: string, value: Value): Evidence {
  return evidence[how][node] === value ? without(evidence, node) : put(evidence, how, node, value);
}

export function howOf(evidence: Evidence, node: string): How | null {
  if (Object.hasOwn(evidence.do, node)) return "do";
  if (Object.hasOwn(evidence.given, node)) return "given";
  return Object.hasOwn(evidence.soft, node) ? "soft" : null;
}

export function valueOf(evidence: Evidence, node: string): Value | undefined {
  if (Object.hasOwn(evidence.do, node)) return evidence.do[node];
  return Object.hasOwn(evidence.given, node) ? evidence.given[node] : undefined;
}

export function findings(evidence: Evidence): Finding[] {
  return [
    ...Object.entries(evidence.given).map(([node, value]): Finding => ({ node, how: "given", text: `${node} = ${value}` })),
    ...Object.entries(evidence.soft).map(([node, w]): Finding => ({ node, how: "soft", text: `${node} ~ ${w.join(" : ")}` })),
    ...Object.entries(evidence.do).map(([node, value]): Finding => ({ node, how: "do", text: `do ${node} = ${value}` })),
  ];
}

export function isEmpty(evidence: Evidence): boolean {
  return findings(evidence).length === 0;
}

export function keyOf(evidence: Evidence): string {
  const sorted = (part: Record<string, unknown>) => Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted(evidence.given), sorted(evidence.soft), sorted(evidence.do)]);
}
