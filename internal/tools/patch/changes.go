package patch

import "context"

// Change is the change of one path.
type Change struct {
	Path    string
	Existed bool   // there was a file
	Before  string // its content
	Exists  bool   // there is one afterwards
	After   string // its content
}

// Read returns the content of the file at path, or false if there is none.
// Changes returns its errors unchanged.
type Read func(path string) (content string, exists bool, err error)

// Changes applies the patch to the files that read returns, and returns one
// change for each path that ends up different, in the order of the patch. On an
// error there are no changes: it is an *[Error], one of read, or ctx's. A patch
// that takes more than [StepsMax] steps is an *[Error]. Paths are compared as
// text: the caller must make them canonical.
func (p *Patch) Changes(ctx context.Context, read Read) ([]Change, error) {
	o := &overlay{read: read, index: map[string]int{}, budget: &budget{ctx: ctx, left: StepsMax}}
	for i := range p.Sections {
		if err := o.apply(&p.Sections[i]); err != nil {
			return nil, err
		}
	}
	out := make([]Change, 0, len(o.files))
	for _, c := range o.files {
		if c.Existed != c.Exists || c.Before != c.After {
			out = append(out, *c)
		}
	}
	return out, nil
}

// overlay holds the files after the sections applied so far.
type overlay struct {
	read   Read
	files  []*Change
	index  map[string]int // of a path in files
	budget *budget        // of the whole patch
}

// look returns the file at path. It reads each file once.
func (o *overlay) look(path string) (*Change, error) {
	if i, ok := o.index[path]; ok {
		return o.files[i], nil
	}
	content, exists, err := o.read(path)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: path, Existed: exists, Before: content, Exists: exists, After: content}
	o.index[path] = len(o.files)
	o.files = append(o.files, c)
	return c, nil
}

func (o *overlay) apply(s *Section) error {
	c, err := o.look(s.Path)
	if err != nil {
		return err
	}
	if s.Kind == Add {
		if c.Exists {
			return &Error{Path: s.Path, Line: s.Line, Detail: "the file exists; update it, or delete it first"}
		}
		c.Exists, c.After = true, s.Content
		return nil
	}
	if !c.Exists {
		return &Error{Path: s.Path, Line: s.Line, Detail: "no such file to " + string(s.Kind) + "; check the path, or add the file"}
	}
	if s.Kind == Delete {
		c.Exists, c.After = false, ""
		return nil
	}
	after, err := update(o.budget, s, c.After)
	if err != nil {
		return err
	}
	if s.MoveTo == "" || s.MoveTo == s.Path {
		c.After = after
		return nil
	}
	to, err := o.look(s.MoveTo)
	if err != nil {
		return err
	}
	if to.Exists {
		return &Error{Path: s.Path, Line: s.Line, Detail: "the file to move to, " + s.MoveTo + ", exists; delete it first or choose another path"}
	}
	to.Exists, to.After = true, after
	c.Exists, c.After = false, ""
	return nil
}
