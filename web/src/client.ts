// The one place that speaks with the server.

export class Refusal extends Error {
  constructor(
    message: string,
    readonly kind: string,
    readonly remedy: string | null,
    readonly status: number,
  ) {
    super(message);
  }
}

export class Gone extends Error {}

export type Query = Record<string, string | number | null | undefined>;

export interface Sent {
  body?: unknown;
  query?: Query;
  signal?: AbortSignal;
}

export interface Event {
  name: string;
  data: unknown;
}

export class Client {
  onGone: () => void = () => undefined;
  onBack: () => void = () => undefined;

  constructor(private readonly token: string) {}

  get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
    return this.json<T>("GET", path, signal ? { query, signal } : { query });
  }

  post<T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> {
    return this.json<T>("POST", path, signal ? { body, signal } : { body });
  }

  remove(path: string): Promise<unknown> {
    return this.json("DELETE", path, {});
  }

  async upload<T>(path: string, file: File): Promise<T> {
    return (await this.send("POST", path, { query: { name: file.name }, body: file })).json() as Promise<T>;
  }

  async file(method: string, path: string, sent: Sent): Promise<Blob> {
    return (await this.send(method, path, sent)).blob();
  }

  async *events(path: string, signal: AbortSignal): AsyncGenerator<Event> {
    const reply = await this.send("GET", path, { signal });
    const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value.replaceAll("\r\n", "\n")).split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const found = event(block);
        if (found) yield found;
      }
    }
  }

  private async json<T>(method: string, path: string, sent: Sent): Promise<T> {
    return (await this.send(method, path, sent)).json() as Promise<T>;
  }

  private async send(method: string, path: string, sent: Sent): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    const init: RequestInit = { method, headers, cache: "no-store" };
    if (sent.signal) init.signal = sent.signal;
    if (sent.body instanceof Blob) {
      init.body = sent.body;
      headers["Content-Type"] = "application/octet-stream";
    } else if (sent.body !== undefined) {
      init.body = JSON.stringify(sent.body);
      headers["Content-Type"] = "application/json";
    }
    let reply: Response;
    try {
      reply = await fetch(`/api/${path}${search(sent.query)}`, init);
    } catch (error) {
      if (sent.signal?.aborted) throw error;
      this.onGone();
      throw new Gone("the server does not answer");
    }
    this.onBack();
    if (!reply.ok) throw await refusal(reply);
    return reply;
  }
}

function search(query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  return pairs.length ? `?${new URLSearchParams(pairs.map(([k, v]) => [k, String(v)]))}` : "";
}

async function refusal(reply: Response): Promise<Refusal> {
  try {
    const { error } = (await reply.json()) as { error: { message: string; kind: string; remedy: string | null } };
    return new Refusal(error.message, error.kind, error.remedy, reply.status);
  } catch {
    return new Refusal(`the server answered ${reply.status}`, "unknown", null, reply.status);
  }
}

function event(block: string): Event | null {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
  }
  return data.length ? { name, data: JSON.parse(data.join("\n")) as unknown } : null;
}

export function sentence(error: unknown): string {
  if (error instanceof Refusal) return [error.message, error.remedy].filter(Boolean).join(". ");
  return error instanceof Error ? error.message : String(error);
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}
