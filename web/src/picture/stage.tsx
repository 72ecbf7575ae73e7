// The canvas with its controls, the legend, and what cannot be said inside of it.

import { useRef } from "preact/hooks";
import type { Impossible } from "../explorer";
import type { Graph } from "../wire";
import { Canvas, type CanvasProps } from "./canvas";

type StageProps = Omit<CanvasProps, "graph"> & { graph: Graph | null; impossible: Impossible | null };

export function Stage({ graph, impossible, ...props }: StageProps) {
  const canvas = useRef<Canvas>(null);
  if (!graph) return <div class="stage"><p class="faint middle-text" aria-busy="true">the graph is being laid out …</p></div>;
  if (graph.nodes.length === 0) return <div class="stage"><p class="faint middle-text">This network has no nodes.</p></div>;
  return (
    <div class="stage">
      <Canvas hold={(held) => { canvas.current = held; }} graph={graph} {...props} />
      {impossible && (
        <p class="refusal floating" role="alert" data-testid="impossible">
          <strong>{impossible.node}{impossible.value !== null ? ` = ${impossible.value}` : ""}</strong> {impossible.message}
        </p>
      )}
      {graph.widths && <p class="legend">width: {graph.widths}</p>}
      <div class="zoom" role="group" aria-label="zoom">
        <button type="button" aria-label="zoom in" onClick={() => canvas.current?.zoomBy(1.3)}>+</button>
        <button type="button" aria-label="zoom out" onClick={() => canvas.current?.zoomBy(0.77)}>−</button>
        <button type="button" aria-label="fit the whole graph" onClick={() => canvas.current?.whole()}>⤢</button>
      </div>
    </div>
  );
}
