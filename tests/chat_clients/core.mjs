// CopilotKit without its pages: @copilotkit/core, the basis of all its front ends, with our `runtimeUrl`.
import { randomUUID } from 'node:crypto';
import { CopilotKitCore } from '@copilotkit/core';
import { briefly } from './agents.mjs';
import { REMINDER, STREAM, headers, none, plan, says, script, sent } from './stack.mjs';

// Without a window the core waits for a browser.
globalThis.window ??= {};

/** A core that has read `/info`, and its errors. */
async function connected(runtimeTransport, more = {}) {
  const errors = [];
  const core = new CopilotKitCore({ runtimeUrl: `${STREAM}/copilotkit`, runtimeTransport, headers, ...more });
  core.subscribe({ onError: ({ code, error }) => errors.push(`${code}: ${error?.message}`) });
  core.connect();
  for (let tries = 0; core.runtimeConnectionStatus !== 'connected' && tries < 1500 && !errors.length; tries += 1) {
    await new Promise((passed) => setTimeout(passed, 20));
  }
  return { core, errors };
}

export async function throughCore(transport, { greeting, long }) {
  const picked = [];
  const colour = {
    name: 'pick_colour',
    description: 'Lets the person pick a colour on the page.',
    async handler(args) {
      picked.push(args);
      return 'blue';
    },
  };
  const { core, errors } = await connected(transport, { tools: [colour] });
  const seen = { status: core.runtimeConnectionStatus, transport: core.runtimeTransport, agents: Object.keys(core.agents) };
  const begin = (threadId = randomUUID()) => {
    const agent = core.getAgent('default');
    agent.threadId = threadId;
    agent.setMessages([]);
    return agent;
  };
  const ask = async (agent, content, during = () => {}) => {
    let deltas = 0;
    const { unsubscribe } = agent.subscribe({
      onTextMessageContentEvent() {
        deltas += 1;
        during(deltas);
      },
    });
    agent.addMessage({ id: randomUUID(), role: 'user', content });
    await core.runAgent({ agent });
    unsubscribe();
    return { deltas, messages: agent.messages.map(briefly) };
  };

  let agent = begin();
  await core.connectAgent({ agent });
  seen.empty = agent.messages.length;
  await script(none, says(greeting, 10));
  seen.answer = await ask(agent, 'Hello');
  const { threadId } = agent;
  agent = begin(threadId);
  await core.connectAgent({ agent });
  seen.history = agent.messages.map(briefly);

  // The core runs the front end's tool and repeats the request by itself.
  agent = begin();
  await script(plan('pick_colour', { title: 'Wall' }), says('Blue it is.'));
  seen.frontEnd = await ask(agent, 'Paint my wall');
  seen.picked = picked;

  agent = begin();
  const before = await sent();
  await script(plan(REMINDER, { text: 'See you at ten' }));
  await ask(agent, 'Remind her that we meet at ten');
  const [interrupt] = agent.pendingInterrupts;
  await script(says('I have sent the reminder.'));
  await core.runAgent({
    agent,
    resume: [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }],
  });
  seen.consent = { reason: interrupt?.reason, last: briefly(agent.messages.at(-1)), sent: (await sent()) - before };

  agent = begin();
  await script(none, says(long, 25));
  seen.stopped = await ask(agent, 'Tell me everything', (deltas) => deltas === 3 && core.stopAgent({ agent }));
  seen.errors = [...errors];

  await script({ status: 400, body: { error: { code: 400, message: 'no such model' } } });
  seen.failed = await ask(begin(), 'Hello');
  seen.failures = errors.slice(seen.errors.length);

  const stranger = await connected(transport, { headers: {} });
  seen.noToken = { status: stranger.core.runtimeConnectionStatus, errors: stranger.errors };
  return seen;
}
