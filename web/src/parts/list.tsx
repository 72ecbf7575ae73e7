// What the graph says, as a table: each node with its neighbours and bars. It replaces the graph where that has no room.

import { useEffect, useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import type { Shown } from "../picture/canvas";
import { short } from "../format";
import { Bars } from "./bars";

const PAGE = 40;
const SAID = { given: "observed", soft: "soft evidence", do: "set by do" };

interface ListProps {
  explorer: Explorer;
  show: (name: string) => Shown;
  onChoose: (name: string) => void;
}

export function NodeList({ explorer, show, onChoose }: ListProps) {
  const [pages, setPages] = useState(1);
  const all = [...explorer.nodes.values()];
  const part = explorer.place.focus === null ? null : new Set(explorer.layouts.graph?.nodes.map((node) => node.name));
  const listed = part ? all.filter((node) => part.has(node.name)) : all;
  const nodes = listed.slice(0, pages * PAGE);
  const names = nodes.map((node) => node.name).join("\n");
  useEffect(() => explorer.answers.look(names.split("\n")), [names, explorer]);
  return (
    <div class="list" data-testid="list">
      <table>
        <caption class="hidden">beliefs of every node</caption>
        <thead>
          <tr><th scope="col">node</th><th scope="col">beliefs</th></tr>
        </thead>
        <tbody>
          {nodes.map((node) => {
            const shown = show(node.name);
            const { impossible } = explorer;
            return (
              <tr key={node.name} class={shown.how ? `is-${shown.how}` : ""} data-testid="list-row" data-node={node.name}>
                <th scope="row">
                  <button type="button" class="link" aria-current={explorer.place.node === node.name ? "true" : undefined} onClick={() => onChoose(node.name)}>
                    <bdi>{short(node.name, 40)}</bdi>
                  </button>
                  {shown.how && <span class="tag">{SAID[shown.how]}</span>}
                  {node.parents.length > 0 && <span class="faint">{explorer.model?.kind === "markov_net" ? "beside" : "from"} {short(node.parents.join(", "), 60)}</span>}
                </th>
                <td>
                  <Bars
                    info={node}
                    belief={shown.belief}
                    was={shown.was}
                    value={shown.value}
                    wide={false}
                    problem={impossible?.node === node.name ? impossible : null}
                    onState={(state) => void explorer.click(node.name, state)}
                  />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {nodes.length < listed.length && (
        <button type="button" onClick={() => setPages(pages + 1)}>{listed.length - nodes.length} more nodes</button>
      )}
    </div>
  );
}
