import { readFileSync } from 'node:fs';
import { credsAuthenticator, nkeyAuthenticator, type NodeConnectionOptions } from '@nats-io/transport-node';

/** How to connect as a user. */
export interface Context {
  servers?: string | string[];
  connection: Omit<NodeConnectionOptions, 'servers'>;
  apiPrefix?: string;
}

/** The fields of a context that are read. All are texts. */
interface Fields {
  url?: string;
  user?: string;
  password?: string;
  token?: string;
  creds?: string;
  nkey?: string;
  ca?: string;
  cert?: string;
  key?: string;
  inbox_prefix?: string;
  jetstream_domain?: string;
  jetstream_api_prefix?: string;
}

/** Reads a context of the nats tool, such as the context.json of a user that refold roles writes. */
export function readContext(file: string): Context {
  let f: Fields;
  try {
    f = JSON.parse(readFileSync(file, 'utf8')) as Fields;
  } catch (error) {
    throw new Error(`the context ${file} can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const connection: Context['connection'] = {};
  if (f.user) connection.user = f.user;
  if (f.password) connection.pass = f.password;
  if (f.token) connection.token = f.token;
  if (f.inbox_prefix) connection.inboxPrefix = f.inbox_prefix;
  if (f.nkey) connection.authenticator = nkeyAuthenticator(() => Buffer.from(readFileSync(f.nkey!, 'utf8').trim()));
  if (f.creds) connection.authenticator = credsAuthenticator(() => readFileSync(f.creds!));
  if (f.ca || f.cert || f.key) {
    connection.tls = { ...(f.ca ? { caFile: f.ca } : {}), ...(f.cert ? { certFile: f.cert } : {}), ...(f.key ? { keyFile: f.key } : {}) };
  }
  const domain = f.jetstream_domain ? `$JS.${f.jetstream_domain}.API` : undefined;
  const apiPrefix = f.jetstream_api_prefix?.replace(/\.$/, '') || domain;
  return { connection, ...(f.url ? { servers: f.url.split(',') } : {}), ...(apiPrefix ? { apiPrefix } : {}) };
}
