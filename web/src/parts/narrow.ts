// Whether the window is too narrow for a graph.

import { useEffect, useState } from "preact/hooks";

const QUERY = "(max-width: 700px)";

export function useNarrow(): boolean {
  const [narrow, set] = useState(() => matchMedia(QUERY).matches);
  useEffect(() => {
    const media = matchMedia(QUERY);
    const change = () => set(media.matches);
    media.addEventListener("change", change);
    return () => media.removeEventListener("change", change);
  }, []);
  return narrow;
}
