package roles

import (
	"slices"

	"github.com/refold/refold/subjects"
)

// The beginnings of JetStream's subjects. An account without streams uses
// subjects.Names.API in place of the first one: JetStream answers requests
// under its own prefix for the requester's account.
const (
	api  = "$JS.API." // also if File.Domain has a name
	acks = "$JS.ACK."
	flow = "$JS.FC."
)

// readers are the roles that connect to JetStream. Daemons ask for the number of copies
// of each stream.
func readers() []Role {
	return append(bridges(), SessionActor, Approver, Operator, Auditor, Eraser, App, AppAsk, HTTP)
}

// eventReaders are the roles that read the log.
func eventReaders() []Role {
	return []Role{SessionActor, Operator, Auditor, Eraser, Models, Tools, StepHooks, App, AppAsk, HTTP, Approver}
}

// read returns the row for reading a stream.
func read(name, about string, stream func(subjects.Names) string, roles ...Role) Row {
	return Row{
		Name: "read " + name, About: about, Answers: Often, May: grant(Publish, roles...),
		Patterns: fixed(func(n subjects.Names) []string {
			s := stream(n)
			return []string{api + "STREAM.MSG.GET." + s, api + "DIRECT.GET." + s, api + "DIRECT.GET." + s + ".>"}
		}),
	}
}

func readRows() []Row {
	return []Row{
		{Name: "JetStream", About: "whether it is available", Answers: Once, Patterns: one(func(subjects.Names) string { return api + "INFO" }),
			May: grant(Publish, append(readers(), Publishers)...)},
		{Name: "read stream info", About: "their configuration, size and subjects", Answers: Once, May: grant(Publish, readers()...),
			Patterns: fixed(func(n subjects.Names) []string { return each(n.Streams(), api+"STREAM.INFO.") })},
		{Name: "read info of the log", About: "its identity, which each message names", Answers: Once, May: grant(Publish, Client, Publishers),
			Patterns: one(func(n subjects.Names) string { return api + "STREAM.INFO." + n.LogStream() })},
		{Name: "read info of packs and blobs", About: "of these two streams", Answers: Once, May: grant(Publish, Publishers),
			Patterns: fixed(func(n subjects.Names) []string {
				return each([]string{n.PacksStream(), n.BlobsStream()}, api+"STREAM.INFO.")
			})},
		// Bridges compare what an interrupted effect was settled with, and read results of
		// earlier calls again; models and step hooks read the transcript. Apps fold their
		// sessions.
		read("events", "the log", subjects.Names.LogStream, eventReaders()...),
		// Who folds a session must know which of its events are erased.
		read("ledger", "which messages are erased", subjects.Names.ErasedStream, eventReaders()...),
		// Bridges read the claims that theirs conflict with. Erasers archive sessions, and compare
		// what they fold with the stored effects.
		read("effects", "effects and claims", subjects.Names.EffectsStream, append(bridges(), SessionActor, Operator, Auditor, Eraser)...),
		read("notices", "notices of sessions", subjects.Names.NoticesStream, SessionActor, Operator, Auditor, Eraser, App, AppAsk, HTTP),
		read("dead letters", "notices that no receiver of a webhook took", subjects.Names.DeadStream, Operator, Auditor, Eraser),
		read("timers", "schedules", subjects.Names.TimersStream, SessionActor, Operator),
		read("snapshots", "snapshots, quarantines", subjects.Names.SnapshotsStream, SessionActor, Operator, Auditor, Eraser, App, AppAsk, HTTP, Approver),
		{Name: "look up blobs", About: "whether a content is stored, by its hash", Answers: Once, May: grant(Publish, writers()...),
			Patterns: one(func(n subjects.Names) string {
				return api + "DIRECT.GET." + n.BlobsStream() + "." + n.BlobSubject("*")
			})},
		// Models and step hooks are shown inputs and results, apps and servers of the HTTP API show answers, approvers the texts of packs, tools read skills and the
		// manifests of packs, a reader of a space the manifest that a partial sync begins
		// with.
		read("blobs", "contents", subjects.Names.BlobsStream, SessionActor, Operator, Auditor, Eraser, Models, Tools, StepHooks, SpaceReaders, App, HTTP, Approver),
		onlySessionTools(read("packs", "published versions of packs; of tools, only the user of the target refold", subjects.Names.PacksStream, Operator, Auditor, Eraser, Tools, SpaceReaders, Publishers)),
		{Name: "read its buckets", About: "files of workspaces", Answers: Often, Patterns: buckets, May: grant(Publish, SpaceReaders)},
	}
}

// buckets are the requests to the object stores of a space-reader.
func buckets(_ subjects.Names, u User) (all []string) {
	for _, b := range u.Buckets {
		s := "OBJ_" + b
		all = append(all, api+"STREAM.INFO."+s, api+"STREAM.MSG.GET."+s, api+"DIRECT.GET."+s)
	}
	return all
}

