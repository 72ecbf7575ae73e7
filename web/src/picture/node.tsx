// A node of the drawing: its heading, and a bar for each state that was given room.

import { Component } from "preact";
import { alike, digits, percent, short } from "../format";
import type { How } from "../evidence";
import { isFinite, type Belief, type FiniteBelief, type GraphNode, type NodeInfo, type NumberBelief, type Value } from "../wire";
import { type Detail, HEAD, ROW, SCALE, VALUE } from "./geometry";
import { densityPath } from "./density";

export interface NodeProps {
  node: GraphNode;
  info: NodeInfo | undefined;
  belief: Belief | undefined;
  was: Belief | undefined;
  how: How | null;
  value: Value | undefined;
  best: Value | undefined;
  chosen: boolean;
  centre: boolean;
  reachable: boolean;
  detail: Detail;
  problem: Value | null | undefined;
  onChoose: (name: string) => void;
  onState: ((name: string, state: Value) => void) | null;
  onFocus: (name: string) => void;
  keep: (name: string, element: SVGGElement | null) => void;
}

const SIGNS = { given: "●", soft: "◐", do: "▣" };
const SAID = { given: "observed", soft: "soft evidence", do: "set by do" };

export class NodeBox extends Component<NodeProps> {
  override shouldComponentUpdate(next: NodeProps): boolean {
    return (Object.keys(next) as (keyof NodeProps)[]).some((key) => !key.startsWith("on") && key !== "keep" && next[key] !== this.props[key]);
  }

  override render(props: NodeProps) {
    const { node, how, chosen, centre, detail, problem } = props;
    const look = `node${how ? ` is-${how}` : ""}${chosen ? " chosen" : ""}${centre ? " centre" : ""}${problem !== undefined ? " problem" : ""}`;
    if (detail === "boxes") {
      return (
        <g class={look} transform={`translate(${node.x} ${node.y})`} onClick={() => props.onChoose(node.name)}>
          <rect class="box" width={node.w} height={node.h} rx="4" />
        </g>
      );
    }
    return (
      <g
        class={look}
        transform={`translate(${node.x} ${node.y})`}
        role="group"
        aria-roledescription="node"
        aria-label={this.said(props)}
        tabindex={props.reachable ? 0 : -1}
        data-node={node.name}
        data-testid="node"
        ref={(element: SVGGElement | null) => props.keep(node.name, element)}
        onClick={() => props.onChoose(node.name)}
        onDblClick={() => props.onFocus(node.name)}
      >
        <rect class="box" width={node.w} height={node.h} rx="4" />
        {how === "do" && <rect class="second" x="3" y="3" width={node.w - 6} height={node.h - 6} rx="2" />}
        <text class="heading" x={node.w / 2} y={detail === "bars" ? 17 : node.h / 2 + 6} font-size={detail === "bars" ? 12 : Math.min(24, (1.55 * node.w) / Math.max((node.label || node.name).length, 4))}>
          {how ? `${SIGNS[how]} ` : ""}
          {node.label || short(node.name, 16)}
          <title>{how ? `${node.name}: ${SAID[how]}` : node.name}</title>
        </text>
        {detail === "bars" && this.body(props)}
      </g>
    );
  }

  private body(props: NodeProps) {
    const { node, belief, info } = props;
    if (!belief) return <text class="label faint" x="8" y={HEAD + 10}>…</text>;
    if (!isFinite(belief)) return <NumberBody {...props} belief={belief} />;
    const states = info?.states ?? node.rows;
    return (
      <>
        {node.rows.map((state, row) => (
          <StateBar key={state} {...props} belief={belief} state={state} index={states.indexOf(state)} row={row} />
        ))}
        {node.more > 0 && (
          <text class="label faint" x="8" y={HEAD + node.rows.length * ROW + 10}>
            {node.more} more states
          </text>
        )}
      </>
    );
  }

  private said({ node, belief, how, info }: NodeProps): string {
    const sign = how ? `, ${SAID[how]}` : "";
    if (!belief) return `${short(node.name, 80)}${sign}`;
    if (!isFinite(belief)) return `${short(node.name, 80)}${sign}: mean ${digits(belief.mean)}, standard deviation ${digits(belief.sd)}`;
    const states = info?.states ?? node.rows;
    const bars = node.rows.map((state) => `${short(state, 40)} ${percent(belief.probs[states.indexOf(state)] ?? 0)} %`);
    return `${short(node.name, 80)}${sign}: ${bars.join(", ")}`;
  }
}

interface StateProps extends NodeProps {
  belief: FiniteBelief;
  state: string;
  index: number;
  row: number;
}

function StateBar({ node, belief, was, value, best, state, index, row, problem, onState }: StateProps) {
  const [y, start] = [HEAD + row * ROW, node.w - VALUE - SCALE];
  const at = (share: number) => start + SCALE * Math.min(Math.max(share, 0), 1);
  const share = belief.probs[index] ?? 0;
  const before = was && isFinite(was) ? was.probs[index] : undefined;
  const [low, high] = [belief.lower?.[index], belief.upper?.[index]];
  const on = value === state;
  return (
    <g
      class={`state${on ? " on" : ""}${problem === state ? " refused" : ""}`}
      role="button"
      tabindex={-1}
      aria-pressed={on}
      data-testid="bar"
      data-state={state}
      onClick={(event: MouseEvent) => {
        event.stopPropagation();
        onState?.(node.name, state);
      }}
    >
      <title>{`${short(node.name, 60)} = ${short(state, 60)}, ${percent(share)} %`}</title>
      <rect class="reach" x="3" y={y} width={node.w - 6} height={ROW} rx="2" />
      <text class="label" x="8" y={y + 11} aria-hidden="true">
        {short(state, 12)}
      </text>
      <rect class="scale" x={start} y={y + 2} width={SCALE} height="10" />
      <rect class="bar" x={start} y={y + 2} width={Math.max(at(share) - start, 0.1)} height="10" />
      {low !== undefined && high !== undefined && <path class="interval" d={`M${at(low)} ${y + 4.5}v5M${at(low)} ${y + 7}H${at(high)}M${at(high)} ${y + 4.5}v5`} />}
      {on && <text aria-hidden="true" class="tick" x={start + 3} y={y + 11}>✓</text>}
      {!on && best === state && <text aria-hidden="true" class="star" x={start + SCALE - 3} y={y + 11}>★</text>}
      {before !== undefined && !alike(before, share) && <path class="was" d={`M${at(before)} ${y + 0.5}v13`} />}
      <text class="value" x={node.w - 6} y={y + 11} aria-hidden="true">
        {percent(share)}
      </text>
    </g>
  );
}

function NumberBody({ node, belief, was, value }: NodeProps & { belief: NumberBelief }) {
  const room = node.h - HEAD - ROW - 6;
  const earlier = was && !isFinite(was) ? was : undefined;
  return (
    <g class="numbers">
      <text class="label" x={node.w / 2} y={HEAD + 9} text-anchor="middle">
        {value !== undefined ? `= ${digits(Number(value))}` : `${digits(belief.mean)} ± ${digits(belief.sd, 3)}`}
        <title>{earlier ? `before: ${digits(earlier.mean)} ± ${digits(earlier.sd, 3)}` : "mean ± standard deviation"}</title>
      </text>
      {room > 8 && belief.density && belief.density.length > 1 && (
        <path class="density" transform={`translate(8 ${HEAD + ROW})`} d={densityPath(belief.density, node.w - 16, room)} />
      )}
    </g>
  );
}
