// What the server says, as docs/explorer_http.md has it.

export interface Code {
  python: string | null;
  command: string | null;
}

export interface Model {
  id: string;
  name: string;
  kind: "bayes_net" | "markov_net";
  n_nodes: number;
  n_edges: number;
  n_parameters: number;
  has_posterior: boolean;
  origin: string;
  table: string | null;
  notes: string[];
  code: Code;
}

export interface Table {
  id: string;
  name: string;
  rows: number;
  columns: number;
  code: Code;
}

export interface Job {
  id: string;
  kind: "learn" | "bootstrap";
  table: string;
  running: boolean;
}

export interface Held {
  version: string;
  models: Model[];
  tables: Table[];
  bundled: string[];
  job: Job | null;
  limits: { upload_bytes: number };
  open: { model: string | null; table: string | null; against: string | null };
}

export interface NodeInfo {
  name: string;
  kind: "finite" | "real" | "count";
  states: string[];
  parents: string[];
  children: string[];
}

export type Point = [number, number];
export type LineStyle = "both" | "here" | "there" | "reversed";

export interface GraphNode {
  name: string;
  label: string;
  kind: string;
  x: number;
  y: number;
  w: number;
  h: number;
  rows: string[];
  more: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  points: Point[];
  width: number | null;
  directed: boolean;
  style: LineStyle | null;
}

export interface Graph {
  ready: true;
  width: number;
  height: number;
  direction: string;
  widths: string | null;
  nodes: GraphNode[];
  edges: GraphEdge[];
  hidden: number;
}

export interface NotReady {
  ready: false;
}

export interface FiniteBelief {
  probs: number[];
  lower?: number[] | null;
  upper?: number[] | null;
}

export interface NumberBelief {
  mean: number;
  sd: number;
  lower?: number | null;
  upper?: number | null;
  density: Point[] | null;
}

export type Belief = FiniteBelief | NumberBelief;

export interface Beliefs {
  log_evidence: number | null;
  evidence_probability: number | null;
  method: "exact" | "sampled";
  error: number | null;
  notes: string[];
  nodes: Record<string, Belief>;
  possible: boolean;
  message: string | null;
  code: Code;
}

export type Value = string | number;

export interface Evidence {
  given: Record<string, Value>;
  soft: Record<string, number[]>;
  do: Record<string, Value>;
}

export interface Joint {
  targets: string[];
  states: string[][];
  probs: unknown;
  code: Code;
}

export interface Explanation {
  values: Record<string, Value>;
  log_prob: number;
  code: Code;
}

export interface Influence {
  rows: { node: string; information: number; moves: { state: string; of: string | null; from: number; to: number }[] }[];
  code: Code;
}

export interface Tornado {
  answer: number;
  rows: { node: string; parents: Record<string, Value>; state: string; low: number; high: number }[];
  code: Code;
}

export interface Separation {
  separated: boolean;
  path: string[] | null;
  code: Code;
}

export type Cell = string | number | null;

export interface CpdTable {
  columns: string[];
  rows: Cell[][];
  unsupported: number[];
  cut: number;
  intervals: boolean;
  ends: [number, number][][] | null;
  text: string;
  code: Code;
}

export interface EdgeWhy {
  present: boolean;
  text: string;
  loss: number | null;
  direction: string | null;
  code: Code;
}

export type Kind = "finite" | "real" | "count";

export interface Column {
  name: string;
  kind: Kind;
  states: { state: string; count: number }[];
  missing: number;
  minimum: Cell;
  maximum: Cell;
  notes: string[];
}

export interface TableDetail extends Omit<Table, "columns"> {
  columns: Column[];
  missingness: { warning: string | null; patterns: { columns: string[]; rows: number }[] };
  notes: string[];
}

export interface Correction {
  kind?: Kind | "ignore";
  states?: string[];
  ordered?: boolean;
  bins?: number;
}

export interface Cases {
  columns: string[];
  rows: { row: number; log_prob: number | null; cells: Cell[] }[];
  total: number;
  code: Code;
}

export interface Choice {
  word: string;
  text: string;
}

export interface Choices {
  scores: Choice[];
  methods: Choice[];
  priors: Choice[];
}

export interface LearnRequest {
  table: string;
  score: string;
  method: string;
  prior: string;
  max_parents: number | null;
  require: [string, string][];
  forbid: [string, string][];
  tiers: string[][];
  time_limit: number | null;
  seed: number;
  dry_run: boolean;
}

export interface DryRun {
  cost: string;
  seconds: number | null;
  bytes: number | null;
  code: Code;
}

export interface Step {
  step: number;
  score: number | null;
  text: string;
  seconds: number;
}

export interface End {
  model: string | null;
  stopped: boolean;
  error: string | null;
}

export interface Comparison {
  graph: Graph;
  shd: number | null;
  kl: { a_to_b: number | null; b_to_a: number | null } | null;
  scores: { name: string; a: number | null; b: number | null }[];
  beliefs: { a: Beliefs; b: Beliefs };
  notes: string[];
  code: Code;
}

export function isFinite(belief: Belief): belief is FiniteBelief {
  return "probs" in belief;
}
