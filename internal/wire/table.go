package wire

import (
	"cmp"
	"slices"
)

const dialect = "https://json-schema.org/draft/2020-12/schema"

// Row is a message of the wire, or a part of several messages.
type Row struct {
	Name  string // of the schema; parts/Name for a part
	Type  string // Go type, by its directory: actors/session.RunRequested
	About string // what it is, if several messages have the type; else its comment says so

	Doors  []string // of an event
	Bodies []string // of an envelope: the messages that its data may be
	always bool     // data is never absent

	rules []string // JSON fragments that the schema also has, if several messages have the type
}

// messages is the table of messages that package session does not list: it has the tables
// of events and notices, and an effect is a type whose field Class has one value.
var messages = []Row{
	{Name: "Cancel", Type: "internal/presence.Cancel"},
	{Name: "Claim", Type: "internal/journal.ClaimBody"},
	{Name: "Heartbeat", Type: "internal/presence.Heartbeat"},
	{Name: "InstallRecord", Type: "actors/session.InstallRecord"},
	{Name: "LiveDelta", Type: "client.Delta"},
	{Name: "Manifest", Type: "space.Manifest"},
	{Name: "Quarantine", Type: "internal/journal.Stop"},
	{Name: "Snapshot", Type: "actors/session.Snapshot"},
	{Name: "SnapshotBlob", Type: "internal/journal.snapshotRef"},
	{Name: "ToolDescriptor", Type: "planner.Descriptor"},
	{Name: "View", Type: "actors/session.View"},
	// Parts.
	{Name: "parts/ApprovalPack", Type: "actors/session.ApprovalPack"},
	{Name: "parts/ApprovalRule", Type: "planner.ApprovalRule"},
	{Name: "parts/Budget", Type: "actors/session.Budget"},
	{Name: "parts/Content", Type: "actors/session.Content"},
	{Name: "parts/Fault", Type: "actors/session.Fault"},
	{Name: "parts/Grant", Type: "actors/spaces.Grant"},
	{Name: "parts/HostSession", Type: "actors/session.HostSession"},
	{Name: "parts/Items", Type: "actors/session.ItemList"},
	{Name: "parts/OverBudget", Type: "actors/session.OverBudget"},
	{Name: "parts/Problem", Type: "space.Problem"},
	{Name: "parts/Profile", Type: "planner.Profile"},
	{Name: "parts/ResponseFormat", Type: "actors/session.ResponseFormat"},
	{Name: "parts/RunConfig", Type: "actors/session.RunConfig"},
	{Name: "parts/Schedule", Type: "actors/session.Schedule"},
	{Name: "parts/Scheduled", Type: "actors/session.Scheduled"},
	{Name: "parts/Signature", Type: "space.Signature"},
	{Name: "parts/StepRule", Type: "planner.StepRule"},
	{Name: "parts/Summary", Type: "actors/session.Summary"},
	{Name: "parts/ToolSpec", Type: "planner.ToolSpec"},
	{Name: "parts/Trouble", Type: "actors/session.Trouble"},
	{Name: "parts/Trust", Type: "space.Trust"},
	{Name: "parts/Usage", Type: "actors/session.Usage"},
	{Name: "parts/UsageTotal", Type: "actors/session.UsageTotal"},
}

// shared are the events and notices whose Go type has another name than they.
var shared = map[string]Row{
	"RunCancelRequested":     {Type: "RunControl", About: "Ends a run at once, the active one or a queued one."},
	"RunInterruptRequested":  {Type: "RunControl", About: "Lets the open effects of the active run settle, opens nothing new, and then ends the run."},
	"RunPauseRequested":      {Type: "RunControl", About: "Opens nothing new for the active run until it is resumed."},
	"ScheduleRemoved":        {Type: "ScheduleNamed", About: "Removes a schedule."},
	"SchedulePauseRequested": {Type: "ScheduleNamed", About: "Pauses a schedule: it fires no more until it is resumed or set again."},
	"RunCompleted":           {Type: "RunEnded", About: "Ends a run of completion explicit that waits for input."},
	"RunFailed":              {Type: "RunEnded", About: "Ends a run of completion explicit that waits for input, as a failure."},
	"RunQueued":              {Type: "RunPlaced", About: "A run waits, since another one is active. Published again when its input is changed."},
	"RunStarted":             {Type: "RunPlaced", About: "A run is active, and its first turn begins."},
}

// packageDirs are the directories of the packages that tags name.
var packageDirs = map[string]string{
	"session": "actors/session", "spaces": "actors/spaces", "planner": "planner", "space": "space", "codec": "codec",
}

// partNames are the names of the parts' schemas, by Go type.
var partNames = func() map[string]string {
	names := map[string]string{}
	for _, row := range messages {
		if len(row.Name) > len("parts/") && row.Name[:len("parts/")] == "parts/" || row.Name == "ToolDescriptor" || row.Name == "Manifest" {
			names[row.Type] = row.Name
		}
	}
	names["actors/session.ToolCallSettled"] = "ToolCallSettled"
	return names
}()

// rows returns the table of messages and parts, by name.
func (s *source) rows() ([]Row, error) {
	events, err := s.events()
	if err != nil {
		return nil, err
	}
	p, err := s.load(module + "/actors/session")
	if err != nil {
		return nil, err
	}
	envelope := Row{Name: "Envelope", Type: "actors/session.Envelope"}
	notice := Row{Name: "Notice", Type: "actors/session.noticeJSON", always: true, rules: []string{
		`{"allOf": [{"if": {"properties": {"type": {"enum": ["SessionChanged", "SessionQuarantined", "SessionReleased"]}}, "required": ["type"]}, "then": {"properties": {"n": false}}, "else": {"required": ["n"]}}]}`,
	}}
	progress := Row{
		Name: "Progress", Type: "actors/session.noticeJSON", always: true, rules: []string{`{"properties": {"n": null, "summary": null}}`},
		About: "A session's report about the active run, published on refold.progress.<session> and not stored.",
	}
	effects, err := s.effects()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(messages, events, effects)
	for i := range events {
		envelope.Bodies = append(envelope.Bodies, events[i].Name)
	}
	for _, dir := range []string{sessionDir, spacesDir} {
		of, err := s.load(module + "/" + dir)
		if err != nil {
			return nil, err
		}
		for _, name := range of.values("Notice") {
			notice.Bodies = append(notice.Bodies, name)
			all = append(all, s.bodyRow(name))
		}
	}
	for _, name := range p.values("Progress") {
		progress.Bodies = append(progress.Bodies, name)
		all = append(all, s.bodyRow(name))
	}
	all = append(all, envelope, notice, progress)
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// bodyRow returns the row of an event, a notice or a report of progress, without doors.
// Its type is in package session, or else in package spaces.
func (s *source) bodyRow(name string) Row {
	row := Row{Name: name, Type: name}
	if of, ok := shared[name]; ok {
		row.Type, row.About = of.Type, of.About
	}
	dir := sessionDir
	if _, err := s.declared(dir + "." + row.Type); err != nil {
		dir = spacesDir
	}
	row.Type = dir + "." + row.Type
	return row
}
