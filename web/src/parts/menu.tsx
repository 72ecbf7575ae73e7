// A button that opens a list of actions below it; Escape and a click elsewhere close it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export function Menu({ title, children }: { title: string; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const away = (event: Event) => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", away);
    return () => document.removeEventListener("pointerdown", away);
  }, [open]);
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    setOpen(false);
    root.current?.querySelector("button")?.focus();
    event.stopPropagation();
  };
  return (
    <div class="menu" ref={root} onKeyDown={key}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
        {title} <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div class="menu-list" onClick={() => setOpen(false)}>
          {children}
        </div>
      )}
    </div>
  );
}
