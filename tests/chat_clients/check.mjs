// Runs other projects' front ends against a running system; prints their observations as one line of JSON. See
// stack.mjs for the environment.
import { randomUUID } from 'node:crypto';
import { CLIENTS, run } from './agents.mjs';
import { throughCore } from './core.mjs';
import { OTHER_SLUG, REMINDER, SALES, STREAM, headers, none, plan, says, script, sent, stop } from './stack.mjs';

const GREETING = 'Good morning! What can I do for you today?';
const LONG = Array.from({ length: 2000 }, (_, number) => `word${number}`).join(' ');
const COLOUR = {
  name: 'pick_colour',
  description: 'Lets the person pick a colour on the page.',
  parameters: { type: 'object', properties: { title: { type: 'string' } } },
};

// Expected refusals are part of the result, and standard output is for the result alone.
for (const name of ['log', 'info', 'warn', 'error', 'debug']) {
  console[name] = (...words) => process.env.VERBOSE && process.stderr.write(`${words.join(' ')}\n`);
}

/** AG-UI's own client, at the general AG-UI endpoint. */
async function throughAgent(HttpAgent) {
  const at = (path, more = {}) => new HttpAgent({ url: `${STREAM}${path}`, headers, threadId: randomUUID(), ...more });
  const begin = () => at('/copilotkit/stream');
  const ask = async (agent, content, parameters, onEvent) => {
    agent.addMessage({ id: randomUUID(), role: 'user', content });
    return run(agent, parameters, onEvent);
  };
  const seen = {};

  const talk = begin();
  await script(none, says(GREETING, 100));
  seen.answer = await ask(talk, 'Hello');
  // The same thread continues with a server tool.
  await script(plan('current_time', { timeZone: 'Europe/Lisbon' }), says('It is noon in Lisbon.'));
  seen.tool = await ask(talk, 'What time is it in Lisbon?');
  // A client that opens the thread anew gets its history.
  seen.history = await run(at('/copilotkit/agent/default/connect', { threadId: talk.threadId }));
  seen.nothing = await run(at('/copilotkit/agent/default/connect'));

  await script(plan(SALES), says('Here are the sales.'));
  seen.widget = await ask(begin(), 'Show me the sales');

  // A front-end tool is called without a result; the client sends it in a separate run.
  const painter = begin();
  await script(plan(COLOUR.name, { title: 'Wall' }));
  seen.frontEndCall = await ask(painter, 'Paint my wall', { tools: [COLOUR] });
  const [call] = painter.messages.at(-1).toolCalls ?? [];
  seen.frontEndArguments = call && JSON.parse(call.function.arguments);
  painter.addMessage({ id: randomUUID(), role: 'tool', toolCallId: call?.id, content: '"blue"' });
  await script(says('Blue it is.'));
  seen.frontEndAnswer = await run(painter, { tools: [COLOUR] });

  seen.consent = {};
  for (const [name, status, payload] of [
    ['approved', 'resolved', { approved: true }],
    ['refused', 'resolved', { approved: false }],
    ['cancelled', 'cancelled', undefined],
  ]) {
    const secretary = begin();
    const before = await sent();
    await script(plan(REMINDER, { text: 'See you at nine' }));
    const asked = await ask(secretary, 'Remind her that we meet at nine');
    const [interrupt] = asked.outcome?.interrupts ?? [];
    const waiting = await sent();
    await script(says(name === 'approved' ? 'I have sent the reminder.' : 'All right, I did not send it.'));
    const resume = [{ interruptId: interrupt?.id, status, ...(payload && { payload }) }];
    const answered = await run(secretary, { resume });
    seen.consent[name] = { asked, interrupt, answered, sent: [waiting - before, (await sent()) - before] };
  }

  // Stopped during the answer: the stream ends, and the partial answer stays.
  const speaker = begin();
  await script(none, says(LONG, 25));
  let stopped;
  seen.stopped = await ask(speaker, 'Tell me everything', {}, (event, { deltas }) => {
    if (deltas === 3 && !stopped) stopped = stop(speaker.threadId);
  });
  seen.stopped.answer = await stopped;
  seen.nothingToStop = await stop(speaker.threadId);
  await script(none, says('Here I am.'));
  seen.afterStop = await ask(speaker, 'Still there?');

  const unlucky = begin();
  await script({ status: 400, body: { error: { code: 400, message: 'no such model' } } });
  seen.failed = await ask(unlucky, 'Hello');
  await script(none, says('Hello again.'));
  seen.afterFailure = await ask(unlucky, 'Hello?');

  seen.wrongAgent = await ask(at('/copilotkit/agent/another/run'), 'Hello');
  seen.noToken = await ask(at('/copilotkit/stream', { headers: {} }), 'Hello');
  seen.otherOrganization = await ask(
    at('/copilotkit/stream', { headers: { ...headers, 'x-organization': OTHER_SLUG } }),
    'Hello',
  );
  return seen;
}

const seen = {};
for (const [version, HttpAgent] of Object.entries(CLIENTS)) seen[version] = await throughAgent(HttpAgent);
for (const transport of ['rest', 'single']) {
  seen[transport] = await throughCore(transport, { greeting: GREETING, long: LONG });
}
process.stdout.write(`${JSON.stringify(seen)}\n`);
process.exit(0);
