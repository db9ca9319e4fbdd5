// A bridge of tools, written from docs/bridges.md. Each part names the section
// that it follows. The tools are in tools.js.
//
//   NATS_URL=nats://127.0.0.1:4222 node bridge.js
//
// NATS_NKEY names a file with the seed of a NATS user.
import { createHash, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { decode } from "@msgpack/msgpack";
import { AckPolicy, DeliverPolicy, ReplayPolicy, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { target, tools, ToolError } from "./tools.js";

const slots = 16; // calls that run at once
const graceMs = 20_000; // for what runs after SIGTERM
const stopMs = 5_000; // for a tool to end after it was told to stop
const goneMs = 5_000; // of listening without a heartbeat
const gapMs = 2_000; // between our own heartbeats: more is a gap
const inlineMax = 256 * 1024; // bytes of text in an event

const prefix = process.env.REFOLD_PREFIX || "refold";
const upper = prefix.toUpperCase();
const instance = randomUUID();
const seed = process.env.NATS_NKEY;
const nc = await connect({
  servers: process.env.NATS_URL || "nats://127.0.0.1:4222",
  name: "bridge-js",
  maxReconnectAttempts: -1,
  authenticator: seed && nkeyAuthenticator(new TextEncoder().encode(readFileSync(seed, "utf8").trim())),
});
const js = jetstream(nc);
const jsm = await jetstreamManager(nc);

const running = new Map(); // by session and effect: what this process has in progress
const settled = new Map(); // by session and effect: what was settled, and until when that is remembered
let connected = true;
let connection = 1; // counts them
let draining = false;

const now = () => Date.now();
const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");
const log = (...words) => console.error("bridge:", ...words);

// ---- Heartbeats, and who is alive ("Heartbeats", "The rule table")

const heard = new Map(); // instance: when it was heard last
let listeningSince = Infinity; // without a gap
let ownLast = 0;

nc.subscribe(`${prefix}.alive.bridge.*`, {
  callback: (err, m) => {
    if (err) return;
    const who = m.subject.split(".").at(-1);
    if (who === instance) {
      if (now() - ownLast > gapMs) listeningSince = now();
      ownLast = now();
    }
    heard.set(who, now());
  },
});

function beat() {
  if (connected) {
    nc.publish(`${prefix}.alive.bridge.${instance}`, JSON.stringify({ targets: [`tool/${target}`], rules: 1 }));
  }
}

// liveness tells of another instance: "alive", "gone", or for how many
// milliseconds we must go on listening before we know.
function liveness(other) {
  if (now() - (heard.get(other) ?? 0) < goneMs) return "alive";
  if (now() - ownLast > gapMs) return goneMs;
  const left = listeningSince + goneMs - now();
  return left > 0 ? left : "gone";
}

// ---- Cancellation

nc.subscribe(`${prefix}.cancel.*`, {
  callback: (err, m) => {
    if (err) return;
    const session = m.subject.split(".").at(-1);
    for (const effect of m.json().effects ?? []) {
      running.get(`${session}.${effect}`)?.abort.abort("cancelled");
    }
  },
});

// ---- The effect

const types = {
  v: "number", class: "string", session: "string", effect: "string", tool_id: "string", tool_name: "string",
  arguments: "string", at: "number", start_by: "number", run_ms: "number", batch: "string", call: "number",
  idempotency_key: "string", plan_hash: "object",
};
const optional = ["retry_safe", "provider_call_id", "host_session", "context", "spaces", "grants"];

// read returns the call, or { newer: true } or { bad: reason }.
function read(m) {
  let call;
  try {
    call = decode(m.data);
  } catch (err) {
    return { bad: String(err) };
  }
  if (call === null || typeof call !== "object" || Array.isArray(call)) return { bad: "it is no map" };
  if (call.v !== 1) return { newer: true };
  for (const field of Object.keys(call)) {
    if (!(field in types) && !optional.includes(field)) return { newer: true };
  }
  for (const [field, type] of Object.entries(types)) {
    if (typeof call[field] !== type) return { bad: `the field ${field} is missing, or no ${type}` };
  }
  const [session, effect] = m.subject.split(".").slice(-2);
  if (call.class !== "tool" || call.session !== session || call.effect !== effect) return { bad: "it is not of its subject" };
  return call;
}

// ---- Claims

// claim stores our claim if there is none, and returns the one that stands.
async function claim(subject, body) {
  const bytes = JSON.stringify(body);
  try {
    await js.publish(subject, bytes, { expect: { lastSubjectSequence: 0 } });
    return body;
  } catch (err) {
    if (err.code !== 10071 && err.code !== 10077) throw err; // it may be stored or not
  }
  const m = await jsm.streams.getMessage(`${upper}_FX`, { last_by_subj: subject }); // the leader answers
  try {
    return m.json();
  } catch {
    return {}; // not readable: of an instance that nobody hears
  }
}

// mayRun follows the rule table. It returns { run }, { ack }, { back: ms } or
// { settle: outcome }.
async function mayRun(call, subject, hash) {
  for (let n = 1; ; n++) {
    const late = now() > call.start_by;
    const stands = await claim(n === 1 ? subject : `${subject}.${n}`, late ? { withdrawn: true, hash } : { by: instance, hash });
    if (stands.hash && stands.hash !== hash) continue;
    if (stands.withdrawn) return late ? { settle: tooLate(call) } : { ack: true };
    if (stands.by === instance) return { run: true };
    const state = liveness(stands.by);
    if (state === "alive") return { back: 2000 };
    if (state !== "gone") return { back: state };
    return { settle: unknown("the bridge that ran this call is gone: it may have taken effect") };
  }
}

// ---- Outcomes ("Deadlines", "Cancellation", "Errors that the bridge gives")

const fail = (code, detail, status = "failed") => ({ status, error: { code, detail } });
const unknown = (detail) => fail("outcome_unknown", detail, "outcome_unknown");

function tooLate(call) {
  if (!call.retry_safe && now() - call.at > 45 * 60_000) {
    return unknown("it was asked so long ago that a claim of it may be forgotten: it may have taken effect");
  }
  return fail("deadline_exceeded", "it was not started in time");
}

// stopped is the outcome of a call that was told to stop while it ran; null: it
// is given back, and runs elsewhere.
function stopped(call, why) {
  if (!call.retry_safe) return unknown(`stopped while it ran (${why}): it may have taken effect`);
  if (why === "cancelled") return fail("cancelled", "withdrawn while it ran", "cancelled");
  if (why === "run_ms") return fail("deadline_exceeded", `it ran for longer than ${call.run_ms} ms`);
  return null;
}

async function run(call, abort) {
  if (abort.signal.aborted) return fail("cancelled", "withdrawn before it started", "cancelled");
  if (now() > call.start_by) return tooLate(call); // the last look at the clock
  const tool = tools[call.tool_id];
  if (!tool) return fail("tool_not_served", `this bridge has no tool ${call.tool_id}`);
  const timer = setTimeout(() => abort.abort("run_ms"), call.run_ms);
  const began = now();
  const givenUp = new Promise((resolve) => abort.signal.addEventListener("abort", () => setTimeout(resolve, stopMs), { once: true }));
  const ran = (async () => tool(JSON.parse(call.arguments), { signal: abort.signal, idempotencyKey: call.idempotency_key }))();
  try {
    const text = await Promise.race([ran, givenUp]);
    if (text === undefined && abort.signal.aborted) return stopped(call, abort.signal.reason);
    return { status: "succeeded", text: String(text), duration_ms: now() - began };
  } catch (err) {
    if (abort.signal.aborted) return stopped(call, abort.signal.reason);
    if (err instanceof ToolError) return fail(err.code, err.message);
    return call.retry_safe ? fail("executor_error", String(err)) : unknown(`the tool crashed: ${err}`);
  } finally {
    clearTimeout(timer);
    ran.catch(() => {}); // what it says later is heard by nobody
  }
}

// ---- Settlements

async function content(text) {
  const bytes = new TextEncoder().encode(text);
  if (bytes.length <= inlineMax) return { text };
  const name = `sha256-${sha256(bytes)}`;
  await store(name, bytes);
  return { blob: name, media_type: "text/plain; charset=utf-8", size: bytes.length };
}

// store stores a blob: its chunks, then the description, unless there is one.
async function store(name, bytes) {
  const padded = (text) => text.padEnd(Math.ceil(text.length / 4) * 4, "=");
  const [bucket, upload, size] = [`${upper}_BLOBS`, randomUUID(), 128 * 1024];
  let chunks = 0;
  for (; chunks * size < bytes.length; chunks++) {
    await js.publish(`$O.${bucket}.C.${upload}`, bytes.subarray(chunks * size, (chunks + 1) * size));
  }
  const digest = `SHA-256=${padded(createHash("sha256").update(bytes).digest("base64url"))}`;
  const description = JSON.stringify({ name, bucket, nuid: upload, size: bytes.length, chunks, digest });
  try {
    await js.publish(`$O.${bucket}.M.${padded(Buffer.from(name).toString("base64url"))}`, description, { expect: { lastSubjectSequence: 0 } });
  } catch (err) {
    if (!/wrong last sequence/.test(err.message)) throw err; // else it is stored already
  }
}

// settle returns where the settlement is stored in the log, when it is.
async function settle(call, { text, ...outcome }) {
  const data = { effect: call.effect, plan_hash: Buffer.from(call.plan_hash).toString("hex"), ...outcome };
  const at = now();
  for (let wait = 100; ; wait = Math.min(2 * wait, 5000)) {
    try {
      if (text && !data.output) data.output = await content(text);
      const event = JSON.stringify({ type: "ToolCallSettled", v: 1, at, by: "bridge-js", data });
      const stored = await js.publish(`${prefix}.tool.${call.session}`, event, { msgID: `${call.session}.${call.effect}.${sha256(event)}` });
      return stored.seq;
    } catch (err) {
      log("settlement not stored yet:", call.session, call.effect, String(err));
      await pause(wait);
    }
  }
}

// isKept reports that the log has a settlement that this process stored. Over a
// new connection the server may have lost it ("Redelivery and restarts").
async function isKept(call, was) {
  if (was.connection === connection) return true;
  const m = await jsm.streams.getMessage(`${upper}_LOG`, { seq: was.seq });
  return m !== null && m.subject.endsWith(`.tool.${call.session}`) && m.json().data?.effect === call.effect;
}

// ---- What to do with a delivery

async function take(m) {
  const call = read(m);
  if (call.newer) return m.nak(10_000);
  if (call.bad) {
    log("skipped", m.subject, call.bad);
    return m.ack();
  }
  const key = `${call.session}.${call.effect}`;
  const hash = sha256(m.data);
  const known = running.get(key);
  if (known && known.hash !== hash) { // the server lost the effect that runs here
    known.m = null;
    known.lost = true;
    known.abort.abort("the server lost it");
    return m.nak(2000);
  }
  if (known) {
    known.m = m;
    return m.working();
  }
  if (draining) return m.nak(100);
  const mine = { m, hash, abort: new AbortController() };
  running.set(key, mine);
  try {
    await carry(call, key, mine);
  } catch (err) {
    log("given back", key, String(err));
    mine.m?.nak(2000);
  } finally {
    running.delete(key);
  }
}

async function carry(call, key, mine) {
  let rule = { run: true };
  const was = settled.get(key);
  if (was && (await isKept(call, was))) rule = { ack: true };
  else if (was && !call.retry_safe) rule = { settle: unknown("it ran, and the server lost what it came to") };
  else if (!call.retry_safe) rule = await mayRun(call, `${prefix}.fx.claim.tool.${target}.${key}`, mine.hash);
  if (rule.back !== undefined) return mine.m?.nak(rule.back);
  if (!rule.ack) {
    const outcome = rule.settle ?? (await run(call, mine.abort));
    if (mine.lost) return;
    if (outcome === null) return mine.m?.nak(100);
    const seq = await settle(call, outcome);
    settled.set(key, { seq, connection, until: call.start_by + 10 * 60_000 });
  }
  mine.m?.ack();
}

// ---- Setup and pull

const name = `tool-${target}`;
const config = {
  durable_name: name, filter_subject: `${prefix}.fx.tool.${target}.*.*`, deliver_policy: DeliverPolicy.All, ack_policy: AckPolicy.Explicit,
  ack_wait: 10_000_000_000, max_deliver: -1, max_ack_pending: 10_000, replay_policy: ReplayPolicy.Instant,
};
const there = await jsm.consumers.info(`${upper}_FX`, name).catch(() => undefined);
const { config: used } = there ?? (await jsm.consumers.add(`${upper}_FX`, config));
const consumer = await js.consumers.get(`${upper}_FX`, name);

setInterval(beat, 500);
beat();
// Leases: everything that we hold is extended each third of ack_wait.
setInterval(() => running.forEach((mine) => mine.m?.working()), used.ack_wait / 1e6 / 3);
setInterval(() => settled.forEach(({ until }, key) => now() > until && settled.delete(key)), 60_000);

(async () => {
  for await (const s of nc.status()) {
    if (s.type === "disconnect") {
      connected = false;
      connection++;
      running.forEach((mine) => (mine.m = null)); // the next connection delivers them again
    }
    if (s.type === "reconnect") connected = true;
  }
})();

let pulling;
async function pull() {
  while (!draining) {
    const free = slots - running.size;
    try {
      if (free <= 0) {
        await pause(50);
        continue;
      }
      pulling = await consumer.fetch({ max_messages: free, expires: 5000 });
      for await (const m of pulling) take(m);
    } catch (err) {
      log("pull:", String(err));
      await pause(1000);
    }
  }
}

// ---- Stop

async function stop() {
  if (draining) return;
  draining = true;
  pulling?.stop();
  const until = now() + graceMs;
  while (running.size > 0 && now() < until) await pause(50);
  running.forEach((mine) => mine.abort.abort("stopping"));
  while (running.size > 0 && now() < until + 2 * stopMs) await pause(50);
  await nc.drain();
  process.exit(0);
}
process.on("SIGTERM", stop);
process.on("SIGINT", stop);

log(`serves tool/${target} as ${instance}`);
await pull();
