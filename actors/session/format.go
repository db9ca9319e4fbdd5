package session

import (
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// ResponseFormat is the required form of a model's answers in a run. Configs and
// effects hold it unchanged. The provider is asked for the form. If it has a schema,
// the fold checks each answer that would end the run.
type ResponseFormat struct {
	Name    string    `msgpack:"name,omitempty"`    // of the schema, for the model
	Repairs *int      `msgpack:"repairs,omitempty"` // how many faulty answers in a row the model may repair; absent: RepairsDefault
	Schema  codec.Raw `msgpack:"schema,omitempty"`  // of type json_schema: a JSON Schema; a provider is sent a form that it accepts
	Strict  bool      `msgpack:"strict,omitempty"`  // the provider is to hold the answer to the schema, if it can
	Type    string    `msgpack:"type"`
}

// The types of a ResponseFormat.
const (
	FormatText   = "text"        // words, the default
	FormatJSON   = "json_object" // JSON, as far as the provider holds to it
	FormatSchema = "json_schema"
)

// FormatSchemaProblem says what is wrong with the schema of a response_format, or "".
func FormatSchemaProblem(raw codec.Raw) (problem string) {
	if f, ok := readFormat(raw); ok && f.Type == FormatSchema {
		_, problem = planner.CompileAnswerSchema(f.Schema)
	}
	return problem
}

// formatFault returns what is wrong with a response_format, as it follows the
// field's name; "" if nothing is.
func formatFault(raw codec.Raw) string {
	if len(raw) == 0 {
		return ""
	}
	f, ok := readFormat(raw)
	switch {
	case !ok:
		return ": {type: text}, {type: json_object}, or {type: json_schema, schema: an object}, with name and strict if you like"
	case f.Repairs != nil && (*f.Repairs < 0 || *f.Repairs > RepairsMax):
		return ".repairs: 0 to " + strconv.Itoa(RepairsMax)
	case f.Type != FormatSchema:
		return ""
	}
	if _, problem := planner.CompileAnswerSchema(f.Schema); problem != "" {
		return ".schema: " + problem
	}
	return ""
}

func readFormat(raw codec.Raw) (f ResponseFormat, ok bool) {
	if !codec.IsMap(raw) || codec.Decode(raw, &f) != nil || f.Name != "" && !planner.IsName(f.Name) {
		return f, false
	}
	switch f.Type {
	case FormatText, FormatJSON:
		return f, len(f.Schema) == 0 && !f.Strict && f.Name == "" && f.Repairs == nil
	case FormatSchema:
		return f, codec.IsMap(f.Schema)
	}
	return f, false
}

// problemOf returns what is wrong with an answer; "" if nothing is.
func (f *ResponseFormat) problemOf(b *GenerationSettled) (problem string) {
	switch output := b.Text; {
	case b.isSilent():
		problem = "the answer is empty"
	case output.Blob != nil:
		problem = "the answer is a blob, which is not read: answer with at most " + strconv.Itoa(TextBytesMax) + " bytes"
	case len(output.Parts) > 0:
		problem = "the answer has parts: answer with one text"
	default:
		var schema planner.AnswerSchema
		if schema, problem = planner.CompileAnswerSchema(f.Schema); problem == "" {
			problem = schema.Check([]byte(output.Text))
		}
	}
	if reason := b.oddFinish(); problem != "" && reason != "" {
		problem = clip(problem, DetailBytesMax/2) + "; the answer ended with " + quoted(clip(reason, CodeBytesMax))
	}
	return clip(problem, DetailBytesMax)
}

// isFaulty reports whether the answer that would end the run does not have the
// required form. Then it has let the model repair the answer in another turn, or
// has ended the run if no repair or no turn is left.
func (s *State) isFaulty(b *GenerationSettled) bool {
	f, ok := readFormat(s.ResponseFormat())
	if !ok || f.Type != FormatSchema {
		return false
	}
	problem := f.problemOf(b)
	if problem == "" {
		return false
	}
	s.turnFaulty(problem)
	run, repairs := s.Run, RepairsDefault
	if f.Repairs != nil {
		repairs = *f.Repairs
	}
	switch {
	case int(run.Repairs) >= repairs:
		s.endRun(Ended{Lifecycle: Failed, Code: CodeInvalidAnswer, Detail: problem}, b)
	case int(run.Turns) >= run.Config.turnsMax():
		s.endRun(Ended{Lifecycle: Failed, Code: CodeInvalidAnswer, Detail: clip(problem, DetailBytesMax/2) + "; turns_max leaves no turn to repair it"}, b)
	default:
		run.Repairs++
		s.appendItem(Item{Role: RoleUser, Seq: s.Seq, Code: CodeInvalidAnswer, Detail: problem}, 0)
		s.startTurn()
	}
	return true
}
