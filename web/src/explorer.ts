// What the page knows and does. Components show it and call it; they hold nothing of their own that outlives them.

import { Answers, type Marker } from "./answers";
import { Client, Gone, isAbort, Refusal, sentence } from "./client";
import { keyOf, NOTHING, put, putSoft, toggle, without } from "./evidence";
import { LARGE, Layouts, type Widths } from "./layouts";
import { Learning } from "./learning";
import { fragmentOf, type Place, readPlace, START, type Tab, takeToken } from "./place";
import { Source } from "./signal";
import type { End, Evidence, Held, Job, Model, NodeInfo, Table, Value } from "./wire";

const TABLES = /\.(csv|tsv|txt|parquet|arrow|feather|ipc|csv\.gz)$/i;
const NEIGHBOURS = 8;

export interface Trouble {
  message: string;
  sampling: boolean;
}

export interface Impossible {
  node: string;
  value: Value | null;
  message: string;
}

/** A place in the history: how deep it is, where undo leads from it, and where it led before the last change of evidence. */
interface Mark {
  depth: number;
  undo: number | null;
  earlier: number | null;
}

function mark(): Mark {
  return (history.state as Mark | null) ?? { depth: 0, undo: null, earlier: null };
}

export class Explorer extends Source {
  readonly client = new Client(takeToken());
  readonly answers = new Answers(this.client, () => this.changed());
  readonly layouts = new Layouts(this.client, () => this.changed());
  readonly learning = new Learning(this.client, () => this.changed(), (end, kind) => void this.learned(end, kind));
  place: Place = readPlace(location.hash);
  held: Held | null = null;
  nodes = new Map<string, NodeInfo>();
  marker: Marker = "before";
  mode: "given" | "do" = "given";
  trouble: Trouble | null = null;
  impossible: Impossible | null = null;
  gone = false;
  refused = false;
  said = "";
  opening: string | null = null;
  private loaded: string | null = null;

