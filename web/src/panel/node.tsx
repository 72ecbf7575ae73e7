// The chosen node: its belief, what to do to it, and the questions that can be asked about it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { CodeFold } from "../parts/code";
import { Bars } from "../parts/bars";
import { short } from "../format";
import type { Shown } from "../picture/canvas";
import type { Model, NodeInfo } from "../wire";
import { CpdView } from "./cpd";
import { WhyView } from "./why";
import { InfluenceView } from "./influence";
import { TornadoView } from "./tornado";
import { JointView } from "./joint";
import { SeparationView } from "./separation";
import { SoftForm } from "./soft";

const QUESTIONS = ["table", "why", "influence", "tornado", "joint", "separation"] as const;
type Question = (typeof QUESTIONS)[number];
const DIRECTED: readonly Question[] = ["why", "tornado"];

export interface PanelProps {
  explorer: Explorer;
  model: Model;
  node: NodeInfo;
  shown: Shown;
  onPath: (path: string[] | null) => void;
  onEdge: (parent: string, child: string) => void;
}

export function NodePanel(props: PanelProps) {
  const { explorer, model, node, shown } = props;
  const [question, setQuestion] = useState<Question | null>(null);
  const [soft, setSoft] = useState(false);
  const { impossible, mode } = explorer;
  const root = useRef<HTMLElement>(null);
  useEffect(() => root.current?.scrollIntoView({ block: "nearest" }), []);
  const now = explorer.answers.now;
  const asked = QUESTIONS.filter((one) => model.kind === "bayes_net" || !DIRECTED.includes(one));
  return (
    <aside ref={root} class="panel" aria-label={`node ${short(node.name, 60)}`} data-testid="panel">
      <div class="panel-head">
        <h2><bdi>{node.name.length > 120 ? short(node.name, 120) : node.name}</bdi></h2>
        <button type="button" class="quiet" aria-label="close the panel" onClick={() => explorer.select(null)}>✕</button>
      </div>
      <Bars
        info={node}
        belief={shown.belief}
        was={shown.was}
        value={shown.value}
        wide
        problem={impossible?.node === node.name ? impossible : null}
        onState={(state) => void explorer.click(node.name, state)}
      />
      <div class="means" role="group" aria-label="what a click on a bar means">
        <button type="button" aria-pressed={mode === "given" && !soft} onClick={() => { setSoft(false); explorer.mode = "given"; explorer.changed(); }}>observe</button>
        {node.kind === "finite" && <button type="button" aria-pressed={soft} onClick={() => setSoft(!soft)}>soft</button>}
        {model.kind === "bayes_net" && (
          <button type="button" aria-pressed={mode === "do" && !soft} onClick={() => { setSoft(false); explorer.mode = "do"; explorer.changed(); }}>do</button>
        )}
        {shown.how && <button type="button" class="quiet" onClick={() => void explorer.drop(node.name)}>take back</button>}
      </div>
      {soft && <SoftForm explorer={explorer} node={node} />}
      {!model.has_posterior && <p class="faint">No intervals: the model has point values only. Fit it with a prior to have them.</p>}
      {now?.notes.map((note) => <p key={note} class="note">{note}</p>)}
      {now && <CodeFold code={now.code} />}
      <Neighbours {...props} />
      <div class="questions" role="group" aria-label="questions">
        {asked.map((one) => (
          <button key={one} type="button" aria-pressed={question === one} onClick={() => { props.onPath(null); setQuestion(question === one ? null : one); }}>
            {one}
          </button>
        ))}
      </div>
      {question && <Asked {...props} question={question} />}
    </aside>
  );
}

function Asked({ question, ...props }: PanelProps & { question: Question }) {
  switch (question) {
    case "table":
      return <CpdView {...props} />;
    case "why":
      return <WhyView {...props} />;
    case "influence":
      return <InfluenceView {...props} />;
    case "tornado":
      return <TornadoView {...props} />;
    case "joint":
      return <JointView {...props} />;
    case "separation":
      return <SeparationView {...props} />;
  }
}

function Neighbours({ explorer, model, node }: PanelProps) {
  const link = (name: string) => (
    <button key={name} type="button" class="link" onClick={() => explorer.select(name)}><bdi>{short(name, 24)}</bdi></button>
  );
  const lines: [string, string[]][] =
    model.kind === "bayes_net" ? [["parents", node.parents], ["children", node.children]] : [["neighbours", [...new Set([...node.parents, ...node.children])]]];
  return (
    <dl class="facts neighbours">
      {lines.map(([title, names]) => names.length > 0 && (
        <>
          <dt>{title}</dt>
          <dd>{names.map(link)}</dd>
        </>
      ))}
    </dl>
  );
}
