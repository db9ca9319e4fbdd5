package space_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/space"
)

func TestTemplates(t *testing.T) {
	t.Parallel()
	values := map[string]string{"session": "s1", "run": "r2", "space.version": "1.4.2", "fact.region": "{{run}}", "fact.a b": "x"}
	for _, c := range []struct{ text, want, uses string }{
		{"", "", ""},
		{"no braces, { one } and }} none", "no braces, { one } and }} none", ""},
		{"{{session}}/{{run}}/{{session}}", "s1/r2/s1", "run session session"},
		{"{{fact.region}}", "{{run}}", "fact.region"}, // a value is not expanded again
		{"{{fact.gone}}.", ".", "fact.gone"},
		{"{{fact.a b}}{{space.version}}", "x1.4.2", "fact.a b space.version"},
		{"{{{{ and {{{{session}}", "{{ and {{session}}", ""},
	} {
		uses, problems := space.Vars(c.text)
		var names []string
		for _, u := range uses {
			names = append(names, slices.Repeat([]string{u.Name}, u.Times)...)
		}
		if got := strings.Join(names, " "); problems != nil || got != c.uses {
			t.Errorf("%q uses %q, %v, want %q", c.text, got, problems, c.uses)
		}
		value := func(name string) string { return values[name] }
		if got, ok := space.Expand(c.text, value, len(c.want)); !ok || got != c.want {
			t.Errorf("%q becomes %q, %v, want %q", c.text, got, ok, c.want)
		}
		if c.want != "" {
			if got, ok := space.Expand(c.text, value, len(c.want)-1); ok {
				t.Errorf("%q becomes %q, which is over its limit", c.text, got)
			}
		}
	}
}

func TestTemplatesReportEveryUnknownVariable(t *testing.T) {
	t.Parallel()
	text := "{{session}}\n{{facts.region}} {{ session }}\n\n{{fact.}}{{{x}}\n{{run"
	_, problems := space.Vars(text)
	var lines []int
	for _, p := range problems {
		if p.Code != space.UnknownVariable {
			t.Errorf("got %v", p)
		}
		lines = append(lines, p.Line)
	}
	if want := []int{2, 2, 4, 4, 5}; !slices.Equal(lines, want) {
		t.Errorf("got %v, want problems in lines %v", problems, want)
	}
	if _, ok := space.Expand(text, func(string) string { return "" }, 1<<20); ok {
		t.Error("a text that is no template was expanded")
	}
}

func FuzzVars(f *testing.F) {
	f.Add("{{session}} {{fact.x}}\n{{{{ {{y}} {{")
	f.Fuzz(func(t *testing.T, text string) {
		uses, problems := space.Vars(text)
		_, ok := space.Expand(text, func(string) string { return "" }, len(text))
		if ok != (len(problems) == 0) {
			t.Fatalf("%q has problems %v, and Expand says %v", text, problems, ok)
		}
		// Values are not expanded again, and count in the limit.
		times := 0
		for _, u := range uses {
			times += u.Times
		}
		value := func(string) string { return "{{session}}" }
		most := len(text) + times*len("{{session}}")
		if got, ok := space.Expand(text, value, most); ok && strings.Count(got, "{{session}}") < times || len(got) > most || !ok && len(problems) == 0 {
			t.Fatalf("%q becomes %q, %v", text, got, ok)
		}
		part := space.Part{Vars: space.VarsOf(uses)}
		if got, ok := part.Uses(); ok != true && len(text) <= space.TemplateBytesMax || ok && !slices.Equal(got, uses) {
			t.Fatalf("%q uses %v, which came back as %v", text, uses, got)
		}
	})
}
