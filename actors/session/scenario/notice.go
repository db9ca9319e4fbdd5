package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/space"
)

// notice is the data of a notice that is drawn.
type notice struct {
	Run       int              `json:"run"`
	Lifecycle string           `json:"lifecycle"`
	Code      string           `json:"code"`
	Detail    string           `json:"detail"`
	Effect    string           `json:"effect"`
	ToolName  string           `json:"tool_name"`
	Type      string           `json:"type"`
	Output    *session.Content `json:"output"`
	OutputSeq uint64           `json:"output_seq"`
	Untaken   []uint64         `json:"untaken_steers"`
	Batch     string           `json:"batch"`
	PlanHash  string           `json:"plan_hash"`
	Groups    [][]int          `json:"groups"`
	Group     int              `json:"group"`
	Calls     []string         `json:"calls"`
	Call      string           `json:"call"`
	Arguments string           `json:"arguments"`
	Deadline  int64            `json:"deadline"`
	Budget    string           `json:"budget"`
	Limit     json.RawMessage  `json:"limit"` // a number, or the name of a limit
	Max       int64            `json:"max"`
	Used      int64            `json:"used"`
	Estimate  int64            `json:"estimate"`
	Ignored   []string         `json:"ignored"`
	Results   int              `json:"results"`
	Items     int              `json:"items"`
	Before    int64            `json:"tokens_before"`
	Tokens    int64            `json:"tokens"`
	FromModel string           `json:"from_model"`
	Schedule  string           `json:"schedule"`
	At        int64            `json:"at"`

	Scheduled *session.Scheduled `json:"scheduled"`
	Model     string             `json:"model"`
	Provider  string             `json:"provider"`

	Workspace    string                 `json:"workspace"`
	Hash         string                 `json:"hash"`
	Outcome      string                 `json:"outcome"`
	Mode         string                 `json:"mode"`
	ToolsAdded   []string               `json:"tools_added"`
	ToolsRemoved []string               `json:"tools_removed"`
	By           string                 `json:"by"`
	ByHash       string                 `json:"by_hash"`
	Grant        *session.ApprovalGrant `json:"grant"`
	Pack         *session.ApprovalPack  `json:"pack"`
	Problems     []space.Problem        `json:"problems"`
	Warnings     []space.Problem        `json:"warnings"`

	OverBudget   *session.OverBudget `json:"over_budget"`
	FinishReason string              `json:"finish_reason"`
}

// noticeLine formats a notice; now is the session's clock.
func noticeLine(s Said, now int64) string {
	var d notice
	if err := json.Unmarshal(s.Data, &d); err != nil {
		return s.Type + " " + err.Error()
	}
	switch {
	case d.FromModel != "":
		return fmt.Sprintf("%s %s: %s failed (%s), asks %s of %s", s.Type, d.Effect, d.FromModel, d.Code, d.Model, d.Provider)
	case d.Results+d.Items > 0:
		return fmt.Sprintf("%s %d: about %d tokens, before %d", s.Type, d.Results+d.Items, d.Tokens, d.Before)
	case d.Schedule != "":
		return noticeOfSchedule(s.Type, &d)
	case d.Workspace != "":
		return noticeOfSpace(s.Type, &d)
	case d.Batch != "":
		line := fmt.Sprintf("%s %s plan %s, groups %s, group %d", s.Type, d.Batch, short(d.PlanHash), groups(d.Groups), d.Group)
		if len(d.Calls) > 0 {
			line += ": " + strings.Join(d.Calls, " ")
		}
		return line
	case d.Call != "":
		line := fmt.Sprintf("%s %s %s %s due %s", s.Type, d.Call, d.ToolName, oneLine(d.Arguments), span(d.Deadline-now))
		if g := d.Grant; g != nil {
			line += fmt.Sprintf(" grant %s by %s to %s, %d digests, %d keys", g.Space, g.Target, strings.Join(append([]string{g.Version}, g.Targets...), " "), len(g.Digests), len(g.Keys))
		}
		if p := d.Pack; p != nil {
			line += fmt.Sprintf("\n    pack %s %s %s signed by %.5s: tools %s; secrets %s; texts", p.Space, p.Version, short(p.Hash), cmp.Or(p.Signer, "-"),
				cmp.Or(strings.Join(p.Tools, " "), "-"), cmp.Or(strings.Join(p.Secrets, " "), "-"))
			for _, f := range p.Prompt {
				line += " " + f.Path
			}
		}
		return line
	case d.Budget != "":
		return fmt.Sprintf("%s run %d: %d used, about %d for the input, of %s %s", s.Type, d.Run, d.Used, d.Estimate, d.Limit, d.Budget)
	case d.Max > 0:
		return fmt.Sprintf("%s %s: %d of %d", s.Type, d.Limit, d.Used, d.Max)
	}
	line := s.Type
	for _, part := range []string{runPart(d.Run), d.Type, d.Effect, d.ToolName, d.Lifecycle, d.Code} {
		if part != "" {
			line += " " + part
		}
	}
	line += detailPart(d.Detail)
	if of := d.Scheduled; of != nil {
		line += fmt.Sprintf(", scheduled by %s at %d", of.Name, of.At)
	}
	if d.Output != nil && d.Output.Text != "" {
		line += " " + strconv.Quote(d.Output.Text)
	}
	switch {
	case d.OutputSeq == s.Seq: // too large for a notice
		line += " (this event has the output)"
	case d.OutputSeq > 0:
		line += " (an earlier event has the output)"
	}
	if d.FinishReason != "" {
		line += ", the answer ended by " + d.FinishReason
	}
	if o := d.OverBudget; o != nil {
		line += fmt.Sprintf(", over its budget: %d of %d %s", o.Used, o.Limit, o.Budget)
	}
	if n := len(d.Untaken); n > 0 {
		line += ", " + count(n, "steer") + " untaken"
	}
	if len(d.Ignored) > 0 {
		line += ", ignores " + strings.Join(d.Ignored, " ")
	}
	return line
}

func noticeOfSchedule(typ string, d *notice) string {
	line := typ + " " + d.Schedule
	if d.At > 0 {
		line += " at " + strconv.FormatInt(d.At, 10)
	}
	return line + " " + d.Code + detailPart(d.Detail)
}

func detailPart(detail string) string {
	if detail == "" {
		return ""
	}
	return ": " + oneLine(detail)
}

// oneLine formats a text in one line: a step ends at the next blank line.
func oneLine(text string) string {
	if strings.Contains(text, "\n") {
		return strconv.Quote(text)
	}
	return text
}

func runPart(run int) string {
	if run == 0 {
		return ""
	}
	return "run " + strconv.Itoa(run)
}
