// Calls each operation of web/openapi.json by the client's method for it, on a server:
//
//   REFOLD_URL=… REFOLD_TOKEN=… node operations.js
//
// It prints the operations that no method called with success: none. Those of the inspector's
// pages have no methods.
import { readFileSync } from 'node:fs';
import { Refold } from '@refold/client';

const { paths } = JSON.parse(readFileSync(new URL('../../web/openapi.json', import.meta.url), 'utf8'));
const left = new Map(Object.entries(paths).flatMap(([path, of]) => Object.keys(of).filter((method) => !of[method].tags?.includes('inspector')).map((method) => [
  `${method.toUpperCase()} ${path}`, new RegExp(`^${method.toUpperCase()} ${path.replace(/\{[a-z]+\}/g, '[^/]+')}$`),
])).filter(([operation]) => / \/v1\//.test(operation) && !/ \/v1\/(ai-sdk|ag-ui|replies)\//.test(operation))); // those are for the libraries of others, and for those who have a link alone

if (left.size === 0) throw new Error('the document has no operation');

/** A fetch that crosses out what is answered with success. */
async function watched(url, init) {
  const response = await fetch(url, init);
  const called = `${init.method} ${new URL(url).pathname}`;
  for (const [operation, matches] of left) if (response.ok && matches.test(called)) left.delete(operation);
  return response;
}

const refold = new Refold({ url: process.env.REFOLD_URL, token: process.env.REFOLD_TOKEN, fetch: watched });
const sign = 'call form_sign {"text":"A"}';

/** Waits until a run asks for approval. */
async function asked(run) {
  for await (const u of run.updates()) if (u.type === 'approval_asked') return;
}

/** Requests a run that waits for a person. */
async function waiting(session) {
  const run = await session.ask(sign);
  await asked(run);
  return run;
}

const session = refold.agent('helper').session('each');
const notes = await session.upload('My notes.', { name: 'notes.txt' });
await (await session.ask([{ text: 'say Hello.' }, { blob: notes.blob }])).wait().catch(() => {}); // the model understands texts alone
const run = await waiting(session);
await session.steer('say Steered.');
await session.setFacts({ plan: 'gold' });
await session.setOverrides({ scope: 'session', disable: [] });
const paused = await session.pause({ reason: 'for lunch' });
await session.resume();
const [approval] = await refold.approvals();
await session.approve(approval);
await run.wait();
const asking = await session.ask('call ask_person {"question":"Which colour?"}');
for await (const u of asking.updates()) if (u.type === 'reply_asked') break;
const [question] = await refold.questions();
await session.reply(question, 'Blue.');
await asking.wait();
await session.redact(paused.seq);
await session.setAgent('helper');
await session.view();
for (const format of ['json', 'md', 'openai', 'anthropic']) await session.transcript(format);
await (await waiting(session)).cancel();
await waiting(session);
await session.cancel();
await waiting(session);
await session.interrupt();
for await (const row of refold.sessions()) if (row.session !== 'each') throw new Error(`another tenant's session: ${row.session}`);
const explicit = { provider: 'obedient', model: 'obedient', completion: 'explicit' };
/** Requests a run that waits for input. */
async function waitingForInput() {
  const run = await session.ask('say Well?', { config: explicit });
  while ((await run.state()).lifecycle !== 'waiting_input') ;
  return run;
}
await waitingForInput();
const queued = await session.ask('say Later.');
await queued.edit('say Much later.');
await session.complete();
await queued.wait();
await waitingForInput();
await session.fail({ code: 'no_answer' });
await session.setConfig(explicit);
await session.setRegistry({ tools: [], profiles: [{ profile: 'spare', tools: [] }] });
await session.setProfile('spare');
await session.setSchedule('report', { cron: '0 9 * * 1-5', zone: 'Europe/Berlin', input: 'say Report.' });
await session.pauseSchedule('report');
await session.resumeSchedule('report');
const [report] = await session.schedules();
if (!report.next) throw new Error('a schedule has no next time');
await session.removeSchedule('report');
await session.end();
await session.hold({ reason: 'case 4711' });
await session.endHold();
await session.delete();

for (const operation of left.keys()) console.log(operation);
