// The belief of one node as rows of bars, for panels and lists.

import { useMemo, useState } from "preact/hooks";
import { alike, digits, percent, short } from "../format";
import { frameOf, densityPath } from "../picture/density";
import { isFinite, type Belief, type FiniteBelief, type NodeInfo, type NumberBelief, type Value } from "../wire";

export interface BarsProps {
  info: NodeInfo;
  belief: Belief | undefined;
  was: Belief | undefined;
  value: Value | undefined;
  problem?: { value: Value | null; message: string } | null;
  wide: boolean;
  onState: ((state: Value) => void) | null;
}

const FEW = 14;

export function Bars(props: BarsProps) {
  const { belief } = props;
  if (!belief) return <p class="faint">…</p>;
  return isFinite(belief) ? <FiniteBars {...props} belief={belief} /> : <NumberBars {...props} belief={belief} />;
}

function FiniteBars({ info, belief, was, value, problem, wide, onState }: BarsProps & { belief: FiniteBelief }) {
  const [all, setAll] = useState(false);
  const shown = useMemo(() => shownStates(info.states, belief, value, all), [info, belief, value, all]);
  const before = was && isFinite(was) ? was : null;
  return (
    <div class={`bars${wide && belief.lower ? " wide" : ""}`} role="group" aria-label={`states of ${short(info.name, 60)}`}>
      {shown.map((i) => {
        const state = info.states[i]!;
        const share = belief.probs[i] ?? 0;
        const [low, high] = [belief.lower?.[i], belief.upper?.[i]];
        const range = low !== undefined && high !== undefined ? `${percent(low)}–${percent(high)}` : "";
        return (
          <>
            <button
              key={state}
              type="button"
              class="row"
              aria-pressed={value === state}
              disabled={!onState}
              onClick={() => onState?.(state)}
              data-testid="panel-bar"
              data-state={state}
              title={state}
            >
              <span class="name">{value === state ? "✓ " : ""}{short(state, 40)}</span>
              <svg class="strip" viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
                <rect class="scale" width="100" height="14" />
                <rect class="bar" width={100 * share} height="14" />
                {range && <path class="interval" d={`M${100 * low!} 4v6M${100 * low!} 7H${100 * high!}M${100 * high!} 4v6`} />}
                {before && !alike(before.probs[i] ?? 0, share) && <path class="was" d={`M${100 * (before.probs[i] ?? 0)} 0v14`} />}
              </svg>
              <span class="share">{percent(share)} %</span>
              {wide && range && <span class="range">{range}</span>}
            </button>
            {problem && problem.value === state && <p class="refusal" role="alert">{problem.message}</p>}
          </>
        );
      })}
      {problem && problem.value === null && <p class="refusal" role="alert">{problem.message}</p>}
      {info.states.length > FEW && (
        <button type="button" class="quiet" onClick={() => setAll(!all)}>
          {all ? "show fewer" : `show all ${info.states.length} states`}
        </button>
      )}
    </div>
  );
}

/** The states that are shown: all where they are few, else the most probable and the observed one, in their order. */
function shownStates(states: string[], belief: FiniteBelief, value: Value | undefined, all: boolean): number[] {
  const order = states.map((_, i) => i);
  if (all || states.length <= FEW) return order;
  const likely = [...order].sort((a, b) => (belief.probs[b] ?? 0) - (belief.probs[a] ?? 0)).slice(0, FEW);
  return order.filter((i) => likely.includes(i) || states[i] === value);
}

function NumberBars({ info, belief, was, value, problem, onState }: BarsProps & { belief: NumberBelief }) {
  const before = was && !isFinite(was) ? was : null;
  const range = belief.lower !== undefined && belief.lower !== null ? `${digits(belief.lower)} to ${digits(belief.upper)}` : null;
  return (
    <div class="numbers-panel">
      {value === undefined && belief.density && belief.density.length > 1 && <Curve curve={belief.density} was={before?.density ?? null} name={info.name} />}
      <dl class="facts">
        <dt>mean</dt>
        <dd>{digits(belief.mean)}{before ? <span class="faint"> was {digits(before.mean)}</span> : null}</dd>
        <dt>standard deviation</dt>
        <dd>{digits(belief.sd)}{before ? <span class="faint"> was {digits(before.sd)}</span> : null}</dd>
        {range && <dt>interval</dt>}
        {range && <dd>{range}</dd>}
      </dl>
      {onState && <NumberInput info={info} value={value} onState={onState} />}
      {problem && <p class="refusal" role="alert">{problem.message}</p>}
    </div>
  );
}

function Curve({ curve, was, name }: { curve: [number, number][]; was: [number, number][] | null; name: string }) {
  const frame = frameOf(curve, ...(was ? [was] : []));
  return (
    <figure class="curve">
      <svg viewBox="0 0 300 90" role="img" aria-label={`density of ${short(name, 60)}`}>
        <path class="density" d={densityPath(curve, 300, 88, frame)} />
        {was && was.length > 1 && <path class="density-was" d={densityPath(was, 300, 88, frame)} />}
        <path class="axis" d="M0 88.5H300" />
      </svg>
      <figcaption><span>{digits(frame.left, 3)}</span><span>{digits(frame.right, 3)}</span></figcaption>
    </figure>
  );
}

function NumberInput({ info, value, onState }: { info: NodeInfo; value: Value | undefined; onState: (value: Value) => void }) {
  const [text, setText] = useState(value === undefined ? "" : String(value));
  const send = (event: Event) => {
    event.preventDefault();
    if (text.trim() !== "" && !Number.isNaN(Number(text))) onState(Number(text));
  };
  return (
    <form class="inline" onSubmit={send}>
      <label>
        value of {short(info.name, 24)}
        <input type="number" step={info.kind === "count" ? 1 : "any"} value={text} onInput={(event) => setText(event.currentTarget.value)} data-testid="number" />
      </label>
      <button type="submit">observe</button>
    </form>
  );
}
