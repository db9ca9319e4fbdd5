const labels = {
  'input-streaming': ['Preparing', 'going'],
  'input-available': ['Running', 'going'],
  'approval-requested': ['Needs you', 'asks'],
  'approval-responded': ['Decided', 'going'],
  'output-available': ['Done', 'done'],
  'output-error': ['Failed', 'failed'],
  'output-denied': ['Denied', 'failed'],
};

// Message shows a message, part by part.
export function Message({ message, decide }) {
  const { role, parts, metadata } = message;
  return (
    <article className={role} data-message={message.id}>
      {parts.map((part, i) => <Part key={part.toolCallId ?? i} part={part} decide={decide} />)}
      {metadata?.lifecycle === 'cancelled' && <p className="note">You stopped this answer.</p>}
      {metadata?.lifecycle === 'failed' && <p className="note">This answer failed: {metadata.code}. {metadata.detail}</p>}
    </article>
  );
}

function Part({ part, decide }) {
  if (part.type === 'text') return <p className="text">{part.text}</p>;
  if (part.type === 'file') {
    return part.mediaType.startsWith('image/')
      ? <img className="file" src={part.url} alt={part.filename ?? 'picture'} />
      : <p className="file">{part.filename ?? part.mediaType}</p>;
  }
  return part.type.startsWith('tool-') ? <Tool part={part} decide={decide} /> : null;
}

function Tool({ part, decide }) {
  const [label, mood] = labels[part.state];
  return (
    <section className={`tool ${mood}`} data-tool={part.toolCallId} data-state={part.state}>
      <h3><code>{part.type.slice('tool-'.length)}</code><span className="chip">{label}</span></h3>
      <Fields of={part.input} />
      {part.state === 'output-available' && <Fields of={part.output} result />}
      {part.state === 'output-error' && <p className="result">{part.errorText}</p>}
      {part.state === 'approval-requested' && (
        <div className="decision">
          <p>Nothing happens before you decide.</p>
          <button className="approve" onClick={() => decide(part.approval, true)}>Approve</button>
          <button className="deny" onClick={() => decide(part.approval, false)}>Deny</button>
        </div>
      )}
    </section>
  );
}

// Fields shows an object as a list, and anything else as text.
function Fields({ of, result }) {
  if (of === null || typeof of !== 'object') return <p className="result">{String(of)}</p>;
  return (
    <dl className={result ? 'result' : undefined}>
      {Object.entries(of).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{String(value)}</dd></div>)}
    </dl>
  );
}
