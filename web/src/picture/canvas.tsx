// The drawing on the screen: pan, zoom, and only what is in view in the document.

import { Component, createRef } from "preact";
import type { Graph, GraphEdge, Value } from "../wire";
import { EdgeLine, EdgeMesh } from "./edges";
import { type Box, boxOf, type Camera, centred, type Detail, detailOf, fit, holds, inView, Plan, type Size } from "./geometry";
import { NodeBox, type NodeProps } from "./node";
import { Pointers } from "./pointers";

export type Shown = Pick<NodeProps, "info" | "belief" | "was" | "how" | "value" | "best" | "problem">;

export interface CanvasProps {
  graph: Graph;
  label: string;
  chosen: string | null;
  centre: string | null;
  path: string[] | null;
  edge: [string, string] | null;
  show: (name: string) => Shown;
  onChoose: (name: string) => void;
  onState: ((name: string, state: Value) => void) | null;
  onFocus: (name: string) => void;
  onEdge: ((edge: GraphEdge) => void) | null;
  onView: (names: string[]) => void;
  onEscape: () => void;
  hold?: (canvas: Canvas | null) => void;
}

interface Drawn {
  box: Box;
  detail: Detail;
}

const MORE = 0.25;
const [LEAST, MOST] = [0.012, 3];

export class Canvas extends Component<CanvasProps, Drawn> {
  override state: Drawn = { box: { left: 0, top: 0, right: 0, bottom: 0 }, detail: "bars" };
  private readonly svg = createRef<SVGSVGElement>();
  private readonly layer = createRef<SVGGElement>();
  private readonly elements = new Map<string, SVGGElement>();
  private plan = new Plan(this.props.graph);
  private camera: Camera = { x: 0, y: 0, zoom: 1 };
  private size: Size = { width: 0, height: 0 };
  private frame = 0;
  private fitted: "home" | "whole" | null = null;
  private wanted: string | null = null;
  private watcher: ResizeObserver | null = null;
  private pointers = new Pointers(
    (dx, dy) => this.pan(dx, dy),
    (factor, x, y) => this.zoomAt(factor, x, y),
  );

  override componentDidMount(): void {
    const svg = this.svg.current!;
    this.props.hold?.(this);
    this.watcher = new ResizeObserver(() => this.measure());
    this.watcher.observe(svg);
    this.pointers.attach(svg);
    this.measure();
  }

  override componentWillUnmount(): void {
    this.props.hold?.(null);
    this.watcher?.disconnect();
    this.pointers.detach();
    cancelAnimationFrame(this.frame);
  }

  override componentDidUpdate(before: CanvasProps): void {
    if (before.graph !== this.props.graph) {
      this.plan = new Plan(this.props.graph);
      this.home();
    } else if (before.chosen !== this.props.chosen && this.props.chosen) {
      this.reveal(this.props.chosen);
    }
    const element = this.wanted === null ? undefined : this.elements.get(this.wanted);
    if (element) {
      element.focus({ preventScroll: true });
      this.wanted = null;
    }
  }

  /** The whole if it can be read there, else the chosen node or the focus in the middle. */
  home(): void {
    const { graph, chosen, centre } = this.props;
    const whole = fit(graph, this.size, LEAST, 1.15);
    const middle = this.plan.nodes.get(centre ?? chosen ?? "");
    if (whole.zoom >= 0.4 || !middle) this.move(whole.zoom >= 0.35 || graph.nodes.length > 400 ? whole : fit(graph, this.size, 0.35, 1.15));
    else this.move(centred(middle, this.size, 0.85));
    this.fitted = "home";
  }

  whole(): void {
    this.move(fit(this.props.graph, this.size, LEAST, 1.15));
    this.fitted = "whole";
  }

  zoomBy(factor: number): void {
    this.zoomAt(factor, this.size.width / 2, this.size.height / 2);
  }

  private measure(): void {
    const { width, height } = this.svg.current!.getBoundingClientRect();
    const fitted = this.size.width === 0 ? "home" : this.fitted;
    this.size = { width, height };
    if (!width) return;
    if (fitted === "home") this.home();
    else if (fitted === "whole") this.whole();
    else this.move(this.camera);
  }

  private zoomAt(factor: number, x: number, y: number): void {
    const zoom = Math.min(MOST, Math.max(LEAST, this.camera.zoom * factor));
    const share = zoom / this.camera.zoom;
    this.move({ zoom, x: x - share * (x - this.camera.x), y: y - share * (y - this.camera.y) });
  }

  private pan(dx: number, dy: number): void {
    this.move({ ...this.camera, x: this.camera.x + dx, y: this.camera.y + dy });
  }

