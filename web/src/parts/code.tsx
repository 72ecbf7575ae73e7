// What gives the same answer outside the page, to be copied.

import { useState } from "preact/hooks";
import type { Code } from "../wire";

function Snippet({ title, text }: { title: string; text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 1500);
  };
  return (
    <div class="snippet">
      <div class="snippet-head">
        <span>{title}</span>
        <button type="button" class="quiet" onClick={() => void copy()} aria-label={`copy the ${title} code`}>
          {copied ? "copied" : "copy"}
        </button>
      </div>
      <pre tabIndex={0} aria-label={`${title} code`}>
        <code>{text}</code>
      </pre>
    </div>
  );
}

export function CodeBlock({ code }: { code: Code }) {
  return (
    <div class="code" data-testid="code">
      {code.python !== null && <Snippet title="Python" text={code.python} />}
      {code.command !== null && <Snippet title="command" text={code.command} />}
      {code.python === null && code.command === null && <p class="faint">This has no code of its own.</p>}
    </div>
  );
}

export function CodeFold({ code }: { code: Code }) {
  return (
    <details class="code-fold">
      <summary>code</summary>
      <CodeBlock code={code} />
    </details>
  );
}
