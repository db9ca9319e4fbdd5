package schema

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/refold/refold/bridge/executor"
)

// What the APIs accept as the schema of an answer, where they hold the model to it:
// objects that are closed, and few keywords. Keys are not renamed: the answer's text
// has them. docs/models.md has the sources.
var (
	closedKeywords = map[string][]string{
		"array": {"items"}, "object": {"additionalProperties", "properties", "required"},
		"string": {"enum", "format"}, "number": {"enum"}, "integer": {"enum"}, "boolean": {"enum"},
	}
	openaiClosed = &Dialect{
		Name: "openai", plain: true, members: true, closed: true, depthMax: 9, isKey: anyText, isName: anyText, keywords: closedKeywords,
	}
	anthropicClosed = &Dialect{
		Name: "anthropic", plain: true, members: true, closed: true, optionalMax: 24, unionsMax: 16,
		depthMax: 9, isKey: anyText, isName: anyText, keywords: closedKeywords,
		formats: []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"},
	}
)

// answers returns the dialect for the schema of an answer: that which holds the model
// to it, nil if there is none, and that which only tells the model, nil if the API has
// no such mode.
func (d *Dialect) answers(strict bool) (holds, tells *Dialect) {
	open := *d
	open.isKey = anyText
	switch {
	case d.Name == Anthropic.Name:
		return anthropicClosed, nil
	case strict && d.Name != Gemini.Name:
		return openaiClosed, &open
	}
	return nil, &open
}

// Form is what an API is sent of a response_format.
type Form struct {
	Format *executor.Format // nil: Text instead
	Text   string           // for the system text
	Why    string           // the form is looser than what was asked for, for people; "": it is not
}

// Answer returns what the API is sent of a response_format with a schema. If it can't
// hold the model to the schema, it is asked to follow it; the session checks each
// answer against the original.
func (d *Dialect) Answer(f *executor.Format) Form {
	holds, tells := d.answers(f.Strict)
	why := ""
	if holds != nil {
		normal, problem := holds.closedForm(f.Schema)
		if problem == "" {
			return Form{Format: &executor.Format{Name: f.Name, Schema: normal, Strict: f.Strict}}
		}
		why = fmt.Sprintf("%s can't hold the model to it: %s", d.Name, problem)
	}
	if tells != nil {
		normal, _, err := tells.Normalize(f.Schema)
		if err == nil {
			return Form{Format: &executor.Format{Name: f.Name, Schema: normal}, Why: why}
		}
		why = fmt.Sprintf("%s can't be told of it: it allows no object", d.Name)
	}
	return Form{Text: "Answer with nothing but JSON that is valid by this JSON Schema:\n" + string(f.Schema), Why: why}
}

// closedForm returns the form in which an API holds the model to a schema, or why
// there is none.
func (d *Dialect) closedForm(schema json.RawMessage) (normal json.RawMessage, problem string) {
	root, n, err := d.normalize(schema)
	switch {
	case err != nil:
		return nil, "it allows no object"
	case n.open:
		return nil, "an object of it has any properties, or a value of it may be anything"
	}
	optional, unions := counts(root)
	switch {
	case optional > d.optionalMax && d.optionalMax == 0:
		return nil, "a property of it is not required"
	case optional > d.optionalMax:
		return nil, fmt.Sprintf("%d properties of it are not required, at most %d may be", optional, d.optionalMax)
	case d.unionsMax > 0 && unions > d.unionsMax:
		return nil, fmt.Sprintf("%d values of it have alternatives, at most %d may", unions, d.unionsMax)
	}
	return encode(root), ""
}

// counts counts the properties that are not required, and the alternatives.
func counts(s object) (optional, unions int) {
	named, _ := s["properties"].(object)
	optional = len(named) - len(requiredOf(s))
	if s["anyOf"] != nil {
		unions++
	}
	each(maps.Clone(s), func(_ string, sub any) any {
		if sub, ok := sub.(object); ok {
			o, u := counts(sub)
			optional, unions = optional+o, unions+u
		}
		return sub
	})
	return optional, unions
}

// formed returns a request with the response_format that the API accepts.
func (d *Dialect) formed(req executor.Request) executor.Request {
	if req.Format == nil || req.Format.Schema == nil {
		return req
	}
	form := d.Answer(req.Format)
	if req.Format = form.Format; form.Text != "" {
		req.System = joined(req.System, form.Text)
	}
	return req
}

func joined(a, b string) string {
	if a == "" {
		return b
	}
	return a + "\n\n" + b
}
