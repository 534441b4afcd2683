// `GET /api/{slug}/tools/{id}`, as the function `list-tools` answers it: the organization and the memberships of the user beside
// each other, then the tool; the role, masked values, and a tag of the content.
//
// It does less than ours: it has this one route, masks only the values of headers, and does not read the configurations of older
// versions.

import { createHash } from "node:crypto";
import { QueryCommand } from "@aws-sdk/lib-dynamodb";
import { measured, problem, reply, serve } from "./runtime.mjs";
import { database, first, get, table } from "./tables.mjs";

const ROLES = ["viewer", "member", "admin", "owner"];
const SHOWN = [
  "id", "name", "label", "description", "organization_id", "external_tool_id", "type", "function_schema", "static_config",
  "config_metadata", "async", "execute_on_call_start", "attach_to_agent", "data", "spoken_at_start", "automatic_for", "version",
  "created_at", "updated_at",
];

async function handle(event) {
  const started = performance.now();
  const { slug, id } = /^\/api\/(?<slug>[a-z0-9-]+)\/tools\/(?<id>[0-9a-f-]{36})$/.exec(event.rawPath)?.groups ?? {};
  if (!id || event.requestContext.http.method !== "GET") return problem(404, "There is no such route.");
  const user = event.requestContext.authorizer?.jwt?.claims?.sub;
  if (!user) return problem(401, "A token is needed.");
  // Both in any case: the time must not tell which organizations exist.
  const [organization, memberships] = await Promise.all([first("organizations", "slug", slug), membershipsOf(user)]);
  const membership = organization && memberships.find((one) => one.organization_id === organization.id);
  if (!membership) return problem(404, "There is no such organization.");
  if (!ROLES.includes(membership.role ?? "viewer")) return problem(403, "This needs at least the role viewer.");
  const unknown = new URLSearchParams(event.rawQueryString).keys().next();
  if (!unknown.done) return problem(422, `${unknown.value} is not a known query parameter.`);

  const tool = await get("tools", id, true);
  if (tool?.organization_id !== organization.id) return problem(404, "There is no such tool.");
  const content = shown(tool);
  const tag = `"${createHash("sha256").update(JSON.stringify(content)).digest("base64url").slice(0, 16)}"`;
  const known = (event.headers["if-none-match"] ?? "").split(",").some((given) => given.trim().replace(/^W\//, "") === tag);
  const answer = known ? { statusCode: 304, headers: { etag: tag } } : reply(200, content, { etag: tag });
  measured("list-tools", started);
  return { answer };
}

async function membershipsOf(user) {
  const found = await database.send(
    new QueryCommand({
      TableName: table("organization_members"),
      ConsistentRead: true,
      KeyConditionExpression: "#user_id = :user",
      ExpressionAttributeNames: { "#user_id": "user_id" },
      ExpressionAttributeValues: { ":user": user },
    }),
  );
  return found.Items;
}

function shown(tool) {
  const content = Object.fromEntries(SHOWN.filter((name) => name in tool).map((name) => [name, tool[name]]));
  for (const config of [content.static_config, content.config_metadata]) {
    for (const name of Object.keys(config?.headers ?? {})) config.headers[name] = "[secret]";
  }
  return content;
}

await serve(handle);
