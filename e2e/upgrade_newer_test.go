//go:build unix

package e2e_test

// A session-actor and bridges of a later release, which asks for turns of another version
// and for calls with a new field, and knows newer rules, beside those of an earlier one:
// of the commit that testdata/upgrade-from names, and of this checkout.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/subjects"
)

// later is a system whose session-actor is of the later release, and its world.
type later struct {
	*system
	world *world
}

// startLater starts one.
func startLater(t *testing.T) *later {
	t.Helper()
	for _, build := range []func() error{buildPeer, buildOld, buildNewer} {
		if err := build(); err != nil {
			t.Fatal(err)
		}
	}
	s := &system{t: t, url: startNATS(t)}
	var err error
	if s.names, err = subjects.New(""); err != nil {
		t.Fatal(err)
	}
	s.actor = startDaemon(t, of(newerBuild, "session-actor"), "--nats", s.url, "--install", writeFile(t, "install.json", jsonText(t, fakeRecord())))
	s.nc = connect(t, s.url)
	recordStored(t, s.nc)
	return &later{s, startWorld(t)}
}

// model starts a bridge of the model, of a build. The world knows it by that.
func (l *later) model(build string) *daemon {
	l.t.Helper()
	return startDaemon(l.t, of(build, "bridge"), "--nats", l.url, "--model", "fake=openai-chat:"+l.world.url+"/"+build+"/v1")
}

// tools starts a bridge of tools likewise.
func (l *later) tools(build string) *daemon {
	l.t.Helper()
	return startDaemon(l.t, of(build, "peer"), "tools", l.url, build, l.world.url+"/"+build+"/call")
}

// TestUpgradeNewerEffects: a bridge gives back what a later release asks for, and says
// so. A bridge of that release carries it out, once.
func TestUpgradeNewerEffects(t *testing.T) {
	t.Parallel()
	for _, build := range []string{oldBuild, thisBuild} {
		t.Run(build, func(t *testing.T) {
			t.Parallel()
			l := startLater(t)
			model, tools := l.model(build), l.tools(build)
			l.run(session.DoorIn, "s1", "run 1 of s1", nil)
			l.givenBack(model, "llm", "r1t1", build)
			l.model(newerBuild)
			model.end(syscall.SIGTERM).within(t, time.Minute)
			l.givenBack(tools, "tool", "r1t1c0", build)
			l.tools(newerBuild)
			tools.end(syscall.SIGTERM).within(t, time.Minute)
			l.wantEnd("s1", 1, session.Completed, "")
			if n := l.world.deeds(build); n != 0 {
				t.Errorf("the bridges of the %s build did %d turns and calls, want none", build, n)
			}
			if got, want := l.world.deeds(newerBuild), len(expected(1)); got != want {
				t.Errorf("those of the later release did %d turns and calls, want %d", got, want)
			}
			l.once()
		})
	}
}

// once checks that everything was done once, and that the later release folds it again.
func (l *later) once() {
	l.t.Helper()
	if all := l.world.others(); len(all) > 0 {
		l.t.Errorf("not once: %q", all)
	}
	out, errOut, status := run(l.t, time.Minute, nil, of(newerBuild, "refold"), "--nats", l.url, "verify", "--all")
	if status != 0 {
		l.t.Errorf("verify --all: status %d\n%s%s", status, out, errOut)
	}
}

// givenBack waits until a bridge says that it gave an effect of s1 back, and the view that
// the effect is open. It shows that the target is served, and why nothing happens.
func (l *later) givenBack(bridge *daemon, class, effect, build string) {
	l.t.Helper()
	until(l.t, time.Minute, "the bridge gives "+effect+" back", func() bool {
		return slices.ContainsFunc(strings.Split(bridge.out.String(), "\n"), func(line string) bool {
			return strings.Contains(line, "newer_effect_given_back") && strings.Contains(line, ".s1."+effect+" ")
		})
	})
	v := l.view("s1", effect+" is open", func(v session.View) bool {
		open := slices.ContainsFunc(v.Open, func(e session.ViewEffect) bool { return e.Effect == effect })
		return open && (build == oldBuild || len(v.Troubles) > 0)
	})
	if len(v.Unserved) != 0 {
		l.t.Errorf("unserved: %q, want none", v.Unserved)
	}
	for _, trouble := range v.Troubles {
		if trouble.Code != session.TroubleNewer || !strings.HasPrefix(trouble.Target, class+"/") || !slices.Contains(trouble.Effects, effect) {
			l.t.Errorf("the view shows %+v, want %s of %s", trouble, session.TroubleNewer, effect)
		}
	}
}

