/**
 * What a call means for those beside it: harmless; fragile, since its outcome is unknown
 * if the process dies; suspect, since one process died that ran it; or a killer.
 */
export type Kind = 'harmless' | 'fragile' | 'suspect' | 'killer';

const APART: Record<Kind, Kind[]> = {
  harmless: ['killer'],
  fragile: ['suspect', 'killer'],
  suspect: ['fragile', 'killer'],
  killer: ['harmless', 'fragile', 'suspect', 'killer'],
};

interface Place { kind: Kind; given: () => void }

/**
 * Decides which calls of this process run at the same time: docs/bridges.md, Calls that
 * kill their bridge. Calls that wait form one queue, so that no kind keeps another out.
 */
export class Neighbours {
  readonly #running = new Map<object, Kind>();
  readonly #waiting = new Map<object, Place>();

  /** Enters a call. It may run when the promise is fulfilled; leave gives its place up. */
  enter(call: object, kind: Kind): Promise<void> {
    this.leave(call);
    return new Promise((given) => {
      this.#waiting.set(call, { kind, given });
      this.#grant();
    });
  }

  leave(call: object): void {
    this.#running.delete(call);
    this.#waiting.delete(call);
    this.#grant();
  }

  /** Lets those run that can run beside all that run and all that wait before them. */
  #grant(): void {
    const before = new Set(this.#running.values());
    for (const [call, { kind, given }] of this.#waiting) {
      if (!APART[kind].some((other) => before.has(other))) {
        this.#waiting.delete(call);
        this.#running.set(call, kind);
        given();
      }
      before.add(kind);
    }
  }
}
