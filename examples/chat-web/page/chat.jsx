import { useEffect, useRef, useState } from 'react';
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from 'ai';
import { api, cancel, load, reason } from './session.js';
import { Message } from './message.jsx';

const transport = new DefaultChatTransport({ api });

const starters = ['Book me a trip to Bergen on Friday', 'What is the weather in Tromsø?'];

export function Chat({ id, messages: first }) {
  const [waits, setWaits] = useState('');
  const again = async () => { // the answer comes again, as a whole
    try {
      chat.setMessages(await load(id));
      chat.resumeStream();
      setWaits('');
    } catch { // the server is away
      setWaits('Connecting again');
      setTimeout(again, 1000);
    }
  };
  const chat = useChat({
    id,
    messages: first,
    transport,
    resume: true, // an answer that was going on when the page was closed
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses, // sends decisions
    onData: ({ type, data }) => {
      if (type === 'data-waiting') setWaits(data.cause ? `Waiting for the ${data.for}: ${data.cause}` : '');
    },
    onFinish: ({ isDisconnect }) => (isDisconnect ? again() : setWaits('')),
    // What the page shows is void, or somebody else has decided.
    onError: ({ message }) => /^turn_restarted|approval_stale/.test(message) && again(),
  });
  const { messages, status, error, sendMessage, setMessages, stop, addToolApprovalResponse, clearError } = chat;
  const busy = status === 'submitted' || status === 'streaming';

  const end = async () => {
    await stop();
    await cancel(id);
    setMessages((all) => all.map((m, i) => (i === all.length - 1 && m.role === 'assistant' ? { ...m, metadata: { ...m.metadata, lifecycle: 'cancelled' } } : m)));
  };
  const decide = (approval, approved) => addToolApprovalResponse({ id: approval.id, approved, reason: approved ? undefined : 'Not this one.' });

  const bottom = useRef(null);
  // In braces: newer browsers return a promise from scrollIntoView, and React calls what an effect returns.
  useEffect(() => { bottom.current?.scrollIntoView({ block: 'end' }); }, [messages, error]);
  return (
    <>
      <header>
        <span className="mark" aria-hidden="true">⛵</span>
        <div>
          <h1>Trip desk</h1>
          <p>Close this page whenever you like: the conversation goes on without it.</p>
        </div>
        <span className={`status ${status}`} data-status={status}>{{ submitted: 'Sent', streaming: 'Answering', ready: 'Ready', error: 'Stopped' }[status]}</span>
      </header>
      <main>
        {messages.length === 0 && (
          <section className="empty">
            <h2>Where would you like to go?</h2>
            <p>The desk looks at the weather, finds a train, and asks you before it books.</p>
            {starters.map((text) => <button key={text} onClick={() => sendMessage({ text })}>{text}</button>)}
          </section>
        )}
        {messages.map((m) => <Message key={m.id} message={m} decide={decide} />)}
        {status === 'submitted' && <p className="thinking"><i /><i /><i /></p>}
        {waits && <p className="waits">{waits}</p>}
        {error && !waits && !error.message.startsWith('turn_restarted') && (
          <p className="error" role="alert">{reason(error)} <button onClick={clearError}>Dismiss</button></p>
        )}
        <div ref={bottom} />
      </main>
      <Composer busy={busy} send={sendMessage} end={end} />
    </>
  );
}

function Composer({ busy, send, end }) {
  const [text, setText] = useState('');
  const [files, setFiles] = useState(null);
  const chooser = useRef(null);
  const submit = (event) => {
    event.preventDefault();
    if (busy || (!text.trim() && !files)) return;
    send({ text, files: files ?? undefined });
    setText('');
    setFiles(null);
    chooser.current.value = '';
  };
  return (
    <form onSubmit={submit}>
      <div className="box">
        {files && <p className="chosen">{[...files].map((f) => f.name).join(', ')}</p>}
        <div className="row">
          <label className="attach" title="Add a file">
            <input ref={chooser} type="file" onChange={(e) => setFiles(e.target.files.length ? e.target.files : null)} />
            <svg viewBox="0 0 24 24" aria-hidden="true"><path d="M20 11.5 12.3 19a5 5 0 0 1-7-7l8-8a3.4 3.4 0 0 1 4.8 4.8l-8 8a1.7 1.7 0 0 1-2.4-2.4l7.2-7.2" /></svg>
            <span className="hidden">Add a file</span>
          </label>
          <input name="text" value={text} onChange={(e) => setText(e.target.value)} placeholder="Write to the desk" autoComplete="off" aria-label="Message" />
          {busy
            ? <button type="button" className="stop" onClick={end}>Stop</button>
            : <button type="submit" className="send">Send</button>}
        </div>
      </div>
    </form>
  );
}
