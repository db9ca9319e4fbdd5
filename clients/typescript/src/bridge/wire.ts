import { randomUUID } from 'node:crypto';
import { AckPolicy, DeliverPolicy, JetStreamApiError, jetstream, jetstreamManager, ReplayPolicy, type Consumer, type JetStreamClient, type JetStreamManager } from '@nats-io/jetstream';
import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import type { Claim, ClaimWire, View } from './claims.js';
import { sha256 } from './effect.js';
import type { SettlementWire } from './settlement.js';

/** Of our claims and blobs: another message was first. */
const TAKEN = new Set([10071, 10077]);
const NOT_FOUND = 10059;
const NO_CONSUMER = 10014;
/** Of the server, in milliseconds. */
const ANSWER_WITHIN = 5000;
const VIEW_WITHIN = 2000;
/** Of a blob, in bytes. */
const CHUNK = 128 * 1024;

/** The header that names the log of a message. */
const LOG = 'Refold-Log';

/** What a bridge sends and asks, with Refold's names. */
export class Wire implements ClaimWire, SettlementWire {
  readonly nc: NatsConnection;
  readonly prefix: string;
  readonly #upper: string;
  readonly #api: string;
  readonly #js: JetStreamClient;
  readonly #jsm: JetStreamManager;
  #log = '';

  private constructor(nc: NatsConnection, prefix: string, api: string, jsm: JetStreamManager) {
    this.nc = nc;
    this.prefix = prefix;
    this.#upper = prefix.toUpperCase();
    this.#api = api;
    this.#js = jetstream(nc, { apiPrefix: api, timeout: ANSWER_WITHIN });
    this.#jsm = jsm;
  }

  static async open(nc: NatsConnection, prefix: string, api: string): Promise<Wire> {
    return new Wire(nc, prefix, api, await jetstreamManager(nc, { apiPrefix: api, timeout: ANSWER_WITHIN, checkAPI: false }));
  }

  /** Reads the identity of the log; until then no message is of another. */
  async readLog(): Promise<void> {
    const info = await this.#streamInfo('LOG');
    this.#log = info.config?.metadata?.['refold_log'] ?? '';
  }

  get payloadMax(): number {
    return this.nc.info?.max_payload ?? 1 << 20;
  }

  /** Whether a message is of another system. */
  isForeign(headers: MsgHdrs | undefined): boolean {
    const log = headers?.get(LOG) ?? '';
    return log !== '' && this.#log !== '' && log !== this.#log;
  }

  /** The server's time in Unix milliseconds. */
  async time(): Promise<number> {
    return Date.parse((await this.#streamInfo('FX')).ts);
  }

  async #streamInfo(stream: string): Promise<{ ts: string; config?: { metadata?: Record<string, string> } }> {
    const m = await this.nc.request(`${this.#api}.STREAM.INFO.${this.#upper}_${stream}`, '', { timeout: ANSWER_WITHIN });
    const info = m.json<{ ts: string; error?: { description: string } }>();
    if (info.error) throw new Error(info.error.description);
    return info;
  }

  async claim(target: string, name: string, n: number, claim: Claim): Promise<Claim> {
    const subject = `${this.prefix}.fx.claim.tool.${target}.${name}${n === 1 ? '' : `.${n}`}`;
    if (await this.#create(subject, JSON.stringify(claim))) return claim;
    const m = await this.#jsm.streams.getMessage(`${this.#upper}_FX`, { last_by_subj: subject }); // the leader answers
    if (!m) throw new Error('the claim that stands is gone');
    try {
      return { ...m.json<Claim>(), foreign: this.isForeign(m.header) };
    } catch {
      return { foreign: this.isForeign(m.header) }; // not readable: of an instance that nobody hears
    }
  }

  /** Publishes on a subject without a message; false: it has one. */
  async #create(subject: string, data: string): Promise<boolean> {
    try {
      await this.#js.publish(subject, data, { expect: { lastSubjectSequence: 0 } });
      return true;
    } catch (error) {
      if (error instanceof JetStreamApiError && TAKEN.has(error.code)) return false;
      throw error; // it may be stored or not
    }
  }

  async view(session: string): Promise<View> {
    const m = await this.nc.request(`${this.prefix}.view.${session}`, '', { timeout: VIEW_WITHIN });
    const code = m.headers?.get('Nats-Service-Error-Code');
    if (code) throw new Error(`the view of ${session} is refused: ${m.headers!.get('Nats-Service-Error')}`);
    const view = m.json<{ clock?: number; open?: Array<{ effect: string }> }>();
    return { clock: view.clock ?? 0, open: (view.open ?? []).map((o) => o.effect) };
  }

  /** Publishes a settlement, and returns its sequence in the log. */
  async settle(session: string, id: string, event: string): Promise<number> {
    return (await this.#js.publish(`${this.prefix}.tool.${session}`, event, { msgID: id })).seq;
  }

  /** SHA-256 of the event at a sequence of the log; undefined: there is none. */
  async eventHash(seq: number): Promise<string | undefined> {
    const m = await this.#jsm.streams.getMessage(`${this.#upper}_LOG`, { seq });
    return m ? sha256(m.data) : undefined;
  }

  /** Stores bytes, unless they are stored, and returns the blob's name: docs/bridges.md, Large results. */
  async putBlob(data: Uint8Array): Promise<string> {
    const hash = sha256(data);
    const [name, bucket, upload] = [`sha256-${hash}`, `${this.#upper}_BLOBS`, randomUUID()];
    const size = Math.min(CHUNK, Math.floor(this.payloadMax / 2));
    let chunks = 0;
    for (; chunks * size < data.length; chunks++) {
      await this.#js.publish(`$O.${bucket}.C.${upload}`, data.subarray(chunks * size, (chunks + 1) * size));
    }
    const digest = `SHA-256=${base64url(Buffer.from(hash, 'hex'))}`;
    await this.#create(`$O.${bucket}.M.${base64url(Buffer.from(name))}`, JSON.stringify({ name, bucket, nuid: upload, size: data.length, chunks, digest }));
    return name;
  }

  /** Returns the consumer of a target and its lease in milliseconds. It creates one if there is none. */
  async consumer(target: string): Promise<{ consumer: Consumer; lease: number }> {
    const [stream, name] = [`${this.#upper}_FX`, `tool-${target}`];
    const info = await this.#jsm.consumers.info(stream, name).catch((error: unknown) => {
      if (!(error instanceof JetStreamApiError)) throw error;
      if (error.code === NOT_FOUND) throw new Error(`there is no stream ${stream}: start a session-actor, which creates it`);
      if (error.code !== NO_CONSUMER) throw error;
      return this.#jsm.consumers.add(stream, {
        durable_name: name, filter_subject: `${this.prefix}.fx.tool.${target}.*.*`, deliver_policy: DeliverPolicy.All,
        ack_policy: AckPolicy.Explicit, ack_wait: 10e9, max_deliver: -1, max_ack_pending: 10_000, replay_policy: ReplayPolicy.Instant,
      });
    });
    return { consumer: await this.#js.consumers.get(stream, name), lease: (info.config.ack_wait ?? 10e9) / 1e6 };
  }
}

/** With padding, unlike Node's. */
function base64url(data: Buffer): string {
  const text = data.toString('base64url');
  return text.padEnd(Math.ceil(text.length / 4) * 4, '=');
}