func pullRows() []Row {
	return []Row{
		{Name: "pull its effects", About: "one consumer for each target", Answers: Often, Patterns: pulls, May: grant(Publish, bridges()...)},
		{Name: "pull its webhooks", About: "one consumer for each webhook", Answers: Often, Patterns: hooks, May: grant(Publish, HTTP)},
		{Name: "list consumers of effects", About: "which workers there are", Answers: Once, May: grant(Publish, Tools),
			Patterns: one(func(n subjects.Names) string { return api + "CONSUMER.NAMES." + n.EffectsStream() })},
		{Name: "list consumers", About: "whether one is paused, or far behind", Answers: Once, May: grant(Publish, Auditor, Eraser),
			Patterns: fixed(func(n subjects.Names) []string {
				return each([]string{n.LogStream(), n.EffectsStream(), n.TimersStream()}, api+"CONSUMER.LIST.")
			})},
		{Name: "purge blobs", About: "former snapshots, blobs that nothing names, chunks without a description", Answers: Once, May: grant(Publish, SessionActor, Eraser),
			Patterns: one(func(n subjects.Names) string { return api + "STREAM.PURGE." + n.BlobsStream() })},
		{Name: "create streams", About: "and update them", Answers: Once, May: grant(Publish, SessionActor),
			Patterns: fixed(func(n subjects.Names) []string {
				return slices.Concat(each(n.Streams(), api+"STREAM.CREATE."), each(n.Streams(), api+"STREAM.UPDATE."))
			})},
		{Name: "consumers of all streams", About: "create them, pull, delete", Answers: Often, May: grant(Publish, SessionActor, Operator),
			Patterns: fixed(consumers)},
		{Name: "lanes", About: "reset them, change their owner", Answers: Once, May: grant(Publish, SessionActor),
			Patterns: fixed(func(n subjects.Names) []string {
				return []string{api + "CONSUMER.RESET." + n.LogStream() + ".*", api + "CONSUMER.UNPIN." + n.LogStream() + ".*", acks + n.LogStream() + ".>", acks + "*.*." + n.LogStream() + ".>"}
			})},
		{Name: "acknowledge due wakes", About: "wakes that are settled", Answers: Once, May: grant(Publish, SessionActor),
			Patterns: fixed(func(n subjects.Names) []string {
				due := n.TimersStream() + "." + subjects.DueConsumer + ".>"
				return []string{acks + due, acks + "*.*." + due}
			})},
		{Name: "list streams", About: "their names and configurations", Answers: Once, May: grant(Publish, Operator),
			Patterns: fixed(func(subjects.Names) []string { return []string{api + "STREAM.NAMES", api + "STREAM.LIST"} })},
		{Name: "list names of streams", About: "whether another one has a subject of a missing one", Answers: Once, May: grant(Publish, SessionActor, Auditor),
			Patterns: one(func(subjects.Names) string { return api + "STREAM.NAMES" })},
		{Name: "delete, purge", About: "streams and messages", Answers: Once, Patterns: fixed(func(n subjects.Names) []string {
			kept := slices.DeleteFunc(n.Streams(), func(s string) bool { return s == n.BlobsStream() })
			others := slices.DeleteFunc(n.Streams(), func(s string) bool { return slices.Contains(erased(n), s) })
			return slices.Concat(each(n.Streams(), api+"STREAM.DELETE."), each(others, api+"STREAM.MSG.DELETE."), each(kept, api+"STREAM.PURGE."))
		})},
		// A server checks no request's body: who may delete one message may delete any.
		{Name: "erase messages", About: "of erased sessions", Answers: Once, May: grant(Publish, Eraser),
			Patterns: fixed(func(n subjects.Names) []string { return each(erased(n), api+"STREAM.MSG.DELETE.") })},
		{Name: "receive in its own inbox", About: "scans of whole streams", May: grant(Hear, Operator),
			Patterns: func(_ subjects.Names, u User) []string { return []string{u.Inbox() + ".>"} }},
	}
}

// erased are the streams with text of sessions that an eraser deletes.
func erased(n subjects.Names) []string {
	return []string{n.LogStream(), n.NoticesStream(), n.DeadStream(), n.SnapshotsStream()}
}

// consumers are all requests about consumers of the streams.
func consumers(n subjects.Names) (all []string) {
	for _, s := range n.Streams() {
		for _, verb := range []string{"CREATE", "INFO", "DELETE", "MSG.NEXT"} {
			all = append(all, api+"CONSUMER."+verb+"."+s+".>")
		}
		all = append(all, api+"CONSUMER.CREATE."+s, api+"CONSUMER.NAMES."+s, api+"CONSUMER.LIST."+s, flow+s+".>", flow+"*.*."+s+".>")
	}
	return all
}

// pulls are the requests of a bridge to the consumers of its targets.
// Session-actors have created the consumers.
func pulls(n subjects.Names, u User) (all []string) {
	for _, c := range u.consumers() {
		name, err := subjects.BridgeName(c.Class, c.Target)
		if err != nil {
			continue // Users has reported it
		}
		all = append(all, pull(n.EffectsStream()+"."+name)...)
	}
	return all
}

// hooks are the requests to the consumers of a user's webhooks.
func hooks(n subjects.Names, u User) (all []string) {
	for _, c := range u.consumers() {
		if name, err := subjects.WebhookConsumer(c.Target); err == nil { // Users has reported the others
			all = append(all, pull(n.NoticesStream()+"."+name)...)
		}
	}
	return all
}

// pull are the requests of who pulls from a consumer that exists.
func pull(at string) []string {
	return []string{api + "CONSUMER.INFO." + at, api + "CONSUMER.MSG.NEXT." + at, acks + at + ".>", acks + "*.*." + at + ".>"}
}

// each prepends begin to every text.
func each(texts []string, begin string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = begin + t
	}
	return out
}
