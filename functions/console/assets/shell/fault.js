// Whose the cause of a failure is, and the next step.

const KNOWN = {
  ours: ['Switchboard', 'The service failed on its own. Try again; if it keeps failing, tell whoever runs this deployment.'],
  configuration: ['Your configuration', 'Change the tool or the connection it uses, then try again.'],
  service: ['The other service', 'It refused, failed or did not answer in time. Check its status, then try again.'],
  caller: ['The caller', 'Their number cannot be used for this. Nothing to change here.'],
  model: ['The model', 'It gave arguments that the tool cannot use. Say more about them in the tool’s parameters or in the agent’s prompt.'],
};

export const FAULTS = Object.entries(KNOWN).map(([value, [word]]) => [value, word]);

/** `{word, next}` of a failed execution; null where its cause is not known. A class of a newer version goes by its name. */
export function faultOf({ fault: name, next_step: next }) {
  if (!name) return null;
  const [word = name, usual = ''] = KNOWN[name] ?? [];
  return { word, next: next ?? usual };
}