// TestUpgradeNewerRules: a session-actor that meets rules of a later release ends and says
// so. The sessions that follow them go on at another one, and so do all others.
func TestUpgradeNewerRules(t *testing.T) {
	t.Parallel()
	for _, build := range []string{oldBuild, thisBuild} {
		t.Run(build, func(t *testing.T) {
			t.Parallel()
			l := startLater(t)
			l.model(newerBuild)
			l.tools(newerBuild)
			l.run(session.DoorIn, "s0", "run 1 of s0", nil) // it follows the old rules, for life
			l.wantEnd("s0", 1, session.Completed, "")
			record := fakeRecord()
			record["rules"] = 2
			if out, errOut, status := run(t, time.Minute, []byte(jsonText(t, record)), of(newerBuild, "refold"), "--nats", l.url, "install", "-"); status != 0 {
				t.Fatalf("install: status %d\n%s%s", status, out, errOut)
			}
			sids, held := l.heldSessions()
			older := startDaemon(t, of(build, "session-actor"), "--nats", l.url)
			ended := older.ending()
			until(t, time.Minute, "the session-actor has its share of the lanes, or has ended", func() bool {
				_, hosts := shareOf(older)
				return hosts == 2 || len(ended.status) > 0
			})
			for _, one := range held {
				close(one.released)
			}
			select {
			case err := <-ended.status:
				older.cmd = nil
				if err == nil || !strings.Contains(older.out.String(), "rules 2, this release knows 1 to 1: upgrade it") {
					t.Errorf("the %s session-actor ends: %v, and says\n%s\nwant status 1, and which rules it does not know", build, err, tail(older.out.String(), 1000))
				}
			case <-time.After(time.Minute):
				t.Errorf("the %s session-actor does not end within a minute, though it meets rules that it does not know", build)
			}
			for _, sid := range sids {
				l.wantEnd(sid, 1, session.Completed, "")
			}
			l.run(session.DoorIn, "s0", "run 2 of s0", nil)
			l.wantEnd("s0", 2, session.Completed, "")
			l.once()
		})
	}
}

// heldSessions begins sessions, some in every lane, and returns them with their second
// turns, which wait.
func (l *later) heldSessions() (sids []string, held []*waiting) {
	l.t.Helper()
	for i := range 2 * ownerLanes {
		sid := fmt.Sprint("s", i+1)
		sids = append(sids, sid)
		held = append(held, l.world.wait(func(d deed) bool { return d.sid == sid && d.effect == "r1t2" }))
		l.run(session.DoorIn, sid, "run 1 of "+sid, nil)
	}
	for i, one := range held {
		select {
		case <-one.began:
		case <-time.After(time.Minute):
			l.t.Fatalf("the second turn of %s does not begin within a minute", sids[i])
		}
	}
	return sids, held
}

// TestUpgradeNewerStreams: the settings of the streams are those of the daemon that was
// started last, of whatever release. Session-actors of the other one report that.
func TestUpgradeNewerStreams(t *testing.T) {
	t.Parallel()
	l := startLater(t)
	for _, started := range []struct {
		build string
		want  time.Duration
	}{{oldBuild, 168 * time.Hour}, {newerBuild, 240 * time.Hour}, {thisBuild, 168 * time.Hour}} {
		d := startDaemon(t, of(started.build, "session-actor"), "--nats", l.url)
		until(t, time.Minute, fmt.Sprintf("notices are kept for %v", started.want), func() bool {
			var info struct {
				Config struct {
					Age time.Duration `json:"max_age"`
				} `json:"config"`
			}
			data, err := ask(l.nc, "$JS.API.STREAM.INFO.REFOLD_OUT", "")
			return err == nil && json.Unmarshal(data, &info) == nil && info.Config.Age == started.want
		})
		until(t, time.Minute, "the session-actor of the later release tells whether the stream is as it should be", func() bool {
			return told(l.actor) == (started.want == 168*time.Hour)
		})
		if err := d.drain(time.Minute); err != nil {
			t.Errorf("the %s session-actor after SIGTERM: %v", started.build, err)
		}
	}
}

// told reports whether the latest line about the stream of notices says that it endangers
// something.
func told(d *daemon) (endangered bool) {
	for line := range strings.SplitSeq(d.out.String(), "\n") {
		if strings.Contains(line, "REFOLD_OUT") && strings.Contains(line, "msg=stream_") {
			endangered = strings.Contains(line, "stream_endangered")
		}
	}
	return endangered
}
