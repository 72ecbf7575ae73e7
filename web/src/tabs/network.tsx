// The network: evidence, a list of its nodes, the graph with bars, and the panel of what is chosen.

import { useEffect, useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { keyOf, howOf, valueOf } from "../evidence";
import { useAsk, Waiting } from "../parts/ask";
import { Chips } from "../parts/chips";
import { CodeFold } from "../parts/code";
import { Finder } from "../parts/finder";
import { NodeList } from "../parts/list";
import { Toolbar } from "../parts/toolbar";
import { useNarrow } from "../parts/narrow";
import { Stage } from "../picture/stage";
import { NodePanel } from "../panel/node";
import { EdgePanel } from "../panel/edge";
import type { Explanation, GraphEdge } from "../wire";
import { Strengths } from "../panel/strengths";
import type { Shown } from "../picture/canvas";
import { digits } from "../format";

export function NetworkTab({ explorer }: { explorer: Explorer }) {
  const { place, layouts, answers } = explorer;
  const model = explorer.model!;
  const narrow = useNarrow();
  const [edge, setEdge] = useState<[string, string] | null>(null);
  const [path, setPath] = useState<string[] | null>(null);
  const [best, setBest] = useState(false);
  const list = narrow || place.view === "list";
  const explained = useAsk<Explanation>(best ? `${model.id} ${keyOf(place.evidence)}` : null, (signal) =>
    explorer.client.post(`models/${model.id}/explanation`, place.evidence, signal),
  );
  useEffect(() => setPath(null), [place.node, model.id]);
  const choose = (name: string) => {
    setEdge(null);
    explorer.select(name);
  };
  const show = (name: string): Shown => ({
    info: explorer.nodes.get(name),
    belief: answers.belief(name),
    was: answers.marker(name, explorer.marker),
    how: howOf(place.evidence, name),
    value: valueOf(place.evidence, name),
    best: explained.answer?.values[name],
    problem: explorer.impossible?.node === name ? explorer.impossible.value : undefined,
  });
  const node = place.node === null ? undefined : explorer.nodes.get(place.node);
  return (
    <main class="network">
      <h1 class="hidden">{model.name}</h1>
      <Chips explorer={explorer} />
      <div class="columns">
        <Finder explorer={explorer} onChoose={choose} />
        <section class="middle" aria-label="graph">
          <Toolbar explorer={explorer} narrow={narrow} best={best} onBest={() => setBest(!best)} />
          {best && (
            <div class="answer-strip" data-testid="explanation">
              <Waiting asked={explained} />
              {explained.answer && <span>★ marks the most probable values together: log probability {digits(explained.answer.log_prob, 6)}</span>}
              {explained.answer && <CodeFold code={explained.answer.code} />}
            </div>
          )}
          {list ? (
            <NodeList explorer={explorer} show={show} onChoose={choose} />
          ) : (
            <Stage
              graph={layouts.graph}
              label={`graph of ${model.name}: ${model.n_nodes} nodes, ${model.n_edges} edges; arrows lead along edges, Enter into the bars of a node`}
              chosen={place.node}
              centre={place.focus}
              path={path}
              edge={edge}
              show={show}
              impossible={explorer.impossible}
              onChoose={choose}
              onState={(name, state) => {
                choose(name);
                void explorer.click(name, state);
              }}
              onFocus={(name) => void explorer.focus(name)}
              onEdge={(chosen: GraphEdge) => setEdge([chosen.from, chosen.to])}
              onView={(names) => answers.look(place.node === null ? names : [...new Set([...names, place.node])])}
              onEscape={() => {
                setEdge(null);
                explorer.dismiss();
                explorer.select(null);
              }}
            />
          )}
        </section>
        {edge ? (
          <EdgePanel key={edge.join("\n")} explorer={explorer} model={model} parent={edge[0]} child={edge[1]} onClose={() => setEdge(null)} />
        ) : node ? (
          <NodePanel key={node.name} explorer={explorer} model={model} node={node} shown={show(node.name)} onPath={setPath} onEdge={(a, b) => setEdge([a, b])} />
        ) : (
          <ModelPanel explorer={explorer} />
        )}
      </div>
    </main>
  );
}

function ModelPanel({ explorer }: { explorer: Explorer }) {
  const model = explorer.model!;
  const notes = [...model.notes, ...(explorer.answers.now?.notes ?? [])];
  return (
    <aside class="panel about" aria-label="the model">
      <h2>{model.name}</h2>
      <dl class="facts">
        <dt>nodes</dt>
        <dd>{model.n_nodes}</dd>
        <dt>edges</dt>
        <dd>{model.n_edges}</dd>
        <dt>parameters</dt>
        <dd>{model.n_parameters.toLocaleString("en")}</dd>
        <dt>from</dt>
        <dd>{model.origin}</dd>
      </dl>
      {!model.has_posterior && <p class="note">No intervals: this model has point values only. Fit it with a prior to have them.</p>}
      {notes.map((note) => <p key={note} class="note">{note}</p>)}
      <Strengths explorer={explorer} model={model} />
      <p class="faint">Choose a node, in the graph or the list, to ask about it; choose an edge to see why it is there.</p>
      <CodeFold code={model.code} />
    </aside>
  );
}
