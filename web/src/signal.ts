// Who shows a thing is told when it changed, once for all changes of one turn.

import { useEffect, useState } from "preact/hooks";

export class Source {
  private readonly listeners = new Set<() => void>();
  private waiting = false;

  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  changed(): void {
    if (this.waiting) return;
    this.waiting = true;
    queueMicrotask(() => {
      this.waiting = false;
      for (const listener of [...this.listeners]) listener();
    });
  }
}

export function useSource(source: Source): void {
  const [, bump] = useState(0);
  useEffect(() => source.listen(() => bump((n) => n + 1)), [source]);
}
