// The beliefs of the open model: those of now, those before the last change, those without evidence, and intervals for what is in view.

import { Client, isAbort } from "./client";
import { isEmpty, keyOf, NOTHING } from "./evidence";
import { isFinite, type Belief, type Beliefs, type Evidence, type Model } from "./wire";

const KEPT = 30;
const LEVEL = 0.95;
const SOON = 200;

export type Marker = "before" | "prior" | "none";

export class Answers {
  now: Beliefs | null = null;
  prior: Beliefs | null = null;
  before: Beliefs | null = null;
  busy = false;
  private intervals = new Map<string, Belief>();
  private asked = new Set<string>();
  private readonly kept = new Map<string, Beliefs>();
  private underway: AbortController | null = null;
  private later = 0;
  private inView: string[] = [];
  private question: { model: Model; evidence: Evidence; sampled: boolean } | null = null;

  constructor(
    private readonly client: Client,
    private readonly changed: () => void,
  ) {}

  forget(): void {
    this.underway?.abort();
    this.now = this.prior = this.before = this.question = null;
    this.kept.clear();
    this.renew();
  }

  /** The beliefs given evidence; null where another question came in between. */
  async ask(model: Model, evidence: Evidence, sampled: boolean): Promise<Beliefs | null> {
    this.underway?.abort();
    this.underway = new AbortController();
    const { signal } = this.underway;
    const key = `${model.id} ${sampled} ${keyOf(evidence)}`;
    let found = this.kept.get(key);
    if (!found) {
      this.busy = true;
      this.changed();
      try {
        found = await this.client.post<Beliefs>(`models/${model.id}/beliefs`, { ...evidence, sampled }, signal);
      } catch (error) {
        if (isAbort(error)) return null;
        throw error;
      } finally {
        if (!signal.aborted) this.busy = false;
      }
    }
    if (signal.aborted) return null;
    if (found.possible) this.take(key, found, { model, evidence, sampled });
    this.changed();
    return found;
  }

  look(names: string[]): void {
    this.inView = names;
    this.askIntervals(150);
  }

  belief(name: string): Belief | undefined {
    return this.intervals.get(name) ?? this.now?.nodes[name];
  }

  marker(name: string, which: Marker): Belief | undefined {
    return which === "none" ? undefined : (which === "before" ? this.before : this.prior)?.nodes[name];
  }

  private take(key: string, found: Beliefs, question: NonNullable<Answers["question"]>): void {
    this.kept.set(key, found);
    if (this.kept.size > KEPT) this.kept.delete(this.kept.keys().next().value!);
    const same = this.question?.model.id === question.model.id;
    if (found !== this.now) this.before = same ? this.now : null;
    if (isEmpty(question.evidence)) this.prior = found;
    this.now = found;
    this.question = question;
    this.renew();
    this.askIntervals(SOON);
    if (!this.prior) void this.askPrior(question.model, question.sampled);
  }

  private renew(): void {
    this.intervals = new Map();
    this.asked = new Set();
  }

  private async askPrior(model: Model, sampled: boolean): Promise<void> {
    const found = await this.client.post<Beliefs>(`models/${model.id}/beliefs`, { ...NOTHING, sampled });
    if (this.question?.model.id !== model.id) return;
    this.prior = found;
    this.changed();
  }

  private askIntervals(wait: number): void {
    clearTimeout(this.later);
    this.later = window.setTimeout(() => void this.fetchIntervals(), wait);
  }

  private async fetchIntervals(): Promise<void> {
    const { question, now } = this;
    if (!question || !now || question.sampled) return;
    const { has_posterior } = question.model;
    const only = this.inView.filter((name) => !this.asked.has(name) && (has_posterior || hasCurve(now.nodes[name])));
    if (!only.length) return;
    for (const name of only) this.asked.add(name);
    const body = { ...question.evidence, only, interval: has_posterior ? LEVEL : null, sampled: false };
    try {
      const found = await this.client.post<Beliefs>(`models/${question.model.id}/beliefs`, body, this.underway?.signal);
      if (this.now !== now) return;
      for (const [name, belief] of Object.entries(found.nodes)) this.intervals.set(name, belief);
      this.changed();
    } catch {
      // Without intervals the beliefs still stand; the notes of the beliefs say why there are none.
    }
  }
}

/** Whether there is a density to ask for: it is told of the few nodes that are named only. */
function hasCurve(belief: Belief | undefined): boolean {
  return belief !== undefined && !isFinite(belief);
}