  async start(): Promise<void> {
    this.client.onGone = () => this.lose();
    this.client.onBack = () => this.regain();
    window.addEventListener("popstate", () => void this.arrive());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) void this.attempt(() => this.refresh());
    });
    await this.attempt(async () => {
      await this.refresh();
      this.settle();
      await this.load();
    });
  }

  get model(): Model | null {
    return this.held?.models.find((model) => model.id === this.place.model) ?? null;
  }

  get table(): Table | null {
    return this.held?.tables.find((table) => table.id === this.place.table) ?? null;
  }

  get against(): Model | null {
    return this.held?.models.find((model) => model.id === this.place.against) ?? null;
  }

  get canUndo(): boolean {
    return mark().undo !== null;
  }

  // Places

  go(change: Partial<Place>): void {
    const next = { ...this.place, ...change };
    const { depth, undo } = mark();
    const asks = keyOf(next.evidence) !== keyOf(this.place.evidence) || next.model !== this.place.model;
    const quiet = Object.keys(change).every((key) => key === "node" || key === "table" || key === "against" || key === "view");
    this.place = next;
    if (!quiet) this.trouble = null;
    if (quiet) history.replaceState(mark(), "", fragmentOf(next));
    else history.pushState({ depth: depth + 1, undo: asks ? depth : undo, earlier: undo }, "", fragmentOf(next));
    this.changed();
  }

  private stay(change: Partial<Place>): void {
    this.place = { ...this.place, ...change };
    history.replaceState(mark(), "", fragmentOf(this.place));
    this.changed();
  }

  /** Back to the last evidence that was possible; what was tried leaves nothing to undo. */
  private revert(evidence: Evidence): void {
    history.replaceState({ ...mark(), undo: mark().earlier }, "");
    this.stay({ evidence });
  }

  undo(): void {
    const { depth, undo } = mark();
    if (undo !== null) history.go(undo - depth);
  }

  private async arrive(): Promise<void> {
    takeToken();
    const before = this.place;
    this.place = readPlace(location.hash);
    this.impossible = null;
    this.changed();
    await this.attempt(async () => {
      if (this.place.model !== before.model) return this.load();
      const drawn = this.place.focus !== before.focus || this.place.steps !== before.steps;
      await Promise.all([this.ask(before.evidence), drawn ? this.draw() : null]);
    });
  }

  // What is held

  async refresh(): Promise<void> {
    this.held = await this.client.get<Held>("state");
    this.learning.follow(this.held.job?.running ? this.held.job : null);
    this.changed();
  }

  private settle(): void {
    const { models, tables, open } = this.held!;
    const known = <T extends { id: string }>(list: T[], ...ids: (string | null)[]) =>
      ids.find((id) => list.some((one) => one.id === id)) ?? null;
    const model = known(models, this.place.model, open.model);
    const fresh = model !== this.place.model && this.place.model !== null;
    const place: Place = fresh ? { ...START, tab: this.place.tab } : this.place;
    this.place = {
      ...place,
      model,
      table: known(tables, place.table, open.table),
      against: known(models, place.against, open.against),
    };
    this.stay({});
  }

  async openModel(id: string, tab: Tab = "network"): Promise<void> {
    this.go({ model: id, tab, node: null, focus: null, steps: 1, sampled: false, evidence: NOTHING });
    await this.attempt(() => this.load());
  }

  async openBundled(name: string): Promise<void> {
    await this.whileOpening(name, async () => {
      const model = await this.client.post<Model>("open", { bundled: name });
      await this.refresh();
      await this.openModel(model.id);
    });
  }

  async openFile(file: File): Promise<void> {
    await this.whileOpening(file.name, async () => {
      if (TABLES.test(file.name)) {
        const table = await this.client.upload<Table>("tables", file);
        await this.refresh();
        this.go({ table: table.id, tab: "data" });
      } else {
        const model = await this.client.upload<Model>("models", file);
        await this.refresh();
        await this.openModel(model.id);
      }
    });
  }

  private async whileOpening(name: string, work: () => Promise<void>): Promise<void> {
    this.opening = name;
    this.changed();
    await this.attempt(work);
    if (this.opening === name) this.opening = null;
    this.changed();
  }

  private async learned(end: End, kind: Job["kind"]): Promise<void> {
    await this.attempt(async () => {
      await this.refresh();
      if (end.error) throw new Refusal(end.error, "job", null, 400);
      if (kind === "bootstrap") return this.widen("share");
      if (!end.model) return;
      this.go({ against: this.place.model });
      if (this.place.tab === "learn") await this.openModel(end.model);
    });
  }

  private async load(): Promise<void> {
    const { model } = this;
    this.layouts.forget();
    this.answers.forget();
    this.impossible = null;
    this.nodes = new Map();
    this.loaded = model?.id ?? null;
    this.changed();
    if (!model) return;
    document.title = `${model.name} – Suffice`;
    const asked = this.attempt(() => this.ask(NOTHING));
    const { nodes } = await this.client.get<{ nodes: NodeInfo[] }>(`models/${model.id}/nodes`);
    if (this.loaded !== model.id) return;
    this.nodes = new Map(nodes.map((node) => [node.name, node]));
    if (model.n_nodes > LARGE && this.place.focus === null && this.place.view === "picture") this.stay({ focus: this.centre(nodes) });
    this.changed();
    await Promise.all([asked, this.draw()]);
  }

  /** The node that a large network opens at: the chosen one, or one with the most neighbours that a screen has room for. */
  private centre(nodes: NodeInfo[]): string | null {
    const degree = (node: NodeInfo) => node.parents.length + node.children.length;
    const roomy = nodes.filter((node) => degree(node) <= NEIGHBOURS);
    const most = roomy.reduce<NodeInfo | null>((best, node) => (best && degree(best) >= degree(node) ? best : node), null);
    return this.place.node ?? most?.name ?? nodes[0]?.name ?? null;
  }

  // The drawing

  async draw(): Promise<void> {
    if (this.model) await this.layouts.show(this.model, this.place.focus, this.place.steps);
  }

  async focus(node: string | null, steps = this.place.steps): Promise<void> {
    this.go(node === null ? { focus: null, node: this.place.node ?? this.place.focus } : { focus: node, steps, node });
    await this.attempt(() => this.draw());
  }

  async widen(widths: Widths): Promise<void> {
    const { model, place } = this;
    if (model) await this.attempt(() => this.layouts.widen(model, widths, place.focus, place.steps));
  }

  select(node: string | null): void {
    if (node !== this.place.node) this.go({ node });
  }

  // Evidence

  async believe(evidence: Evidence, node: string | null = null, value: Value | null = null): Promise<void> {
    const before = this.place.evidence;
    this.impossible = null;
    this.go({ evidence });
    await this.attempt(() => this.ask(before, node, value));
  }

  click(node: string, value: Value): Promise<void> {
    return this.believe(toggle(this.place.evidence, this.mode, node, value), node, value);
  }

  observe(node: string, value: Value): Promise<void> {
    return this.believe(put(this.place.evidence, this.mode, node, value), node, value);
  }

  soften(node: string, weights: number[]): Promise<void> {
    return this.believe(putSoft(this.place.evidence, node, weights), node);
  }

  drop(node: string): Promise<void> {
    return this.believe(without(this.place.evidence, node));
  }

  async sample(): Promise<void> {
    this.go({ sampled: true });
    await this.attempt(() => this.ask(this.place.evidence));
  }

  private async ask(before: Evidence, node: string | null = null, value: Value | null = null): Promise<void> {
    const { model, place } = this;
    if (!model) return;
    let found;
    try {
      found = await this.answers.ask(model, place.evidence, place.sampled);
    } catch (error) {
      if (!isAbort(error) && this.place.evidence === place.evidence) this.revert(before);
      if (!this.answers.now && error instanceof Refusal && keyOf(before) !== keyOf(place.evidence)) await this.answers.ask(model, before, place.sampled);
      throw error;
    }
    if (!found || this.place.evidence !== place.evidence) return;
    if (!found.possible) {
      this.impossible = { node: node ?? "", value, message: found.message ?? "this cannot happen" };
      this.revert(before);
      await this.answers.ask(model, before, place.sampled);
    }
    this.say(found.possible ? "beliefs updated" : `impossible: ${found.message ?? ""}`);
  }

  // What went wrong

  async attempt(work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.fail(error);
    }
  }

  fail(error: unknown): void {
    if (isAbort(error) || error instanceof Gone) return;
    if (error instanceof Refusal && error.status === 401) this.refused = true;
    else this.trouble = { message: sentence(error), sampling: error instanceof Refusal && error.kind === "TooLarge" };
    this.changed();
  }

  dismiss(): void {
    this.trouble = null;
    this.impossible = null;
    this.changed();
  }

  say(text: string): void {
    this.said = text;
    this.changed();
  }

  private lose(): void {
    if (this.gone) return;
    this.gone = true;
    this.changed();
    const again = () => {
      if (this.gone) void this.attempt(() => this.refresh()).then(() => this.gone && setTimeout(again, 2000));
    };
    setTimeout(again, 2000);
  }

  private regain(): void {
    if (!this.gone) return;
    this.gone = false;
    this.changed();
  }
}
