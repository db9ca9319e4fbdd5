package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/actors/spaces"
	"github.com/refold/refold/client"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/internal/natsio"
	"github.com/refold/refold/internal/transcript"
	"github.com/refold/refold/space"
)

// promptCommand shows a turn's prompt.
type promptCommand struct {
	Session string `arg:"" archive:"" help:"The session, or the file of its archive: a name with a dot or a slash."`
	Turn    string `arg:"" optional:"" help:"The turn, such as r1t2. Default: the latest."`
	Window  bool   `help:"Also print the messages of the conversation that the turn showed the model, as it showed them."`
	asJSON
}

// Help returns the help text above the flags.
func (promptCommand) Help() string {
	return `It folds the log again, and reads the content of the parts from the blob store: the
system text of the step or the config, then the parts of the prompt pack and of
skills in the order in which the model was shown them. Sizes are bytes. A part that an
operator has removed is listed as prompt_missing; exit status 1 then. With --window the
messages follow: of a long conversation a model is shown a part.`
}

// shownPrompt is a turn's prompt before the transcript.
type shownPrompt struct {
	turn       string
	generation session.Generation
	parts      []session.ViewPromptPart // of generation.Prompt, with their files
}

func (c promptCommand) Run(ctx context.Context, s streams, conn connection) error {
	if c.Turn != "" && !turnName.MatchString(c.Turn) {
		return &statusError{statusUsage, fmt.Sprintf("prompt %s: a turn has a name such as r1t2: run 1, turn 2", c.Turn)}
	}
	if c.Window && isArchive(c.Session) {
		return &statusError{statusUsage, "prompt: --window is for sessions of a server"}
	}
	reader, sid, err := conn.reader(ctx, c.Session)
	if err != nil {
		return err
	}
	defer reader.Close()
	p, err := promptOf(ctx, reader, sid, c.Turn)
	if err != nil {
		return err
	}
	if err := p.print(ctx, s.out, reader, sid, c.JSON); err != nil || !c.Window {
		return err
	}
	b, err := conn.dial(ctx)
	if err != nil {
		return err
	}
	defer b.Close()
	return p.printWindow(ctx, s.out, b, c.Session, c.JSON)
}

// promptOf folds the session's events again, and returns the prompt of a turn. If
// none is named, it is the latest turn that was published.
func promptOf(ctx context.Context, c *client.Client, sid, turn string) (*shownPrompt, error) {
	var p *shownPrompt
	var turns []string
	_, err := c.Replay(ctx, sid, 0, func(_ session.Event, _ []session.Notice, state *session.State) {
		if state.Turn == nil {
			return
		}
		name := fmt.Sprintf("r%dt%d", state.Turn.Run, state.Turn.Number)
		if len(turns) == 0 || turns[len(turns)-1] != name {
			turns = append(turns, name)
		}
		if turn != "" && name != turn || p != nil && p.turn == name {
			return
		}
		other := func(open session.Place) bool {
			return open.String() != name && !strings.HasPrefix(open.String(), name+"a")
		}
		for _, effect := range state.OpenExcept(other) {
			found := &shownPrompt{turn: name}
			if codec.Decode(effect.Payload, &found.generation) != nil {
				continue
			}
			if v := state.View(); v.Turn != nil && v.Turn.Prompt != nil {
				found.parts = v.Turn.Prompt.Parts
			}
			p = found
		}
	})
	switch {
	case err != nil:
		return nil, err
	case p == nil && turn != "" && !slices.Contains(turns, turn) && len(turns) > 0:
		return nil, fmt.Errorf("session %s has no turn %s; it has %s", sid, turn, ranges(turns))
	case p == nil && turn != "" && len(turns) > 0:
		return nil, fmt.Errorf("turn %s of session %s was not published: refold why and refold view show why", turn, sid)
	case p == nil:
		return nil, fmt.Errorf("session %s has not published a turn yet", sid)
	}
	return p, nil
}

