// Edges: a line through the points that the server gave, with a head, as wide and in the style that it says.

import { Component } from "preact";
import type { GraphEdge, Point } from "../wire";

const DASHES = { both: undefined, here: undefined, there: "1.5 4", reversed: "8 5" };

export function pathOf(points: Point[]): string {
  return points.map(([x, y], i) => `${i ? "L" : "M"}${round(x)} ${round(y)}`).join("");
}

function round(value: number): number {
  return Math.round(10 * value) / 10;
}

function headOf(points: Point[], width: number): string {
  const [a, b] = points[points.length - 2]!;
  const [x, y] = points[points.length - 1]!;
  const far = Math.hypot(x - a, y - b) || 1;
  const [u, v] = [(x - a) / far, (y - b) / far];
  const [long, half] = [7 + width, 2.5 + 0.8 * width];
  const [p, q] = [x - long * u, y - long * v];
  return `${round(x)},${round(y)} ${round(p - half * v)},${round(q + half * u)} ${round(p + half * v)},${round(q - half * u)}`;
}

export interface EdgeProps {
  edge: GraphEdge;
  lit: boolean;
  path: boolean;
  chosen: boolean;
  onChoose: ((edge: GraphEdge) => void) | null;
}

export class EdgeLine extends Component<EdgeProps> {
  override shouldComponentUpdate(next: EdgeProps): boolean {
    const { edge, lit, path, chosen } = this.props;
    return edge !== next.edge || lit !== next.lit || path !== next.path || chosen !== next.chosen;
  }

  override render({ edge, lit, path, chosen, onChoose }: EdgeProps) {
    const width = edge.width ?? 1.2;
    const line = pathOf(edge.points);
    const name = `${edge.from} ${edge.directed ? "→" : "–"} ${edge.to}`;
    const look = `edge${lit ? " lit" : ""}${path ? " active-path" : ""}${chosen ? " chosen" : ""}${edge.style ? ` style-${edge.style}` : ""}`;
    return (
      <g class={look} data-edge={name} onClick={onChoose ? () => onChoose(edge) : undefined}>
        <title>{name}</title>
        {onChoose && <path d={line} class="edge-reach" />}
        <path d={line} class="edge-line" stroke-width={edge.style === "here" ? width + 2.6 : width} stroke-dasharray={edge.style ? DASHES[edge.style] : undefined} />
        {edge.style === "here" && <path d={line} class="edge-inner" stroke-width={width} />}
        {edge.directed && edge.points.length > 1 && <polygon points={headOf(edge.points, width)} class="edge-head" />}
      </g>
    );
  }
}

/** All edges in one path, for views from so far that they cannot be told apart. */
export class EdgeMesh extends Component<{ edges: GraphEdge[] }> {
  override shouldComponentUpdate(next: { edges: GraphEdge[] }): boolean {
    return this.props.edges !== next.edges;
  }

  override render({ edges }: { edges: GraphEdge[] }) {
    return <path class="edge-line mesh" d={edges.map((edge) => pathOf(edge.points)).join("")} />;
  }
}
