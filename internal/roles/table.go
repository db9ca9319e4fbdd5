package roles

import (
	"slices"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// Role is the purpose of a user.
type Role string

// The roles. The table has no row for Admin: it may do everything in the
// streams' account.
const (
	SessionActor Role = "session-actor"
	Client       Role = "client"
	Approver     Role = "approver"
	Operator     Role = "operator"
	Auditor      Role = "auditor"
	// Eraser is for the one process that deletes sessions.
	Eraser       Role = "eraser"
	Models       Role = "models"
	Tools        Role = "tools"
	StepHooks    Role = "step-hooks"
	SpaceReaders Role = "space-readers"
	Publishers   Role = "publishers"
	// App is for programs that own an agent. What such a program serves are the targets of
	// the same name under models, tools and step-hooks.
	App Role = "app"
	// AppAsk is for programs that only ask agents which others own.
	AppAsk Role = "app-ask"
	// HTTP is for refold serve: what its tokens' holders may do without operating or
	// approving, and the webhooks of its name.
	HTTP  Role = "http"
	Admin Role = "admin"
	// Loopback is for programs without a key: they may do what a client and an
	// approver may. It has no column of its own.
	Loopback Role = "loopback"
)

// Roles are the roles of the table, in the order in which it is printed.
func Roles() []Role {
	return []Role{SessionActor, Client, Approver, Operator, Auditor, Eraser, Models, Tools, StepHooks, SpaceReaders, Publishers, App, AppAsk, HTTP}
}

// Act is what a user may do with a subject.
type Act int

// The acts. Serve is answering the requests of users that may Publish them.
const (
	Publish Act = 1 << iota
	Hear
	Serve
)

// Answers is how often a request is answered.
type Answers int

// Never is for publishes, Once for requests, and Often for requests that start
// a series of replies.
const (
	Never Answers = iota
	Once
	Often
)

// Row is a row of the table: some subjects, and each role's rights to them.
type Row struct {
	Name    string
	About   string
	Answers Answers
	// Patterns returns the subjects for a user; nil if the row does not apply.
	Patterns func(n subjects.Names, u User) []string
	May      map[Role]Act
}

// may returns what a role may do with the row's subjects.
func (r Row) may(role Role) Act {
	if role == Loopback {
		return r.May[Client] | r.May[Approver]
	}
	return r.May[role]
}

// grant gives several roles one act.
func grant(act Act, roles ...Role) map[Role]Act {
	may := make(map[Role]Act, len(roles))
	for _, r := range roles {
		may[r] |= act
	}
	return may
}

// addGrant adds an act of several roles to a map.
func addGrant(may map[Role]Act, act Act, roles ...Role) map[Role]Act {
	for _, r := range roles {
		may[r] |= act
	}
	return may
}

// bridges returns the roles that pull, claim and carry out effects.
func bridges() (all []Role) {
	for _, c := range session.Classes() {
		if c.Bridged {
			all = append(all, Role(c.Role))
		}
	}
	return all
}

// writers are the roles that store blobs: snapshots and descriptors, files of install
// records, answers, results, files of spaces and packs, inputs.
func writers() []Role {
	return []Role{SessionActor, Operator, Models, Tools, SpaceReaders, Publishers, App, AppAsk, HTTP}
}

// watchers are the roles that read everything that sessions publish.
func watchers() []Role { return []Role{Client, Operator, Auditor, App, AppAsk, HTTP} }

// door returns the row of a door.
func door(d session.Door, about string, roles ...Role) Row {
	return Row{
		Name: string(d), About: about, Answers: Once, May: grant(Publish, roles...),
		Patterns: func(n subjects.Names, _ User) []string { return []string{n.DoorAll(d)} },
	}
}

// answeredIfFull adds session-actors to a row: they answer while the log is
// almost full.
func answeredIfFull(r Row) Row {
	addGrant(r.May, Serve, SessionActor)
	return r
}

// fixed returns the patterns of a row that are the same for all users.
func fixed(of func(n subjects.Names) []string) func(subjects.Names, User) []string {
	return func(n subjects.Names, _ User) []string { return of(n) }
}

// one is fixed, for a single pattern.
func one(of func(n subjects.Names) string) func(subjects.Names, User) []string {
	return func(n subjects.Names, _ User) []string { return []string{of(n)} }
}

// Table returns the rows: first Refold's own subjects, then requests to JetStream.
func Table() []Row {
	return slices.Concat(doorRows(), publishedRows(), storeRows(), readRows(), pullRows())
}

func doorRows() []Row {
	rows := []Row{
		answeredIfFull(door(session.DoorIn, "request runs, steer, cancel", Client, Operator, App, AppAsk, HTTP)),
		door(session.DoorCtl, "configure, hold and erase sessions", Operator, Eraser, App),
		door(session.DoorApprove, "decide over calls that wait for a person", Approver, Operator, App),
		door(session.DoorChild, "what sessions and their children tell each other", SessionActor),
	}
	for _, c := range session.Classes() {
		rows = append(rows, door(subjects.DoorOf(c.Class), c.About, Role(c.Role)))
	}
	return append(rows, door(session.DoorInstall, "what new sessions start with", SessionActor, Operator))
}

func publishedRows() []Row {
	return []Row{
		{Name: "view", About: "what a session looks like", Answers: Once, Patterns: one(subjects.Names.ViewAll),
			May: addGrant(grant(Serve, SessionActor), Publish, Client, Approver, Operator, Auditor, Eraser, Models, Tools, App, AppAsk, HTTP)},
		onlySessionTools(Row{Name: "readers of spaces", About: "what they would read now; of tools, only for the user of the target refold", Answers: Once, Patterns: readersOf,
			May: addGrant(grant(Serve, SpaceReaders), Publish, Tools)}),
		{Name: "out", About: "notices", Answers: Once, Patterns: one(subjects.Names.OutAll),
			May: addGrant(grant(Hear, watchers()...), Publish, SessionActor)},
		{Name: "progress", About: "progress of runs", Patterns: one(subjects.Names.ProgressAll),
			May: addGrant(grant(Hear, watchers()...), Publish, SessionActor)},
		{Name: "live", About: "deltas of models", Patterns: one(subjects.Names.LiveAll),
			May: addGrant(grant(Hear, watchers()...), Publish, Models)},
		{Name: "cancel", About: "effects that bridges must stop", Patterns: one(subjects.Names.CancelAll),
			May: addGrant(grant(Hear, bridges()...), Publish, SessionActor)},
		{Name: "alive, session-actors", About: "their heartbeats", Patterns: one(func(n subjects.Names) string { return n.AliveAll(subjects.KindSessionActor) }),
			May: addGrant(grant(Hear, append(bridges(), Operator, Auditor)...), Publish|Hear, SessionActor)},
		{Name: "alive, bridges", About: "their heartbeats", Patterns: one(func(n subjects.Names) string { return n.AliveAll(subjects.KindBridge) }),
			May: addGrant(grant(Publish|Hear, bridges()...), Hear, SessionActor, Operator, Auditor)},
		{Name: "services", About: "information about daemons", Answers: Often, Patterns: one(func(subjects.Names) string { return subjects.ServicesAll }),
			May: addGrant(grant(Publish, Operator, Auditor), Serve, append(bridges(), SessionActor)...)},
	}
}

// readersOf are the subjects on which space-readers answer: a reader's own, or all.
func readersOf(n subjects.Names, u User) (all []string) {
	if u.Role != SpaceReaders {
		return []string{n.ReadersAll()}
	}
	for _, t := range u.Targets {
		if subject, err := n.Readers(t); err == nil { // Users has reported the others
			all = append(all, subject)
		}
	}
	return all
}

// onlySessionTools excludes users of tools that do not serve session tools.
func onlySessionTools(r Row) Row {
	of := r.Patterns
	r.Patterns = func(n subjects.Names, u User) []string {
		if u.Role == Tools && !slices.Contains(u.Targets, sessionTools) {
			return nil
		}
		return of(n, u)
	}
	return r
}

func storeRows() []Row {
	return []Row{
		{Name: "effects, claims", About: "effects that sessions open", Answers: Once, Patterns: one(subjects.Names.EffectsAll), May: grant(Publish, SessionActor)},
		{Name: "claims of its targets", About: "which bridge carries out an effect", Answers: Once, Patterns: claims, May: grant(Publish, bridges()...)},
		{Name: "dead letters of its webhooks", About: "notices that no receiver took", Answers: Once, Patterns: dead, May: grant(Publish, HTTP)},
		{Name: "due", About: "messages of schedules", Patterns: one(subjects.Names.DueAll)},
		{Name: "stored events", About: "as stored in the log", Patterns: one(func(n subjects.Names) string { return n.StoredAll(session.DoorCtl) })},
		{Name: "timers", About: "schedules of wakes", Answers: Once, Patterns: one(subjects.Names.TimersAll), May: grant(Publish, SessionActor)},
		{Name: "snapshots", About: "snapshots, quarantines, notes of lanes", Answers: Once,
			Patterns: one(func(n subjects.Names) string { return n.SnapshotsSubject(">") }), May: grant(Publish, SessionActor, Eraser)},
		{Name: "ledger", About: "which messages are erased", Answers: Once, Patterns: one(subjects.Names.ErasedAll), May: grant(Publish, Eraser)},
		{Name: "quarantines", About: "stop a session, release it", Answers: Once,
			Patterns: one(func(n subjects.Names) string { return n.SnapshotsSubject(subjects.QuarantineKeys) }), May: grant(Publish, Operator)},
		{Name: "packs", About: "published versions of packs, and their signatures", Answers: Once, May: grant(Publish, Publishers),
			Patterns: fixed(func(n subjects.Names) []string { return n.StreamSubjects(n.PacksStream()) })},
		// Erasers mark blobs that nothing names, and store what stands for those of redacted events.
		{Name: "blobs", About: "contents by hash: add some", Answers: Once, May: grant(Publish, append(writers(), Eraser)...),
			Patterns: fixed(func(n subjects.Names) []string { return n.StreamSubjects(n.BlobsStream()) })},
	}
}

// dead are the dead letters of a user's webhooks.
func dead(n subjects.Names, u User) (all []string) {
	for _, c := range u.consumers() {
		if subject, err := n.DeadOf(c.Target); err == nil { // Users has reported the others
			all = append(all, subject)
		}
	}
	return all
}

// claims are the claims of effects that a user's bridges carry out.
func claims(n subjects.Names, u User) (all []string) {
	for _, c := range u.consumers() {
		all = append(all, n.ClaimsAll(c.Class, c.Target)...)
	}
	return all
}
