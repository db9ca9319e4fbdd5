// The scenarios that clients of all languages play, with the same output:
//
//   REFOLD_URL=… REFOLD_TOKEN=… REFOLD_OTHER_TOKEN=… REFOLD_CUT_URL=… node scenarios.js
//
// The agent `helper` does what a request says. The streams of REFOLD_CUT_URL are cut after
// each event.
import { ProblemError, Refold, RunError } from '@refold/client';

const { REFOLD_URL, REFOLD_CUT_URL, REFOLD_TOKEN, REFOLD_OTHER_TOKEN } = process.env;
const refold = new Refold({ url: REFOLD_URL, token: REFOLD_TOKEN });
const helper = refold.agent('helper');
const sign = 'call form_sign {"text":"A"}';

const scenarios = {
  'ask and stream': async () => {
    const run = await helper.session('ask').ask('call weather_get {"city":"Bergen"}');
    await show(run.updates());
    const answer = await run.wait();
    console.log('answer', answer.text, answer.turns, answer.calls.map((call) => call.status).join());
  },
  'the same submission again': async () => {
    const session = helper.session('again');
    const first = await session.ask('say One.', { submission: 'order-7' });
    const second = await session.ask('say One.', { submission: 'order-7' });
    console.log('runs', first.number, second.number, (await second.wait()).text);
    await refused(session.ask('say Two.', { submission: 'order-7' }));
  },
  'steer': async () => {
    const session = helper.session('steer');
    const run = await session.ask(sign);
    const approval = await asked(run);
    const steered = await session.steer('say Steered.');
    console.log('runs', run.number, steered.number);
    await session.approve(approval);
    console.log('answer', (await run.wait()).text);
  },
  'pause and resume': async () => {
    const session = helper.session('pause');
    const run = await session.ask(sign);
    const approval = await asked(run);
    await session.pause({ reason: 'lunch' });
    console.log('state', (await run.state()).lifecycle);
    await session.approve(approval);
    await session.resume();
    console.log('answer', (await run.wait()).text);
    await show(run.updates());
    await refused(session.resume());
  },
  'approve with other arguments': async () => {
    const session = helper.session('approve');
    const run = await session.ask(sign);
    const approval = await asked(run);
    console.log('approval', approval.call, approval.tool, approval.arguments);
    await session.approve(approval, { arguments: '{"text":"B"}' });
    console.log('answer', (await run.wait()).text);
    await refused(session.approve(approval));
  },
  'deny': async () => {
    const session = helper.session('deny');
    const run = await session.ask(sign);
    await session.deny(await asked(run), { reason: 'not this form' });
    await show(run.updates());
  },
  'cancel': async () => {
    const session = helper.session('cancel');
    const run = await session.ask(sign);
    await asked(run);
    const queued = await session.ask('say Next.');
    await run.cancel({ reason: 'enough' });
    await failed(run);
    console.log('answer', (await queued.wait()).text);
    await refused(run.cancel());
  },
  'a lost connection': async () => {
    const cut = new Refold({ url: REFOLD_CUT_URL, token: REFOLD_TOKEN });
    const run = await cut.agent('helper').session('cut').ask('call weather_get {"city":"Oslo"}');
    await show(run.updates());
    const next = await cut.session('cut').ask('count 30');
    await show(next.updates());
    await show(until(cut.session('cut').updates({ after: 'start' }), next.number));
  },
  'a run that fails': async () => {
    const run = await helper.session('fail').ask('fail no_luck It went wrong.');
    await show(run.updates());
    await failed(run);
    await refused(refold.agent('nobody').session('fail').ask('say Hello.'));
    await refused(refold.session('fail').run(9).wait());
    await refused(new Refold({ url: REFOLD_URL, token: 'wrong' }).approvals());
  },
  'two tenants': async () => {
    const other = new Refold({ url: REFOLD_URL, token: REFOLD_OTHER_TOKEN });
    await refused(other.session('ask').view());
    const run = await other.agent('helper').session('ask').ask('say Hello.');
    console.log('answer', run.number, (await run.wait()).text);
    const signing = await helper.session('theirs').ask(sign);
    await asked(signing);
    console.log('theirs', await listed(refold, 10, { name: '' }));
    console.log('theirs', await listed(refold, 1, { name: 'thei', waitsFor: 'approval' }));
    console.log('others', await listed(other, 1));
    console.log('others', (await other.approvals()).length);
  },
};

/** Prints updates, each turn's text as one. */
async function show(updates) {
  let text = '';
  for await (const u of updates) {
    if (u.type === 'text') text += u.delta;
    if (u.type === 'text_restarted') text = '';
    if (['text', 'text_restarted', 'waiting'].includes(u.type)) continue;
    if (text !== '') console.log('  text', text.trim());
    text = '';
    console.log(`  ${[u.type, u.run, u.call?.tool, u.call?.status, u.call?.code, u.decision, u.reason, u.lifecycle, u.code].filter(Boolean).join(' ')}`);
  }
}

/** Yields updates until a run ends. */
async function* until(updates, run) {
  for await (const u of updates) {
    yield u;
    if (u.type === 'run_ended' && u.run === run) return;
  }
}

/** Returns the approval for which a run waits. */
async function asked(run) {
  for await (const u of run.updates()) if (u.type === 'approval_asked') break;
  return (await run.session.approvals())[0];
}

/** Lists a number of sessions: a list may be a moment behind. */
async function listed(of, number, options) {
  for (;;) {
    const ids = [];
    for await (const row of of.sessions(options)) ids.push(row.session);
    if (ids.length >= number) return ids.sort().join(' ');
  }
}

async function refused(request) {
  try {
    await request;
    console.log('not refused');
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    console.log('refused', error.status, error.code);
  }
}

async function failed(run) {
  try {
    console.log('answer', (await run.wait()).text);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    console.log('failed', error.lifecycle, error.code, error.detail);
  }
}

for (const [name, play] of Object.entries(scenarios)) {
  console.log(`# ${name}`);
  await play();
}
