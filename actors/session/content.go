package session

import (
	"strconv"

	"github.com/refold/refold/codec"
	"github.com/refold/refold/planner"
)

// contentFault checks c, which may be nil. Empty content is refused unless
// mayBeEmpty.
func contentFault(path string, c *Content, mayBeEmpty bool) *refusal {
	switch {
	case c == nil:
		return nil
	case c.partsCount() > PartsMax:
		return tooManyParts(path)
	}
	return contentFaultAt(path, c, mayBeEmpty)
}

// inputFault checks an input, of which a model is shown all text.
func inputFault(c *Content) *refusal {
	if bad := contentFault("input", c, false); bad != nil {
		return bad
	}
	if n := c.textBytes(); n > ShownBytesMax {
		return refuse(RejectLimitExceeded, "input: "+strconv.FormatInt(n, 10)+" bytes of text, at most "+
			strconv.Itoa(ShownBytesMax)+": shorten it, or let a tool read it")
	}
	return nil
}

// textBytes returns how many bytes of text c and its parts have, by the sizes that
// c states.
func (c *Content) textBytes() int64 {
	n := int64(len(c.Text))
	if c.Blob != nil && IsShownAsText(c.MediaType) {
		n += c.Size
	}
	for i := range c.Parts {
		n += c.Parts[i].textBytes()
	}
	return n
}

func contentFaultAt(path string, c *Content, mayBeEmpty bool) *refusal {
	given := 0
	for _, is := range []bool{c.Text != "", c.Blob != nil, len(c.Parts) > 0} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return refuse(RejectInvalidData, path+": one of text, blob and parts, not several")
	case given == 0 && !mayBeEmpty:
		return refuse(RejectInvalidData, path+": is empty: give text, a blob or parts")
	case len(c.Text) > TextBytesMax:
		return refuse(RejectLimitExceeded, path+".text: "+strconv.Itoa(len(c.Text))+" bytes, inline text is at most "+
			strconv.Itoa(TextBytesMax)+": store it as a blob")
	case c.Blob == nil && (c.Size != 0 || c.MediaType != ""):
		return refuse(RejectInvalidData, path+": size and media_type belong to a blob")
	case c.Blob == nil && c.Name != "":
		return refuse(RejectInvalidData, path+": a name belongs to a blob")
	case c.Size < 0 || c.Size > NumberMax:
		return refuse(RejectInvalidData, path+".size: "+numberRange)
	case len(c.MediaType) > NameBytesMax:
		return refuse(RejectInvalidData, path+".media_type: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	case len(c.Name) > NameBytesMax:
		return refuse(RejectInvalidData, path+".name: at most "+strconv.Itoa(NameBytesMax)+" bytes")
	}
	for i := range c.Parts {
		if bad := contentFaultAt(path+".parts["+strconv.Itoa(i)+"]", &c.Parts[i], false); bad != nil {
			return bad
		}
	}
	return nil
}

// numberRange is the range of a time, a duration or a size.
const numberRange = "0 to 2^53"

func (c *Content) partsCount() int {
	n := len(c.Parts)
	for i := range c.Parts {
		n += c.Parts[i].partsCount()
	}
	return n
}

func tooManyParts(path string) *refusal {
	return refuse(RejectLimitExceeded, path+".parts: at most "+strconv.Itoa(PartsMax)+" in all, nested ones included")
}

// partsUncounted is the size up to which data is decoded without counting its
// parts: it can't hold enough of them to cost much.
const partsUncounted = 8 << 10

// decodeContent is decodeBody for a body with a Content field. An event has room
// for 780,000 parts of a byte, each a hundred bytes in memory, so the parts of a
// large event are counted before it is decoded.
func decodeContent(data codec.Raw, field string, b any) *refusal {
	if len(data) > partsUncounted {
		content, _ := fieldOf(data, field) // decodeBody reports data that is no map
		if parts := 0; !countParts(&token{rest: content}, &parts) {
			return tooManyParts(field)
		}
	}
	return decodeBody(data, b)
}

// resultsPartsFault counts the parts in the results of a large ToolBatchSettled,
// for the same reason.
func resultsPartsFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	results, _ := fieldOf(data, "results")
	t := token{rest: results}
	switch t.next(); {
	case t.Kind != codec.Array:
		return nil
	case t.Len > CallsMax:
		return tooManyResults()
	}
	for range t.Len {
		if !countResultParts(&t) {
			return tooManyParts("output")
		}
	}
	return nil
}

func countResultParts(t *token) bool {
	t.next()
	if t.Kind != codec.Map {
		skip(t)
		return true
	}
	for range t.Len {
		t.next()
		parts := 0
		if string(t.Bytes) != "output" {
			t.next()
			skip(t)
		} else if !countParts(t, &parts) {
			return false
		}
	}
	return true
}

// rulesCountFault counts the step rules of a large object, for the same reason: a
// rule of one byte takes two hundred in memory. path is the object's.
func rulesCountFault(path string, object codec.Raw) *refusal {
	if len(object) <= partsUncounted {
		return nil
	}
	steps, _ := fieldOf(object, "steps")
	t := token{rest: steps}
	if t.next(); t.Kind == codec.Array && t.Len > planner.StepRulesMax {
		return refuse(RejectLimitExceeded, path+"steps: "+strconv.Itoa(t.Len)+" step rules, at most "+strconv.Itoa(planner.StepRulesMax))
	}
	return nil
}

// configRulesFault is rulesCountFault for the config of a RunRequested.
func configRulesFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	config, _ := fieldOf(data, "config")
	return rulesCountFault("config.", config)
}

// profileRulesFault is rulesCountFault for each profile of a ToolRegistrySet.
func profileRulesFault(data codec.Raw) *refusal {
	if len(data) <= partsUncounted {
		return nil
	}
	profiles, _ := fieldOf(data, "profiles")
	t := token{rest: profiles}
	if t.next(); t.Kind != codec.Array {
		return nil
	}
	for i := range t.Len {
		profile := t.rest
		t.next()
		skip(&t)
		if bad := rulesCountFault("profiles["+strconv.Itoa(i)+"].", codec.Raw(profile[:len(profile)-len(t.rest)])); bad != nil {
			return bad
		}
	}
	return nil
}

// token reads canonical bytes that are already validated.
type token struct {
	codec.Token
	rest []byte
}

func (t *token) next() { t.Token, t.rest, _ = codec.Next(t.rest) }

// countParts reads a value in the place of a Content, and adds its parts to n. It
// returns false once there are too many.
func countParts(t *token, n *int) bool {
	t.next()
	if t.Kind != codec.Map {
		skip(t)
		return true
	}
	for range t.Len {
		t.next()
		isParts := string(t.Bytes) == "parts"
		t.next()
		if !isParts || t.Kind != codec.Array {
			skip(t)
			continue
		}
		if *n += t.Len; *n > PartsMax {
			return false
		}
		for range t.Len {
			if !countParts(t, n) {
				return false
			}
		}
	}
	return true
}

// skip reads the values inside the value that t has just read.
func skip(t *token) {
	values := t.Len
	if t.Kind == codec.Map {
		values *= 2
	}
	for range values {
		t.next()
		skip(t)
	}
}
