import assert from 'node:assert/strict';
import test from 'node:test';

import { failureOf, organizationsIn, refusal, Refused } from '../assets/shell/problems.js';

const answer = (status, body, headers = {}) =>
  new Response(typeof body === 'string' ? body : JSON.stringify(body), { status, headers });

test('a refusal is a sentence with the next step', async () => {
  for (const [given, expected] of [
    [answer(409, { detail: 'the thread is being answered; wait' }), 'The thread is being answered; wait.'],
    [answer(403, { detail: 'Ask an owner!' }), 'Ask an owner!'],
    [
      answer(422, { detail: 'two fields are wrong', errors: [{ field: 'message', problem: 'is too long' }, { field: 'tools', problem: 'must be at most 64' }] }),
      'Message is too long; tools must be at most 64.',
    ],
    [answer(429, { detail: 'the budget is used up' }, { 'retry-after': '5400' }), 'The budget is used up. Try again in 2 hours.'],
    [answer(429, { message: 'Too Many Requests' }), 'Too Many Requests. Try again in a moment.'],
    [answer(429, {}, { 'retry-after': '1' }), 'Too much was asked at once. Try again in 1 second.'],
    [answer(502, '<html>Bad gateway</html>'), 'The service has a problem of its own. Try again in a moment.'],
    [answer(404, { error: 'Agent not found', message: 'There is no such agent' }), 'There is no such agent.'],
    [answer(418, 'null'), 'The request was refused (418).'],
  ]) {
    assert.equal((await refusal(given)).message, expected);
  }
});

test('the question which organization is meant is told from other refusals', async () => {
  const detail = 'you belong to several organizations; name one in the header X-Organization: acme, harbour-dental, x7';
  assert.deepEqual(organizationsIn(await refusal(answer(400, { code: 'malformed', detail }))), ['acme', 'harbour-dental', 'x7']);
  assert.equal(organizationsIn(await refusal(answer(400, { detail: 'the body is not JSON' }))), null);
  assert.equal(organizationsIn(await refusal(answer(404, { detail }))), null);
  assert.equal(organizationsIn(new Error(detail)), null);
  assert.equal(new Refused(400, '', 'x').status, 400);
});

test('a run that failed says why in a sentence, with what to do', () => {
  const again = 'Send the message again; what was done already is not done twice.';
  for (const [message, code, expected] of [
    ['the LLM failed (status 500)', 'upstream', `The LLM failed (status 500). ${again}`],
    ['the answer took too long; try again', 'unavailable', 'The answer took too long; try again.'],
    ['', 'internal', `The answer could not be given. ${again}`],
    [undefined, null, `The answer could not be given. ${again}`],
    ['this needs the role member', 'forbidden', 'This needs the role member.'],
  ]) {
    assert.equal(failureOf({ message, code }), expected);
  }
});

test('a consent that was decided before says how', async () => {
  const refused = await refusal(answer(409, { code: 'consent_decided', decided: 'refused', detail: 'you refused it in another tab' }));
  assert.deepEqual([refused.code, refused.decided, refused.message], ['consent_decided', 'refused', 'You refused it in another tab.']);
});
