// Rates is a NATS micro service that knows nothing of Refold but a key of its
// endpoints' metadata, which makes them tools. See README.md.
//
//   node rates.js [nats://127.0.0.1:4222]
//
// NATS_NKEY names a file with the seed of a NATS user.
import { readFileSync } from "node:fs";
import { connect, nkeyAuthenticator } from "@nats-io/transport-node";
import { Svcm } from "@nats-io/services";

const url = process.argv[2] ?? process.env.NATS_URL ?? "nats://127.0.0.1:4222";

// What one euro is.
const rates = { EUR: 1, NOK: 11.5, SEK: 11.25 };

const currency = { type: "string", pattern: "^[A-Z]{3}$", description: "Such as EUR." };

// What the endpoints say of themselves: the arguments that they take, and what
// may be done with their calls.
const convertTool = {
  description: "Converts an amount of money.",
  schema: {
    type: "object",
    properties: { amount: { type: "number" }, from: currency, to: currency },
    required: ["amount", "from", "to"],
    additionalProperties: false,
  },
  access: "read",
  retry_safe: true,
  parallel_safe: true,
  deadline_ms: 10000,
};
const bookTool = {
  description: "Books a rate for a customer.",
  schema: {
    type: "object",
    properties: { customer: { type: "string", minLength: 1 }, to: currency },
    required: ["customer", "to"],
    additionalProperties: false,
  },
  resource_key: "rates.bookings:{customer}",
};

// The numbers of bookings by idempotency key: a call is one booking, however
// often it comes. A database would keep them.
const bookings = new Map();

function convert(request) {
  const { amount, from, to } = request.json();
  for (const name of [from, to]) {
    if (!(name in rates)) {
      return request.respondError(404, `there is no rate of ${name}: ask for ${Object.keys(rates).join(", ")}`);
    }
  }
  return request.respond(JSON.stringify({ amount: (amount / rates[from]) * rates[to], currency: to }));
}

function book(request) {
  const { customer, to } = request.json();
  const key = request.headers?.get("Refold-Idempotency-Key") ?? "";
  if (key === "") {
    return request.respondError(400, "a booking needs a key: the header Refold-Idempotency-Key");
  }
  if (!bookings.has(key)) {
    bookings.set(key, bookings.size + 1);
  }
  return request.respond(`booking ${bookings.get(key)} of ${customer}: 1 EUR is ${rates[to]} ${to}`);
}

const seed = process.env.NATS_NKEY;
const authenticator = seed === undefined ? undefined : nkeyAuthenticator(new TextEncoder().encode(readFileSync(seed, "utf8").trim()));
const nc = await connect({ servers: url, name: "rates", authenticator });
const service = await new Svcm(nc).add({ name: "rates", version: "1.0.0", description: "Rates of currencies" });
for (const [name, tool, answer] of [["convert", convertTool, convert], ["book", bookTool, book]]) {
  service.addEndpoint(name, {
    subject: `rates.${name}`,
    metadata: { "refold.tool": JSON.stringify(tool) },
    handler: (err, request) => {
      try {
        if (err) throw err;
        answer(request);
      } catch (problem) {
        request.respondError(500, String(problem));
      }
    },
  });
}
await nc.flush();
console.log(`rates serves ${url}`);

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await service.stop();
    await nc.drain();
  });
}
