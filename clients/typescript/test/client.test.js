// The client against a fetch that answers what a test says.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ConnectionError, ProblemError, Refold, RunError } from '@refold/client';

// Pauses before repeats are over at once. What waits for silence waits.
const realTimeout = globalThis.setTimeout;
const pauses = [];
globalThis.setTimeout = (f, ms, ...args) => {
  if (ms >= 10_000) return realTimeout(f, ms, ...args);
  pauses.push(ms);
  return realTimeout(f, 0, ...args);
};

/** A client that gets these answers, and the last one for ever: functions of a request. */
function client(...answers) {
  const came = [];
  const fetch = async (url, init) => {
    came.push({ url, ...init });
    return (answers.length > 1 ? answers.shift() : answers[0])(init);
  };
  return { refold: new Refold({ url: 'http://host/base/', token: async () => 'secret', fetch }), came };
}

const answer = (status, body, type = 'application/json', headers = {}) => () =>
  new Response(status === 204 ? null : type === 'application/json' ? JSON.stringify(body) : body, { status, headers: { 'Content-Type': type, ...headers } });
const problem = (status, code, headers) => answer(status, JSON.stringify({ status, code, detail: 'do better' }), 'application/problem+json', headers);
const unreachable = () => { throw new TypeError('fetch failed'); };

/** A stream of these parts; it is cut off unless it ends. */
const stream = (parts, ends = true) => () => {
  const left = parts.map((part) => (typeof part === 'string' ? new TextEncoder().encode(part) : part));
  return new Response(new ReadableStream({
    pull(controller) {
      if (left.length > 0) controller.enqueue(left.shift());
      else if (ends) controller.close();
      else controller.error(new TypeError('terminated'));
    },
  }), { headers: { 'Content-Type': 'text/event-stream' } });
};
const event = (position, update) => `id: ${position}\ndata: ${JSON.stringify(update)}\n\n`;

async function all(updates) {
  const list = [];
  for await (const update of updates) list.push(update);
  return list;
}

test('the generated types are current', () => {
  execFileSync(process.execPath, ['generate.js', '--check'], { cwd: new URL('..', import.meta.url) });
});

