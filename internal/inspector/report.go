package inspector

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"regexp"
	"slices"
	"strings"
)

//go:embed report.html
var reportText string

//go:embed boot.js
var boot string

var report = template.Must(template.New("report").Parse(reportText))

// reportStyles are the styles of an exported file.
var reportStyles = []string{"base.css", "parts.css", "session.css"}

// source is how the content of an element of a page is named in a policy.
func source(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// WriteReport writes a file that shows a session without a server. answers writes what a
// server would answer, compressed with gzip: a line for each path, with a tab before the
// answer. A browser that opens the file sends nothing: its policy allows no request. With
// a program, the policy of the page allows to compile WebAssembly, since the worker of a
// page from a file has the page's policy.
func WriteReport(out io.Writer, title string, p *Program, answers func(io.Writer) error) error {
	modules, err := reportModules()
	if err != nil {
		return err
	}
	style, compile, hash := "", "", ""
	for _, name := range reportStyles {
		text, _, _ := Asset(name)
		style += string(text)
	}
	if p != nil {
		compile, hash = " 'wasm-unsafe-eval'", p.Hash
	}
	policy := "default-src 'none'; script-src " + source(boot) + " blob:" + compile + "; worker-src blob:; style-src " + source(style) +
		"; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types refold-worker"
	err = report.Execute(out, map[string]any{
		"Title": title, "Program": hash, "Policy": policy, "Style": template.CSS(style), //nolint:gosec // it is our own
	})
	if err != nil {
		return err
	}
	if err := element(out, "modules", "application/json", func(w io.Writer) error { return json.NewEncoder(w).Encode(modules) }); err != nil {
		return err
	}
	if err := element(out, "answers", "application/gzip", func(w io.Writer) error { return encoded(w, answers) }); err != nil {
		return err
	}
	if p != nil {
		err := element(out, "program", "application/gzip", func(w io.Writer) error {
			return encoded(w, func(w io.Writer) error {
				_, err := w.Write(p.Compressed)
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "<script>%s</script>\n</body>\n</html>\n", boot)
	return err
}

// element writes data for the page's script: text without "<".
func element(out io.Writer, id, kind string, content func(io.Writer) error) error {
	if _, err := fmt.Fprintf(out, "<script id=%q type=%q>", id, kind); err != nil {
		return err
	}
	if err := content(out); err != nil {
		return err
	}
	_, err := io.WriteString(out, "</script>\n")
	return err
}

// encoded writes bytes as base64.
func encoded(out io.Writer, content func(io.Writer) error) error {
	w := base64.NewEncoder(base64.StdEncoding, out)
	if err := content(w); err != nil {
		return err
	}
	return w.Close()
}

// What a module imports before it runs, and later.
var (
	imported = regexp.MustCompile(`from '\./([a-z_]+\.js)'`)
	later    = regexp.MustCompile(`import\('\./([a-z_]+\.js)'\)`)
)

// reportModules returns the names and texts of the modules of an exported file, each after
// those that it begins with. What imports api.js gets offline.js.
func reportModules() (all [][2]string, err error) {
	done := map[string]bool{}
	var add func(name string, path []string) error
	add = func(name string, path []string) error {
		if slices.Contains(path, name) {
			return fmt.Errorf("the modules of the pages import one another in a circle: %s", strings.Join(append(path, name), ", "))
		}
		if done[name] {
			return nil
		}
		file := name
		if name == "api.js" {
			file = "offline.js"
		}
		text, _, ok := Asset(file)
		if !ok {
			return fmt.Errorf("%s imports %s, which is not there", strings.Join(path, ", "), name)
		}
		for _, found := range imported.FindAllStringSubmatch(string(text), -1) {
			if err := add(found[1], append(path, name)); err != nil {
				return err
			}
		}
		done[name] = true
		all = append(all, [2]string{name, string(text)})
		return nil
	}
	for roots := []string{"report.js", WorkerName}; len(roots) > 0; roots = roots[1:] {
		from := len(all)
		if err := add(roots[0], nil); err != nil {
			return nil, err
		}
		for _, m := range all[from:] {
			for _, found := range later.FindAllStringSubmatch(m[1], -1) {
				roots = append(roots, found[1])
			}
		}
	}
	return all, nil
}
