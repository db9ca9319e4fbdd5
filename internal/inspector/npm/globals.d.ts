// What scripts of others put beside the pages' own.

/** Of Go's wasm_exec.js. */
declare class Go {
  importObject: WebAssembly.Imports;
  run(instance: WebAssembly.Instance): Promise<void>;
}

/** Of the program of cmd/prove. */
declare function refoldProve(what: string, a: Uint8Array, b: Uint8Array): string;

// Types that several scripts name. They are here, since a page loads what is in a script.

/** What a component draws. */
type Drawn = import('preact').ComponentChildren;

/** An event of an input, a text area or a list of options. */
type FieldEvent = Event & { target: HTMLInputElement };

/** A press of a pointer or a key on an element. */
type Press = MouseEvent & { target: HTMLElement };

/** A style of an element. */
type Style = Record<string, string | number>;

/** A part of a session's time: a span of API.Timeline. begin, end and deadline are Unix milliseconds; end 0: it is open; deadline 0: it has none. */
type Span = {
  place: string; parent: string; kind: string; run: number; begin: number; end: number; seq: number; label: string; outcome: string; code: string;
  failed: boolean; deadline: number;
};

/** A call that waits for a person. gone: since when it waits no more, in Unix milliseconds; became: what it became. */
type WaitingCall = API.ApprovalList['approvals'][number] & { asks?: boolean; by?: string; gone?: number; became?: string };

/** What the panels of a session share. seq: the event at the cursor; at: the same, or 0 when live; end: the last event; index: its place in events. */
type Panel = {
  sid: string; events: API.EventHead[]; at: number; seq: number; end: number; index: number; move: (index: number) => void;
  view: API.View; shown: API.StateShown; pin: number; streamed: { value: { turn?: string; text?: string; again?: boolean; waiting?: unknown } };
};

/** A form over a session, which is closed when what it asks for was sent. */
type Asking = { sid: string; view: API.View; close: () => void };
