// A small bar: a share of a whole, beside the number that says it.

export function Gauge({ value, of }: { value: number; of: number }) {
  return (
    <svg class="gauge" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
      <rect class="scale" width="100" height="10" />
      <rect class="bar" width={of > 0 ? (100 * value) / of : 0} height="10" />
    </svg>
  );
}
