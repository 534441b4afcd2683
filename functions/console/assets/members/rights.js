// The rights of each role in words.

/** Least role first; each adds to the roles before it. */
export const RIGHTS = [
  ['viewer', 'Reads calls, runs, executions, events, automations, tools and approvals'],
  ['viewer', 'Reads conversations of its own'],
  ['member', 'Chats with the organization’s tools'],
  ['member', 'Starts and cancels runs, and replays events'],
  ['member', 'Tries a tool out, as a dry run'],
  ['member', 'Writes automations, which an admin activates'],
  ['admin', 'Activates, pauses, rolls back and deletes automations'],
  ['admin', 'Allows and refuses what waits for approval'],
  ['admin', 'Changes tools, agents, numbers and knowledge bases'],
  ['admin', 'Puts numbers on the do-not-call list, and takes them off'],
  ['admin', 'Sees and changes hooks'],
  ['admin', 'Connects services and sets keys'],
  ['admin', 'Sees, adds, changes and removes members'],
  ['admin', 'Erases the data of a phone number'],
  ['owner', 'Makes and changes owners'],
];
