// What programs may write: npm test checks its types, and nobody runs it.
import { ProblemError, Refold, type RunState, type Update } from '@refold/client';

export async function use(): Promise<RunState> {
  const refold = new Refold({ url: 'https://example.com', token: 'secret' });
  const run = await refold.agent('helper').session('hello').ask('Weather in Bergen?', { submission: 'order-7' });
  for await (const u of run.updates()) show(u);
  try {
    return await run.wait({ signal: AbortSignal.timeout(60_000) });
  } catch (error) {
    if (error instanceof ProblemError && error.code === 'session_closed') throw new Error(error.detail);
    // @ts-expect-error there is no such code
    if (error instanceof ProblemError && error.code === 'sesion_closed') throw error;
    throw error;
  }
}

function show(u: Update): string {
  switch (u.type) {
    case 'text': return u.delta;
    case 'approval_asked': return `${u.call.tool} ${u.call.arguments ?? ''}`;
    case 'run_ended': return u.lifecycle;
    // @ts-expect-error there is no such update
    case 'run_endet': return '';
    default: return u.position;
  }
}
