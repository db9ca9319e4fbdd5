package space_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/space"
)

// whole is a workspace that has everything that one may have.
const whole = `{"v":1,"kind":"workspace","space":"support","version":"1.4.2","description":"d","display_name":"n","category":"c",
"files":[{"path":"a.md","ref":"REF","size":5,"media_type":"text/markdown"},{"path":"b.png","ref":"REF","size":7,"media_type":"image/png"},{"path":"s/SKILL.md","ref":"REF","size":9,"media_type":"text/markdown"},{"path":"s/x.sh","ref":"REF","size":1,"media_type":"text/plain"}],
"prompts":[{"prompt_pack":"default","parts":[{"file":0,"vars":{"fact.region":2,"session":1}},{"context":"g"},{"skills":true},{"role":"user","file":0},{"role":"assistant","file":0}],"params":{"temperature":0},"response_format":{"type":"text"}}],
"catalogs":[{"tool_catalog":"default","tools":["crm.lookup",{"tool":"shell","word":0}],"tool_choice":"auto"},{"tool_catalog":"empty","tools":[]}],
"words":[{"tool":"shell","description":"other words","args_schema":{"type":"object"}}],
"context":[{"group":"g","files":[0,1]}],
"skills":[{"skill":"refunds","description":"How to refund.","body":2,"files":[3],"allowed_tools":[],"hidden":true,"needs":["bin:gh|hub","secret:KEY?"],"info":{"license":"MIT"}}],
"defaults":{"prompt_pack":"default","tool_catalog":"default"}}`

