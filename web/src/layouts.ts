// The drawings of the open model: the whole, and the part around a node. The whole of a large one is made in the background.

import type { Client } from "./client";
import type { Graph, Model, NotReady } from "./wire";

export const LARGE = 150;
const PATIENCE = 700;

export type Widths = "none" | "loss" | "share";

export class Layouts {
  graph: Graph | null = null;
  whole: Graph | null = null;
  widths: Widths = "none";
  private round = 0;

  constructor(
    private readonly client: Client,
    private readonly changed: () => void,
  ) {}

  forget(): void {
    this.round++;
    this.widths = "none";
    this.graph = this.whole = null;
  }

  async show(model: Model, focus: string | null, steps: number): Promise<void> {
    const round = ++this.round;
    if (focus === null) {
      const whole = await this.prepare(model, round);
      if (whole && round === this.round) this.graph = whole;
    } else {
      const part = await this.fetch(model, { focus, steps });
      if (part.ready && round === this.round) this.graph = part;
      void this.prepare(model, round).catch(() => null);
    }
    this.changed();
  }

  async widen(model: Model, widths: Widths, focus: string | null, steps: number): Promise<void> {
    const before = this.widths;
    this.widths = widths;
    this.whole = null;
    try {
      await this.show(model, focus, steps);
    } catch (error) {
      this.widths = before;
      throw error;
    }
  }

  /** The whole, as soon as it is there; null where something else is to be shown by then. */
  private async prepare(model: Model, round: number): Promise<Graph | null> {
    while (!this.whole && round === this.round) {
      const found = await this.fetch(model, {});
      if (round !== this.round) return null;
      if (found.ready) this.whole = found;
      else await new Promise((done) => setTimeout(done, PATIENCE));
    }
    this.changed();
    return this.whole;
  }

  private fetch(model: Model, part: { focus?: string; steps?: number }): Promise<Graph | NotReady> {
    return this.client.get(`models/${model.id}/graph`, { size: "bars", widths: this.widths, ...part });
  }
}
