// The chat: threads beside a conversation, and the field to write in.

import { Composer } from './composer.js';
import { Consent } from './consent.js';
import { html, useEffect, useLayoutEffect, useRef, useState } from '../htm-preact.js';
import { Item } from './items.js';
import { useKeys } from '../shell/effects.js';
import { Notice } from '../shell/notice.js';
import { ThreadList } from './thread_list.js';

const STEPS = {
  plan: 'Choosing a tool',
  execute: 'Calling the tool',
  answer: 'Writing the answer',
  validate: 'Checking the answer',
  consent: 'Asking for your consent',
};

export function ChatView({ shown, chat }) {
  const [listed, list] = useState(false);
  const { conversation, answering, stopping, loading, notice, unanswered, readOnly } = shown;
  const title = titleOf(shown);
  const heading = useRef(null);
  const field = useRef(null);

  // Opening a conversation focuses it; beginning one focuses the field.
  const open = (thread) => {
    list(false);
    chat.openThread(thread);
    heading.current?.focus();
  };
  const begin = () => {
    list(false);
    chat.newThread();
    field.current?.focus();
  };
  useKeys((event) => {
    if (event.key === 'Escape' && answering && !event.isComposing && !document.querySelector('dialog[open]')) chat.stop();
  });
  useEffect(() => {
    const onShown = () => document.visibilityState === 'visible' && chat.lookedAt();
    document.addEventListener('visibilitychange', onShown);
    return () => document.removeEventListener('visibilitychange', onShown);
  }, [chat]);
  const go = { open, begin, remove: (thread) => chat.deleteThread(thread), more: () => chat.moreThreads() };

  return html`
    <div class="chat" data-listed=${listed}>
      <${ThreadList} threads=${shown.threads} current=${conversation.thread} listed=${listed} readOnly=${readOnly} onList=${list} ...${go} />
      <main class="conversation" id="main" tabindex="-1" aria-busy=${answering || loading}>
        <h1 tabindex="-1" ref=${heading} dir="auto" title=${title}>${title}</h1>
        <${Items} conversation=${conversation} loading=${loading} readOnly=${readOnly} onEarlier=${() => chat.loadEarlier()}>
          ${answering && html`<${Progress} conversation=${conversation} stopping=${stopping} />`}
          ${conversation.waiting &&
          html`<${Consent} key=${conversation.waiting.id} waiting=${conversation.waiting} readOnly=${readOnly} onDecide=${(yes) => chat.decide(yes)} />`}
          <${Notice} notice=${notice} onDismiss=${() => chat.dismiss()} />
          ${unanswered &&
          !answering &&
          !readOnly &&
          html`<p class="again">
            <button type="button" id="send-again" onClick=${() => chat.sendAgain()}>Send the message again</button>
          </p>`}
        <//>
        ${readOnly
          ? html`<p id="read-only" class="read-only"><strong>You can read here, and not write.</strong> ${readOnly}</p>`
          : html`<${Composer}
              field=${field}
              kept=${chat.draft}
              answering=${answering}
              stopping=${stopping}
              onSend=${(text) => chat.send(text)}
              onStop=${() => chat.stop()}
            />`}
      </main>
    </div>
  `;
}

function titleOf({ threads, conversation }) {
  const kept = threads.items.find((item) => item.thread_id === conversation.thread)?.title;
  const first = conversation.items.find((item) => item.role === 'user')?.text;
  return (kept || first || 'New conversation').slice(0, 80);
}

/** Kept at their end while they grow, unless somebody has scrolled up. */
function Items({ conversation, loading, readOnly, onEarlier, children }) {
  const scrolled = useRef(null);
  const follows = useRef(true);
  const drawn = useRef({ first: null, height: 0 });
  const { items, thread, earlier } = conversation;
  const questions = items.filter((item) => item.role === 'user').at(-1)?.id;
  const first = items[0]?.id;
  const onScroll = () => {
    const { scrollTop, clientHeight, scrollHeight } = scrolled.current;
    follows.current = scrollTop + clientHeight > scrollHeight - 80;
  };
  const toEnd = () => {
    if (follows.current) scrolled.current.scrollTop = scrolled.current.scrollHeight;
  };
  useLayoutEffect(() => {
    follows.current = true;
  }, [thread, questions]);
  useLayoutEffect(() => {
    // They come in above; the eye stays.
    const before = drawn.current;
    const { scrollHeight } = scrolled.current;
    const grewAbove = before.thread === thread && before.first !== first && items.some((item) => item.id === before.first);
    if (grewAbove) scrolled.current.scrollTop += scrollHeight - before.height;
    else toEnd();
    drawn.current = { thread, first, height: scrollHeight };
  });
  // A keyboard on the screen, or a turned device.
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);
    observer.observe(scrolled.current);
    return () => observer.disconnect();
  }, []);
  // Scrolling by keyboard alone must work.
  return html`
    <div class="items" ref=${scrolled} onScroll=${onScroll} tabindex="0" role="region" aria-label="Messages">
      ${items.length === 0 &&
      (loading
        ? html`<p class="empty">The conversation is being loaded …</p>`
        : html`<p class="empty">
            ${readOnly ? 'Choose a conversation to read.' : 'Ask for anything that the tools of your organization can find out or do.'}
          </p>`)}
      ${earlier &&
      html`<p class="earlier">
        <button type="button" id="load-earlier" aria-disabled=${loading} onClick=${onEarlier}>Load earlier messages</button>
      </p>`}
      <ol>
        ${items.map((item) => html`<${Item} key=${item.id} item=${item} />`)}
      </ol>
      ${children}
    </div>
  `;
}

function Progress({ conversation, stopping }) {
  const step = stopping ? 'Stopping' : (STEPS[conversation.run?.step] ?? 'Working on it');
  return html`<p class="progress"><span class="dots" aria-hidden="true"><i></i><i></i><i></i></span>${step} …</p>`;
}
