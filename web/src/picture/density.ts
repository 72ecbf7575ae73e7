// A density as a path that fills a box: points are scaled to it, nothing else.

import type { Point } from "../wire";

export interface Frame {
  left: number;
  right: number;
  top: number;
}

export function frameOf(...curves: Point[][]): Frame {
  const all = curves.flat();
  const xs = all.map(([x]) => x);
  return { left: Math.min(...xs), right: Math.max(...xs), top: Math.max(...all.map(([, y]) => y)) };
}

export function densityPath(curve: Point[], width: number, height: number, frame = frameOf(curve)): string {
  const x = (value: number) => (width * (value - frame.left)) / (frame.right - frame.left || 1);
  const y = (value: number) => height - (height * value) / (frame.top || 1);
  const points = curve.map(([a, b]) => `L${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
  return `M${x(curve[0]![0]).toFixed(1)} ${height}${points}L${x(curve[curve.length - 1]![0]).toFixed(1)} ${height}Z`;
}