// manifest returns the canonical bytes of a manifest in JSON.
func manifest(t testing.TB, text string) []byte {
	t.Helper()
	ref := codec.RefOf([]byte("content")).String()
	data, err := codec.FromJSON([]byte(strings.ReplaceAll(text, "REF", ref)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseReturnsWhatBytesWrites(t *testing.T) {
	t.Parallel()
	data := manifest(t, whole)
	m, problems := space.Parse(data)
	if problems != nil {
		t.Fatalf("got %v, want no problem", problems)
	}
	if string(m.Bytes()) != string(data) || m.Hash() != codec.Sum(data) {
		t.Error("Bytes are not what was parsed")
	}
	entries, ok := m.Catalog("default").Entries()
	if !ok || len(entries) != 2 || entries[0].Tool != "crm.lookup" || entries[0].Word != nil || entries[1].Tool != "shell" || *entries[1].Word != 0 {
		t.Errorf("got entries %v, %v", entries, ok)
	}
	for i, e := range entries {
		if got, want := string(e.Raw()), string(m.Catalog("default").Tools[i]); got != want {
			t.Errorf("entry %d is written as %x, want %x", i, got, want)
		}
	}
	uses, ok := m.Prompt("default").Parts[0].Uses()
	if want := []space.Use{{Name: "fact.region", Times: 2}, {Name: "session", Times: 1}}; !ok || !slices.Equal(uses, want) {
		t.Errorf("got uses %v, %v, want %v", uses, ok, want)
	}
	if m.Skills[0].AllowedTools == nil {
		t.Error("an empty allowed_tools came back as an absent one: it allows nothing, and would now allow everything")
	}
	size := m.SizeOf(m.Prompt("default"))
	if size.Parts != 6 || size.Images != 1 || size.ImageBytes != 7 || !slices.Equal(size.Vars, []string{"fact.region", "session"}) {
		t.Errorf("got size %+v", size)
	}
	if want := int64(5+5+5+6) + 2*256 + 64 + (16 << 10); size.Bytes < want || size.Bytes > want+256 {
		t.Errorf("got %d bytes, want %d and what stands between", size.Bytes, want)
	}
}

func TestParseReportsEveryProblem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, to, want string }{
		{`"v":1`, `"v":2`, "v: wrong_type"},
		{`"kind":"workspace"`, `"kind":"plugin"`, "kind: wrong_type"},
		{`"space":"support"`, `"space":"refold"`, "space: bad_name"},
		{`"space":"support"`, `"space":"a.b"`, "space: bad_name"},
		{`"1.4.2"`, `"1.4"`, "version: bad_name"},
		{`"path":"a.md"`, `"path":"../a.md"`, "files[0].path: path_escapes"},
		{`"path":"a.md"`, `"path":"/a.md"`, "files[0].path: path_escapes"},
		{`"path":"a.md"`, `"path":"a//a.md"`, "files[0].path: path_escapes"},
		{`"path":"a.md"`, `"path":"z.md"`, "files[1].path: wrong_type"},
		{`"path":"b.png"`, `"path":"a.md"`, "files[1].path: duplicate"},
		{`"size":5`, `"size":4194305`, "files[0].size: too_large"},
		{`"size":5`, `"size":131073`, "prompts[0].parts[0].file: too_large"},
		{`"size":9`, `"size":131073`, "skills[0].body: too_large"},
		{`"files":[0,1]`, `"files":[1,0]`, "context[0].files[1]: wrong_type"},
		{`"files":[0,1]`, `"files":[0,9]`, "context[0].files[1]: missing_file"},
		{`"files":[0,1]`, `"files":[0]`, "files[1]: wrong_type"},
		{`{"context":"g"}`, `{"context":"h"}`, "prompts[0].parts[1].context: missing_field"},
		{`{"skills":true}`, `{"skills":true,"context":"g"}`, "prompts[0].parts[2]: unknown_part"},
		{`{"skills":true}`, `{}`, "prompts[0].parts[2]: unknown_part"},
		{`"fact.region":2`, `"facts.region":2`, "prompts[0].parts[0].vars: unknown_variable"},
		{`"fact.region":2`, `"fact.region":0`, "prompts[0].parts[0].vars: unknown_variable"},
		{`,{"role":"assistant","file":0}`, ``, "prompts[0].parts: wrong_type"},
		{`{"role":"user","file":0}`, `{"role":"assistant","file":0}`, "prompts[0].parts[4].role: wrong_type"},
		{`{"role":"user","file":0}`, `{"role":"system","file":0}`, "prompts[0].parts[3].role: unknown_part"},
		{`"params":{"temperature":0}`, `"params":[]`, "prompts[0].params: wrong_type"},
		{`"prompt_pack":"default","parts"`, `"prompt_pack":"none","parts"`, "prompts[0].prompt_pack: bad_name"},
		{`"crm.lookup"`, `"shell"`, "catalogs[0].tools[1]: duplicate"},
		{`"crm.lookup"`, `17`, "catalogs[0].tools[0]: wrong_type"},
		{`"crm.lookup"`, `"crm lookup"`, "catalogs[0].tools[0]: bad_name"},
		{`"word":0`, `"word":1`, "catalogs[0].tools[1].word: wrong_type"},
		{`{"tool":"shell","word":0}`, `"shell"`, "words[0]: wrong_type"},
		{`"args_schema":{"type":"object"}`, `"args_schema":17`, "words[0].args_schema: bad_schema"},
		{`"group":"g"`, `"group":"none"`, "context[0].group: bad_name"},
		{`"skill":"refunds"`, `"skill":"Refunds"`, "skills[0].skill: bad_name"},
		{`"bin:gh|hub"`, `"binary:gh"`, "skills[0].needs[0]: bad_name"},
		{`"license":"MIT"`, `"license":7`, "skills[0].info: wrong_type"},
		{`"defaults":{"prompt_pack":"default"`, `"defaults":{"prompt_pack":"other"`, "defaults.prompt_pack: missing_field"},
		{`"defaults"`, `"tools":[{"tool_id":"t.x","tool_name":"x","args_schema":{},"executor":{"kind":"effect","target":"t"}}],"defaults"`, "tools: binding_in_workspace"},
		{`"defaults"`, `"hooks":[],"defaults"`, "unknown_field: codec: the unknown field \"hooks\""},
		{`"kind":"workspace"`, `"kind":"pack"`, "not_granted"},
		{`"description":"d"`, `"description":""`, "wrong_type"},
	} {
		text := strings.Replace(whole, c.from, c.to, 1)
		if text == whole {
			t.Errorf("there is no %s to replace", c.from)
		}
		m, problems := space.Parse(manifest(t, text))
		if m != nil || !slices.ContainsFunc(problems, func(p space.Problem) bool { return strings.Contains(p.String(), c.want) }) {
			t.Errorf("%s for %s: got %v, want %s", c.to, c.from, problems, c.want)
		}
		if !slices.IsSortedFunc(problems, space.Compare) {
			t.Errorf("%s for %s: the problems are not sorted", c.to, c.from)
		}
		for _, p := range problems {
			if !p.Code.Known() || len(p.Detail) > space.DetailBytesMax || p.Detail == "" {
				t.Errorf("%s for %s: %+v", c.to, c.from, p)
			}
		}
	}
	both := strings.Replace(strings.Replace(whole, `"v":1`, `"v":2`, 1), `"skill":"refunds"`, `"skill":"-"`, 1)
	if _, problems := space.Parse(manifest(t, both)); len(problems) != 2 {
		t.Errorf("got %v, want both problems", problems)
	}
}

func TestParseHoldsLimits(t *testing.T) {
	t.Parallel()
	if _, problems := space.Parse(make([]byte, space.ManifestBytesMax+1)); len(problems) != 1 || problems[0].Code != space.TooLarge {
		t.Errorf("a manifest over its limit: got %v", problems)
	}
	var files, indices []string
	for i := range space.FilesMax + 1 {
		files = append(files, fmt.Sprintf(`{"path":"%04d","ref":"REF","size":65536,"media_type":"text/plain"}`, i))
		indices = append(indices, fmt.Sprint(i))
	}
	text := func(n int) string {
		return `{"v":1,"kind":"workspace","space":"s","files":[` + strings.Join(files[:n], ",") + `],"context":[{"group":"g","files":[` + strings.Join(indices[:n], ",") + `]}]}`
	}
	if _, problems := space.Parse(manifest(t, text(space.FilesMax))); problems != nil {
		t.Errorf("as many files as may be, 64 MiB: got %v", problems)
	}
	_, problems := space.Parse(manifest(t, text(space.FilesMax+1)))
	got := fmt.Sprint(problems)
	if !strings.Contains(got, "files: too_many") || !strings.Contains(got, "files: too_large") {
		t.Errorf("one file more: got %v", got)
	}
	shown := strings.Replace(text(15), `"context":`, `"prompts":[{"prompt_pack":"p","parts":[{"context":"g"}]}],"context":`, 1)
	if _, problems := space.Parse(manifest(t, shown)); len(problems) != 1 || problems[0].Code != space.TooLarge {
		t.Errorf("a prompt of 960 KiB, 64 KiB of system and what is around documents: got %v, want too_large", problems)
	}
	shown = strings.Replace(text(14), `"context":`, `"prompts":[{"prompt_pack":"p","parts":[{"context":"g"}]}],"context":`, 1)
	if _, problems := space.Parse(manifest(t, shown)); problems != nil {
		t.Errorf("a prompt of 896 KiB: got %v", problems)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(manifest(f, whole))
	f.Add(manifest(f, strings.Replace(whole, `"files":[0,1]`, `"files":[9]`, 1)))
	f.Add(manifest(f, `{"v":1,"kind":"pack","space":"p","version":"1.0.0-rc.1","tools":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, problems := space.Parse(data)
		if (m == nil) != (len(problems) > 0) {
			t.Fatalf("got %v and %v: one of them is there", m, problems)
		}
		for _, p := range problems {
			if !p.Code.Known() || p.Detail == "" || len(p.Detail) > space.DetailBytesMax || len(p.Path) > space.ProblemPathBytesMax {
				t.Fatalf("got %+v", p)
			}
		}
		if _, again := space.Parse(data); !slices.Equal(problems, again) {
			t.Fatalf("parsed twice: %v, then %v", problems, again)
		}
		if m == nil {
			return
		}
		if string(m.Bytes()) != string(data) || m.Hash() != codec.Sum(data) {
			t.Fatalf("%x is written as %x", data, m.Bytes())
		}
		for i := range m.Prompts {
			_ = m.SizeOf(&m.Prompts[i])
			for j := range m.Prompts[i].Parts {
				if _, ok := m.Prompts[i].Parts[j].Uses(); !ok {
					t.Fatalf("the variables of prompts[%d].parts[%d] can't be read", i, j)
				}
			}
		}
		for i := range m.Catalogs {
			if _, ok := m.Catalogs[i].Entries(); !ok {
				t.Fatalf("the entries of catalogs[%d] can't be read", i)
			}
		}
	})
}
