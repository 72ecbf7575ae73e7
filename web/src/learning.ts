// The one job of the server, followed while it runs, and what the next one shall keep to.

import { Client, isAbort, sentence } from "./client";
import type { DryRun, End, Job, LearnRequest, Step } from "./wire";

export interface Rules {
  require: [string, string][];
  forbid: [string, string][];
  tiers: Record<string, number>;
}

export type Rule = "require" | "forbid";

export class Learning {
  job: Job | null = null;
  steps: Step[] = [];
  end: End | null = null;
  stopping = false;
  rules: Rules = { require: [], forbid: [], tiers: {} };
  private following: string | null = null;

  constructor(
    private readonly client: Client,
    private readonly changed: () => void,
    private readonly ended: (end: End, kind: Job["kind"]) => void,
  ) {}

  rule(rule: Rule, parent: string, child: string): void {
    const rest = (pairs: [string, string][]) => pairs.filter(([a, b]) => a !== parent || b !== child);
    const { require, forbid, tiers } = this.rules;
    this.rules = { require: rest(require), forbid: rest(forbid), tiers };
    this.rules[rule].push([parent, child]);
    this.changed();
  }

  unrule(rule: Rule, index: number): void {
    this.rules = { ...this.rules, [rule]: this.rules[rule].filter((_, i) => i !== index) };
    this.changed();
  }

  tier(name: string, tier: number | null): void {
    const { [name]: _, ...rest } = this.rules.tiers;
    this.rules = { ...this.rules, tiers: tier === null ? rest : { ...rest, [name]: tier } };
    this.changed();
  }

  /** The tiers as lists, the earliest first. */
  get tiers(): string[][] {
    const lists = new Map<number, string[]>();
    for (const [name, tier] of Object.entries(this.rules.tiers)) lists.set(tier, [...(lists.get(tier) ?? []), name]);
    return [...lists].sort(([a], [b]) => a - b).map(([, names]) => names);
  }

  foretell(request: LearnRequest): Promise<DryRun> {
    return this.client.post<DryRun>("learn", { ...request, dry_run: true });
  }

  async learn(request: LearnRequest): Promise<void> {
    this.follow(await this.client.post<Job>("learn", { ...request, dry_run: false }));
  }

  async strengths(model: string, table: string, n: number): Promise<void> {
    this.follow(await this.client.post<Job>(`models/${model}/strengths`, { table, n }));
  }

  async stop(): Promise<void> {
    if (!this.job) return;
    this.stopping = true;
    this.changed();
    await this.client.post(`jobs/${this.job.id}/stop`, {});
  }

  follow(job: Job | null): void {
    if (!job || this.following === job.id) return;
    this.job = job;
    this.steps = [];
    this.end = null;
    this.stopping = false;
    this.following = job.id;
    this.changed();
    void this.listen(job);
  }

  get running(): boolean {
    return this.job !== null && this.end === null;
  }

  private async listen(job: Job): Promise<void> {
    try {
      for await (const { name, data } of this.client.events(`jobs/${job.id}/events`, new AbortController().signal)) {
        if (name === "step") this.steps = [...this.steps, data as Step];
        if (name === "end") this.finish(job, data as End);
        this.changed();
      }
      if (this.running && this.following === job.id) this.finish(job, { model: null, stopped: true, error: "the connection ended" });
    } catch (error) {
      if (!isAbort(error)) this.finish(job, { model: null, stopped: true, error: sentence(error) });
    }
  }

  private finish(job: Job, end: End): void {
    if (this.following !== job.id) return;
    this.end = end;
    this.changed();
    this.ended(end, job.kind);
  }
}
