package docs_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/refold/refold/actors/session"
	"github.com/refold/refold/codec"
	"github.com/refold/refold/internal/journal"
	"github.com/refold/refold/planner"
	"github.com/refold/refold/subjects"
)

// TestFullEvents: a body with all its fields set is taken by the fold through
// the doors that its schema names, and through no other.
func TestFullEvents(t *testing.T) {
	t.Parallel()
	s := readSchemas(t)
	for _, typ := range session.EventTypes() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			doors := s.doors(typ)
			for _, door := range subjects.Doors() {
				f := reach(t, typ)
				body := full(t, typ, f)
				for _, unset := range unsetFields(reflect.ValueOf(body), typ) {
					t.Errorf("%s is not set", unset)
				}
				if resume, ok := body.(session.RunResumeRequested); ok && door == session.DoorIn {
					resume.Budget = nil // TestLargerBudget
					body = resume
				}
				data, err := codec.Marshal(body)
				if err != nil {
					t.Fatal(err)
				}
				payload, err := codec.Marshal(session.Envelope{At: 1_700_000_000_000, By: "ann", Data: data, ID: "01K", Type: typ, V: 1})
				if err != nil {
					t.Fatal(err)
				}
				if err := s.packed("Envelope", payload); err != nil {
					t.Fatal(err)
				}
				taken, notices := f.fold(door, payload)
				if want := slices.Contains(doors, door); taken != want {
					t.Errorf("through %s: taken %v, want %v: %s", door, taken, want, jsonOf(t, notices))
				}
			}
		})
	}
}

// TestLargerBudget: what may not come through every door of its event. A
// client may resume a run, and not raise its budget.
func TestLargerBudget(t *testing.T) {
	t.Parallel()
	payload := jsonOf(t, map[string]any{"type": session.TypeRunResumeRequested, "data": map[string]any{"budget": map[string]any{"tokens": 5}}})
	for door, want := range map[session.Door]bool{session.DoorIn: false, session.DoorCtl: true} {
		taken, notices := reach(t, session.TypeRunResumeRequested).fold(door, payload)
		if taken != want {
			t.Errorf("through %s: taken %v, want %v", door, taken, want)
		}
		if want {
			continue
		}
		if rejected, _ := notices[len(notices)-1].Data.(session.EventRejected); rejected.Code != session.RejectNotPermitted {
			t.Errorf("through %s: got %q, want %q", door, rejected.Code, session.RejectNotPermitted)
		}
	}
}

// oneOf are the types of which not all fields can be set at once.
var oneOf = []reflect.Type{
	reflect.TypeFor[session.Content](), reflect.TypeFor[journal.ClaimBody](), reflect.TypeFor[planner.Rule](), reflect.TypeFor[session.ObservedCall](),
	reflect.TypeFor[planner.Executor](), reflect.TypeFor[session.ReplyGiven](), reflect.TypeFor[session.ImportedMessage](),
}

// eitherOr are the fields in place of which another one may be set.
var eitherOr = map[string]string{"ActiveTools": "ToolRefs", "ToolRefs": "ActiveTools", "Dry": "Apply", "Only": "Grant", "Manifest": "Digests"}

// unsetFields returns the fields of a value that have their zero value.
func unsetFields(v reflect.Value, path string) (all []string) {
	switch v.Kind() {
	case reflect.Pointer:
		return unsetFields(v.Elem(), path)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return nil
		}
		for i := range v.Len() {
			all = append(all, unsetFields(v.Index(i), fmt.Sprintf("%s[%d]", path, i))...)
		}
	case reflect.Struct:
		if slices.Contains(oneOf, v.Type()) {
			return nil
		}
		for field := range fieldsOf(v.Type()) {
			f := v.FieldByIndex(field.Index)
			if other := eitherOr[field.Name]; other != "" && v.FieldByName(other).IsValid() && !v.FieldByName(other).IsZero() || field.Name == "ToolRef" || v.Type() == reflect.TypeFor[planner.ToolSpec]() && field.Name == "Needs" { // needs are for packs
				continue
			}
			if f.IsZero() || f.Kind() == reflect.Slice && f.Len() == 0 {
				all = append(all, path+"."+field.Name)
				continue
			}
			all = append(all, unsetFields(f, path+"."+field.Name)...)
		}
	}
	return all
}
