// The agent's address. Version 7 of the AI SDK knows what to do when a turn begins again,
// and tells the server so.
const agent = '/v1/ai-sdk/desk';
export const api = AI_SDK === 7 ? `${agent}?ui=7` : agent;

// session returns the id of the page's session, which a reload keeps.
export function session() {
  if (!location.hash) history.replaceState(null, '', `#${crypto.randomUUID()}`);
  return location.hash.slice(1);
}

// load returns the conversation: the log has it, and useChat keeps none.
export async function load(id) {
  const answer = await fetch(`${agent}/${id}/messages`);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// cancel ends the run. The stop function of useChat only disconnects.
export async function cancel(id) {
  const answer = await fetch(`${agent}/${id}`, { method: 'DELETE' });
  if (!answer.ok) throw new Error(await answer.text());
}

// reason returns what an error says to a person: a refused request has a problem as JSON.
export function reason(error) {
  try {
    return JSON.parse(error.message).detail ?? error.message;
  } catch {
    return error.message;
  }
}
