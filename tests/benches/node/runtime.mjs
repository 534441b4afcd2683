// A loop over Lambda's runtime API (version 2018-06-01).
//
// It stands for the official client, aws-lambda-ric 4.0.2, which needs Node 22 and compiles a native addon. The loop is lighter
// than that client, so the comparison favours Node.

import { Agent, request } from "node:http";

const api = new URL(process.env.AWS_LAMBDA_RUNTIME_API);
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/**
 * Serves until the process is ended.
 *
 * `handle` takes API Gateway's event and resolves to `{answer, afterwards}`: the answer in API Gateway's format, and the work
 * to do after it was sent.
 */
export async function serve(handle) {
  for (;;) {
    const { headers, text } = await ask("GET", "/invocation/next");
    const invocation = `/invocation/${headers["lambda-runtime-aws-request-id"]}`;
    let afterwards;
    try {
      const handled = await handle(JSON.parse(text));
      await ask("POST", `${invocation}/response`, JSON.stringify(handled.answer));
      afterwards = handled.afterwards;
    } catch ({ name, message }) {
      await ask("POST", `${invocation}/error`, JSON.stringify({ errorType: name, errorMessage: message }));
    }
    await afterwards?.().catch((error) => console.error(error.message));
  }
}

export function reply(status, content, headers) {
  return {
    statusCode: status,
    headers: { "content-type": "application/json", "cache-control": "no-store", "x-content-type-options": "nosniff", ...headers },
    body: JSON.stringify(content),
    isBase64Encoded: false,
  };
}

export function problem(status, detail) {
  return { answer: reply(status, { status, detail }, { "content-type": "application/problem+json" }) };
}

/** Logs a request in CloudWatch's embedded metric format. */
export function measured(name, started) {
  const metrics = [{ Name: "Requests", Unit: "Count" }, { Name: "Latency", Unit: "Milliseconds" }];
  const declared = { Namespace: "Switchboard", Dimensions: [["Function", "Outcome"]], Metrics: metrics };
  const figures = { Function: name, Outcome: "ok", Requests: 1, Latency: performance.now() - started };
  console.log(JSON.stringify({ _aws: { Timestamp: Date.now(), CloudWatchMetrics: [declared] }, ...figures }));
}

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = body === undefined ? {} : { "content-length": Buffer.byteLength(body) };
    const asked = request(new URL(`${api.pathname}/2018-06-01/runtime${path}`, api), { agent, method, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => resolve({ headers: response.headers, text: Buffer.concat(parts).toString() }));
      response.on("error", reject);
    });
    asked.on("error", reject);
    asked.end(body);
  });
}
