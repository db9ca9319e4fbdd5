import { Bridge, type ServeOptions } from './bridge.js';

export type { ServeOptions } from './bridge.js';
export { CallStopped } from './outcome.js';
export type { JSONSchema, Schema } from './schema.js';
export { installRecord, registry, tool, ToolError, ToolResult, UnknownOutcomeError } from './tool.js';
export type { CallContext, ResultFile, Tool, ToolFunction, ToolOptions, ToolSpec } from './tool.js';

/** For what follows serve in a program, if a tool keeps the process alive, in milliseconds. */
const EXIT_AFTER = 1000;

/**
 * Serves tools to sessions until the process gets SIGTERM or SIGINT, or options.signal is
 * aborted. Then it takes nothing new, lets calls end within graceMs, settles or gives back
 * what is left, and returns. A second signal ends the process at once.
 *
 * It fails if it can't connect, or if the connection is closed for good. Run as many
 * processes as you like, and kill any of them.
 */
export async function serve(options: ServeOptions): Promise<void> {
  const bridge = await Bridge.open(options);
  const stop = () => bridge.stop();
  const signals = ['SIGTERM', 'SIGINT'] as const;
  let signalled = false;
  const onSignal = () => {
    signalled = true;
    signals.forEach((s) => process.off(s, onSignal));
    stop();
  };
  signals.forEach((s) => process.on(s, onSignal));
  options.signal?.addEventListener('abort', stop, { once: true });
  if (options.signal?.aborted) stop();
  try {
    await bridge.run();
  } finally {
    signals.forEach((s) => process.off(s, onSignal));
    options.signal?.removeEventListener('abort', stop);
  }
  if (signalled && bridge.abandoned > 0) setTimeout(() => process.exit(), EXIT_AFTER).unref();
}
