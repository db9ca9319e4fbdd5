package session

import (
	"strconv"

	"github.com/refold/refold/actors/sentence"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// ResponseFormat is the required form of a model's answers in a run. Configs and
// effects hold it unchanged. The provider is asked for the form. If it has a schema,
// the fold checks each answer that would end the run.
//
//wire:rule {"if": {"properties": {"type": {"const": "json_schema"}}}, "then": {"required": ["schema"]}, "else": {"properties": {"name": false, "repairs": false, "schema": false, "strict": {"const": false}}}}
type ResponseFormat struct {
	// Name of the schema, for the model.
	Name string `msgpack:"name,omitempty" pattern:"^[A-Za-z0-9_-]{1,64}$"`
	// With type json_schema: how many faulty answers in a row the model may repair; 1 if
	// absent.
	Repairs *int `msgpack:"repairs,omitempty" lim:"0..RepairsMax"`
	// With type json_schema: a JSON Schema. Each provider is sent a form of it that its API
	// accepts.
	Schema codec.Raw `msgpack:"schema,omitempty" lim:"object"`
	// Whether the provider is to hold the model to the schema, if it can.
	Strict bool `msgpack:"strict,omitempty"`
	// text is the default.
	Type string `msgpack:"type" lim:"enum=Format"`
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
func (f *ResponseFormat) problemOf(b *GenerationSettled) (problem sentence.Text) {
	if b.isSilent() {
		problem = sentence.Say(sentence.AnswerEmpty)
	} else {
		problem = schemaProblem(f.Schema, b.Text)
	}
	if reason := b.oddFinish(); problem != "" && reason != "" {
		problem = problem.And(sentence.AnswerEnded, sentence.Quoted(sentence.Clip(reason, CodeBytesMax)))
	}
	return problem
}

// schemaProblem returns what is wrong with an answer that must be one JSON text of a
// schema; "" if nothing is.
func schemaProblem(schema codec.Raw, output *Content) sentence.Text {
	switch {
	case output.Blob != nil:
		return sentence.Say(sentence.AnswerBlob, strconv.Itoa(TextBytesMax))
	case len(output.Parts) > 0:
		return sentence.Say(sentence.AnswerParts)
	}
	compiled, fault := planner.CompileAnswerSchema(schema)
	if fault == "" {
		fault = compiled.Check([]byte(output.Text))
	}
	return sentence.Own(fault)
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
	s.turnFaulty(problem.String())
	run, repairs := s.Run, RepairsDefault
	if f.Repairs != nil {
		repairs = *f.Repairs
	}
	switch {
	case int(run.Repairs) >= repairs:
		s.endRun(Ended{Lifecycle: Failed, Code: CodeInvalidAnswer, Detail: problem}, b)
	case int(run.Turns) >= run.Config.turnsMax():
		s.endRun(Ended{Lifecycle: Failed, Code: CodeInvalidAnswer, Detail: problem.And(sentence.NoTurnToRepair)}, b)
	default:
		run.Repairs++
		s.appendItem(Item{Role: RoleUser, Seq: s.Seq, Code: CodeInvalidAnswer, Detail: problem}, 0)
		s.startTurn()
	}
	return true
}
