package planner

import "github.com/refold/refold/codec"

// AnswerSchema is a compiled schema for a model's whole answers. Answers are
// checked as arguments are: by the same evaluator, within the same limits.
type AnswerSchema struct{ schema *schema }

// CompileAnswerSchema compiles a schema, or says what is wrong with it. It costs
// no more than an args_schema does. It does not read the schema's own $schema:
// programs write that of older drafts, and keywords that draft 2020-12 does not
// have allow everything.
func CompileAnswerSchema(raw codec.Raw) (compiled AnswerSchema, problem string) {
	return compileAnswerSchema(raw, new(registryRoom))
}

// compileAnswerSchema is CompileAnswerSchema; the schema's size counts into room.
func compileAnswerSchema(raw codec.Raw, room *registryRoom) (compiled AnswerSchema, problem string) {
	var members codec.Pairs
	if err := codec.Decode(raw, &members); err != nil {
		return AnswerSchema{}, "is a JSON object"
	}
	kept := make(codec.Pairs, 0, len(members))
	for _, m := range members {
		if m.Key != "$schema" {
			kept = append(kept, m)
		}
	}
	if len(kept) < len(members) {
		var err error
		if raw, err = codec.Marshal(kept); err != nil {
			return AnswerSchema{}, "is not in the canonical encoding"
		}
	}
	compiled.schema, problem = compileSchema(raw, room)
	return compiled, problem
}

// Check returns "" if an answer is one JSON value that fits the schema. Else it
// returns the failure with the least (instance path, keyword) in byte order, in
// at most DetailBytesMax bytes that are the same in every release.
func (a AnswerSchema) Check(answer []byte) (problem string) {
	if len(answer) > ArgumentsBytesMax {
		return "too large to be checked"
	}
	raw, err := codec.FromJSON(answer)
	if err != nil {
		return clip(unreadable(err), DetailBytesMax)
	}
	v, problem := readValue(raw, ArgumentsBytesMax)
	if problem == "" {
		problem, _ = a.schema.check(&v, CheckStepsMax)
	}
	return clip(problem, DetailBytesMax)
}
