// Numbers as text. Nothing is computed here but digits.

export function percent(value: number): string {
  if (value === 0 || value === 1) return `${100 * value}`;
  if (value < 0.0005) return "<0.1";
  return value >= 0.9995 ? ">99.9" : (100 * value).toFixed(1);
}

export function digits(value: number | null | undefined, n = 4): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(n - 2);
  return Number(value.toPrecision(n)).toLocaleString("en", { maximumFractionDigits: 6 });
}

export function whole(value: number): string {
  return value.toLocaleString("en");
}

export function chance(probability: number | null, log: number | null): string {
  if (probability !== null && (probability > 0 || log === null)) return digits(probability, 3);
  return log === null ? "–" : `exp(${log.toFixed(1)})`;
}

export function short(text: string, letters: number): string {
  const plain = text.slice(0, 4 * letters).replace(/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/gu, " ");
  return plain.length <= letters && text.length <= 4 * letters ? plain : `${plain.slice(0, letters - 1)}…`;
}

export function bytes(n: number): string {
  if (n < 1e3) return `${n} bytes`;
  if (n < 1e6) return `${(n / 1e3).toFixed(0)} kB`;
  return n < 1e9 ? `${(n / 1e6).toFixed(0)} MB` : `${(n / 1e9).toFixed(1)} GB`;
}

/** Whether two shares look the same as text. */
export function alike(a: number, b: number): boolean {
  return percent(a) === percent(b);
}
