/**
 * Waits for a promise, for at most so many milliseconds, and until one of the signals is
 * aborted; undefined: it was not fulfilled by then. It leaves no listener behind.
 */
export async function within<T>(promise: Promise<T>, ms?: number, ...signals: AbortSignal[]): Promise<T | undefined> {
  let over!: () => void;
  const ended = new Promise<undefined>((resolve) => { over = () => resolve(undefined); });
  const timer = ms === undefined ? undefined : setTimeout(over, ms);
  for (const signal of signals) {
    if (signal.aborted) over();
    signal.addEventListener('abort', over);
  }
  try {
    return await Promise.race([promise, ended]);
  } finally {
    clearTimeout(timer);
    signals.forEach((signal) => signal.removeEventListener('abort', over));
  }
}
