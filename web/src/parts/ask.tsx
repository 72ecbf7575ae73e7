// An answer that is fetched when its question is shown, and again when the question changes.

import { useEffect, useState } from "preact/hooks";
import { isAbort, sentence } from "../client";

export interface Asked<T> {
  answer: T | null;
  error: string | null;
  busy: boolean;
}

export function useAsk<T>(key: string | null, ask: (signal: AbortSignal) => Promise<T>): Asked<T> {
  const [state, set] = useState<Asked<T>>({ answer: null, error: null, busy: key !== null });
  useEffect(() => {
    if (key === null) {
      set({ answer: null, error: null, busy: false });
      return undefined;
    }
    const stop = new AbortController();
    set((old) => ({ ...old, error: null, busy: true }));
    ask(stop.signal).then(
      (answer) => !stop.signal.aborted && set({ answer, error: null, busy: false }),
      (error: unknown) => !isAbort(error) && !stop.signal.aborted && set({ answer: null, error: sentence(error), busy: false }),
    );
    return () => stop.abort();
  }, [key]);
  return state;
}

export function Waiting({ asked }: { asked: Asked<unknown> }) {
  if (asked.error) return <p class="refusal" role="alert">{asked.error}</p>;
  return asked.busy && !asked.answer ? <p class="faint">…</p> : null;
}
