// The keys, in a dialog.

import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, string][] = [
  ["Tab", "to the next part of the page; into the graph, to its chosen node"],
  ["arrows", "at a node: along an edge to the next node; at the graph: move the view"],
  ["Enter", "at a node: into its bars; at a bar: observe it, or take it back"],
  ["1 … 9", "at a node: observe its first … ninth state"],
  ["↑ ↓", "at a bar: the next bar"],
  ["f", "at a node: show the part around it"],
  ["+ − 0", "zoom in, zoom out, the whole graph"],
  ["Escape", "back to the node, then away from it"],
  ["/", "find a node"],
  ["u", "undo"],
];

export function Keys({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="keys" aria-label="keys" onClose={onClose}>
      <h2>Keys</h2>
      <dl>
        {KEYS.map(([key, text]) => (
          <>
            <dt><kbd>{key}</kbd></dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current?.close()}>close</button>
    </dialog>
  );
}