// print prints the parts, each below a line that describes it.
func (p *shownPrompt) print(ctx context.Context, out io.Writer, c *client.Client, sid string, asJSON bool) error {
	values := map[string]string{}
	for _, v := range p.generation.Vars {
		var text string
		if codec.Unmarshal(v.Value, &text) == nil {
			values[v.Key] = text
		}
	}
	index, err := p.skillIndex(ctx, c)
	if err != nil {
		return err
	}
	var body strings.Builder
	total, missing, images := int64(0), 0, 0
	section := func(head, text string) { p.section(&body, sid, head, text, asJSON) }
	if system := p.generation.System; system != "" {
		total += int64(len(system))
		section(fmt.Sprintf("system text of the config or the step, %d bytes", len(system)), system)
	}
	for i := range p.generation.Prompt {
		part := &p.generation.Prompt[i]
		head := p.head(i)
		content, err := c.Blob(ctx, codec.Ref{Hash: part.Ref})
		switch {
		case errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes):
			missing++
			section(head+", prompt_missing: the store does not have it", "")
			continue
		case err != nil:
			return err
		case part.Role == spaces.PromptImage:
			images++
			section(fmt.Sprintf("%s, %s of %d bytes", head, part.MediaType, len(content)), "")
			continue
		}
		text := shownPart(part, string(content), values)
		if part.Role == spaces.PromptSkill {
			if text, err = shownSkill(ctx, c, part, string(content)); err != nil {
				return err
			}
		}
		if part.Role == spaces.PromptSkills {
			text, index = index[0], index[1:]
		}
		total += int64(len(text))
		section(fmt.Sprintf("%s, %d bytes", head, len(text)), text)
	}
	if !asJSON {
		fmt.Fprintf(out, "turn %s of session %s: %s of text in %s and %s before the transcript; %s\n",
			p.turn, sid, transcript.Count(int(total), "byte"), transcript.Count(len(p.generation.Prompt), "part"), transcript.Count(images, "image"), p.mark(total))
	}
	fmt.Fprint(out, body.String())
	if missing > 0 {
		return fmt.Errorf("%s missing in the blob store: restore it from a backup, or sync the space again", transcript.Count(missing, "part"))
	}
	return nil
}

// section prints a part of what the model is shown, below a line that describes it.
func (p *shownPrompt) section(out io.Writer, sid, head, text string, asJSON bool) {
	if asJSON {
		printJSON(out, partJSON{sid, p.turn, head, text})
		return
	}
	fmt.Fprintf(out, "\n--- %s\n%s", head, text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		fmt.Fprintln(out)
	}
}

// mark says what the prompt is of, given its bytes.
func (p *shownPrompt) mark(total int64) string {
	switch {
	case p.generation.PromptMark != nil:
		return "prompt_mark " + p.generation.PromptMark.String()
	case total > 0:
		return "no prompt pack"
	}
	return "nothing comes before the transcript"
}

// partJSON is a part of a prompt as JSON.
type partJSON struct {
	Session string `json:"session"`
	Turn    string `json:"turn"`
	Part    string `json:"part"` // what it is, and its size
	Text    string `json:"text,omitempty"`
}

// skillIndex returns the texts of the parts that are an index of skills, in order.
// It leaves out those whose manifest is not stored; print reports these.
func (p *shownPrompt) skillIndex(ctx context.Context, c *client.Client) ([]string, error) {
	var listed [][]*space.Skill
	for i := range p.generation.Prompt {
		part := &p.generation.Prompt[i]
		if part.Role != spaces.PromptSkills {
			continue
		}
		content, err := c.Blob(ctx, codec.Ref{Hash: part.Ref})
		switch m, _ := space.Parse(content); {
		case errors.Is(err, natsio.ErrNotFound) || errors.Is(err, journal.ErrOtherBytes):
		case err != nil:
			return nil, err
		case m == nil:
			return nil, fmt.Errorf("%s is not a manifest", p.head(i))
		default:
			listed = append(listed, m.Named(part.Names))
		}
	}
	return space.ShownSkills(listed), nil
}

// shownPart returns a part as the model is shown it.
func shownPart(part *spaces.PromptPart, text string, values map[string]string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if part.Role == spaces.PromptDocument {
		return space.ShownDocument(strings.Join(part.Names, ""), text)
	}
	shown, _ := space.ShownText(text, values, space.ShownBytesMax)
	return shown
}

// shownSkill returns a skill that the run's config names, with the run's input as
// its arguments.
func shownSkill(ctx context.Context, c *client.Client, part *spaces.PromptPart, text string) (string, error) {
	given := ""
	if part.Input > 0 {
		input, err := c.Input(ctx, part.Input)
		if err != nil {
			return "", err
		}
		given = input.Text
	}
	filled, _, _ := space.FillArguments(strings.ToValidUTF8(text, "\uFFFD"), given)
	return space.ShownSkill(strings.Join(part.Names, ""), filled), nil
}

// head describes a part and names its file.
func (p *shownPrompt) head(i int) string {
	part := &p.generation.Prompt[i]
	role := cmp.Or(part.Role, "system")
	file := "prompt ref"
	if i < len(p.parts) && p.parts[i].Space != "" {
		file = strings.TrimSpace(p.parts[i].Space + " " + p.parts[i].Path)
	}
	return fmt.Sprintf("%s, %s, %s", role, file, codec.Ref{Hash: part.Ref})
}
