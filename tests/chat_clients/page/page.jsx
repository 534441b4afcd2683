// A front end from CopilotKit's documentation: its provider, its chat, a tool of the page, and an interrupt for
// consent.
// /settings.json holds the chat's settings: {"runtimeUrl", "headers", "useSingleEndpoint"?}.
import { CopilotChat, CopilotKitProvider, useFrontendTool, useInterrupt } from '@copilotkit/react-core/v2';
import '@copilotkit/react-core/v2/styles.css';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { z } from 'zod';

function Wall() {
  const [colour, paint] = useState('white');
  useFrontendTool({
    name: 'paint_wall',
    description: 'Paints the wall on the page.',
    parameters: z.object({ colour: z.string() }),
    handler: async (wanted) => {
      paint(wanted.colour);
      return `The wall is ${wanted.colour}.`;
    },
  });
  useInterrupt({
    render: ({ interrupt, resolve }) => (
      <section aria-label="A question">
        <p>{interrupt?.message}</p>
        <button id="approve" onClick={() => resolve({ approved: true })}>Yes</button>
        <button id="refuse" onClick={() => resolve({ approved: false })}>No</button>
      </section>
    ),
  });
  return <p id="wall">{colour}</p>;
}

const settings = await (await fetch('settings.json')).json();
createRoot(document.getElementById('page')).render(
  <CopilotKitProvider {...settings}>
    <h1>Chat</h1>
    <Wall />
    <CopilotChat />
  </CopilotKitProvider>,
);
