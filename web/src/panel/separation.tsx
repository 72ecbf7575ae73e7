// Whether two nodes tell anything about each other, given what is observed; the path that does is lit in the graph.

import { useEffect, useState } from "preact/hooks";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { short } from "../format";
import type { Separation } from "../wire";
import type { PanelProps } from "./node";

export function SeparationView({ explorer, model, node, onPath }: PanelProps) {
  const [other, setOther] = useState("");
  const { evidence } = explorer.place;
  const given = [...Object.keys(evidence.given), ...Object.keys(evidence.do)].filter((name) => name !== node.name && name !== other);
  const asked = useAsk<Separation>(other ? `${model.id} ${node.name}\n${other}\n${given.join("\n")}` : null, (signal) =>
    explorer.client.post(`models/${model.id}/separation`, { a: node.name, b: other, given }, signal),
  );
  const { answer } = asked;
  useEffect(() => {
    onPath(answer?.path ?? null);
    return () => onPath(null);
  }, [answer]);
  return (
    <section class="answer" aria-label="separation" data-testid="separation">
      <label>
        from{" "}
        <select value={other} onChange={(event) => setOther(event.currentTarget.value)}>
          <option value="" />
          {[...explorer.nodes.keys()].filter((name) => name !== node.name).map((name) => <option key={name} value={name}>{short(name, 40)}</option>)}
        </select>
      </label>
      <p class="faint">given {given.length ? given.map((name) => short(name, 20)).join(", ") : "nothing"}</p>
      <Waiting asked={asked} />
      {answer && other && (
        <>
          <p><strong>{answer.separated ? "Separated: neither tells anything about the other." : "Not separated: one tells about the other."}</strong></p>
          {answer.path && <p>Active path: {answer.path.map((name) => short(name, 20)).join(" – ")}</p>}
          <CodeFold code={answer.code} />
        </>
      )}
    </section>
  );
}