  private move(camera: Camera): void {
    this.fitted = null;
    this.camera = camera;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.settle();
    });
  }

  /** Moves the layer; nodes are drawn anew only where the view leaves what is drawn, or shows it in another detail. */
  private settle(): void {
    const { x, y, zoom } = this.camera;
    this.layer.current?.setAttribute("transform", `translate(${x} ${y}) scale(${zoom})`);
    const seen = inView(this.camera, this.size);
    const room = inView(this.camera, this.size, MORE);
    const level = detailOf(zoom, this.plan.nodesIn(room, null).length);
    const drawn = this.state.box;
    const roomy = drawn.right - drawn.left > 4 * (seen.right - seen.left);
    if (level !== this.state.detail || !holds(drawn, seen) || roomy) this.setState({ box: room, detail: level });
    this.props.onView(level === "bars" ? this.plan.nodesIn(seen, this.props.chosen).map((node) => node.name) : []);
  }

  private reveal(name: string): void {
    const node = this.plan.nodes.get(name);
    if (!node || !this.size.width) return;
    if (!holds(inView(this.camera, this.size), boxOf(node)) || this.state.detail === "boxes") {
      this.move(centred(node, this.size, Math.max(this.camera.zoom, 0.7)));
    }
  }

  private key = (event: KeyboardEvent): void => {
    const target = event.target as Element;
    const state = target.closest<SVGGElement>("[data-state]");
    const node = target.closest<SVGGElement>("[data-node]");
    const done = state && node ? this.keyAtState(event.key, state, node) : node ? this.keyAtNode(event.key, node) : this.keyAtView(event.key);
    if (done) event.preventDefault();
    if (done) event.stopPropagation();
  };

  private keyAtView(key: string): boolean {
    const step = { ArrowLeft: [80, 0], ArrowRight: [-80, 0], ArrowUp: [0, 80], ArrowDown: [0, -80] }[key];
    if (step) this.pan(step[0]!, step[1]!);
    else if (key === "+" || key === "=") this.zoomBy(1.25);
    else if (key === "-") this.zoomBy(0.8);
    else if (key === "0") this.whole();
    else return false;
    return true;
  }

  private keyAtNode(key: string, node: SVGGElement): boolean {
    const name = node.dataset["node"]!;
    if (key.startsWith("Arrow")) this.step(this.plan.beside(name, key));
    else if (key === "Enter" || key === " ") {
      this.props.onChoose(name);
      node.querySelector<SVGGElement>("[data-state]")?.focus({ preventScroll: true });
    } else if (key === "f") this.props.onFocus(name);
    else if (key === "Escape") this.props.onEscape();
    else if (/^[1-9]$/.test(key)) {
      const row = this.plan.nodes.get(name)?.rows[Number(key) - 1];
      if (row !== undefined) this.props.onState?.(name, row);
    } else return this.keyAtView(key);
    return true;
  }

  private keyAtState(key: string, state: SVGGElement, node: SVGGElement): boolean {
    const all = [...node.querySelectorAll<SVGGElement>("[data-state]")];
    const at = all.indexOf(state);
    if (key === "ArrowUp" || key === "ArrowDown") all[at + (key === "ArrowDown" ? 1 : -1)]?.focus({ preventScroll: true });
    else if (key === "Enter" || key === " ") this.props.onState?.(node.dataset["node"]!, state.dataset["state"]!);
    else if (key === "Escape" || key === "ArrowLeft" || key === "ArrowRight") node.focus({ preventScroll: true });
    else return false;
    return true;
  }

  private pick = (event: MouseEvent): void => {
    const { left, top } = this.svg.current!.getBoundingClientRect();
    const { x, y, zoom } = this.camera;
    const node = this.plan.at((event.clientX - left - x) / zoom, (event.clientY - top - y) / zoom);
    if (node) this.props.onChoose(node.name);
  };

  private step(name: string | null): void {
    if (name === null) return;
    this.wanted = name;
    this.props.onChoose(name);
  }

  private keep = (name: string, element: SVGGElement | null): void => {
    if (element) this.elements.set(name, element);
    else this.elements.delete(name);
  };

  override render(props: CanvasProps, { box, detail }: Drawn) {
    const { graph, chosen, centre, path } = props;
    const plan = this.plan.graph === graph ? this.plan : (this.plan = new Plan(graph));
    const nodes = detail === "boxes" ? graph.nodes.filter(({ name }) => name === chosen || props.show(name).how) : plan.nodesIn(box, chosen);
    const first = chosen !== null && plan.nodes.has(chosen) ? chosen : nodes[0]?.name;
    const onPath = path ? new Set(path) : null;
    const next = (a: string, b: string) => path !== null && path.some((name, i) => (name === a && path[i + 1] === b) || (name === b && path[i + 1] === a));
    return (
      <svg ref={this.svg} class="canvas" role="application" aria-roledescription="graph" aria-label={props.label} tabindex={0} onKeyDown={this.key} data-testid="graph">
        <g ref={this.layer} class={`detail-${detail}`}>
          {detail === "bars" ? (
            plan.edgesIn(box).map((edge) => (
              <EdgeLine
                key={`${edge.from}\n${edge.to}`}
                edge={edge}
                lit={edge.from === chosen || edge.to === chosen}
                path={next(edge.from, edge.to)}
                chosen={props.edge !== null && props.edge[0] === edge.from && props.edge[1] === edge.to}
                onChoose={props.onEdge}
              />
            ))
          ) : (
            <EdgeMesh edges={graph.edges} />
          )}
          {detail === "boxes" && <path class="all-boxes" d={plan.boxes} onClick={this.pick} />}
          {nodes.map((node) => (
            <NodeBox
              key={node.name}
              node={node}
              {...props.show(node.name)}
              chosen={node.name === chosen || (onPath?.has(node.name) ?? false)}
              centre={node.name === centre}
              reachable={node.name === first}
              detail={detail}
              onChoose={props.onChoose}
              onState={props.onState}
              onFocus={props.onFocus}
              keep={this.keep}
            />
          ))}
        </g>
      </svg>
    );
  }
}
