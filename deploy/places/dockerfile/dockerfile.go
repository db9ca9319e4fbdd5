// Package dockerfile reads what deploy/Dockerfile says of Refold's images, without an
// engine: the programs, the directories and their owner, the user, the working directory
// and the entrypoint of each stage. It knows the instructions that this file uses, and
// refuses others.
package dockerfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Stage is a stage, with what it has of the stage that it begins with.
type Stage struct {
	Base       string // the image of a registry
	User       string // UID:GID
	Workdir    string // "" is /
	Entrypoint []string
	Programs   map[string]string // by path, the name of a program that the stage build makes
	Dirs       []Dir             // in the order in which they are made
}

// Dir is a directory with an owner.
type Dir struct {
	Path     string
	UID, GID int
	Mode     os.FileMode
}

var (
	from    = regexp.MustCompile(`^(\S+) AS (\S+)$`)
	copied  = regexp.MustCompile(`^--from=build /out/(\S+) (\S+)/$`)
	install = regexp.MustCompile(`^install -d -o (\d+) -g (\d+) -m ([0-7]+) (.+)$`)
)

// buildStage compiles the programs: deploy/release.sh does that without an engine.
const buildStage = "build"

// Read returns the stages of a file by name, without the one that compiles.
func Read(file string) (map[string]*Stage, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	stages, now := map[string]*Stage{}, ""
	for _, line := range instructions(string(text)) {
		word, rest, _ := strings.Cut(line, " ")
		if word == "FROM" {
			m := from.FindStringSubmatch(rest)
			if m == nil {
				return nil, fmt.Errorf("%s: %q: give the stage a name with AS", file, line)
			}
			now, stages[m[2]] = m[2], derive(stages[m[1]], m[1])
			continue
		}
		if now == buildStage {
			continue
		}
		if err := stages[now].add(word, rest); err != nil {
			return nil, fmt.Errorf("%s: stage %s: %q: %w", file, now, line, err)
		}
	}
	delete(stages, buildStage)
	return stages, nil
}

// instructions returns the lines without comments, continued lines joined.
func instructions(text string) (all []string) {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			kept = append(kept, line)
		}
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(strings.Join(kept, "\n"), "\\\n", ""), "\n") {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return all
}

func derive(parent *Stage, name string) *Stage {
	if parent == nil {
		return &Stage{Base: name, Programs: map[string]string{}}
	}
	s := *parent
	s.Programs, s.Dirs = maps.Clone(s.Programs), slices.Clone(s.Dirs)
	return &s
}

// add carries out an instruction.
func (s *Stage) add(word, rest string) error {
	switch word {
	case "USER":
		s.User = rest
	case "WORKDIR":
		s.Workdir = rest
	case "ENTRYPOINT":
		return json.Unmarshal([]byte(rest), &s.Entrypoint)
	case "COPY":
		m := copied.FindStringSubmatch(rest)
		if m == nil {
			return fmt.Errorf("only programs of /out are copied, into a directory")
		}
		s.Programs[path.Join(m[2], m[1])] = m[1]
	case "RUN":
		return s.run(rest)
	default:
		return fmt.Errorf("unknown instruction: teach it to package dockerfile")
	}
	return nil
}

// run makes directories. Packages and users of Alpine are of no use to static programs.
func (s *Stage) run(commands string) error {
	for command := range strings.SplitSeq(commands, " && ") {
		first, _, _ := strings.Cut(command, " ")
		if slices.Contains([]string{"apk", "addgroup", "adduser"}, first) {
			continue
		}
		m := install.FindStringSubmatch(command)
		if m == nil {
			return fmt.Errorf("unknown command %q: teach it to package dockerfile", command)
		}
		uid, _ := strconv.Atoi(m[1])
		gid, _ := strconv.Atoi(m[2])
		mode, _ := strconv.ParseUint(m[3], 8, 32)
		for _, dir := range strings.Fields(m[4]) {
			s.Dirs = append(s.Dirs, Dir{Path: dir, UID: uid, GID: gid, Mode: os.FileMode(mode)})
		}
	}
	return nil
}
