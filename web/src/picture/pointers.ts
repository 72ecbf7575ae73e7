// Dragging with one pointer, pinching with two, and the wheel.

type Spot = { x: number; y: number };

const SLACK = 4;

export class Pointers {
  private readonly down = new Map<number, Spot>();
  private element: SVGSVGElement | null = null;
  private dragged = false;
  private began: Spot = { x: 0, y: 0 };

  constructor(
    private readonly pan: (dx: number, dy: number) => void,
    private readonly zoom: (factor: number, x: number, y: number) => void,
  ) {}

  attach(element: SVGSVGElement): void {
    this.element = element;
    element.addEventListener("pointerdown", this.press);
    element.addEventListener("pointermove", this.drag);
    element.addEventListener("pointerup", this.lift);
    element.addEventListener("pointercancel", this.lift);
    element.addEventListener("wheel", this.wheel, { passive: false });
    element.addEventListener("click", this.click, { capture: true });
  }

  detach(): void {
    const { element } = this;
    element?.removeEventListener("pointerdown", this.press);
    element?.removeEventListener("pointermove", this.drag);
    element?.removeEventListener("pointerup", this.lift);
    element?.removeEventListener("pointercancel", this.lift);
    element?.removeEventListener("wheel", this.wheel);
    element?.removeEventListener("click", this.click, { capture: true });
  }

  private press = (event: PointerEvent): void => {
    if (event.button !== 0) return;
    this.down.set(event.pointerId, { x: event.clientX, y: event.clientY });
    this.dragged = false;
    this.began = { x: event.clientX, y: event.clientY };
  };

  private drag = (event: PointerEvent): void => {
    const last = this.down.get(event.pointerId);
    if (!last) return;
    const now = { x: event.clientX, y: event.clientY };
    const other = [...this.down].find(([id]) => id !== event.pointerId)?.[1];
    if (!this.dragged && Math.hypot(now.x - this.began.x, now.y - this.began.y) < SLACK) return;
    if (!this.dragged) this.element?.setPointerCapture(event.pointerId);
    this.dragged = true;
    this.down.set(event.pointerId, now);
    if (other) this.pinch(last, now, other);
    else this.pan(now.x - last.x, now.y - last.y);
  };

  private pinch(last: Spot, now: Spot, other: Spot): void {
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const after = Math.hypot(now.x - other.x, now.y - other.y);
    const { left, top } = this.element!.getBoundingClientRect();
    if (before > 0) this.zoom(after / before, (now.x + other.x) / 2 - left, (now.y + other.y) / 2 - top);
  }

  private lift = (event: PointerEvent): void => {
    this.down.delete(event.pointerId);
  };

  /** A drag is no click. */
  private click = (event: MouseEvent): void => {
    if (this.dragged) event.stopPropagation();
    this.dragged = false;
  };

  private wheel = (event: WheelEvent): void => {
    event.preventDefault();
    const { left, top } = this.element!.getBoundingClientRect();
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.zoom(Math.exp(-event.deltaY * lines * 0.0015), event.clientX - left, event.clientY - top);
  };
}
