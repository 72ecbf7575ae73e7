// Learning a network from a table: by what, under which rules, at what cost; followed while it runs.

import { useEffect, useState } from "preact/hooks";
import type { Explorer } from "../explorer";
import { sentence } from "../client";
import { useAsk, Waiting } from "../parts/ask";
import { CodeFold } from "../parts/code";
import { short } from "../format";
import type { Choice, Choices, DryRun, LearnRequest, TableDetail } from "../wire";
import { Constraints } from "./constraints";
import { Progress } from "./progress";
import { TablePicker } from "./tables";

type Options = Pick<LearnRequest, "score" | "method" | "prior" | "max_parents" | "time_limit" | "seed">;

export function LearnTab({ explorer }: { explorer: Explorer }) {
  const { client, learning, place } = explorer;
  const choices = useAsk<Choices>("choices", (signal) => client.get("choices", {}, signal));
  const table = useAsk<TableDetail>(place.table, (signal) => client.get(`tables/${place.table}`, {}, signal));
  return (
    <main class="sheet learn">
      <div class="sheet-head">
        <h1>Learn</h1>
        <TablePicker explorer={explorer} />
      </div>
      <Waiting asked={choices} />
      <Waiting asked={table} />
      <Progress explorer={explorer} learning={learning} />
      {choices.answer && table.answer && <LearnForm key={table.answer.id} explorer={explorer} choices={choices.answer} table={table.answer} />}
    </main>
  );
}

function LearnForm({ explorer, choices, table }: { explorer: Explorer; choices: Choices; table: TableDetail }) {
  const { learning } = explorer;
  const [options, setOptions] = useState<Options>(() => ({
    score: first(choices.scores, "bic"),
    method: first(choices.methods, "orders"),
    prior: first(choices.priors, "bdeu"),
    max_parents: null,
    time_limit: null,
    seed: 0,
  }));
  const [cost, setCost] = useState<DryRun | null>(null);
  const [refusal, setRefusal] = useState<string | null>(null);
  const names = table.columns.map((column) => column.name);
  const has = new Set(names);
  const kept = (pairs: [string, string][]) => pairs.filter(([a, b]) => has.has(a) && has.has(b));
  const { require, forbid } = learning.rules;
  const request: LearnRequest = {
    ...options,
    table: table.id,
    require: kept(require),
    forbid: kept(forbid),
    tiers: learning.tiers.map((tier) => tier.filter((name) => has.has(name))).filter((tier) => tier.length),
    dry_run: false,
  };
  const question = JSON.stringify(request);
  useEffect(() => {
    let stale = false;
    const wait = setTimeout(() => {
      learning.foretell(request).then(
        (found) => !stale && (setCost(found), setRefusal(null)),
        (error: unknown) => !stale && (setCost(null), setRefusal(sentence(error))),
      );
    }, 250);
    return () => {
      stale = true;
      clearTimeout(wait);
    };
  }, [question]);
  const start = (event: Event) => {
    event.preventDefault();
    void explorer.attempt(() => learning.learn(request));
  };
  const set = (change: Partial<Options>) => setOptions({ ...options, ...change });
  return (
    <form class="learn-form" onSubmit={start}>
      <fieldset>
        <legend>How</legend>
        <Select title="score" choices={choices.scores} value={options.score} onChange={(score) => set({ score })} />
        <Select title="method" choices={choices.methods} value={options.method} onChange={(method) => set({ method })} />
        <Select title="prior" choices={choices.priors} value={options.prior} onChange={(prior) => set({ prior })} />
        <Amount title="most parents" value={options.max_parents} least={0} onChange={(max_parents) => set({ max_parents })} />
        <Amount title="seconds at most" value={options.time_limit} least={1} onChange={(time_limit) => set({ time_limit })} />
        <Amount title="seed" value={options.seed} least={0} onChange={(seed) => set({ seed: seed ?? 0 })} />
      </fieldset>
      <Constraints learning={learning} names={names} />
      <div class="sheet-head">
        <button type="submit" class="main" disabled={learning.running} data-testid="learn">learn</button>
        <span data-testid="cost">{refusal ? <span class="refusal" role="alert">{refusal}</span> : cost ? <pre class="cost">{cost.cost}</pre> : <span class="faint">estimating the cost …</span>}</span>
      </div>
      {cost && <CodeFold code={cost.code} />}
    </form>
  );
}

function first(choices: Choice[], wish: string): string {
  return (choices.find((one) => one.word === wish) ?? choices[0])?.word ?? "";
}

function Select({ title, choices, value, onChange }: { title: string; choices: Choice[]; value: string; onChange: (word: string) => void }) {
  return (
    <label>
      <span>{title}</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {choices.map(({ word, text }) => <option key={word} value={word}>{text ? `${word}: ${short(text, 70)}` : word}</option>)}
      </select>
    </label>
  );
}

function Amount({ title, value, least, onChange }: { title: string; value: number | null; least: number; onChange: (value: number | null) => void }) {
  return (
    <label>
      <span>{title}</span>
      <input type="number" min={least} value={value ?? ""} placeholder="default" onInput={(event) => onChange(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))} />
    </label>
  );
}