test('the entry imports nothing, and names nothing of Node.js', () => {
  const dist = new URL('../dist/', import.meta.url);
  const seen = new Set();
  const read = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    const code = readFileSync(new URL(file, dist), 'utf8').replace(/\/\*[^]*?\*\/|\/\/.*/g, '');
    assert.doesNotMatch(code, /\bimport\(|\brequire\(|\b(process|Buffer|global|__dirname|setImmediate)\b/, file);
    for (const [, from] of code.matchAll(/\bfrom\s*['"]([^'"]+)|\bimport\s*['"]([^'"]+)/g)) {
      assert.match(from ?? '', /^\.\/[a-z]+\.js$/, `${file} imports ${from}`);
      read(from);
    }
  };
  read('./index.js');
  assert.ok(seen.size > 3, 'it reads the files');
});

test('a stream goes on after a lost connection', async () => {
  const started = event('1-1', { type: 'run_started', run: 1 });
  const text = event('1-1-2-ab', { type: 'text', run: 1, turn: 1, delta: 'å😀' });
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => Uint8Array.of(byte));
  const { refold, came } = client(
    unreachable, stream([': open\n\n', started.slice(0, 10)], false), stream([(started + text).slice(0, -3)], false), stream([]),
    stream(bytes), problem(503, 'unavailable'), stream([': alive\n\n', event('2-1', { type: 'run_ended', run: 1, lifecycle: 'completed' })]),
  );
  const updates = await all(refold.session('s').run(1).updates());
  assert.deepEqual(updates.map((u) => [u.type, u.position]), [['run_started', '1-1'], ['text', '1-1-2-ab'], ['run_ended', '2-1']]);
  assert.equal(updates[1].delta, 'å😀');
  const after = ['', '', '', '&after=1-1', '&after=1-1', '&after=1-1-2-ab', '&after=1-1-2-ab'];
  assert.deepEqual(came.map((r) => r.url), after.map((a) => `http://host/base/v1/sessions/s/updates?run=1${a}`));
});

test('a stream ends with 204', async () => {
  const { refold } = client(stream([event('1-1', { type: 'run_started', run: 1 })]), answer(204));
  assert.equal((await all(refold.session('s').run(1).updates())).length, 1);
});

test('an id without data is a position', async () => {
  const { refold, came } = client(stream(['id: 7-0\n\n']), problem(401, 'unauthorized'));
  await assert.rejects(all(refold.session('s').updates()), ProblemError);
  assert.equal(came[1].url, 'http://host/base/v1/sessions/s/updates?after=7-0');
});

test('a problem ends a stream', async () => {
  const { refold, came } = client(stream(['event: problem\ndata: {"status":401,"code":"unauthorized","detail":"gone"}\n\n']));
  await assert.rejects(all(refold.session('s').updates()), { code: 'unauthorized', status: 401 });
  assert.equal(came.length, 1);
});

test('leaving a loop closes the connection', async () => {
  const { refold, came } = client(stream([event('1-1', { type: 'run_started', run: 1 }), event('2-1', { type: 'run_paused', run: 1 })]));
  for await (const update of refold.session('s').updates()) if (update.type === 'run_started') break;
  assert.equal(came[0].signal.aborted, true);
});

test('a signal ends a stream', async () => {
  const { refold, came } = client(({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))));
  const abort = new AbortController();
  const following = all(refold.session('s').updates({ signal: abort.signal }));
  abort.abort(new Error('enough'));
  await assert.rejects(following, /enough/);
  assert.ok(came.length <= 1);
});

test('a request is repeated with one key', async () => {
  const { refold, came } = client(problem(503, 'unavailable'), unreachable, problem(429, 'too_many_requests'), answer(202, { seq: 3, run: 1, position: '3-0' }));
  assert.equal((await refold.agent('helper').session('s').ask('hi')).number, 1);
  assert.equal(came.length, 4);
  assert.equal(new Set(came.map((r) => r.headers.get('Idempotency-Key'))).size, 1);
  assert.deepEqual(JSON.parse(came[3].body), { input: 'hi', agent: 'helper' });
  assert.equal(came[3].headers.get('Authorization'), 'Bearer secret');
});

test('a client gives up', async () => {
  const refusing = client(problem(503, 'unavailable'));
  await assert.rejects(refusing.refold.session('s').ask('hi', { submission: 'mine' }), ProblemError);
  assert.deepEqual(refusing.came.map((r) => r.headers.get('Idempotency-Key')), Array(5).fill('mine'));
  const away = client(unreachable);
  await assert.rejects(all(away.refold.session('s').updates()), ConnectionError);
  assert.equal(away.came.length, 5);
});

test('a client waits as long as the server asks', async () => {
  const { refold } = client(problem(503, 'unavailable'), problem(503, 'unavailable', { 'Retry-After': '7' }), answer(200, {}));
  pauses.length = 0;
  await refold.session('s').view();
  assert.deepEqual(pauses, [250, 7000]);
});

test('what has no key is sent once', async () => {
  const { refold, came } = client(problem(503, 'unavailable'));
  await assert.rejects(refold.session('s').setFacts({ plan: 'gold' }), ProblemError);
  assert.equal(came.length, 1);
});

test('problems have a code', async () => {
  const { refold } = client(problem(409, 'run_active'), answer(502, '<h1>Bad</h1>', 'text/html'));
  await assert.rejects(refold.session('s').pause(), { name: 'ProblemError', status: 409, code: 'run_active', detail: 'do better' });
  const { refold: other } = client(answer(500, '<h1>Bad</h1>', 'text/html'));
  await assert.rejects(other.session('s').pause(), { code: 'http_500' });
});

test('a run that fails', async () => {
  const { refold } = client(answer(200, { run: 1, lifecycle: 'failed', ended: true, code: 'no_luck', detail: 'it was bad' }));
  await assert.rejects(refold.session('s').run(1).wait(), (error) => error instanceof RunError && error.message === 'run 1 failed (no_luck): it was bad');
});

test('a list has pages', async () => {
  const row = { session: 'a', state: 'running' };
  const { refold, came } = client(answer(200, { sessions: [row], next: 'n+1' }), answer(200, { sessions: [{ ...row, session: 'b' }] }));
  assert.deepEqual((await all(refold.sessions({ name: 'x', state: ['running', 'paused'] }))).map((r) => r.session), ['a', 'b']);
  assert.equal(came[1].url, 'http://host/base/v1/sessions?name=x&state=running%2Cpaused&after=n%2B1');
});

test('each operation has a method', async () => {
  const { paths } = JSON.parse(readFileSync(new URL('../../../web/openapi.json', import.meta.url), 'utf8'));
  const operations = Object.entries(paths).flatMap(([path, of]) => Object.keys(of).filter((method) => !of[method].tags?.includes('inspector')).map((method) => [method.toUpperCase(), path]))
    .filter(([, path]) => path.startsWith('/v1/') && !/^\/v1\/(ai-sdk|ag-ui|replies)\//.test(path)); // those are for the libraries of others, and for links
  const everything = { seq: 1, run: 1, position: 'p', lifecycle: 'completed', ended: true, sessions: [], approvals: [], questions: [], schedules: [], blob: 'b' };
  const { refold, came } = client(({ headers }) => (answer(200, everything)(headers)));
  const s = refold.agent('helper').session('s');
  const approval = { session: 's', run: 1, call: 'c', tool_id: 't', tool: 't', arguments: '{}', args_hash: 'h' };
  const question = { session: 's', run: 1, call: 'c', tool_id: 't', tool: 't', arguments: '{}', args_hash: 'h', by: 'approvers' };
  await Promise.all([
    refold.questions(), s.reply(question, 'yes'),
    all(refold.sessions()), refold.approvals(), s.ask([{ text: 'hi' }]), s.steer('hi'), s.pause(), s.resume(), s.interrupt(), s.cancel(), s.end(), s.delete({ reason: 'why' }), s.redact(7), s.hold(), s.endHold(),
    s.view(), s.transcript(), s.approve(approval), s.deny(approval), s.setFacts({ a: null }), s.setAgent('helper'),
    s.setOverrides({ scope: 'session', disable: [] }), s.upload('file', { name: 'a b' }), s.run(1).wait(), s.run(1).cancel(),
    s.run(1).edit('hi'), s.complete(), s.fail({ code: 'no' }), s.setProfile('p'), s.setConfig({}), s.setRegistry({ tools: [] }),
    s.schedules(), s.setSchedule('n', { cron: '@daily', input: 'hi' }), s.removeSchedule('n'), s.pauseSchedule('n'), s.resumeSchedule('n'),
  ]);
  const abort = new AbortController();
  const fetch = async (url, init) => { came.push({ url, ...init }); abort.abort(); throw new TypeError('gone'); };
  const following = new Refold({ url: 'http://host/base', fetch }).session('s').updates({ signal: abort.signal });
  await assert.rejects(following.next(), { name: 'AbortError' });
  const called = ([method, path]) => came.some((r) => r.method === method && new RegExp(`^${path.replace(/\{[a-z]+\}/g, '[^/]+')}$`).test(new URL(r.url).pathname.replace('/base', '')));
  assert.deepEqual(operations.filter((operation) => !called(operation)), []);
});
