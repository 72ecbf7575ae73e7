// The measures of a drawn node, those of suffice/basis/pictures/shapes.py, and what of a drawing is in view.

import type { Graph, GraphEdge, GraphNode, Point } from "../wire";

export const HEAD = 26;
export const ROW = 15;
export const SCALE = 70;
export const VALUE = 40;

const WAYS: Record<string, Point> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Where the drawing's origin is on the screen, and how large a unit is there. */
export interface Camera {
  x: number;
  y: number;
  zoom: number;
}

export interface Size {
  width: number;
  height: number;
}

export type Detail = "bars" | "names" | "boxes";

const MOST_BARS = 110;
const MOST_NAMES = 220;

/** How much of each node is drawn: less from afar, and where there are many. */
export function detailOf(zoom: number, nodes: number): Detail {
  if (zoom >= 0.32 && nodes <= MOST_BARS) return "bars";
  return zoom >= 0.13 && nodes <= MOST_NAMES ? "names" : "boxes";
}

export function boxOf(node: GraphNode): Box {
  return { left: node.x, top: node.y, right: node.x + node.w, bottom: node.y + node.h };
}

export function boxAround(points: Point[]): Box {
  const xs = points.map(([x]) => x);
  const ys = points.map(([, y]) => y);
  return { left: Math.min(...xs), top: Math.min(...ys), right: Math.max(...xs), bottom: Math.max(...ys) };
}

export function meet(a: Box, b: Box): boolean {
  return a.left <= b.right && b.left <= a.right && a.top <= b.bottom && b.top <= a.bottom;
}

export function holds(outer: Box, inner: Box): boolean {
  return outer.left <= inner.left && outer.top <= inner.top && outer.right >= inner.right && outer.bottom >= inner.bottom;
}

/** The part of the drawing on the screen, with so many screens more on each side. */
export function inView(camera: Camera, size: Size, more = 0): Box {
  const { x, y, zoom } = camera;
  const [dx, dy] = [more * size.width, more * size.height];
  return { left: (-x - dx) / zoom, top: (-y - dy) / zoom, right: (size.width + dx - x) / zoom, bottom: (size.height + dy - y) / zoom };
}

export function fit(graph: Graph, size: Size, least: number, most: number): Camera {
  const margin = 16;
  const across = (size.width - 2 * margin) / Math.max(graph.width, 1);
  const down = (size.height - 2 * margin) / Math.max(graph.height, 1);
  const zoom = Math.min(most, Math.max(least, Math.min(across, down)));
  return { x: (size.width - zoom * graph.width) / 2, y: (size.height - zoom * graph.height) / 2, zoom };
}

export function centred(node: GraphNode, size: Size, zoom: number): Camera {
  return { x: size.width / 2 - zoom * (node.x + node.w / 2), y: size.height / 2 - zoom * (node.y + node.h / 2), zoom };
}

/** The drawing with boxes around nodes and edges, so that what is in view is found without measuring again. */
export class Plan {
  readonly nodes: Map<string, GraphNode>;
  readonly neighbours = new Map<string, string[]>();
  private outline: string | null = null;
  private readonly edges: { edge: GraphEdge; box: Box }[];

  constructor(readonly graph: Graph) {
    this.nodes = new Map(graph.nodes.map((node) => [node.name, node]));
    this.edges = graph.edges.map((edge) => ({ edge, box: boxAround(edge.points) }));
    for (const { from, to } of graph.edges) {
      this.neighbours.set(from, [...(this.neighbours.get(from) ?? []), to]);
      this.neighbours.set(to, [...(this.neighbours.get(to) ?? []), from]);
    }
  }

  /** All boxes as one path. */
  get boxes(): string {
    return (this.outline ??= this.graph.nodes.map(({ x, y, w, h }) => `M${x.toFixed(0)} ${y.toFixed(0)}h${w.toFixed(0)}v${h.toFixed(0)}h${(-w).toFixed(0)}z`).join(""));
  }

  at(x: number, y: number): GraphNode | undefined {
    return this.graph.nodes.find((node) => meet(boxOf(node), { left: x, top: y, right: x, bottom: y }));
  }

  nodesIn(box: Box, always: string | null): GraphNode[] {
    return this.graph.nodes.filter((node) => node.name === always || meet(boxOf(node), box));
  }

  edgesIn(box: Box): GraphEdge[] {
    return this.edges.filter((one) => meet(one.box, box)).map((one) => one.edge);
  }

  /** The neighbour that an arrow key leads to: of those on that side, the one most in its direction. */
  beside(name: string, key: string): string | null {
    const here = this.nodes.get(name);
    const [dx, dy] = WAYS[key] ?? [0, 0];
    if (!here) return null;
    let best: { name: string; cost: number } | null = null;
    for (const other of this.neighbours.get(name) ?? []) {
      const there = this.nodes.get(other)!;
      const [x, y] = [there.x + there.w / 2 - here.x - here.w / 2, there.y + there.h / 2 - here.y - here.h / 2];
      const along = x * dx + y * dy;
      const cost = Math.abs(x * dy - y * dx) - along / 4;
      if (along > 0 && (!best || cost < best.cost)) best = { name: other, cost };
    }
    return best?.name ?? null;
  }
}
