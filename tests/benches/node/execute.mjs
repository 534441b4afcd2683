// `POST /api/tools/{id}/execute` for a tool that GETs an API, as the function `execute` answers it: the token is verified by the
// master secret; the tool, the call and the called number are read beside each other; the numbers are verified; the API is asked.
// After the answer the execution is written down and counted, beside each other.
//
// It does less than ours: it knows VAPI's `apiRequest` only, and only tools without effects, variables, limits and confirmation,
// so it makes no claims. It calls only the hosts of OUTBOUND_OPEN_HOSTS, does not follow redirects, redacts nothing in the
// history, and keeps the master secret and the organization for good.

import { createHash, createHmac, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { Agent, get as httpGet } from "node:http";
import { GetSecretValueCommand, SecretsManagerClient } from "@aws-sdk/client-secrets-manager";
import { PutCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { measured, problem, reply, serve } from "./runtime.mjs";
import { database, first, get, table } from "./tables.mjs";

const LARGEST_ANSWER = 1024 * 1024;
const ANSWER_WITHIN_MS = 18_000;
const HISTORY_SECONDS = 30 * 24 * 60 * 60;
const USE_SECONDS = 100 * 24 * 60 * 60;

const secrets = new SecretsManagerClient({});
const openHosts = (process.env.OUTBOUND_OPEN_HOSTS ?? "").split(",");
const agent = new Agent({ keepAlive: true });
const organizations = new Map();
/** Executions of an organization in an hour, as last counted. */
const counted = new Map();
const master = await masterSecret();

async function handle(event) {
  const started = performance.now();
  const id = /^\/api\/tools\/([0-9a-f-]{36})\/execute$/.exec(event.rawPath)?.[1];
  if (!id || event.requestContext.http.method !== "POST") return problem(404, "There is no such route.");
  const body = JSON.parse(event.isBase64Encoded ? Buffer.from(event.body, "base64").toString() : event.body);
  const { metadata = {}, ...args } = body;
  if (!isToken(id, metadata.token)) return problem(401, "The token is not the tool's.");
  if (!metadata.readOnly) return problem(422, "Only tools without effects are known here.");

  const [tool, call, line] = await Promise.all([
    get("tools", id, true),
    metadata.callId && get("calls", metadata.callId, false),
    metadata.calledPhoneNumber && first("phone_numbers", "number", metadata.calledPhoneNumber),
  ]);
  if (!tool) return problem(404, "There is no such tool.");
  const { answer, status } = await outcome(tool, call, line, metadata, args);
  measured("execute", started);
  const caller = call?.caller_phone_number ?? metadata.callerPhoneNumber;
  const about = { callId: metadata.callId, caller, args, status, duration_ms: Math.round(performance.now() - started) };
  const execution = historyEntry(tool, about, answer);
  const afterwards = () => Promise.all([record(execution), count(tool.organization_id)]);
  return { answer: reply(200, answer), afterwards };
}

async function masterSecret() {
  const { SecretString } = await secrets.send(new GetSecretValueCommand({ SecretId: process.env.TOOL_TOKEN_SECRET }));
  return JSON.parse(SecretString);
}

function isToken(id, token) {
  const given = Buffer.from(String(token ?? ""), "base64url");
  return [master.current, master.previous].some((key) => {
    const tag = key && createHmac("sha256", key).update(id).digest();
    return tag && given.length === tag.length && timingSafeEqual(given, tag);
  });
}

async function outcome(tool, call, line, metadata, args) {
  const ours = (row) => row?.organization_id === tool.organization_id;
  const isForeign = call ? !ours(call) : metadata.calledPhoneNumber && !ours(line);
  if (isForeign) return failed("This tool cannot be used in this call: its phone number is not set up for it.");
  const { properties = {}, required = [] } = tool.function_schema.parameters;
  const missing = required.find((name) => !(name in args));
  if (missing) return failed(`The argument "${missing}" is missing.`);
  for (const name of Object.keys(args)) {
    if (name === "no_arguments" || !(name in properties)) delete args[name];
  }
  const hour = counted.get(tool.organization_id);
  if (hour?.key === hourOf(new Date()) && hour.used >= hour.limit) return failed("The organization's budget is used up.");
  return ask(tool.static_config);
}

/** GETs the tool's address; an answer of 2xx is the tool's result. */
async function ask({ method, url, headers, body }) {
  const address = new URL(url);
  if (method !== "GET" || !openHosts.includes(address.host)) return failed("The address cannot be called.");
  for (const [name, value] of Object.entries(body ?? {})) address.searchParams.set(name, value);
  try {
    const { status, type, text } = await fetched(address, headers);
    const content = type.includes("json") ? JSON.parse(text) : text;
    if (status >= 200 && status < 300) return { answer: { success: true, result: content }, status: "succeeded" };
    return failed(`The service answered with status ${status}.`);
  } catch (error) {
    return failed(`The service could not be reached (${error.message}).`);
  }
}

function fetched(address, headers) {
  return new Promise((resolve, reject) => {
    const signal = AbortSignal.timeout(ANSWER_WITHIN_MS);
    const options = { agent, signal, headers: { accept: "*/*", "user-agent": "switchboard", ...headers } };
    const asked = httpGet(address, options, (response) => {
      const parts = [];
      let length = 0;
      response.on("data", (part) => {
        length += part.length;
        if (length > LARGEST_ANSWER) response.destroy(new Error("the answer is too large"));
        parts.push(part);
      });
      response.on("error", reject);
      response.on("end", () => {
        const type = response.headers["content-type"] ?? "";
        resolve({ status: response.statusCode, type, text: Buffer.concat(parts).toString() });
      });
    });
    asked.on("error", reject);
  });
}

function failed(error) {
  return { answer: { success: false, error }, status: "failed" };
}

function historyEntry(tool, { callId, caller, args, status, duration_ms }, answer) {
  const now = new Date();
  const organization = tool.organization_id;
  const row = {
    id: timeOrderedId(now),
    organization_id: organization,
    history_of: organization,
    tool_id: tool.id,
    trigger: "conversation",
    status,
    arguments: args,
    started_at: now.toISOString(),
    duration_ms,
    expires_at: Math.floor(now / 1000) + HISTORY_SECONDS,
  };
  if (callId) Object.assign(row, { call_id: callId, organization_call: `${organization}#${callId}` });
  if (caller) row.caller = createHash("sha256").update(`caller ${organization} ${caller}`).digest("base64url");
  return Object.assign(row, answer.success ? { result: answer.result } : { error: answer.error });
}

async function record(execution) {
  await database.send(
    new PutCommand({
      TableName: table("executions"),
      Item: execution,
      ConditionExpression: "attribute_not_exists(#id) OR #status IN (:queued, :replayed, :unknown)",
      ExpressionAttributeNames: { "#id": "id", "#status": "status" },
      ExpressionAttributeValues: { ":queued": "queued", ":replayed": "replayed", ":unknown": "unknown" },
      ReturnValues: "ALL_OLD",
    }),
  );
}

/** Adds one to the hour's and the day's count; `last` keeps a request that the SDK repeats from counting twice. */
async function count(organization) {
  if (!organizations.has(organization)) organizations.set(organization, await get("organizations", organization, true));
  const limit = organizations.get(organization)?.budgets?.executions_per_hour ?? Infinity;
  const now = new Date();
  const hour = `hour_${String(now.getUTCHours()).padStart(2, "0")}`;
  const today = now.toISOString().slice(0, 10);
  const { Attributes } = await database.send(
    new UpdateCommand({
      TableName: table("usage"),
      Key: { id: `${organization}#executions_per_hour#${today}` },
      UpdateExpression:
        "SET #hour = if_not_exists(#hour, :zero) + :more, #day = if_not_exists(#day, :zero) + :more, " +
        "#since = if_not_exists(#since, :today), #expires_at = :expires, #last = :token",
      ConditionExpression: "attribute_not_exists(#last) OR #last <> :token",
      ExpressionAttributeNames: { "#hour": hour, "#day": "day", "#since": "since", "#expires_at": "expires_at", "#last": "last" },
      ExpressionAttributeValues: {
        ":zero": 0,
        ":more": 1,
        ":today": today,
        ":expires": Math.ceil(now / 3_600_000) * 3600 + USE_SECONDS,
        ":token": randomUUID(),
      },
      ReturnValues: "ALL_NEW",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    }),
  );
  counted.set(organization, { key: hourOf(now), used: Attributes[hour], limit });
}

const hourOf = (time) => time.toISOString().slice(0, 13);

/** A UUID of version 7. */
function timeOrderedId(time) {
  const bytes = randomBytes(16);
  bytes.writeUIntBE(time.getTime(), 0, 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

await serve(handle);
