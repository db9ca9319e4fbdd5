// How messages look: texts, files, and calls of tools with their results.
import type { Interrupt, Message, ToolCall, ToolMessage, UserMessage } from '@ag-ui/core';

type Decide = (interrupt: Interrupt, approved: boolean) => void;

/** Shows messages in place of what the element has. */
export function show(into: HTMLElement, messages: Message[], waiting: Interrupt[], decide: Decide): void {
  const results = new Map<string, ToolMessage>();
  for (const m of messages) if (m.role === 'tool') results.set(m.toolCallId, m);
  const all: HTMLElement[] = [];
  for (const m of messages) {
    if (m.role === 'user') all.push(ofUser(m));
    if (m.role !== 'assistant') continue;
    if (m.content) all.push(element('div', 'assistant', m.content));
    for (const call of m.toolCalls ?? []) {
      const interrupt = waiting.find(({ toolCallId }) => toolCallId === call.id);
      all.push(ofCall(call, results.get(call.id), interrupt, decide));
    }
  }
  into.replaceChildren(...all);
}

function element(name: string, className: string, text = '', ...children: Node[]): HTMLElement {
  const made = document.createElement(name);
  made.className = className;
  made.append(...(text ? [text] : []), ...children);
  return made;
}

function ofUser({ content }: UserMessage): HTMLElement {
  if (typeof content === 'string') return element('div', 'user', content);
  return element('div', 'user', '', ...content.map((part) => {
    if (part.type === 'text') return element('div', '', part.text);
    if (part.type === 'image' && part.source.type === 'data') {
      const image = element('img', '') as HTMLImageElement;
      image.src = `data:${part.source.mimeType};base64,${part.source.value}`;
      image.alt = 'An image';
      return image;
    }
    return element('span', 'file', (part.metadata as { name?: string } | undefined)?.name ?? part.type);
  }));
}

/** What became of a call, by its result. */
function stateOf(result: ToolMessage | undefined): string {
  if (!result) return 'runs';
  const { status, code } = (result.metadata as { refold?: { status?: string; code?: string } } | undefined)?.refold ?? {};
  if (code === 'approval_denied') return 'denied';
  return status === 'succeeded' ? 'succeeded' : 'failed';
}

const titles: Record<string, string> = { weather_get: 'Weather', tickets_book: 'Book tickets' };
const words: Record<string, string> = { runs: 'Running', waits: 'Needs your approval', succeeded: 'Done', denied: 'Denied', failed: 'Failed' };

function ofCall(call: ToolCall, result: ToolMessage | undefined, interrupt: Interrupt | undefined, decide: Decide): HTMLElement {
  const state = interrupt ? 'waits' : stateOf(result);
  const card = element('section', 'call');
  card.dataset.state = state;
  card.append(element('div', 'head', '', element('span', 'name', titles[call.function.name] ?? call.function.name), element('span', 'state', words[state])));
  card.append(element('dl', '', '', ...Object.entries(argumentsOf(call)).flatMap(([name, value]) => [element('dt', '', name), element('dd', '', String(value))])));
  if (result) card.append(element('p', 'result', String(result.content)));
  if (interrupt) {
    const button = (text: string, className: string, approved: boolean) => {
      const made = element('button', className, text);
      made.addEventListener('click', () => decide(interrupt, approved));
      return made;
    };
    if (interrupt.expiresAt) card.title = `Until ${new Date(interrupt.expiresAt).toLocaleString()}`;
    card.append(element('div', 'decide', '', button('Approve', 'main', true), button('Deny', '', false)));
  }
  return card;
}

function argumentsOf(call: ToolCall): Record<string, unknown> {
  try {
    return JSON.parse(call.function.arguments) as Record<string, unknown>;
  } catch { // they are still coming
    return {};
  }
}
