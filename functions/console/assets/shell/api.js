// The API's routes, as far as the page uses them.

import { runEvents, runInput } from '../chat/ag_ui.js';
import { refusal, Refused } from './problems.js';
import { answerTo } from './unreachable.js';

/** Remembered answers. */
const MOST_KNOWN = 50;
/** For a part of a table on a slow line, in milliseconds. */
const SENDING = 300_000;

export class Api {
  #session;
  #stream;
  /** By address, with their `ETag`: unchanged answers are not sent again. */
  #known = new Map();
  /** Null for a person's only organization. */
  organization = null;

  constructor(session, stream) {
    this.#session = session;
    this.#stream = stream;
  }

  /** For one organization, whichever is entered later. */
  within(organization) {
    return Object.freeze(Object.assign(new Api(this.#session, this.#stream), { organization }));
  }

  /** The organization and the person's role in it: `{slug, role}`. */
  async membership() {
    const answer = await this.#ask('GET', here('agent/threads?limit=1'));
    return { slug: answer.headers.get('x-organization'), role: answer.headers.get('x-role') };
  }

  /** The same object while the answer is unchanged; null and absent members of `query` are left out. */
  async read(path, query = {}) {
    const address = this.#of(path, query);
    const known = this.#known.get(address);
    const answer = await this.#ask('GET', address, undefined, { headers: known ? { 'if-none-match': known.tag } : {} });
    if (answer.status === 304) return known.data;
    const data = await answer.json();
    const tag = answer.headers.get('etag');
    this.#known.delete(address);
    if (tag) this.#known.set(address, { tag, data });
    if (this.#known.size > MOST_KNOWN) this.#known.delete(this.#known.keys().next().value);
    return data;
  }

  /** For another person. */
  forget() {
    this.#known.clear();
    this.organization = null;
  }

  /** A change in the organization; the answer may be empty. */
  async act(method, path, body, headers = {}) {
    const answer = await this.#ask(method, this.#of(path), body, { headers });
    return answer.status === 204 ? null : answer.json();
  }

  /** For a text other than JSON. */
  async send(method, path, text, kind) {
    return (await this.#ask(method, this.#of(path), text, { kind, limit: SENDING })).json();
  }

  #of(path, query = {}) {
    const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
    const search = new URLSearchParams(given).toString();
    return here(`api/${encodeURIComponent(this.organization)}/${path}${search && `?${search}`}`);
  }

  /** Of the person, newest first: `{items, next_cursor}`. */
  async threads(cursor = null) {
    const query = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const answer = await this.#ask('GET', here(`agent/threads?limit=30${query}`));
    return answer.json();
  }

  /** Before the cursor, newest first: `{items, next_cursor, …}`. */
  async messages(thread, cursor = null) {
    const query = cursor ? `&cursor=${encodeURIComponent(cursor)}` : '';
    const answer = await this.#ask('GET', here(`agent/threads/${encodeURIComponent(thread)}?limit=100${query}`));
    return answer.json();
  }

  /** A sentence, if the person may only read. */
  async whyReadOnly() {
    try {
      await this.#ask('GET', `${this.#stream}/copilotkit/info`);
    } catch (error) {
      if (error instanceof Refused && error.status === 403) return error.message;
    }
    return null;
  }

  async deleteThread(thread) {
    await this.#ask('DELETE', here(`agent/threads/${encodeURIComponent(thread)}`));
  }

  /** The events of a thread so far and of the turn in progress. */
  history(input) {
    return this.#events('connect', input);
  }

  /** Starts the run. The first event says that the message was taken. */
  run(input) {
    return this.#events('run', input);
  }

  /** The run's stream then ends by itself. */
  async stop(thread, run) {
    const path = `${this.#stream}/copilotkit/agent/default/stop/${encodeURIComponent(thread)}`;
    const answer = await this.#ask('POST', path, { runId: run });
    return (await answer.json()).stopped === true;
  }

  async *#events(what, { signal, ...input }) {
    const address = `${this.#stream}/copilotkit/agent/default/${what}`;
    const answer = await this.#ask('POST', address, runInput(input), { accept: 'text/event-stream', streams: true, signal });
    yield* runEvents(answer.body);
  }

  /** With the person's token; if refused, once more with a newer one. */
  async #ask(method, address, body, { accept = 'application/json', kind = 'application/json', streams = false, signal, limit, headers: more = {} } = {}) {
    for (const renewed of [false, true]) {
      const headers = { ...more, accept, authorization: `Bearer ${await this.#session.token({ renewed })}` };
      if (body) headers['content-type'] = kind;
      if (this.organization) headers['x-organization'] = this.organization;
      const asked = { method, headers, signal, limit, streams, body: typeof body === 'string' ? body : body && JSON.stringify(body) };
      // A message is sent again under its own id.
      const answer = await answerTo(address, { ...asked, acts: method !== 'GET' && !streams });
      if (answer.ok || answer.status === 304) return answer;
      if (answer.status !== 401) throw await refusal(answer);
    }
    // A newer token was refused, too.
    throw new Error('This sign-in is not accepted by the service. Sign out and sign in as somebody else.');
  }
}

/** Beside the page. */
function here(path) {
  return new URL(path, document.baseURI).href;
}
