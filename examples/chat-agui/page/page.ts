// The page: HttpAgent of @ag-ui/client, and what it shows. A request is kept until its
// answer has ended, so that a page that is reloaded sends it again, with the same runId.
import { HttpAgent, buildResumeArray } from '@ag-ui/client';
import type { ContentPart, CustomEvent as AguiCustomEvent, Interrupt, Message, ResumeEntry, UserMessage } from '@ag-ui/core';
import { show } from './show';

/** A request: it says something, answers interrupts, or asks what there is. */
interface Request { runId: string; message?: UserMessage; resume?: ResumeEntry[] }

const $ = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const text = $<HTMLTextAreaElement>('text');
const attach = $<HTMLInputElement>('attach');

const thread = location.hash.slice(1) || crypto.randomUUID();
history.replaceState(null, '', `#${thread}`);
const agent = new HttpAgent({ url: '/v1/ag-ui/helper', threadId: thread });

// A tool of the page: the model calls it, and the page carries it out.
const tools = [{ name: 'local_time', description: "Tells the time where the user is.", parameters: { type: 'object', properties: {} } }];
const decided: Record<string, { status: 'resolved'; payload: { approved: boolean } }> = {};
let run = 0; // the number of the run that is shown
let problem = '';
let busy = '';
let stopping = false;

agent.subscribe({
  onRunStartedEvent: ({ event }) => { run = (event.metadata as { refold?: { run?: number } } | undefined)?.refold?.run ?? 0; render(); },
  onRunErrorEvent: ({ event }) => { if (event.code !== 'abort') problem = event.message; },
  onCustomEvent: ({ event }) => told(event),
  onMessagesChanged: render,
});

/** The detail of a problem that the server answered with, or what else went wrong. */
function refusal(error: unknown): string {
  try {
    return (JSON.parse(String((error as { payload?: unknown }).payload)) as { detail: string }).detail;
  } catch {
    return `The answer broke off. Reload the page to go on. (${String(error)})`;
  }
}

/** What AG-UI has no event for. */
function told({ name, value }: AguiCustomEvent) {
  const update = value as { type: string; cause?: string; target?: string; for?: string };
  if (name !== 'refold.update') return;
  if (update.type === 'run_queued') busy = 'Another answer comes first';
  else if (update.type === 'run_paused') busy = 'Paused by an operator';
  else if (update.type === 'waiting' && update.cause) busy = `Waiting for ${update.target ?? update.for}: ${update.cause}`;
  else busy = 'Working';
  render();
}

/** Keeps a request until its answer has ended. One with large files is not kept. */
function keep(request?: Request): void {
  sessionStorage.removeItem(`request ${thread}`);
  try {
    if (request) sessionStorage.setItem(`request ${thread}`, JSON.stringify(request));
  } catch { /* a reloaded page then follows the run that is active */ }
}

/** Sends a request, and shows its answer as it comes. */
async function send(request: Request): Promise<void> {
  const { runId, message, resume } = request;
  keep(request);
  if (message) agent.addMessage(message);
  for (const id in decided) delete decided[id];
  problem = '';
  busy = 'Working';
  render();
  try {
    await agent.runAgent(resume ? { runId, resume, tools } : { runId, tools });
    keep();
    if (carryOut()) return await send({ runId: crypto.randomUUID() });
  } catch (error) {
    problem = refusal(error);
    if ((error as { status?: number }).status) keep(); // it was refused
  }
  busy = stopping ? 'Stopping' : '';
  render();
}

/** Adds the results of the page's tool, and reports whether there are new ones. */
function carryOut(): boolean {
  const has = new Set(agent.messages.map((m) => (m.role === 'tool' ? m.toolCallId : '')));
  const calls = agent.messages.flatMap((m) => (m.role === 'assistant' ? m.toolCalls ?? [] : []));
  const open = calls.filter((c) => c.function.name === 'local_time' && !has.has(c.id));
  for (const c of open) {
    agent.addMessage({ id: crypto.randomUUID(), role: 'tool', toolCallId: c.id, content: new Date().toLocaleTimeString('en-GB') });
  }
  return open.length > 0;
}

