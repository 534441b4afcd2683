// The rights of each role in words, with their routes.

/** Least role first; each adds to the roles before it. */
export const RIGHTS = [
  ['viewer', 'Reads calls, runs, executions, events, automations, tools and approvals', ['GET calls', 'GET runs', 'GET events', 'GET automations', 'GET tools', 'GET approvals']],
  ['viewer', 'Reads conversations of its own', ['GET /agent/threads']],
  ['member', 'Chats with the organization’s tools', ['POST /agent/chat']],
  ['member', 'Starts and cancels runs, and replays events', ['POST runs', 'POST runs/{id}/cancel', 'POST automations/{id}/run', 'POST events/{id}/replay']],
  ['member', 'Tries a tool out, as a dry run or for real', ['POST tools/test']],
  ['member', 'Writes automations, which an admin activates', ['POST automations', 'PUT automations/{id}']],
  ['admin', 'Activates, pauses, rolls back and deletes automations', ['POST automations/{id}/activate', 'POST automations/{id}/pause', 'POST automations/{id}/rollback', 'DELETE automations/{id}']],
  ['admin', 'Allows and refuses what waits for approval', ['POST approvals/{id}/approve', 'POST approvals/{id}/refuse']],
  ['admin', 'Changes tools, agents, numbers, knowledge bases and hooks', ['POST tools', 'POST agents', 'POST phone-numbers', 'POST knowledge-bases', 'POST hooks']],
  ['admin', 'Connects services and sets keys', ['POST services/{name}/connect', 'PUT keys/{service}']],
  ['admin', 'Sees, adds, changes and removes members', ['GET members', 'POST members', 'PATCH members/{user_id}']],
  ['admin', 'Erases the data of a phone number', ['POST erasures']],
  ['owner', 'Makes and changes owners', []],
];