/** Shows the thread as the server has it, and follows it if a run is active. */
function refresh(): Promise<void> {
  agent.setMessages([]);
  agent.pendingInterrupts = [];
  return send({ runId: crypto.randomUUID() });
}

/** A person's decision. When all calls that wait have one, the run goes on. */
async function decide(interrupt: Interrupt, approved: boolean): Promise<void> {
  decided[interrupt.id] = { status: 'resolved', payload: { approved } };
  render();
  if (agent.pendingInterrupts.some(({ id }) => !decided[id])) return;
  await send({ runId: crypto.randomUUID(), resume: buildResumeArray(agent.pendingInterrupts, decided) });
  if (problem) { // it came too late: show what is the case, and why
    const why = problem;
    await refresh();
    problem = why;
    render();
  }
}

/** Stops the run: leaving the stream alone would let it go on. */
async function stop(): Promise<void> {
  stopping = true;
  agent.abortRun();
  const answer = await fetch(`/v1/sessions/${thread}/runs/${run}/cancel`, { method: 'POST' });
  if (!answer.ok) problem = ((await answer.json()) as { detail: string }).detail;
  stopping = false;
  await refresh();
}

/** A file as a part of a message. */
async function partOf(file: File): Promise<ContentPart> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const value = btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''));
  const mimeType = file.type || 'text/plain';
  return { type: file.type.startsWith('image/') ? 'image' : 'document', source: { type: 'data', value, mimeType }, metadata: { name: file.name } };
}

async function submit(): Promise<void> {
  const said = text.value.trim();
  const files = [...(attach.files ?? [])];
  if (agent.isRunning || agent.pendingInterrupts.length > 0 || (!said && files.length === 0)) return;
  text.value = '';
  const parts: ContentPart[] = await Promise.all(files.map(partOf));
  attach.value = '';
  if (said) parts.unshift({ type: 'text', text: said });
  const content = files.length > 0 ? parts : said;
  await send({ runId: crypto.randomUUID(), message: { id: crypto.randomUUID(), role: 'user', content } });
}

function render(): void {
  const messages: Message[] = agent.messages;
  const near = window.innerHeight + window.scrollY > document.body.scrollHeight - 120;
  show($('messages'), messages, agent.pendingInterrupts.filter(({ id }) => !decided[id]), decide);
  const waits = agent.pendingInterrupts.length > 0 && !agent.isRunning;
  const status = $('status');
  status.textContent = problem || (waits ? 'The desk waits for your decision.' : busy);
  status.className = problem ? 'error' : busy && !waits ? 'busy' : '';
  $('empty').hidden = messages.length > 0 || busy !== '';
  $('stop').hidden = !busy || run === 0;
  $('send').hidden = !$('stop').hidden;
  $<HTMLButtonElement>('send').disabled = busy !== '' || waits;
  $('files').replaceChildren(...[...(attach.files ?? [])].map((file) => Object.assign(document.createElement('span'), { className: 'file', textContent: file.name })));
  document.documentElement.dataset.busy = String(busy !== ''); // for tests
  if (near) window.scrollTo(0, document.body.scrollHeight);
}

$('composer').addEventListener('submit', (e) => { e.preventDefault(); void submit(); });
text.addEventListener('keydown', (e) => { if (e.key === 'Enter' && !e.shiftKey) { e.preventDefault(); void submit(); } });
attach.addEventListener('change', render);
$('stop').addEventListener('click', () => void stop());
$('new').addEventListener('click', () => location.assign('/'));
window.addEventListener('hashchange', () => location.reload());
$('suggestions').addEventListener('click', (e) => {
  if (!(e.target instanceof HTMLButtonElement)) return;
  text.value = e.target.textContent ?? '';
  void submit();
});

const last = sessionStorage.getItem(`request ${thread}`);
void (last ? send(JSON.parse(last) as Request) : refresh());
